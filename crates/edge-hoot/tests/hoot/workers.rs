//! Tools of a worker over HOOT01, and the fate of its calls when it leaves.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use ringback_client::{Client, ServeError, ServingState, Worker, WorkerCall, WorkerTools};
use ringback_proto::any::{Any, Format};
use ringback_proto::chunk::LogLevel;
use ringback_proto::frame::{Body, Command, Frame, Text};
use ringback_proto::ids::{RequestId, StreamId};
use ringback_proto::principal::Level;
use ringback_proto::ready::{OfferedTool, Ready};
use ringback_proto::{
    CallOptions, Certainty, Error, ErrorKind, RequestEnvelope, ResponseEnvelope, StreamChunk,
    ToolCall, ToolResponse,
};
use ringback_testkit::{GRACE, Hello, PEER_IDLE, RawPeer, World, wait_for, within};
use tokio::task::JoinSet;

use crate::support::*;

/// Returns `{"b": 2, "a": [1, nil], "b2": bin 0..=255}` in an order and with widths that no encoder
/// chooses.
fn odd_value() -> Bytes {
    let mut bytes = vec![0xde, 0, 3, 0xd9, 1, b'b', 0xcd, 0, 2, 0xa1, b'a', 0xdc, 0, 2, 1, 0xc0];
    bytes.extend([0xa2, b'b', b'2', 0xc5, 1, 0]);
    bytes.extend(0..=255_u8);
    bytes.into()
}

fn nothing() -> Bytes {
    Bytes::from_static(&[0x80])
}

fn named(name: &str) -> OfferedTool {
    OfferedTool::Name(name.to_owned())
}

fn idempotent(name: &str) -> OfferedTool {
    OfferedTool::Described {
        name: name.to_owned(),
        description: "may run twice".to_owned(),
        input_schema: None,
        timing: None,
        idempotent: true,
        timeout_ms: None,
    }
}

fn ready(service: &str, tools: Vec<OfferedTool>) -> Frame {
    let ready = Ready { protocol: "HOOT01".to_owned(), tools, accepts_binary: false };
    let body = Body::MsgPack(rmp_serde::to_vec_named(&ready).unwrap().into());
    let service = Text::try_from(service).unwrap();
    Frame { service, ..Frame::new(Command::Ready, RequestId::random(), body) }
}

fn call(name: &str, arguments: Bytes, options: CallOptions) -> Frame {
    let arguments = Any { format: Format::MsgPack, bytes: arguments };
    let request = ToolCall::Named { name: name.to_owned(), arguments };
    let body = RequestEnvelope { request, options }.encode();
    Frame::new(Command::Request, RequestId::random(), Body::MsgPack(body.into()))
}

fn success(bytes: Bytes) -> ResponseEnvelope {
    let passed = Any { format: Format::MsgPack, bytes };
    ResponseEnvelope::Success { response: ToolResponse::Passed(passed) }
}

fn body(frame: &Frame) -> &Bytes {
    let Body::MsgPack(body) = &frame.body else { panic!("no MsgPack in {frame:?}") };
    body
}

/// Returns an accepted raw worker.
async fn raw_worker(daemon: &World, service: &str, tools: Vec<OfferedTool>) -> RawPeer {
    let mut worker = raw(daemon).await;
    let accepted = ask(&mut worker, ready(service, tools)).await;
    assert!(matches!(accepted, ResponseEnvelope::Ack { .. }), "{accepted:?}");
    worker
}

/// Returns the next frame of this kind, and skips others.
async fn next(worker: &mut RawPeer, command: Command) -> Frame {
    within("a frame for the worker", async {
        loop {
            let frame = worker.recv_frame().await;
            if frame.command == command {
                return frame;
            }
        }
    })
    .await
}

async fn answer(worker: &mut RawPeer, to: RequestId, reply: &ResponseEnvelope) {
    let body = Body::MsgPack(reply.encode().into());
    worker.send_frame(Frame::new(Command::Reply, to, body)).await.unwrap();
}

async fn reply_to(caller: &mut RawPeer, asked: RequestId) -> Frame {
    let frame = within("a reply", caller.recv_frame()).await;
    assert_eq!((frame.command, frame.request_id), (Command::Reply, asked));
    frame
}

fn assert_gone(envelope: ResponseEnvelope) {
    let error = error(envelope);
    assert_eq!(error.code, "unavailable", "{error:?}");
    assert_eq!((error.retryable, error.certainty), (true, Certainty::MayHaveRun), "{error:?}");
}

fn contains(whole: &[u8], part: &[u8]) -> bool {
    whole.windows(part.len()).any(|window| window == part)
}

/// REQ: wire "To a worker": Request with `{tool, arguments, deadline_ms}`, answered with an envelope.
/// Rule: payloads pass byte for byte.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_reaches_the_worker_and_payloads_pass_as_the_same_bytes() {
    let daemon = World::with_hoot().await;
    let mut worker = raw_worker(&daemon, "studio", vec![named("render")]).await;
    let mut caller = raw(&daemon).await;
    let asked = call("studio_render", odd_value(), CallOptions::default());
    caller.send_frame(asked.clone()).await.unwrap();
    let given = next(&mut worker, Command::Request).await;
    assert_eq!(given.service.as_str(), "studio");
    assert!(contains(body(&given), &odd_value()), "the arguments are the caller's own bytes");
    #[derive(serde::Deserialize)]
    struct WorkerRequest {
        tool: String,
        deadline_ms: u64,
        job_id: Option<String>,
        session_id: Option<String>,
    }
    let said: WorkerRequest = rmp_serde::from_slice(body(&given)).unwrap();
    assert_eq!((said.tool.as_str(), said.job_id, said.session_id), ("render", None, None));
    assert!(said.deadline_ms > 0);
    answer(&mut worker, given.request_id, &success(odd_value())).await;
    let reply = reply_to(&mut caller, asked.request_id).await;
    assert_eq!(*body(&reply), Bytes::from(success(odd_value()).encode()));
    daemon.stop().await;
}

/// REQ: wire "Ready": with tools it makes the peer a worker (needs `write`); answered with ack or
/// error.
#[tokio::test(flavor = "multi_thread")]
async fn tools_need_write_a_free_name_and_a_service() {
    let daemon = World::with_hoot().await;
    let reader = daemon.new_token(Level::Read, None).await;
    let mut peer = RawPeer::connect(daemon.calls(), Hello::dealer(&reader.token)).await.unwrap();
    let refused = ask(&mut peer, ready("studio", vec![named("render")])).await;
    not_started(refused, "permission_denied");
    let mut peer = raw(&daemon).await;
    for service in ["", "client", "oubliette"] {
        not_started(ask(&mut peer, ready(service, vec![named("render")])).await, "invalid_params");
    }
    let schema = OfferedTool::Described {
        name: "render".to_owned(),
        description: String::new(),
        input_schema: Some(ringback_proto::value::Value::Text("no schema".to_owned())),
        timing: None,
        idempotent: false,
        timeout_ms: None,
    };
    not_started(ask(&mut peer, ready("studio", vec![schema])).await, "invalid_params");
    not_started(ask(&mut peer, ready("job", vec![named("sleep")])).await, "conflict");
    // A refusal does not change the peer.
    assert_pings(&mut peer).await;
    let accepted = ask(&mut peer, ready("studio", vec![named("render")])).await;
    assert!(matches!(accepted, ResponseEnvelope::Ack { .. }), "{accepted:?}");
    daemon.stop().await;
}

/// Rule: a peer that offers tools again offers only the new ones, and one that offers no tools is a
/// mere caller again.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_ready_replaces_the_tools_of_the_first() {
    let daemon = World::with_hoot().await;
    let mut worker = raw_worker(&daemon, "studio", vec![named("render")]).await;
    let mut caller = raw(&daemon).await;
    let asked = call("studio_render", nothing(), CallOptions::default());
    caller.send_frame(asked.clone()).await.unwrap();
    let given = next(&mut worker, Command::Request).await;
    let accepted = ask(&mut worker, ready("studio", vec![named("mix")])).await;
    assert!(matches!(accepted, ResponseEnvelope::Ack { .. }), "{accepted:?}");
    not_started(
        ask(&mut caller, call("studio_render", nothing(), CallOptions::default())).await,
        "not_found",
    );
    // It can still answer earlier calls.
    answer(&mut worker, given.request_id, &success(nothing())).await;
    let reply = reply_to(&mut caller, asked.request_id).await;
    assert_eq!(*body(&reply), Bytes::from(success(nothing()).encode()));
    let accepted = ask(&mut worker, ready("", Vec::new())).await;
    assert!(matches!(accepted, ResponseEnvelope::Ack { .. }), "{accepted:?}");
    wait_for("the tools are gone", async || {
        let reply = ask(&mut caller, call("studio_mix", nothing(), CallOptions::default())).await;
        error(reply).code == "not_found"
    })
    .await;
    daemon.stop().await;
}

/// REQ: seed 003 streaming. Rule: chunks of a worker come before its answer, in order.
#[tokio::test(flavor = "multi_thread")]
async fn chunks_of_a_worker_reach_the_caller_that_follows_the_call() {
    let daemon = World::with_hoot().await;
    let mut worker = raw_worker(&daemon, "studio", vec![named("render")]).await;
    let mut caller = raw(&daemon).await;
    let asked = call("studio_render", nothing(), STREAM);
    caller.send_frame(asked.clone()).await.unwrap();
    let given = next(&mut worker, Command::Request).await;
    let stream_id = StreamId::from_random([9; 16]);
    let lines = ["one", "two", "three"]
        .map(|message| StreamChunk::LogLine { level: LogLevel::Info, message: message.to_owned() });
    for chunk in lines.clone() {
        let chunk = ResponseEnvelope::StreamChunk { stream_id, chunk };
        answer(&mut worker, given.request_id, &chunk).await;
    }
    answer(&mut worker, given.request_id, &success(odd_value())).await;
    let start = envelope(&mut caller, &asked).await;
    assert!(matches!(start, ResponseEnvelope::StreamStart { .. }), "{start:?}");
    let mut heard = Vec::new();
    let end = loop {
        match envelope(&mut caller, &asked).await {
            ResponseEnvelope::StreamChunk { chunk, .. } => heard.push(chunk),
            other => break other,
        }
    };
    assert_eq!(heard, lines);
    let ResponseEnvelope::StreamEnd { final_response: Some(last), .. } = end else {
        panic!("no end: {end:?}")
    };
    let passed = Any { format: Format::MsgPack, bytes: odd_value() };
    assert_eq!(last, ToolResponse::Passed(passed));
    daemon.stop().await;
}

async fn envelope(caller: &mut RawPeer, asked: &Frame) -> ResponseEnvelope {
    let reply = reply_to(caller, asked.request_id).await;
    ResponseEnvelope::decode_passing(body(&reply)).unwrap()
}

/// REQ: wire "Cancel carries the id of the request to cancel". Rule: a cancellation reaches the
/// party.
#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_travels_to_the_worker_and_a_late_answer_changes_nothing() {
    let daemon = World::with_hoot().await;
    let mut worker = raw_worker(&daemon, "studio", vec![named("render")]).await;
    let mut caller = raw(&daemon).await;
    let asked = call("studio_render", nothing(), CallOptions::default());
    caller.send_frame(asked.clone()).await.unwrap();
    let given = next(&mut worker, Command::Request).await;
    caller.send_frame(cancel(asked.request_id)).await.unwrap();
    let told = next(&mut worker, Command::Cancel).await;
    assert_eq!(told.request_id, given.request_id);
    let ended = error(envelope(&mut caller, &asked).await);
    assert_eq!((ended.code.as_str(), ended.certainty), ("cancelled", Certainty::MayHaveRun));
    answer(&mut worker, given.request_id, &success(nothing())).await;
    assert_pings(&mut worker).await;
    assert_pings(&mut caller).await;
    // A caller that leaves has cancelled as well.
    let asked = call("studio_render", nothing(), CallOptions::default());
    caller.send_frame(asked).await.unwrap();
    let given = next(&mut worker, Command::Request).await;
    drop(caller);
    assert_eq!(next(&mut worker, Command::Cancel).await.request_id, given.request_id);
    daemon.stop().await;
}

/// Rule: several workers with the same service share the load.
#[tokio::test(flavor = "multi_thread")]
async fn two_workers_of_one_service_share_its_calls() {
    let daemon = World::with_hoot().await;
    let mut workers = [
        raw_worker(&daemon, "studio", vec![named("render")]).await,
        raw_worker(&daemon, "studio", vec![named("render")]).await,
    ];
    let mut caller = raw(&daemon).await;
    for _ in 0..8 {
        let asked = call("studio_render", nothing(), CallOptions::default());
        caller.send_frame(asked).await.unwrap();
    }
    // Nothing is answered before everything is delivered, so the load of both only grows.
    let mut given = Vec::new();
    for worker in &mut workers {
        for _ in 0..4 {
            given.push(next(worker, Command::Request).await.request_id);
        }
    }
    for (worker, given) in workers.iter_mut().zip(given.chunks(4)) {
        for request_id in given {
            answer(worker, *request_id, &success(nothing())).await;
        }
    }
    for _ in 0..8 {
        let reply = within("a reply", caller.recv_frame()).await;
        assert_eq!(*body(&reply), Bytes::from(success(nothing()).encode()));
    }
    daemon.stop().await;
}

/// How a worker leaves.
#[derive(Debug, Clone, Copy)]
enum Goodbye {
    Disconnect,
    Drop,
    Silence,
}

/// REQ: wire "Heartbeat": calls that were delivered fail as `gone` (`may_have_run`; moved instead if
/// the tool said `idempotent`), on Disconnect, a lost connection, and silence.
#[tokio::test(flavor = "multi_thread")]
async fn when_a_worker_goes_its_calls_fail_as_gone_or_move_if_that_does_no_harm() {
    for goodbye in [Goodbye::Disconnect, Goodbye::Drop, Goodbye::Silence] {
        let daemon = World::with_hoot().await;
        let tools = || vec![named("render"), idempotent("mix")];
        let mut goes = raw_worker(&daemon, "studio", tools()).await;
        let mut caller = raw(&daemon).await;
        let fails = call("studio_render", nothing(), CallOptions::default());
        let moves = call("studio_mix", odd_value(), CallOptions::default());
        caller.send_frame(fails.clone()).await.unwrap();
        next(&mut goes, Command::Request).await;
        caller.send_frame(moves.clone()).await.unwrap();
        next(&mut goes, Command::Request).await;
        let mut more = tools();
        more.push(named("alive"));
        let stays = daemon_worker(&daemon, more).await;
        match goodbye {
            Goodbye::Disconnect => {
                let bye = Frame::new(Command::Disconnect, RequestId::random(), Body::Empty);
                goes.send_frame(bye).await.unwrap();
                answers(&mut caller, &fails, &moves).await;
            }
            Goodbye::Drop => {
                drop(goes);
                answers(&mut caller, &fails, &moves).await;
            }
            // It stays connected, like a library in a program that hangs. The other worker answers
            // between the two steps.
            Goodbye::Silence => {
                daemon.pass_for_workers(PEER_IDLE * 2 / 3);
                let alive = call("studio_alive", nothing(), CallOptions::default());
                caller.send_frame(alive.clone()).await.unwrap();
                assert_eq!(envelope(&mut caller, &alive).await, success(nothing()));
                daemon.pass_for_workers(PEER_IDLE * 2 / 3);
                answers(&mut caller, &fails, &moves).await;
                assert_pings(&mut goes).await;
            }
        }
        stays.close().await;
        daemon.stop().await;
    }
}

/// Checks that both calls end: one as gone, the other with the answer of another worker.
async fn answers(caller: &mut RawPeer, fails: &Frame, moves: &Frame) {
    for _ in 0..2 {
        let reply = within("a reply", caller.recv_frame()).await;
        let envelope = ResponseEnvelope::decode_passing(body(&reply)).unwrap();
        if reply.request_id == fails.request_id {
            assert_gone(envelope);
        } else {
            assert_eq!(reply.request_id, moves.request_id);
            assert_eq!(envelope, success(odd_value()));
        }
    }
}

/// Returns a worker whose tools return their input.
async fn daemon_worker(daemon: &World, tools: Vec<OfferedTool>) -> Worker {
    let mut echo = WorkerTools::new("studio");
    for tool in tools {
        echo = echo.raw_tool(tool, |call: WorkerCall| async move { Ok(call.arguments().clone()) });
    }
    let config = daemon.client_config(daemon.admin_token());
    within("a worker", Worker::serve(config, echo)).await.unwrap()
}

/// Rule: a worker that sends nonsense harms the call it was given, and nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_is_none_fails_its_call_and_one_to_nothing_changes_nothing() {
    let daemon = World::with_hoot().await;
    let mut worker = raw_worker(&daemon, "studio", vec![named("render")]).await;
    let mut other = raw_worker(&daemon, "studio", vec![named("mix")]).await;
    let mut caller = raw(&daemon).await;
    for nonsense in [Bytes::from_static(b"\xc1\xff\x00"), nothing(), Bytes::new()] {
        let asked = call("studio_render", nothing(), CallOptions::default());
        caller.send_frame(asked.clone()).await.unwrap();
        let given = next(&mut worker, Command::Request).await;
        // An answer from another peer is ignored, even from another worker of the same service.
        answer(&mut caller, given.request_id, &success(nothing())).await;
        answer(&mut other, given.request_id, &success(nothing())).await;
        assert_pings(&mut other).await;
        answer(&mut worker, RequestId::random(), &success(nothing())).await;
        let reply = Frame::new(Command::Reply, given.request_id, Body::MsgPack(nonsense));
        worker.send_frame(reply).await.unwrap();
        let failed = error(envelope(&mut caller, &asked).await);
        assert_eq!((failed.code.as_str(), failed.certainty), ("tool_failed", Certainty::Ran));
    }
    daemon.stop().await;
}

type Numbers = HashMap<String, i64>;

/// Rule: a worker's own error reaches the caller unchanged.
#[tokio::test(flavor = "multi_thread")]
async fn an_error_of_the_worker_is_the_callers_error() {
    let daemon = World::with_hoot().await;
    let tools = WorkerTools::new("studio")
        .tool(named("add"), |numbers: Numbers, _| async move { Ok(numbers.values().sum::<i64>()) })
        .tool(named("fail"), |_: Numbers, _| async {
            let error = Error::new(ErrorKind::ToolFailed, "no soundfont");
            Err::<(), _>(error.with_certainty(Certainty::Ran))
        })
        .tool(named("panic"), async |_: Numbers, _| -> Result<(), Error> { panic!("on purpose") });
    let config = daemon.client_config(daemon.admin_token());
    let worker = within("a worker", Worker::serve(config, tools)).await.unwrap();
    let client = daemon.admin().await;
    let sum = ask_tool(
        &client,
        "studio_add",
        &Numbers::from([("a".to_owned(), 2), ("b".to_owned(), 40)]),
    )
    .await
    .unwrap();
    assert_eq!(rmp_serde::from_slice::<i64>(&sum).unwrap(), 42);
    let misfit = ask_tool(&client, "studio_add", &HashMap::from([("a", "two")])).await.unwrap_err();
    assert_eq!(misfit.kind(), ErrorKind::Invalid, "{misfit}");
    let failed = ask_tool(&client, "studio_fail", &Numbers::new()).await.unwrap_err();
    assert_eq!((failed.kind(), failed.certainty()), (ErrorKind::ToolFailed, Certainty::Ran));
    assert!(failed.message().contains("no soundfont"), "{failed}");
    let panicked = ask_tool(&client, "studio_panic", &Numbers::new()).await.unwrap_err();
    assert_eq!(panicked.certainty(), Certainty::MayHaveRun, "{panicked}");
    worker.close().await;
    daemon.stop().await;
}

async fn ask_tool(
    client: &Client,
    name: &str,
    arguments: &impl serde::Serialize,
) -> Result<Bytes, Error> {
    let arguments = rmp_serde::to_vec_named(arguments).unwrap().into();
    let asked = call(name, arguments, CallOptions::default());
    let reply = within("an answer", client.call_raw(asked)).await?;
    match ResponseEnvelope::decode_passing(body(&reply)).unwrap() {
        ResponseEnvelope::Success { response: ToolResponse::Passed(passed) } => Ok(passed.bytes),
        ResponseEnvelope::Error(error) => Err(error.into()),
        other => panic!("neither a result nor an error: {other:?}"),
    }
}

/// Rule: a worker runs as many calls as it declared, and the rest wait; cancelled ones stop.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_runs_as_many_calls_as_it_said_and_stops_what_is_cancelled() {
    let daemon = World::with_hoot().await;
    let (running, most, stopped) =
        (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)), Arc::default());
    let counted = (Arc::clone(&running), Arc::clone(&most), Arc::clone(&stopped));
    let hold = move |call: WorkerCall| {
        let (running, most, stopped): (_, _, Arc<AtomicUsize>) = counted.clone();
        async move {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            call.progress(10.0, "holding").await;
            call.cancelled().cancelled().await;
            running.fetch_sub(1, Ordering::SeqCst);
            stopped.fetch_add(1, Ordering::SeqCst);
            Ok(Bytes::from_static(&[0xc0]))
        }
    };
    let tools = WorkerTools::new("studio").concurrency(3).raw_tool(named("hold"), hold);
    let config = daemon.client_config(daemon.admin_token());
    let worker = within("a worker", Worker::serve(config, tools)).await.unwrap();
    let client = daemon.admin().await;
    let mut calls = JoinSet::new();
    for _ in 0..8 {
        let client = client.clone();
        calls.spawn(async move { ask_tool(&client, "studio_hold", &Numbers::new()).await });
    }
    wait_for("three calls run", async || running.load(Ordering::SeqCst) == 3).await;
    calls.shutdown().await;
    wait_for("all have stopped", async || running.load(Ordering::SeqCst) == 0).await;
    assert!(most.load(Ordering::SeqCst) <= 3, "{most:?} at the same time");
    assert!(stopped.load(Ordering::SeqCst) >= 3);
    worker.close().await;
    daemon.stop().await;
}

/// Rule: a worker offers its tools again after the daemon was restarted; a refused one reports why.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_serves_again_after_a_restart_and_a_refused_one_says_why() {
    let daemon = World::with_hoot().await;
    let reader = daemon.new_token(Level::Read, None).await;
    let config = daemon.client_config(&reader.token);
    let refused = Worker::serve(
        config,
        WorkerTools::new("studio")
            .raw_tool(named("render"), async |call: WorkerCall| Ok(call.arguments().clone())),
    );
    let refused = within("a refusal", refused).await.unwrap_err();
    let ServeError::Refused { service, source } = refused else { panic!("{refused:?}") };
    assert_eq!((service.as_str(), source.kind()), ("studio", ErrorKind::Forbidden));
    let worker = daemon_worker(&daemon, vec![named("render")]).await;
    let mut serving = worker.serving();
    let daemon = daemon.restart(GRACE).await;
    within("the worker serves again", async {
        serving.wait_for(|serving| matches!(serving, ServingState::Down)).await.unwrap();
        serving.wait_for(|serving| matches!(serving, ServingState::Yes)).await.unwrap();
    })
    .await;
    let client = daemon.admin().await;
    let again = Numbers::from([("again".to_owned(), 1)]);
    let same = ask_tool(&client, "studio_render", &again).await.unwrap();
    assert_eq!(rmp_serde::from_slice::<Numbers>(&same).unwrap(), again);
    worker.close().await;
    daemon.stop().await;
}

/// Rule: any message is a sign of life: a worker that is busy answering needs no additional
/// heartbeats.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_says_anything_is_not_taken_for_gone() {
    let daemon = World::with_hoot().await;
    let mut worker = raw_worker(&daemon, "studio", vec![named("render")]).await;
    let mut caller = raw(&daemon).await;
    let asked = call("studio_render", nothing(), STREAM);
    caller.send_frame(asked.clone()).await.unwrap();
    let given = next(&mut worker, Command::Request).await;
    // A younger worker that says nothing is gone first: the other one would be gone by then.
    let mut silent = raw_worker(&daemon, "hall", vec![named("echo")]).await;
    let mut other = raw(&daemon).await;
    let lost = call("hall_echo", nothing(), CallOptions::default());
    other.send_frame(lost.clone()).await.unwrap();
    next(&mut silent, Command::Request).await;
    for step in 1..=3 {
        daemon.pass_for_workers(PEER_IDLE / 2);
        let (level, message) = (LogLevel::Info, format!("step {step}"));
        let chunk = StreamChunk::LogLine { level, message };
        let sent =
            ResponseEnvelope::StreamChunk { stream_id: StreamId::from_random([7; 16]), chunk };
        answer(&mut worker, given.request_id, &sent).await;
        // When the caller has it, the edge has heard the worker.
        within("the chunk", async {
            let is_chunk = |reply| matches!(reply, ResponseEnvelope::StreamChunk { .. });
            while !is_chunk(envelope(&mut caller, &asked).await) {}
        })
        .await;
    }
    assert_gone(envelope(&mut other, &lost).await);
    answer(&mut worker, given.request_id, &success(odd_value())).await;
    let end = envelope(&mut caller, &asked).await;
    assert!(matches!(end, ResponseEnvelope::StreamEnd { final_response: Some(_), .. }), "{end:?}");
    daemon.stop().await;
}
