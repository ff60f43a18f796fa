//! Renders on every core, and calls meanwhile.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::StreamExt as _;
use ringback_client::{Client, StreamItem};
use ringback_proto::ErrorKind;
use ringback_proto::chunk::StreamChunk;
use ringback_proto::ids::JobId;
use ringback_proto::request::*;
use ringback_proto::tool::tools::*;
use ringback_testkit::{wait_for, within};
use tokio::task::JoinSet;

use crate::support::*;

/// More calls than there are threads of any kind that a render could occupy.
const CALLS: usize = 200;

/// The progress of the renders.
#[derive(Debug, Default)]
struct Renders {
    /// How many have sent sound.
    n_heard: AtomicUsize,
    jobs: Mutex<Vec<JobId>>,
}

/// Returns a render of almost an hour: organ chords, which never fade.
async fn an_hour(client: &Client) -> MidiToWavRequest {
    let bars = "[CEGceg]4|".repeat(14);
    let tune = format!("X:1\nT:t\nM:4/4\nL:1/4\nQ:1/4=1\nK:C\n%%MIDI program 19\n{bars}\n");
    MidiToWavRequest {
        input_hash: store(client, midi_of(&tune), "audio/midi").await,
        soundfont_hash: None,
        sample_rate: None,
        format: None,
        gain_db: None,
        tags: Vec::new(),
        creator: None,
        parent_id: None,
        variation_set_id: None,
    }
}

/// Follows a render to its end, and reads its sound as fast as it comes.
async fn follow(client: Client, request: MidiToWavRequest, renders: Arc<Renders>) -> ErrorKind {
    let mut stream = client.stream::<MidiToWav>(request).unwrap();
    let mut is_heard = false;
    while let Some(item) = stream.next().await {
        match item {
            Ok(StreamItem::Started { job_id, .. }) => {
                renders.jobs.lock().unwrap().extend(job_id);
            }
            Ok(StreamItem::Chunk(StreamChunk::PartialAudio { .. })) if !is_heard => {
                is_heard = true;
                renders.n_heard.fetch_add(1, Ordering::Relaxed);
            }
            Ok(StreamItem::Chunk(_)) => {}
            Ok(StreamItem::End(_)) => panic!("an hour was rendered before the calls were answered"),
            Err(error) => return error.kind(),
        }
    }
    panic!("a stream without an end")
}

/// REQ: several renders use all cores without starving calls: every core is at work on an hour of
/// music, more wait for their turn, and calls are answered long before the first of them ends.
#[tokio::test(flavor = "multi_thread")]
async fn calls_are_answered_while_every_core_renders() {
    let daemon = with_music().await;
    let client = daemon.admin().await;
    let request = an_hour(&client).await;
    let n_cores = std::thread::available_parallelism().unwrap().get();
    let renders = Arc::new(Renders::default());
    let mut following = JoinSet::new();
    for _ in 0..n_cores + 2 {
        following.spawn(follow(daemon.admin().await, request.clone(), Arc::clone(&renders)));
    }
    let is_busy = async || renders.n_heard.load(Ordering::Relaxed) >= n_cores;
    wait_for("every core renders", is_busy).await;
    for _ in 0..CALLS {
        within("a ping", client.call::<Ping>(PingRequest {})).await.unwrap();
        let check = AbcValidateRequest { abc: TUNE.to_owned() };
        assert!(within("a check", client.call::<AbcValidate>(check)).await.unwrap().valid);
    }
    let list = JobListRequest::default();
    within("a list", client.call::<JobList>(list)).await.unwrap();
    assert!(following.try_join_next().is_none(), "a render has ended");
    assert_eq!(renders.n_heard.load(Ordering::Relaxed), n_cores, "the others wait for a core");
    let jobs = renders.jobs.lock().unwrap().clone();
    for job_id in jobs {
        within("it", client.call::<JobCancel>(JobCancelRequest { job_id })).await.unwrap();
    }
    while let Some(ended) = within("the ends", following.join_next()).await {
        assert_eq!(ended.unwrap(), ErrorKind::Cancelled);
    }
    daemon.stop().await;
}
