//! Streams, content in pieces, and events.

use std::collections::BTreeMap;

use crate::support::{Daemon, ReceivedFrame, plain, token};
use bytes::Bytes;
use futures_util::StreamExt;
use omq_tokio::{Message, Options, Socket, SocketType};
use ringback_client::{Client, Credentials, Gap, Notice, StreamItem, Subscriber};
use ringback_proto::data::Data;
use ringback_proto::event::{Event, Heads, SequencedEvent};
use ringback_proto::frame::{Body, Command};
use ringback_proto::ids::{BlobHash, JobId, StreamId};
use ringback_proto::record::JobState;
use ringback_proto::request::{
    CasContentResponse, CasStoredResponse, JobSleepRequest, SleptResponse,
};
use ringback_proto::tool::tools::JobSleep;
use ringback_proto::{
    Error, ErrorKind, RequestEnvelope, ResponseEnvelope, StreamChunk, ToolCall, ToolRequest,
    ToolResponse,
};

const STREAM: StreamId = StreamId::from_random([2; 16]);
const REQUEST: JobSleepRequest = JobSleepRequest { milliseconds: 1 };

fn start() -> ResponseEnvelope {
    let tool = "job_sleep".to_owned();
    ResponseEnvelope::StreamStart { stream_id: STREAM, tool, job_id: None }
}

fn chunk(chunk: StreamChunk) -> ResponseEnvelope {
    ResponseEnvelope::StreamChunk { stream_id: STREAM, chunk }
}

fn content(n_bytes: usize) -> StreamChunk {
    let mime_type = "audio/wav".to_owned();
    StreamChunk::PartialContent { data: Data(vec![7; n_bytes].into()), mime_type }
}

#[tokio::test]
async fn a_stream_brings_its_start_its_chunks_and_its_end() {
    let daemon = Daemon::start(plain()).await;
    let client = daemon.client().await;
    let stream = client.stream::<JobSleep>(REQUEST).unwrap();
    let received = daemon.recv().await;
    let progress = StreamChunk::Progress { percent: 50.0, message: "half".to_owned() };
    let slept = SleptResponse { milliseconds: 1 };
    daemon.reply(&received, start());
    daemon.reply(&received, chunk(progress.clone()));
    let final_response = Some(slept.clone().into());
    daemon.reply(&received, ResponseEnvelope::StreamEnd { stream_id: STREAM, final_response });
    let items: Vec<_> = stream.map(Result::unwrap).collect().await;
    let expected = [
        StreamItem::Started { stream_id: STREAM, job_id: None },
        StreamItem::Chunk(progress),
        StreamItem::End(Some(slept)),
    ];
    assert_eq!(items, expected);
}

#[tokio::test]
async fn what_was_read_of_a_stream_is_credited() {
    let daemon = Daemon::start(plain()).await;
    let client = daemon.client().await;
    let mut stream = client.stream::<JobSleep>(REQUEST).unwrap();
    let received = daemon.recv().await;
    for n_bytes in [500 << 10, 100 << 10] {
        daemon.reply(&received, chunk(content(n_bytes)));
    }
    for _ in 0..2 {
        assert!(matches!(stream.next().await, Some(Ok(StreamItem::Chunk(_)))));
    }
    let credit = daemon.recv().await.frame;
    assert_eq!(credit.request_id, received.frame.request_id);
    assert_eq!(credit.body, Body::Credit(600 << 10));
}

#[tokio::test]
async fn a_stream_that_fails_ends_with_the_error() {
    let daemon = Daemon::start(plain()).await;
    let client = daemon.client().await;
    let mut stream = client.stream::<JobSleep>(REQUEST).unwrap();
    let received = daemon.recv().await;
    daemon.reply(&received, start());
    daemon.reply(&received, Error::cancelled("tired").into());
    assert!(stream.next().await.unwrap().is_ok());
    assert_eq!(stream.next().await.unwrap().unwrap_err().kind(), ErrorKind::Cancelled);
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn a_stream_that_is_dropped_is_cancelled_and_a_finished_one_is_not() {
    let daemon = Daemon::start(plain()).await;
    let client = daemon.client().await;
    let finished = client.stream::<JobSleep>(REQUEST).unwrap();
    let received = daemon.recv().await;
    let end = ResponseEnvelope::StreamEnd { stream_id: STREAM, final_response: None };
    daemon.reply(&received, end);
    assert_eq!(finished.collect::<Vec<_>>().await.len(), 1);

    let mut dropped = client.stream::<JobSleep>(REQUEST).unwrap();
    let received = daemon.recv().await;
    daemon.reply(&received, start());
    assert!(dropped.next().await.unwrap().is_ok());
    drop(dropped);
    let cancel = daemon.recv().await.frame;
    assert_eq!(cancel.command, Command::Cancel);
    assert_eq!(cancel.request_id, received.frame.request_id);
}

#[tokio::test]
async fn a_stream_whose_link_is_lost_ends_as_gone() {
    let daemon = Daemon::start(plain()).await;
    let client = daemon.client().await;
    let mut stream = client.stream::<JobSleep>(REQUEST).unwrap();
    let received = daemon.recv().await;
    daemon.reply(&received, start());
    assert!(stream.next().await.unwrap().is_ok());
    daemon.stop().await;
    assert_eq!(stream.next().await.unwrap().unwrap_err().kind(), ErrorKind::Gone);
    assert!(stream.next().await.is_none());
}

/// Stores content and returns it, for a number of requests.
async fn keep(daemon: &Daemon, n_requests: usize) -> Vec<u8> {
    let mut kept = Vec::new();
    for _ in 0..n_requests {
        let received = daemon.recv().await;
        let response = keep_or_give(request_of(&received), &mut kept);
        daemon.reply(&received, ResponseEnvelope::Success { response });
    }
    kept
}

fn keep_or_give(request: ToolRequest, kept: &mut Vec<u8>) -> ToolResponse {
    if let ToolRequest::CasStore(request) = request {
        assert_eq!(request.offset.unwrap_or(0), kept.len() as u64);
        kept.extend_from_slice(&request.data.0);
        let hash = request.last.unwrap_or(true).then_some(BlobHash::from_bytes([3; 32]));
        let size = kept.len() as u64;
        return CasStoredResponse { hash, size, mime_type: request.mime_type }.into();
    }
    let ToolRequest::CasGet(request) = request else {
        panic!("neither cas_store nor cas_get: {request:?}")
    };
    let from = usize::try_from(request.offset.unwrap()).unwrap();
    let length = usize::try_from(request.length.unwrap()).unwrap();
    let to = kept.len().min(from + length);
    let (size, mime_type) = (kept.len() as u64, "x/y".to_owned());
    let data = Data(Bytes::copy_from_slice(&kept[from..to]));
    CasContentResponse { hash: request.hash, size, mime_type, data }.into()
}

fn request_of(received: &ReceivedFrame) -> ToolRequest {
    let envelope = match &received.frame.body {
        Body::MsgPack(body) => RequestEnvelope::decode(body),
        Body::RawBinary { data, header } => RequestEnvelope::decode_raw(header, data.clone()),
        Body::Empty | Body::Credit(_) => panic!("no request"),
    };
    match envelope.unwrap().request {
        ToolCall::Native(request) => request,
        ToolCall::Named { name, .. } => panic!("not native: {name}"),
    }
}

/// Rule: binary with all 256 byte values is returned unchanged.
#[tokio::test]
async fn content_goes_up_and_down_in_pieces_and_unchanged() {
    let daemon = Daemon::start(plain()).await;
    let mut config = daemon.config();
    config.piece_bytes = 100;
    let client = Client::connect(config).await.unwrap();
    // Sizes around the piece's: empty, within, exactly one, and several with and without a rest.
    for (n_bytes, n_up, n_down) in [(0, 1, 1), (99, 1, 1), (100, 2, 1), (256, 3, 3), (300, 4, 3)] {
        let content: Vec<u8> = (0..n_bytes).map(|index: u32| index.to_le_bytes()[0]).collect();
        let transfer = async {
            let stored = client.upload(&content[..], "x/y").await.unwrap();
            assert_eq!(stored.size, u64::from(n_bytes));
            let mut sink = Vec::new();
            let hash = stored.hash.expect("the last piece has the hash");
            assert_eq!(client.download(hash, &mut sink).await.unwrap(), u64::from(n_bytes));
            assert_eq!(sink, content);
        };
        let ((), kept) = tokio::join!(transfer, keep(&daemon, n_up + n_down));
        assert_eq!(kept, content);
    }
}

fn event(topic_seq: u64) -> SequencedEvent {
    let event = Event::JobStateChanged {
        job_id: JobId::from_random([1; 16]),
        tool: "ping".to_owned(),
        state: JobState::Running,
    };
    SequencedEvent { epoch: 1, seq: topic_seq, topic_seq, at_ms: 0, event }
}

async fn publish(publisher: &Socket, topic: &'static str, body: &impl serde::Serialize) {
    let body = rmp_serde::to_vec_named(body).unwrap();
    let parts = [Bytes::from_static(topic.as_bytes()), Bytes::from(body)];
    publisher.send(Message::multipart(parts)).await.unwrap();
}

/// Rule: a subscriber that misses events notices it, whether it receives all or only its own.
#[tokio::test]
async fn a_subscriber_gets_events_and_learns_of_those_it_missed() {
    learns_of_gaps("job.", "job.state_changed", "heads", "job.unheard_of").await;
    learns_of_gaps("tok_1/", "tok_1/job.state_changed", "tok_1/heads", "tok_1/other").await;
}

async fn learns_of_gaps(
    prefix: &str,
    topic: &'static str,
    heads_topic: &'static str,
    unheard_of: &'static str,
) {
    let options = Options { mechanism: plain(), ..Options::default() };
    let publisher = Socket::new(SocketType::Pub, options);
    let endpoint = publisher.bind("tcp://127.0.0.1:0").await.unwrap().to_string();
    let credentials = Credentials::Token(token());
    let topics = vec![prefix.to_owned()];
    let mut subscriber = Subscriber::connect(&endpoint, &credentials, topics).await.unwrap();
    publisher.wait_subscribed(2, std::time::Duration::from_secs(10)).await.unwrap();

    publish(&publisher, topic, &event(4)).await;
    publish(&publisher, topic, &event(7)).await;
    let heads = Heads {
        epoch: 1,
        seq: 9,
        at_ms: 0,
        topics: BTreeMap::from([
            ("job.state_changed".to_owned(), 8),
            ("artifact.created".to_owned(), 9),
        ]),
    };
    publish(&publisher, heads_topic, &heads).await;
    publish(&publisher, unheard_of, &[1]).await;

    let gap = |missed| Notice::Missed(Gap { topic: topic.to_owned(), missed });
    let expected = [Notice::Event(event(4)), gap(5..=6), Notice::Event(event(7)), gap(8..=8)];
    for notice in expected {
        assert_eq!(subscriber.next().await.unwrap(), notice);
    }
    assert!(matches!(subscriber.next().await.unwrap(), Notice::Other { .. }));
}
