//! Callers' tools through the broker's entry point: the programs that start sessions, and the
//! agents in them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use ringback_broker::{
    Answer, Broker, CallerCall, CallerStream, Credential, Edge, LineCall, PartyMessage, Replies,
    StreamMode, ToolOffer,
};
use ringback_proto::any::{Any, Format};
use ringback_proto::envelope::CallOptions;
use ringback_proto::ids::{RequestId, SessionId};
use ringback_proto::principal::{Level, Principal};
use ringback_proto::request::{CallWhyRequest, TokenCreateRequest};
use ringback_proto::{Certainty, Error, ErrorKind, ResponseEnvelope, StreamChunk, ToolResponse};

use crate::common::{World, result, start, start_with};

const ROOT: u8 = 1;
const CHILD: u8 = 2;

fn session(number: u8) -> SessionId {
    SessionId::from_random([number; 16])
}

fn json(text: &str) -> Any {
    Any { format: Format::Json, bytes: Bytes::copy_from_slice(text.as_bytes()) }
}

fn tool(name: &str) -> ToolOffer {
    ToolOffer { name: name.to_owned(), ..ToolOffer::default() }
}

async fn token(fixture: &World) -> Credential {
    let request = TokenCreateRequest {
        name: "t".to_owned(),
        scope: Level::Write,
        projects: None,
        expires_in: None,
    };
    let made = result(&fixture.broker, &Credential::local(), request).await.expect("a token");
    let ToolResponse::TokenCreated(made) = made else { panic!("{made:?}") };
    fixture.broker.authenticate(made.token.expose()).expect("valid")
}

fn ask<'a>(from: u8, caller_id: Option<&'a str>, tool: &str, input: &str) -> CallerCall<'a> {
    CallerCall {
        principal: Arc::new(Principal::local()),
        session: session(ROOT),
        from: session(from),
        caller_id,
        tool: tool.to_owned(),
        arguments: json(input),
        options: CallOptions::default(),
        edge: Edge::Relay,
    }
}

fn later(broker: &Broker, call: CallerCall<'_>) -> Replies {
    match broker.callers().call(call) {
        Answer::Later(replies, _) => replies,
        Answer::Now(reply) => panic!("answered immediately: {reply:?}"),
    }
}

fn now(broker: &Broker, call: CallerCall<'_>) -> Error {
    match broker.callers().call(call) {
        Answer::Now(reply) => refused(Some(reply)),
        Answer::Later(..) => panic!("admitted"),
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

/// Polls the replies until the caller has the call.
async fn delivered(replies: &mut Replies, stream: &mut CallerStream) -> Arc<LineCall> {
    tokio::select! {
        biased;
        reply = replies.next() => panic!("answered before it was delivered: {reply:?}"),
        post = stream.next() => match post {
            Some(PartyMessage::Call(call)) => call,
            other => panic!("no call: {other:?}"),
        },
    }
}

fn is_told_nothing(stream: &mut CallerStream) -> bool {
    stream.next().now_or_never().is_none()
}

/// Runs an agent's call until it waits for its caller.
async fn put_on(replies: &mut Replies) {
    tokio::select! {
        biased;
        reply = replies.next() => panic!("it has ended: {reply:?}"),
        () = std::future::ready(()) => {}
    }
}

/// REQ: seed 000 "Caller tool relay": the agent's call reaches the caller, the answer the agent.
/// Rule: a relayed payload is the same bytes in both directions, null and big numbers included.
#[tokio::test]
async fn an_agents_call_reaches_the_caller_and_its_answer_the_agent() {
    let fixture = start().await;
    let (broker, who) = (&fixture.broker, &Credential::local());
    let mut changes = broker.lines().changes();
    broker.callers().declare(who, session(ROOT), "ant", vec![tool("read")]).unwrap();
    assert!(changes.has_changed().unwrap());
    changes.mark_unchanged();
    let mut stream = broker.callers().open(who, session(ROOT), None, StreamMode::Lasting).unwrap();
    for (answer, input) in [("null", "{}"), (r#"{"n":9007199254740993}"#, r#"{"b":1.0, "a":null}"#)]
    {
        let mut replies = later(broker, ask(CHILD, None, "read", input));
        let call = delivered(&mut replies, &mut stream).await;
        assert_eq!(call.arguments, json(input));
        assert_eq!((call.caller_id(), &*call.tool.name), (Some("ant"), "read"));
        assert_eq!(call.root_session(), Some(session(ROOT)));
        assert_eq!(call.from_session(), Some(session(CHILD)));
        assert_eq!(call.deadline.allowed_ms, 60_000);
        let id: RequestId = call.request_id.parse().expect("a UUID");
        assert_eq!((id.as_bytes()[6] >> 4, id.as_bytes()[8] >> 6), (4, 2), "of version 4");
        broker.callers().answer(who, session(ROOT), &call.request_id, Ok(json(answer))).unwrap();
        assert_eq!(passed(replies.next().await), json(answer));
    }
    let mut replies = later(broker, ask(ROOT, Some("ant"), "read", "{}"));
    let call = delivered(&mut replies, &mut stream).await;
    let failed = Err(Error::new(ErrorKind::ToolFailed, ""));
    broker.callers().answer(who, session(ROOT), &call.request_id, failed).unwrap();
    let error = refused(replies.next().await);
    assert_eq!((error.kind(), error.certainty()), (ErrorKind::ToolFailed, Certainty::Ran));

    broker.callers().end(session(ROOT));
    assert!(stream.next().await.is_none(), "the session ended");
    assert!(changes.has_changed().unwrap());
    drop(stream);
    assert_eq!((broker.under_way().lines, broker.under_way().n_calls), ((0, 0, 0), 0));
}

/// Rule: an answer from another principal, for another session, or a second answer is refused.
#[tokio::test]
async fn only_the_caller_of_the_session_answers_and_only_once() {
    let fixture = start().await;
    let broker = &fixture.broker;
    let (owner, stranger) = (&token(&fixture).await, &Credential::local());
    broker.callers().declare(owner, session(ROOT), "ant", vec![tool("read")]).unwrap();
    broker.callers().declare(owner, session(7), "ant", vec![tool("read")]).unwrap();
    let taken = broker.callers().declare(stranger, session(ROOT), "ant", vec![]).unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::Conflict);
    let mut spy =
        broker.callers().open(stranger, session(ROOT), None, StreamMode::Lasting).unwrap();
    let mut other = broker.callers().open(owner, session(7), None, StreamMode::Lasting).unwrap();
    let mut stream =
        broker.callers().open(owner, session(ROOT), None, StreamMode::Lasting).unwrap();
    let mut replies = later(broker, ask(CHILD, None, "read", "{}"));
    let call = delivered(&mut replies, &mut stream).await;
    assert!(is_told_nothing(&mut spy) && is_told_nothing(&mut other));
    assert!(broker.callers().pending(stranger, session(ROOT)).unwrap().is_empty());
    assert!(broker.callers().pending(owner, session(7)).unwrap().is_empty());
    assert_eq!(broker.callers().pending(owner, session(ROOT)).unwrap().len(), 1);

    let (id, forged) = (&*call.request_id, || Ok(json("0")));
    let refusals = [
        broker.callers().answer(stranger, session(ROOT), id, forged()),
        broker.callers().answer(owner, session(7), id, forged()),
        broker.callers().answer(owner, session(ROOT), "x", forged()),
        broker.lines().answer(owner, id, forged()),
        broker.callers().progress(owner, session(7), id, 1.0, String::new()).await,
        broker.callers().progress(stranger, session(ROOT), id, 1.0, String::new()).await,
    ];
    for refusal in refusals {
        assert_eq!(refusal.unwrap_err().kind(), ErrorKind::NotFound);
    }
    broker.callers().answer(owner, session(CHILD), id, Ok(json("1"))).unwrap();
    let second = broker.callers().answer(owner, session(ROOT), id, forged()).unwrap_err();
    assert!(second.message().contains("was answered"), "{second}");
    assert_eq!(passed(replies.next().await), json("1"));
    let local = Credential::local();
    let why = result(broker, &local, CallWhyRequest { id: call.id.to_string() }).await.unwrap();
    let ToolResponse::CallExplained(why) = why else { panic!("{why:?}") };
    assert_eq!((why.line.as_deref(), why.late_answers), (Some("caller `ant`"), Some(1)));
}

/// Rule: an undeclared tool is not relayed, and input that does not match the schema is never sent.
#[tokio::test]
async fn undeclared_tools_and_misfits_are_refused_before_anybody_is_asked() {
    let fixture = start().await;
    let (broker, who) = (&fixture.broker, &Credential::local());
    let schema = |text| ToolOffer { input_schema: Some(json(text)), ..tool("send") };
    for bad in [r#"{"type":"string"}"#, r#"{"type":null}"#, "[]", r#"{"properties":7}"#] {
        let tools = vec![tool("fine"), schema(bad)];
        let refused = broker.callers().declare(who, session(ROOT), "ant", tools).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid, "{bad}");
        assert_eq!(refused.context().field.as_deref(), Some("inputSchema"), "{refused}");
    }
    assert!(broker.callers().tools(session(ROOT)).is_empty(), "no partial declaration");
    let tools = vec![schema(r#"{"required":["to"]}"#), tool("any")];
    broker.callers().declare(who, session(ROOT), "ant", tools).unwrap();
    let callers = broker.callers().tools(session(ROOT));
    let schemas: Vec<_> =
        callers[0].tools.iter().map(|tool| tool.info.schema_json().clone()).collect();
    assert_eq!(schemas, [r#"{"type":"object","required":["to"]}"#, r#"{"type":"object"}"#]);
    assert_eq!((&*callers[0].caller_id, callers[0].owner), ("ant", who.id()));

    let mut stream = broker.callers().open(who, session(ROOT), None, StreamMode::Lasting).unwrap();
    for undeclared in [ask(ROOT, None, "secret", "{}"), ask(ROOT, Some("bee"), "send", "{}")] {
        assert_eq!(now(broker, undeclared).kind(), ErrorKind::NotFound);
    }
    let misfit = refused(later(broker, ask(ROOT, None, "send", "{}")).next().await);
    assert_eq!((misfit.kind(), misfit.certainty()), (ErrorKind::Invalid, Certainty::NotStarted));
    assert!(is_told_nothing(&mut stream));
}

/// Rule: if the caller disconnects, the agent does not wait for the deadline; if the caller cannot
/// receive calls, the agent gets an error.
#[tokio::test]
async fn the_agent_is_told_at_once_that_its_caller_has_left() {
    let fixture = start().await;
    let (broker, who) = (&fixture.broker, &Credential::local());
    broker.callers().declare(who, session(ROOT), "ant", vec![tool("read")]).unwrap();
    let mut stream = broker.callers().open(who, session(ROOT), None, StreamMode::Lasting).unwrap();
    let mut replies = later(broker, ask(ROOT, None, "read", "{}"));
    let call = delivered(&mut replies, &mut stream).await;
    drop(stream);
    let gone = refused(replies.next().await);
    assert_eq!((gone.kind(), gone.certainty()), (ErrorKind::Gone, Certainty::MayHaveRun));
    let late = broker.callers().answer(who, session(ROOT), &call.request_id, Ok(json("1")));
    assert_eq!(late.unwrap_err().kind(), ErrorKind::NotFound);
    let gone = refused(later(broker, ask(ROOT, None, "read", "{}")).next().await);
    assert_eq!((gone.kind(), gone.certainty()), (ErrorKind::Gone, Certainty::NotStarted));
    let mut stream = broker.callers().open(who, session(ROOT), None, StreamMode::Lasting).unwrap();
    let mut replies = later(broker, ask(ROOT, None, "read", "{}"));
    let call = delivered(&mut replies, &mut stream).await;
    drop(replies);
    let Some(PartyMessage::Cancel { custom_id, .. }) = stream.next().await else {
        panic!("no cancel")
    };
    assert_eq!(custom_id, Some(Arc::clone(&call.request_id)), "the agent left");
}

/// Rule: a caller that polls gets every call, immediately when it is new and again when an answer
/// may have been lost, and is gone when it stops polling.
#[tokio::test(start_paused = true)]
async fn a_caller_may_poll() {
    let fixture = start_with(|config| config.lines.poll_grace_ms = 5_000).await;
    let (broker, who) = (&fixture.broker, &Credential::local());
    let wait = Duration::from_secs(20);
    let poll = |wait| broker.callers().poll(who, session(ROOT), None, wait);
    broker.callers().declare(who, session(ROOT), "ant", vec![tool("read")]).unwrap();
    assert!(poll(Duration::ZERO).await.unwrap().is_empty());
    let mut first = later(broker, ask(ROOT, None, "read", r#"{"n":1}"#));
    put_on(&mut first).await;
    let polled = poll(wait).await.unwrap();
    assert_eq!(polled.len(), 1);
    let began = tokio::time::Instant::now();
    let again = poll(wait).await.unwrap();
    assert!(Arc::ptr_eq(&polled[0], &again[0]) && again.len() == 1, "the answer was lost");
    assert!(began.elapsed() >= Duration::from_secs(1), "not in a tight loop");
    let mut second = later(broker, ask(ROOT, None, "read", r#"{"n":2}"#));
    put_on(&mut second).await;
    let both = poll(wait).await.unwrap();
    assert_eq!(both.len(), 2);
    assert_eq!(both[0].arguments, json(r#"{"n":2}"#), "new ones first");
    broker.callers().answer(who, session(ROOT), &polled[0].request_id, Ok(json("1"))).unwrap();
    assert_eq!(passed(first.next().await), json("1"));
    let began = tokio::time::Instant::now();
    let gone = refused(second.next().await);
    assert_eq!((gone.kind(), gone.certainty()), (ErrorKind::Gone, Certainty::MayHaveRun));
    assert_eq!(began.elapsed().as_secs(), 5, "the grace period after its last poll");
}

#[tokio::test(start_paused = true)]
async fn a_caller_reports_progress_and_a_deadline_holds_all_the_same() {
    let fixture = start_with(|config| config.lines.caller_call_ms_default = 500).await;
    let (broker, who) = (&fixture.broker, &Credential::local());
    let slow = ToolOffer { timeout_ms: Some(900), ..tool("slow") };
    broker.callers().declare(who, session(ROOT), "ant", vec![tool("usual"), slow]).unwrap();
    let mut stream = broker.callers().open(who, session(ROOT), None, StreamMode::Lasting).unwrap();
    for (name, allowed_ms) in [("usual", 500), ("slow", 900)] {
        let options = CallOptions { stream: true, ..CallOptions::default() };
        let mut replies = later(broker, CallerCall { options, ..ask(ROOT, None, name, "{}") });
        let start = replies.next().await;
        assert!(matches!(start, Some(ResponseEnvelope::StreamStart { .. })), "{start:?}");
        let call = delivered(&mut replies, &mut stream).await;
        assert_eq!(call.deadline.allowed_ms, allowed_ms);
        let half = "half".to_owned();
        let id = &call.request_id;
        broker.callers().progress(who, session(ROOT), id, 50.0, half.clone()).await.unwrap();
        let Some(ResponseEnvelope::StreamChunk { chunk, .. }) = replies.next().await else {
            panic!("no chunk")
        };
        assert_eq!(chunk, StreamChunk::Progress { percent: 50.0, message: half });
        let error = refused(replies.next().await);
        assert_eq!((error.kind(), error.certainty()), (ErrorKind::Timeout, Certainty::MayHaveRun));
        let late = broker.callers().answer(who, session(ROOT), id, Ok(json("1"))).unwrap_err();
        assert!(late.message().contains("timed out"), "{late}");
        assert!(matches!(stream.next().await, Some(PartyMessage::Cancel { .. })));
    }
}

/// Rule: one session never receives another's tools or calls, even when many start at the same
/// moment, and a slow tool delays no other call.
#[tokio::test]
async fn many_sessions_with_the_same_names_never_mix() {
    let fixture = start_with(|config| config.calls_per_principal_max = 1000).await;
    let (broker, who) = (&fixture.broker, &Credential::local());
    let mut open = Vec::new();
    for number in 0..100_u8 {
        broker.callers().declare(who, session(number), "ant", vec![tool("who")]).unwrap();
        let stream =
            broker.callers().open(who, session(number), None, StreamMode::Lasting).unwrap();
        let input = format!(r#"{{"n":{number}}}"#);
        let call = ask(number, Some("ant"), "who", &input);
        let replies = later(broker, CallerCall { session: session(number), ..call });
        open.push((number, stream, replies));
    }
    for (number, stream, replies) in open.iter_mut().rev() {
        let call = delivered(replies, stream).await;
        assert_eq!(call.arguments, json(&format!(r#"{{"n":{number}}}"#)));
        let answer = Ok(json(&number.to_string()));
        broker.callers().answer(who, session(*number), &call.request_id, answer).unwrap();
        assert_eq!(passed(replies.next().await), json(&number.to_string()));
        assert!(is_told_nothing(stream));
    }
}
