//! The cost of a call, counted: allocations and commits do not depend on how busy the machine is.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use camino::Utf8Path;
use ringback_broker::{
    Answer, Blocking, Broker, Call, Clock, Credential, Edge, Entropy, Environment,
};
use ringback_proto::request::{JobSleepRequest, PingRequest};
use ringback_proto::{RequestEnvelope, ResponseEnvelope};
use ringback_store::Store;
use ringback_store::manual_writer::Fault;
use ringback_testkit::broker_config;
use tokio::task::JoinSet;

use crate::common::{result, start};

/// The version's text in the answer, and the encoded answer.
const PING_ALLOCATIONS_MAX: i64 = 2;
/// One for all starts, one for all ends, and a few for stragglers.
const COMMITS_MAX: usize = 8;
const JOBS: usize = 64;

thread_local! {
    static ALLOCATIONS: Cell<i64> = const { Cell::new(0) };
    static LIVE_BYTES: Cell<i64> = const { Cell::new(0) };
}

/// The system's allocator with a count for each thread.
struct CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[expect(unsafe_code, reason = "an allocator is unsafe by nature; this one forwards everything")]
// SAFETY: every request goes unchanged to the system's allocator, and counting allocates nothing.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(1, layout.size() as i64);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(0, -(layout.size() as i64));
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(1, size as i64 - layout.size() as i64);
        // SAFETY: as the caller promises.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

fn count(n_allocations: i64, n_bytes: i64) {
    ALLOCATIONS.set(ALLOCATIONS.get() + n_allocations);
    LIVE_BYTES.set(LIVE_BYTES.get() + n_bytes);
}

/// Decodes, calls and encodes, as an edge does.
fn ping(broker: &Broker, credential: &Credential, body: &bytes::Bytes) -> Vec<u8> {
    let envelope = RequestEnvelope::decode(body).unwrap();
    let call = Call { credential, edge: Edge::Hoot, envelope, request_id: None };
    match broker.call(call) {
        Answer::Now(reply @ ResponseEnvelope::Success { .. }) => reply.encode(),
        other => panic!("a ping is answered immediately: {other:?}"),
    }
}

#[tokio::test]
async fn a_ping_hardly_allocates() {
    let fixture = start().await;
    let credential = Credential::local();
    let body = bytes::Bytes::from(RequestEnvelope::plain(PingRequest::default()).encode());
    ping(&fixture.broker, &credential, &body);
    let before = ALLOCATIONS.get();
    drop(ping(&fixture.broker, &credential, &body));
    let n_allocations = ALLOCATIONS.get() - before;
    assert!(n_allocations <= PING_ALLOCATIONS_MAX, "{n_allocations} allocations");
}

#[tokio::test]
async fn ten_thousand_pings_leave_nothing_behind() {
    let fixture = start().await;
    let credential = Credential::local();
    let body = bytes::Bytes::from(RequestEnvelope::plain(PingRequest::default()).encode());
    ping(&fixture.broker, &credential, &body);
    let before = LIVE_BYTES.get();
    for _ in 0..10_000 {
        drop(ping(&fixture.broker, &credential, &body));
    }
    assert_eq!(LIVE_BYTES.get() - before, 0);
}

#[tokio::test]
async fn many_durable_jobs_share_a_few_commits() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = broker_config(Utf8Path::from_path(dir.path()).unwrap());
    (config.jobs_running_max, config.jobs_live_max) = (JOBS, JOBS);
    config.jobs_per_principal_max = JOBS;
    let (store, mut hand) = Store::open_by_hand(&config.data_dir).unwrap();
    let (clock, entropy) = (Clock::system(), Entropy::system());
    let outside = Environment { store, clock, entropy, blocking: Blocking::Threads };
    let broker = Broker::start_in(config, outside).await.unwrap();
    let credential = Credential::local();
    let mut calls = JoinSet::new();
    for _ in 0..JOBS {
        let (broker, credential) = (broker.clone(), credential.clone());
        calls.spawn(async move {
            result(&broker, &credential, JobSleepRequest { milliseconds: 0 }).await.unwrap()
        });
    }
    let mut n_commits = 0;
    while !calls.is_empty() {
        tokio::select! {
            biased;
            Some(ended) = calls.join_next() => drop(ended.unwrap()),
            () = hand.waiting() => {
                n_commits += usize::from(!hand.turn(Fault::None).unwrap().written.is_empty());
            }
        }
    }
    assert!(n_commits <= COMMITS_MAX, "{n_commits} commits for {JOBS} jobs");
}
