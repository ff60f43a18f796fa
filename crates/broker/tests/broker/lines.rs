//! Tools on lines, through the broker's entry point: parties of every kind, and waiting callers.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ringback_broker::{
    Answer, Audience, Broker, Call, CallContext, Credential, Edge, LineCall, LineName, LineOffer,
    LineRequest, LineStream, PartyMessage, Replies, ToolOffer,
};
use ringback_proto::any::{Any, Format};
use ringback_proto::envelope::{CallOptions, RequestEnvelope, ToolCall};
use ringback_proto::principal::Level;
use ringback_proto::request::{
    CallWhyRequest, ListToolsRequest, TokenCreateRequest, TokenRevokeRequest,
};
use ringback_proto::{
    Certainty, Error, ErrorKind, Event, ResponseEnvelope, StreamChunk, ToolResponse,
};

use crate::common::{World, request_id, result, start, start_with};

fn client(name: &str) -> LineName {
    LineName::Client(name.into())
}

fn worker(name: &str) -> LineName {
    LineName::Worker(name.into())
}

fn json(text: &str) -> Any {
    Any { format: Format::Json, bytes: Bytes::copy_from_slice(text.as_bytes()) }
}

fn tool(name: &str) -> ToolOffer {
    ToolOffer { name: name.to_owned(), ..ToolOffer::default() }
}

fn offer(broker: &Broker, who: &Credential, line: LineName, tools: Vec<ToolOffer>) {
    broker.lines().offer(who, LineOffer { line, grace_ms: None, tools }).expect("offered");
}

/// Creates a token; returns its credential and its public id.
async fn token(fixture: &World, level: Level) -> Credential {
    let request =
        TokenCreateRequest { name: "t".to_owned(), scope: level, projects: None, expires_in: None };
    let made = result(&fixture.broker, &Credential::local(), request).await.expect("a token");
    let ToolResponse::TokenCreated(made) = made else { panic!("{made:?}") };
    fixture.broker.authenticate(made.token.expose()).expect("valid")
}

struct Caller<'a> {
    broker: &'a Broker,
    who: &'a Credential,
    edge: Edge,
    options: CallOptions,
}

impl Caller<'_> {
    fn call(&self, tool: &str, input: &str) -> Replies {
        let arguments = match self.edge.format() {
            Format::Json => json(input),
            Format::MsgPack => {
                let value: ringback_proto::value::Value =
                    serde_json::from_str(input).expect("JSON");
                let bytes = rmp_serde::to_vec_named(&value).expect("MsgPack").into();
                Any { format: Format::MsgPack, bytes }
            }
        };
        let request = ToolCall::Named { name: tool.to_owned(), arguments };
        let envelope = RequestEnvelope { request, options: self.options };
        let call = Call { credential: self.who, edge: self.edge, envelope, request_id: None };
        match self.broker.call(call) {
            Answer::Later(replies, _) => replies,
            Answer::Now(reply) => panic!("answered immediately: {reply:?}"),
        }
    }
}

fn http<'a>(broker: &'a Broker, who: &'a Credential) -> Caller<'a> {
    Caller { broker, who, edge: Edge::Http, options: CallOptions::default() }
}

async fn next_call(stream: &mut LineStream) -> Arc<LineCall> {
    match stream.next().await {
        Some(PartyMessage::Call(call)) => call,
        other => panic!("no call: {other:?}"),
    }
}

/// Polls the replies until the party has the call.
async fn delivered(replies: &mut Replies, stream: &mut LineStream) -> Arc<LineCall> {
    tokio::select! {
        biased;
        reply = replies.next() => panic!("answered before it was delivered: {reply:?}"),
        call = next_call(stream) => call,
    }
}

fn refused(reply: Option<ResponseEnvelope>) -> Error {
    match reply {
        Some(ResponseEnvelope::Error(error)) => error.into(),
        other => panic!("not an error: {other:?}"),
    }
}

fn passed(reply: Option<ResponseEnvelope>) -> Any {
    match reply {
        Some(ResponseEnvelope::Success { response: ToolResponse::Passed(passed) }) => passed,
        other => panic!("no payload: {other:?}"),
    }
}

/// Rule: a relayed payload is never re-encoded: key order, unknown fields, big numbers and null
/// survive.
#[tokio::test]
async fn a_payload_passes_from_caller_to_party_and_back_as_the_same_bytes() {
    let fixture = start().await;
    let (broker, who) = (&fixture.broker, &Credential::local());
    offer(broker, who, client("tab"), vec![tool("echo")]);
    let mut stream = broker.lines().open(who, &client("tab")).unwrap();
    let input = r#"{"z":123456789012345678901234567890,"a":null, "k":1.0}"#;
    let mut replies = http(broker, who).call("client_tab_echo", input);
    let call = delivered(&mut replies, &mut stream).await;
    assert_eq!(call.arguments.bytes, input);
    assert_eq!(&*call.request_id, call.id.to_string());
    let output = r#"{"big":98765432109876543210, "n":null}"#;
    broker.lines().answer(who, &call.request_id, Ok(json(output))).unwrap();
    assert_eq!(passed(replies.next().await).bytes, output);
    drop(stream);
    assert_eq!(broker.under_way().lines, (0, 0, 0));
    assert_eq!(broker.under_way().n_calls, 0);
}

#[tokio::test]
async fn a_hoot_caller_reaches_an_http_client_and_a_worker_an_http_caller() {
    let fixture = start().await;
    let (broker, who) = (&fixture.broker, &Credential::local());
    offer(broker, who, client("tab"), vec![tool("echo")]);
    let mut tab = broker.lines().open(who, &client("tab")).unwrap();
    let hoot = Caller { broker, who, edge: Edge::Hoot, options: CallOptions::default() };
    let mut replies = hoot.call("client_tab_echo", r#"{"n":18446744073709551615}"#);
    let call = delivered(&mut replies, &mut tab).await;
    assert_eq!(call.arguments, json(r#"{"n":18446744073709551615}"#));
    broker.lines().answer(who, &call.request_id, Ok(json("[1,null]"))).unwrap();
    let answer = passed(replies.next().await);
    assert_eq!((answer.format, &answer.bytes[..]), (Format::MsgPack, &[0x92, 1, 0xc0][..]));

    let mut gpu = broker.lines().open(who, &worker("gpu")).unwrap();
    gpu.offer(vec![tool("render")]).unwrap();
    let mut replies = http(broker, who).call("gpu_render", r#"{"a":1}"#);
    let call = delivered(&mut replies, &mut gpu).await;
    assert_eq!(&call.arguments.bytes[..], [0x81, 0xa1, b'a', 1]);
    let answer = Any { format: Format::MsgPack, bytes: Bytes::from_static(&[0xc3]) };
    broker.lines().answer(who, &call.id.to_string(), Ok(answer)).unwrap();
    assert_eq!(passed(replies.next().await), json("true"));
}

#[tokio::test]
async fn input_that_does_not_fit_the_schema_never_leaves() {
    let fixture = start().await;
    let (broker, who) = (&fixture.broker, &Credential::local());
    let schema = json(r#"{"type":"object","required":["to"]}"#);
    let strict = ToolOffer { input_schema: Some(schema), ..tool("send") };
    offer(broker, who, client("tab"), vec![strict]);
    let mut stream = broker.lines().open(who, &client("tab")).unwrap();
    let mut replies = http(broker, who).call("client_tab_send", "{}");
    let error = refused(replies.next().await);
    assert_eq!((error.kind(), error.certainty()), (ErrorKind::Invalid, Certainty::NotStarted));
    let mut replies = http(broker, who).call("client_tab_send", r#"{"to":"x"}"#);
    let call = delivered(&mut replies, &mut stream).await;
    assert_eq!(
        call.arguments,
        json(r#"{"to":"x"}"#),
        "the first call delivered is the one with valid input"
    );
}

/// Rule: when the caller hangs up, the client is notified.
#[tokio::test]
async fn a_caller_that_leaves_cancels_its_call_at_the_party_and_a_late_answer_is_refused() {
    let fixture = start().await;
    let (broker, who) = (&fixture.broker, &Credential::local());
    offer(broker, who, client("tab"), vec![tool("slow")]);
    let mut stream = broker.lines().open(who, &client("tab")).unwrap();
    let mut replies = http(broker, who).call("client_tab_slow", "{}");
    let call = delivered(&mut replies, &mut stream).await;
    drop(replies);
    let Some(PartyMessage::Cancel { call: cancelled, reason, .. }) = stream.next().await else {
        panic!("no cancel")
    };
    assert_eq!((cancelled, reason.as_str()), (call.id, "cancelled"));
    let late = broker.lines().answer(who, &call.request_id, Ok(json("1"))).unwrap_err();
    assert_eq!(late.kind(), ErrorKind::NotFound);
    let why = result(broker, who, CallWhyRequest { id: call.id.to_string() }).await.unwrap();
    let ToolResponse::CallExplained(why) = why else { panic!("{why:?}") };
    assert_eq!(why.line.as_deref(), Some("client `tab`"));
    assert_eq!((why.delivered_at.map(|at| at.len()), why.late_answers), (Some(1), Some(1)));
}

/// Rule: a result after the timeout is never reported as accepted.
#[tokio::test(start_paused = true)]
async fn a_deadline_is_the_smallest_of_all_and_progress_moves_it_only_if_the_tool_says_so() {
    let fixture = start_with(|config| config.lines.client_call_ms_default = 500).await;
    let (broker, who) = (&fixture.broker, &Credential::local());
    let timed = ToolOffer { timeout_ms: Some(200), ..tool("timed") };
    let patient = ToolOffer { timeout_ms: Some(200), progress_extends: true, ..tool("patient") };
    offer(broker, who, client("tab"), vec![tool("usual"), timed, patient]);
    let mut stream = broker.lines().open(who, &client("tab")).unwrap();
    for (name, allowed_ms) in [("usual", 500), ("timed", 200)] {
        let mut replies = http(broker, who).call(&format!("client_tab_{name}"), "{}");
        let call = delivered(&mut replies, &mut stream).await;
        assert_eq!(call.deadline.allowed_ms, allowed_ms);
        broker.lines().progress(who, &call.request_id, 5.0, String::new()).await.unwrap();
        let error = refused(replies.next().await);
        assert_eq!((error.kind(), error.certainty()), (ErrorKind::Timeout, Certainty::MayHaveRun));
        let late = broker.lines().answer(who, &call.request_id, Ok(json("1"))).unwrap_err();
        assert!(late.message().contains("timed out"), "{late}");
        assert!(matches!(stream.next().await, Some(PartyMessage::Cancel { .. })));
    }
    let mut replies = http(broker, who).call("client_tab_patient", "{}");
    let call = delivered(&mut replies, &mut stream).await;
    for _ in 0..5 {
        tokio::select! {
            biased;
            reply = replies.next() => panic!("ended early: {reply:?}"),
            () = tokio::time::sleep(Duration::from_millis(150)) => {}
        }
        broker.lines().progress(who, &call.request_id, 50.0, String::new()).await.unwrap();
    }
    broker.lines().answer(who, &call.request_id, Ok(json("1"))).unwrap();
    assert_eq!(passed(replies.next().await), json("1"));
}

#[tokio::test]
async fn a_caller_that_follows_gets_chunks_then_the_answer() {
    let fixture = start().await;
    let (broker, who) = (&fixture.broker, &Credential::local());
    let mut gpu = broker.lines().open(who, &worker("gpu")).unwrap();
    gpu.offer(vec![tool("render")]).unwrap();
    let mut subscription = broker.subscribe();
    let options = CallOptions { stream: true, ..CallOptions::default() };
    let caller = Caller { broker, who, edge: Edge::Http, options };
    let mut replies = caller.call("gpu_render", "{}");
    let start = replies.next().await;
    assert!(matches!(start, Some(ResponseEnvelope::StreamStart { job_id: None, .. })));
    let call = delivered(&mut replies, &mut gpu).await;
    let id = call.id.to_string();
    broker.lines().progress(who, &id, 50.0, "half".to_owned()).await.unwrap();
    let sink = broker.lines().chunk_sink(who, &id).unwrap();
    let line = StreamChunk::LogLine {
        level: ringback_proto::chunk::LogLevel::Info,
        message: "line".to_owned(),
    };
    sink.send(line.clone()).await;
    let answer = Any { format: Format::MsgPack, bytes: Bytes::from_static(&[7]) };
    broker.lines().answer(who, &id, Ok(answer)).unwrap();
    let mut chunks = Vec::new();
    let last = loop {
        match replies.next().await {
            Some(ResponseEnvelope::StreamChunk { chunk, .. }) => chunks.push(chunk),
            last => break last,
        }
    };
    assert_eq!(chunks.len(), 2);
    assert_eq!(chunks[1], line);
    let Some(ResponseEnvelope::StreamEnd { final_response, .. }) = last else { panic!("{last:?}") };
    assert_eq!(final_response, Some(ToolResponse::Passed(json("7"))));
    assert!(replies.next().await.is_none());
    // Those who listen get the same, between its start and its end.
    let mut told = Vec::new();
    while !matches!(told.last(), Some(Event::StreamEnded { .. })) {
        told.extend(subscription.next(10).await.iter().map(|told| told.event.event.clone()));
    }
    let [Event::StreamStarted { tool, job_id: None, .. }, rest @ ..] = &told[..] else {
        panic!("{told:?}")
    };
    assert_eq!(tool, "gpu_render");
    let mut published = Vec::new();
    for event in rest {
        if let Event::StreamChunk { chunk, .. } = event {
            published.push(chunk.clone());
        }
    }
    assert_eq!(published, chunks);
}

/// Rule: a retry with the same request id never runs the tool twice.
#[tokio::test]
async fn a_repeat_gets_the_answer_of_the_first() {
    let fixture = start().await;
    let (broker, who) = (&fixture.broker, &Credential::local());
    offer(broker, who, client("tab"), vec![tool("pay")]);
    let mut stream = broker.lines().open(who, &client("tab")).unwrap();
    let request = |input: &str| LineRequest {
        credential: who,
        edge: Edge::Http,
        tool: "client_tab_pay".to_owned(),
        arguments: json(input),
        options: CallOptions::default(),
        request_id: Some(request_id(1)),
        custom_id: None,
        context: CallContext::default(),
    };
    let later = |request| match broker.lines().call(request) {
        Answer::Later(replies, _) => replies,
        Answer::Now(reply) => panic!("{reply:?}"),
    };
    let (mut first, mut again) = (later(request("{}")), later(request("{}")));
    let call = delivered(&mut first, &mut stream).await;
    broker.lines().answer(who, &call.request_id, Ok(json("1"))).unwrap();
    assert_eq!(passed(first.next().await), json("1"));
    assert_eq!(passed(again.next().await), json("1"));
    let other = refused(later(request(r#"{"a":1}"#)).next().await);
    assert_eq!(other.kind(), ErrorKind::Conflict);
}

/// Rule: one principal's tools, calls and events are invisible to all others, unless shared.
#[tokio::test]
async fn a_stranger_sees_calls_and_answers_nothing() {
    let fixture = start().await;
    let broker = &fixture.broker;
    let (owner, stranger) =
        (token(&fixture, Level::Write).await, token(&fixture, Level::Write).await);
    let reader = token(&fixture, Level::Read).await;
    offer(broker, &owner, client("tab"), vec![tool("mine")]);
    let mut stream = broker.lines().open(&owner, &client("tab")).unwrap();
    let named = || ToolCall::Named { name: "client_tab_mine".to_owned(), arguments: json("{}") };
    for who in [&stranger, &reader] {
        let envelope = RequestEnvelope::plain(named());
        let call = Call { credential: who, edge: Edge::Http, envelope, request_id: None };
        let Answer::Now(reply) = broker.call(call) else { panic!("admitted") };
        assert_eq!(refused(Some(reply)).kind(), ErrorKind::NotFound);
    }
    let taken = broker.lines().open(&stranger, &client("tab")).unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::Forbidden);
    assert!(broker.lines().withdraw(&stranger, &client("tab"), None).is_err());
    assert!(broker.lines().tools_of(&stranger, &client("tab")).unwrap().is_empty());
    assert_eq!(
        broker.lines().open(&reader, &client("r")).unwrap_err().kind(),
        ErrorKind::Forbidden
    );

    let mut replies = http(broker, &owner).call("client_tab_mine", "{}");
    let call = delivered(&mut replies, &mut stream).await;
    let forged = broker.lines().answer(&stranger, &call.request_id, Ok(json("1"))).unwrap_err();
    assert_eq!(forged.kind(), ErrorKind::NotFound);
    assert!(broker.lines().waiting_call(&stranger, call.id).is_none());
    assert!(broker.lines().waiting_call(&owner, call.id).is_some());
    broker.lines().answer(&owner, &call.request_id, Ok(json("2"))).unwrap();
    assert_eq!(passed(replies.next().await), json("2"));
}

#[tokio::test]
async fn tools_on_lines_are_listed_among_the_native_ones_in_order_for_those_who_may_call_them() {
    let fixture = start().await;
    let broker = &fixture.broker;
    let (owner, friend) =
        (token(&fixture, Level::Write).await, token(&fixture, Level::Write).await);
    let ringback_proto::principal::PrincipalId::Token(friend_id) = friend.id() else { panic!() };
    let shared = ToolOffer { audience: Audience::Tokens(vec![friend_id]), ..tool("shared") };
    offer(broker, &owner, client("tab"), vec![tool("own"), shared]);
    let listed = |who: Credential| async move {
        let listed = result(broker, &who, ListToolsRequest::default()).await.unwrap();
        let ToolResponse::ToolsList(listed) = listed else { panic!("{listed:?}") };
        let names: Vec<_> = listed.tools.into_iter().map(|tool| tool.name).collect();
        assert!(names.is_sorted(), "{names:?}");
        names.into_iter().filter(|name| name.starts_with("client_")).collect::<Vec<_>>()
    };
    assert_eq!(listed(owner.clone()).await, ["client_tab_own", "client_tab_shared"]);
    assert_eq!(listed(friend).await, ["client_tab_shared"]);
    let prefix = ListToolsRequest { cursor: None, prefix: Some("client_tab_o".to_owned()) };
    let listed = result(broker, &owner, prefix).await.unwrap();
    let ToolResponse::ToolsList(listed) = listed else { panic!("{listed:?}") };
    assert_eq!((listed.tools.len(), listed.next_cursor), (1, None));
}

/// Rule: a revoked token's stream closes, and its tools go with it.
#[tokio::test]
async fn revoking_a_token_ends_its_streams() {
    let fixture = start().await;
    let broker = &fixture.broker;
    let owner = token(&fixture, Level::Write).await;
    let ringback_proto::principal::PrincipalId::Token(token_id) = owner.id() else { panic!() };
    let mut stream = broker.lines().open(&owner, &client("tab")).unwrap();
    let revoke = TokenRevokeRequest { token_id };
    let local = Credential::local();
    let (ended, revoked) = tokio::join!(stream.next(), result(broker, &local, revoke));
    revoked.unwrap();
    assert!(ended.is_none());
}

#[tokio::test]
async fn a_client_tool_is_told_about_from_its_registration_to_its_end() {
    let fixture = start().await;
    let (broker, who) = (&fixture.broker, &Credential::local());
    let mut changes = broker.lines().changes();
    let mut subscription = broker.subscribe();
    offer(broker, who, client("tab"), vec![tool("t")]);
    assert!(changes.has_changed().unwrap());
    changes.mark_unchanged();
    let mut stream = broker.lines().open(who, &client("tab")).unwrap();
    for outcome in [Ok(json("1")), Err(Error::new(ErrorKind::ToolFailed, "no ink"))] {
        let mut replies = http(broker, who).call("client_tab_t", r#"{"secret":"hunter2"}"#);
        let call = delivered(&mut replies, &mut stream).await;
        broker.lines().answer(who, &call.request_id, outcome).unwrap();
        replies.next().await.unwrap();
    }
    drop(stream);
    assert!(changes.has_changed().unwrap());
    let events = subscription.next(100).await;
    let topics: Vec<_> = events.iter().map(|event| event.event.event.topic()).collect();
    let expected = [
        "client-tool.registered",
        "tools.changed",
        "client-tool.request",
        "client-tool.executing",
        "client-tool.completed",
        "client-tool.request",
        "client-tool.executing",
        "client-tool.failed",
        "client-tool.unregistered",
        "tools.changed",
    ];
    assert_eq!(topics, expected);
    assert!(!format!("{events:?}").contains("hunter2"), "events never carry arguments");
    let Event::ClientToolFailed { error, .. } = &events[7].event.event else { panic!() };
    assert_eq!(error, "no ink");
}
