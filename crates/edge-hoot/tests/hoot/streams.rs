//! Chunks of calls on IOPub: who hears them, and what becomes of a subscriber that does not read.

use std::collections::HashMap;

use futures_util::StreamExt as _;
use ringback_client::{Client, Notice, StreamItem, Subscriber, Worker, WorkerCall, WorkerTools};
use ringback_proto::any::{Any, Format};
use ringback_proto::data::Data;
use ringback_proto::event::{SequencedData, StreamData};
use ringback_proto::ids::StreamId;
use ringback_proto::principal::Level;
use ringback_proto::ready::OfferedTool;
use ringback_proto::request::TokenCreatedResponse;
use ringback_proto::secret::Secret;
use ringback_proto::{CallOptions, Error, Event, StreamChunk};
use ringback_testkit::{Hello, RawPeer, World, within};

use crate::support::*;

/// The bytes of a chunk of the worker: several pieces, the last a short one.
const CHUNK_BYTES: usize = 100_000;

type Numbers = HashMap<String, usize>;

/// A chunk of sound that differs from others.
fn sound(number: usize) -> Vec<u8> {
    (0..CHUNK_BYTES).map(|index| (index * 31 + number * 7) as u8).collect()
}

/// Sends as many chunks as its input says, each after progress.
async fn sing(input: Numbers, call: WorkerCall) -> Result<usize, Error> {
    for number in 0..input["chunks"] {
        call.progress(number as f32, "singing").await;
        let samples = Data::from(sound(number));
        call.send(StreamChunk::PartialAudio { samples, sample_rate: 48_000, channels: 2 }).await;
    }
    Ok(input["chunks"])
}

/// A worker with a tool that sends sound.
async fn singer(daemon: &World, token: &Secret, service: &str) -> Worker {
    let tools = WorkerTools::new(service).tool(OfferedTool::Name("sing".to_owned()), sing);
    within("the worker", Worker::serve(daemon.client_config(token), tools)).await.unwrap()
}

fn input(n_chunks: usize) -> Any {
    let input = Numbers::from([("chunks".to_owned(), n_chunks)]);
    Any { format: Format::MsgPack, bytes: rmp_serde::to_vec_named(&input).unwrap().into() }
}

/// Calls a singer and does not follow it.
async fn call_singer(client: &Client, service: &str, n_chunks: usize) {
    let called =
        client.call_named(format!("{service}_sing"), input(n_chunks), CallOptions::default());
    within("the answer", called).await.unwrap();
}

/// What a subscriber heard of streams.
#[derive(Debug, Default)]
struct Heard {
    started: Vec<(StreamId, String)>,
    pieces: Vec<(StreamId, u64)>,
    sound: Vec<u8>,
}

/// Reads until a stream has ended; returns what was heard, and what the end says.
async fn until_ended(subscriber: &mut Subscriber) -> (Heard, StreamId, u64) {
    let mut heard = Heard::default();
    loop {
        match within("a notice", subscriber.next()).await.unwrap() {
            Notice::Data(SequencedData { topic_seq, event, .. }) => {
                let StreamData::Chunk { stream_id, chunk } = event;
                let StreamChunk::PartialAudio { samples, .. } = chunk else { panic!("{chunk:?}") };
                heard.pieces.push((stream_id, topic_seq));
                heard.sound.extend_from_slice(&samples.0);
            }
            Notice::Event(event) => match event.event {
                Event::StreamStarted { stream_id, tool, job_id: None } => {
                    heard.started.push((stream_id, tool));
                }
                Event::StreamEnded { stream_id, job_id: None, data } => {
                    return (heard, stream_id, data);
                }
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }
}

/// Waits until the subscriptions of a subscriber are in force: its last one hears the heads.
async fn in_force(peer: &mut RawPeer, heads: &str) {
    let heads_come = async {
        while peer.recv().await.expect("a subscriber stays connected")[0] != heads.as_bytes() {}
    };
    within("the heads", heads_come).await;
}

/// A subscriber whose subscriptions are in force: it hears a short stream of its own.
async fn listener(
    daemon: &World,
    token: &Secret,
    topics: &[&str],
    client: &Client,
    service: &str,
) -> Subscriber {
    let mut subscriber = daemon.subscriber(token, topics).await;
    let first = async {
        loop {
            call_singer(client, service, 1).await;
            let ended = tokio::time::timeout(SOON, until_ended(&mut subscriber)).await;
            if ended.is_ok_and(|(heard, ..)| heard.pieces.len() == PIECES) {
                return;
            }
        }
    };
    within("the first stream", first).await;
    subscriber
}

/// How long to wait for a stream that may have ended before the subscription was in force.
const SOON: std::time::Duration = std::time::Duration::from_millis(100);
/// The pieces of a chunk.
const PIECES: usize = 4;

/// Rule: the chunks of a call nobody follows are heard by its owner's subscribers and by those who
/// may see everything, in order, between the start and the end, and the end tells their number.
#[tokio::test(flavor = "multi_thread")]
async fn subscribers_that_may_see_a_call_hear_its_chunks_and_can_tell_that_none_is_missing() {
    let daemon = World::with_hoot().await;
    let TokenCreatedResponse { token, token_id, .. } = daemon.new_token(Level::Write, None).await;
    let client = daemon.client(&token).await;
    let worker = singer(&daemon, &token, "choir").await;
    let own = format!("{token_id}/stream.");
    let [started, ended, data] = ["started", "ended", "data."].map(|topic| format!("{own}{topic}"));
    let mut own = listener(&daemon, &token, &[&started, &ended, &data], &client, "choir").await;
    let topics = ["stream.started", "stream.ended", "stream.data."];
    let mut all = listener(&daemon, daemon.admin_token(), &topics, &client, "choir").await;
    // The streams that showed that the second subscription is in force.
    call_singer(&client, "choir", 20).await;
    for subscriber in [&mut own, &mut all] {
        let (heard, stream_id, n_pieces) = within("the long stream", async {
            loop {
                let found = until_ended(subscriber).await;
                if found.2 > PIECES as u64 {
                    return found;
                }
            }
        })
        .await;
        assert_eq!(heard.started, [(stream_id, "choir_sing".to_owned())]);
        assert!(heard.pieces.iter().copied().eq((1..=n_pieces).map(|number| (stream_id, number))));
        assert_eq!(heard.sound, (0..20).flat_map(sound).collect::<Vec<_>>());
    }
    worker.close().await;
    daemon.stop().await;
}

/// Rule: a stranger hears no chunk, whatever it subscribes to.
#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_hears_no_chunk() {
    let daemon = World::with_hoot().await;
    let TokenCreatedResponse { token, token_id, .. } = daemon.new_token(Level::Write, None).await;
    let stranger = daemon.new_token(Level::Write, None).await;
    let (client, theirs) = (daemon.client(&token).await, daemon.client(&stranger.token).await);
    let worker = singer(&daemon, &token, "choir").await;
    let their_worker = singer(&daemon, &stranger.token, "tenor").await;
    let own = format!("{}/stream.", stranger.token_id);
    let wide = ["", "s", "stream.", "stream.data.", "tok_"].map(ToOwned::to_owned);
    let wanted = format!("{token_id}/");
    let of_stream = format!("{token_id}/stream.data.");
    let topics: Vec<_> =
        wide.iter().chain([&wanted, &of_stream, &own]).map(String::as_str).collect();
    let mut heard = listener(&daemon, &stranger.token, &topics, &theirs, "tenor").await;
    // Someone who may hear it is listening, so the chunks are published.
    let topics = ["stream.started", "stream.ended", "stream.data."];
    let mut all = listener(&daemon, daemon.admin_token(), &topics, &client, "choir").await;
    call_singer(&client, "choir", 5).await;
    call_singer(&theirs, "tenor", 2).await;
    let mut n_theirs = 0;
    let mut n_all = 0;
    while n_theirs < 2 * PIECES as u64 {
        let (found, stream_id, n_pieces) = until_ended(&mut heard).await;
        assert!(found.pieces.iter().all(|(of, _)| *of == stream_id));
        assert!(found.started.iter().all(|(_, tool)| tool == "tenor_sing"), "{found:?}");
        n_theirs = n_pieces;
    }
    while n_all < 5 * PIECES as u64 {
        n_all = until_ended(&mut all).await.2;
    }
    worker.close().await;
    their_worker.close().await;
    daemon.stop().await;
}

/// Rule: a subscriber that reads nothing slows neither the work nor other subscribers, and holds a
/// bounded part of the daemon's memory.
#[tokio::test(flavor = "multi_thread")]
async fn a_stalled_subscriber_slows_nothing() {
    let daemon = World::with_hoot().await;
    let client = daemon.admin().await;
    let worker = singer(&daemon, daemon.admin_token(), "choir").await;
    let hello = Hello { socket_type: "SUB", ..Hello::dealer(daemon.admin_token()) };
    let mut stalled = RawPeer::connect_small(daemon.events(), hello).await.unwrap();
    stalled.subscribe(b"stream.data.").await.unwrap();
    stalled.subscribe(b"heads").await.unwrap();
    in_force(&mut stalled, "heads").await;
    let before = resident();
    let (mut n_bytes, mut most) = (0, 0);
    let mut stream =
        client.stream_named("choir_sing", input(1500), CallOptions::default()).unwrap();
    while let Some(item) = within("an item", stream.next()).await {
        if let StreamItem::Chunk(StreamChunk::PartialAudio { samples, .. }) = item.unwrap() {
            n_bytes += samples.0.len();
            most = most.max(resident());
        }
    }
    assert_eq!(n_bytes, 1500 * CHUNK_BYTES, "the caller got everything");
    let grown = most.saturating_sub(before);
    assert!(grown < 100 << 20, "150 MB of sound made it grow by {} MiB", grown >> 20);
    assert!(stalled.recv().await.is_some(), "it stays connected");
    worker.close().await;
    daemon.stop().await;
}

/// Rule: who joins in the middle sees by the numbers that something came before.
#[tokio::test(flavor = "multi_thread")]
async fn chunks_are_counted_whether_or_not_anyone_listens() {
    let daemon = World::with_hoot().await;
    let client = daemon.admin().await;
    let worker = singer(&daemon, daemon.admin_token(), "choir").await;
    let mut subscriber = daemon.subscriber(daemon.admin_token(), &["stream.ended"]).await;
    within("an end", async {
        loop {
            call_singer(&client, "choir", 3).await;
            let ended = tokio::time::timeout(SOON, until_ended(&mut subscriber)).await;
            if let Ok((heard, _, n_pieces)) = ended {
                assert_eq!((heard.pieces.len(), n_pieces), (0, 3 * PIECES as u64));
                return;
            }
        }
    })
    .await;
    worker.close().await;
    daemon.stop().await;
}
