//! Lossless chunks of a worker: on credit, as RawBinary too, and none is lost.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use ringback_client::{Worker, WorkerCall, WorkerTools};
use ringback_proto::any::{Any, Format};
use ringback_proto::chunk::FIRST_CREDIT;
use ringback_proto::data::Data;
use ringback_proto::frame::{Body, Command, Frame, Text};
use ringback_proto::ids::{RequestId, StreamId};
use ringback_proto::ready::{OfferedTool, Ready};
use ringback_proto::{
    CallOptions, Certainty, Error, RequestEnvelope, ResponseEnvelope, StreamChunk, ToolCall,
    ToolResponse,
};
use ringback_testkit::{RawPeer, World, within};

use crate::support::*;

const CHUNK_BYTES: usize = 100_000;
const N_CHUNKS: usize = 100;

type Numbers = HashMap<String, usize>;

fn content(number: usize) -> StreamChunk {
    let data = Data::from(vec![number as u8; CHUNK_BYTES]);
    StreamChunk::PartialContent { data, mime_type: "a/b".to_owned() }
}

fn call(name: &str, options: CallOptions) -> Frame {
    let arguments = Any { format: Format::MsgPack, bytes: Bytes::from_static(&[0x80]) };
    let request = ToolCall::Named { name: name.to_owned(), arguments };
    let body = RequestEnvelope { request, options }.encode();
    Frame::new(Command::Request, RequestId::random(), Body::MsgPack(body.into()))
}

fn credit(request_id: RequestId, bytes: u64) -> Frame {
    Frame::new(Command::Credit, request_id, Body::Credit(bytes))
}

/// A raw worker with one tool, `send`.
async fn raw_worker(daemon: &World) -> RawPeer {
    let mut worker = raw(daemon).await;
    let tools = vec![OfferedTool::Name("send".to_owned())];
    let ready = Ready { protocol: "HOOT01".to_owned(), tools, accepts_binary: false };
    let body = Body::MsgPack(rmp_serde::to_vec_named(&ready).unwrap().into());
    let service = Text::try_from("raw").unwrap();
    let frame = Frame { service, ..Frame::new(Command::Ready, RequestId::random(), body) };
    let accepted = ask(&mut worker, frame).await;
    assert!(matches!(accepted, ResponseEnvelope::Ack { .. }), "{accepted:?}");
    worker
}

/// The next call; credit for an earlier one may still arrive.
async fn given(worker: &mut RawPeer) -> RequestId {
    within("a call", async {
        loop {
            let frame = worker.recv_frame().await;
            if frame.command != Command::Credit {
                assert_eq!(frame.command, Command::Request, "{frame:?}");
                return frame.request_id;
            }
        }
    })
    .await
}

/// A chunk as a worker sends it.
fn chunk_frame(call: RequestId, chunk: StreamChunk) -> Frame {
    let stream_id = StreamId::from_random([1; 16]);
    let mut envelope = ResponseEnvelope::StreamChunk { stream_id, chunk };
    let ResponseEnvelope::StreamChunk { chunk, .. } = &mut envelope else { unreachable!() };
    let data = chunk.take_data().unwrap();
    let body = Body::RawBinary { data, header: envelope.encode().into() };
    Frame::new(Command::Reply, call, body)
}

async fn chunk(caller: &mut RawPeer) -> StreamChunk {
    match within("a chunk", caller.recv_reply()).await.1 {
        ResponseEnvelope::StreamChunk { chunk, .. } => chunk,
        other => panic!("{other:?}"),
    }
}

/// Rule: a worker never sends more than its caller reads, and what it sends arrives once and in
/// order.
#[tokio::test(flavor = "multi_thread")]
async fn chunks_of_a_worker_flow_on_credit_and_none_is_lost() {
    let daemon = World::with_hoot().await;
    let n_sent = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&n_sent);
    let send = move |_: Numbers, call: WorkerCall| {
        let counter = Arc::clone(&counter);
        async move {
            for number in 0..N_CHUNKS {
                call.send(content(number)).await;
                counter.fetch_add(1, Ordering::AcqRel);
            }
            Ok::<_, Error>(())
        }
    };
    let tools = WorkerTools::new("sender").tool(OfferedTool::Name("send".to_owned()), send);
    let config = daemon.client_config(daemon.admin_token());
    let worker = within("a worker", Worker::serve(config, tools)).await.unwrap();
    let mut caller = raw(&daemon).await;
    let asked = call("sender_send", STREAM);
    caller.send_frame(asked.clone()).await.unwrap();
    let start = within("the start", caller.recv_reply()).await.1;
    assert!(matches!(start, ResponseEnvelope::StreamStart { .. }), "{start:?}");
    // What the caller gets without credit, what waits for it, and what flows to the daemon.
    let without_credit = (FIRST_CREDIT as usize).div_ceil(CHUNK_BYTES);
    for number in 0..N_CHUNKS {
        assert_eq!(chunk(&mut caller).await, content(number));
        let sent = n_sent.load(Ordering::Acquire);
        assert!(sent <= number + 3 * without_credit, "{sent} were sent, {number} were read");
        if number >= without_credit - 1 {
            caller.send_frame(credit(asked.request_id, CHUNK_BYTES as u64)).await.unwrap();
        }
    }
    let end = within("the end", caller.recv_reply()).await.1;
    assert!(matches!(end, ResponseEnvelope::StreamEnd { .. }), "{end:?}");
    worker.close().await;
    daemon.stop().await;
}

/// Rule: a worker gets credit for what was passed on, so that it can send as much again, even if
/// nobody follows the call.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_gets_credit_for_what_was_passed_on() {
    let daemon = World::with_hoot().await;
    let mut worker = raw_worker(&daemon).await;
    let mut caller = raw(&daemon).await;
    caller.send_frame(call("raw_send", CallOptions::default())).await.unwrap();
    let given = given(&mut worker).await;
    let n_bytes = 3 * CHUNK_BYTES as u64;
    for number in 0..3 {
        worker.send_frame(chunk_frame(given, content(number))).await.unwrap();
    }
    let granted = within("credit", worker.recv_frame()).await;
    assert_eq!((granted.command, granted.request_id), (Command::Credit, given));
    assert!(matches!(granted.body, Body::Credit(bytes) if bytes == n_bytes), "{granted:?}");
    daemon.stop().await;
}

/// Rule: a worker that ignores its credit fails its call before it fills the memory, and the others
/// go on.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_without_credit_fails_its_own_call() {
    let daemon = World::with_hoot().await;
    let mut worker = raw_worker(&daemon).await;
    let (mut caller, mut other) = (raw(&daemon).await, raw(&daemon).await);
    let asked = call("raw_send", STREAM);
    caller.send_frame(asked.clone()).await.unwrap();
    let start = within("the start", caller.recv_reply()).await.1;
    assert!(matches!(start, ResponseEnvelope::StreamStart { .. }), "{start:?}");
    let given_first = given(&mut worker).await;
    for number in 0..200 {
        worker.send_frame(chunk_frame(given_first, content(number))).await.unwrap();
    }
    // It is notified, and granted nothing that its caller has not read.
    let told = within("Cancel", async {
        loop {
            let frame = worker.recv_frame().await;
            if frame.command != Command::Credit {
                return frame;
            }
        }
    })
    .await;
    assert_eq!((told.command, told.request_id), (Command::Cancel, given_first));
    caller.send_frame(credit(asked.request_id, u64::MAX)).await.unwrap();
    let failed = within("the error", async {
        loop {
            match caller.recv_reply().await.1 {
                ResponseEnvelope::StreamChunk { .. } => {}
                last => return error(last),
            }
        }
    })
    .await;
    assert_eq!((failed.code.as_str(), failed.certainty), ("busy", Certainty::MayHaveRun));
    other.send_frame(call("raw_send", CallOptions::default())).await.unwrap();
    let given_next = given(&mut worker).await;
    let done = ResponseEnvelope::Success { response: ToolResponse::Passed(bin(b"ok")) };
    let reply = Frame::new(Command::Reply, given_next, Body::MsgPack(done.encode().into()));
    worker.send_frame(reply).await.unwrap();
    let answer = within("the answer", other.recv_frame()).await;
    let Body::MsgPack(body) = answer.body else { panic!("{answer:?}") };
    assert_eq!(ResponseEnvelope::decode_passing(&body).unwrap(), done);
    daemon.stop().await;
}

fn bin(bytes: &[u8]) -> Any {
    let bytes = rmp_serde::to_vec_named(&Data(Bytes::copy_from_slice(bytes))).unwrap();
    Any { format: Format::MsgPack, bytes: bytes.into() }
}

/// Rule: a worker may answer in RawBinary: part 6 is the field `data` of the response, or all of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_answers_in_raw_binary() {
    let daemon = World::with_hoot().await;
    let mut worker = raw_worker(&daemon).await;
    let mut caller = raw(&daemon).await;
    #[derive(serde::Serialize)]
    struct Bare {
        kind: &'static str,
    }
    #[derive(serde::Serialize)]
    struct Full<T> {
        kind: &'static str,
        response: T,
    }
    #[derive(serde::Serialize, serde::Deserialize, Debug, PartialEq)]
    struct Made {
        name: String,
        #[serde(default)]
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<Data>,
    }
    let made = |data| Made { name: "x".to_owned(), data };
    let full = |response| Full { kind: "success", response };
    let data = Data(Bytes::from_static(b"sound"));
    let bare = rmp_serde::to_vec_named(&Bare { kind: "success" }).unwrap();
    let with_name = rmp_serde::to_vec_named(&full(made(None))).unwrap();
    let twice = rmp_serde::to_vec_named(&full(made(Some(data.clone())))).unwrap();
    let all = rmp_serde::to_vec_named(&data).unwrap();
    let named = rmp_serde::to_vec_named(&made(Some(data.clone()))).unwrap();
    for (header, expected) in [(bare, Some(all)), (with_name, Some(named)), (twice, None)] {
        caller.send_frame(call("raw_send", CallOptions::default())).await.unwrap();
        let given = given(&mut worker).await;
        let body = Body::RawBinary { data: data.0.clone(), header: header.into() };
        worker.send_frame(Frame::new(Command::Reply, given, body)).await.unwrap();
        let answer = within("the answer", caller.recv_frame()).await;
        let Body::MsgPack(body) = answer.body else { panic!("{answer:?}") };
        match (ResponseEnvelope::decode_passing(&body).unwrap(), expected) {
            (ResponseEnvelope::Success { response: ToolResponse::Passed(passed) }, Some(bytes)) => {
                assert_eq!(passed.bytes, bytes);
            }
            (ResponseEnvelope::Error(error), None) => assert_eq!(error.code, "tool_failed"),
            other => panic!("{other:?}"),
        }
    }
    daemon.stop().await;
}
