//! Concurrent calls, and calls that are no longer wanted.

use std::collections::HashMap;
use std::pin::pin;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use ringback_client::StreamItem;
use ringback_proto::data::Data;
use ringback_proto::ids::RequestId;
use ringback_proto::principal::Level;
use ringback_proto::record::JobState;
use ringback_proto::request::*;
use ringback_proto::tool::tools::*;
use ringback_proto::{Certainty, ResponseEnvelope, ToolResponse};
use ringback_testkit::{Hello, RawPeer, Setup, World, wait_for, within};

use crate::support::*;

/// Rule: a slow call delays no other peer's heartbeat and no other peer's call.
#[tokio::test(flavor = "multi_thread")]
async fn while_one_peer_waits_for_long_others_get_heartbeats_and_pings() {
    let daemon = World::with_hoot().await;
    let client = daemon.admin().await;
    let job_id = sleep_job(&client, 60_000).await;
    let mut polled = pin!(client.call::<JobPoll>(poll(job_id)));
    let slept = client.call_with::<JobSleep>(JobSleepRequest { milliseconds: 60_000 }, WAIT);
    let mut slept = pin!(slept);
    let others = async {
        let mut peer = raw(&daemon).await;
        for _ in 0..50 {
            assert_pings(&mut peer).await;
            let beat = heartbeat();
            peer.send_frame(beat.clone()).await.unwrap();
            assert_eq!(peer.recv_frame().await, beat);
        }
    };
    tokio::select! {
        polled = &mut polled => panic!("the poll did not wait: {polled:?}"),
        slept = &mut slept => panic!("the sleep did not wait: {slept:?}"),
        () = others => {}
    }
    client.call::<JobCancel>(JobCancelRequest { job_id }).await.unwrap();
    assert_eq!(polled.await.unwrap().failed, [job_id]);
}

/// Rule: requests of one peer run concurrently, answers carry the IDs of their requests, and a
/// heartbeat is answered immediately with its own.
#[tokio::test(flavor = "multi_thread")]
async fn requests_of_one_peer_run_side_by_side_and_answers_match_their_ids() {
    let daemon = World::with_hoot().await;
    let mut peer = raw(&daemon).await;
    let mut asked = HashMap::new();
    for milliseconds in (0..40).rev().map(|step| 300 + 5 * step) {
        let frame = request(JobSleepRequest { milliseconds }, WAIT);
        asked.insert(frame.request_id, milliseconds);
        peer.send_frame(frame).await.unwrap();
    }
    let beat = heartbeat();
    peer.send_frame(beat.clone()).await.unwrap();
    assert_eq!(within("the heartbeat", peer.recv_frame()).await, beat, "it overtakes the sleeps");
    let mut order = Vec::new();
    for _ in 0..40 {
        let (request_id, reply) = within("an answer", peer.recv_reply()).await;
        let milliseconds = asked.remove(&request_id).expect("each id is answered once");
        let response = ToolResponse::Slept(SleptResponse { milliseconds });
        assert_eq!(reply, ResponseEnvelope::Success { response });
        order.push(milliseconds);
    }
    assert_ne!(order[0], 300 + 5 * 39, "the first that was asked takes longest");
    daemon.stop().await;
}

/// Rule: every call ends in exactly one answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_calls_of_twenty_peers_end_in_exactly_one_answer_each() {
    let daemon = World::with_hoot().await;
    let peers = (0..20_u8).map(|number| {
        let daemon = &daemon;
        async move {
            let mut peer = raw(daemon).await;
            let mut unanswered = HashMap::new();
            for call in 0..50_u8 {
                let frame = match call % 5 {
                    0 => ping(),
                    1 => request(JobSleepRequest { milliseconds: u64::from(call) }, WAIT),
                    2 => plain(JobListRequest::default()),
                    3 => plain(CasStoreRequest {
                        data: Data(vec![number, call].into()),
                        mime_type: "a/b".to_owned(),
                        upload_id: None,
                        offset: None,
                        last: None,
                    }),
                    _ => plain(JobSleepRequest { milliseconds: 0 }),
                };
                unanswered.insert(frame.request_id, call);
                peer.send_frame(frame).await.unwrap();
            }
            while !unanswered.is_empty() {
                let (request_id, reply) = within("an answer", peer.recv_reply()).await;
                assert!(unanswered.remove(&request_id).is_some(), "a second answer: {reply:?}");
                assert!(!matches!(reply, ResponseEnvelope::Error(_)), "{reply:?}");
            }
            let beat = heartbeat();
            peer.send_frame(beat.clone()).await.unwrap();
            assert_eq!(peer.recv_frame().await, beat, "no answer comes after the last");
        }
    });
    join_all(peers).await;
    daemon.stop().await;
}

/// Rule: Cancel stops a waiting call; its caller gets an error.
#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_wait_ends_at_once_and_says_so() {
    let daemon = World::with_hoot().await;
    let client = daemon.admin().await;
    let mut peer = raw(&daemon).await;
    let job_id = sleep_job(&client, 60_000).await;
    let frame = plain(poll(job_id));
    let request_id = frame.request_id;
    peer.send_frame(frame).await.unwrap();
    peer.send_frame(cancel(RequestId::random())).await.unwrap();
    assert_eq!(state(&client, job_id).await, JobState::Running);
    peer.send_frame(cancel(request_id)).await.unwrap();
    let (answered, reply) = within("the answer", peer.recv_reply()).await;
    assert_eq!((answered, error(reply).code.as_str()), (request_id, "cancelled"));
    assert_eq!(state(&client, job_id).await, JobState::Running, "the wait ended, not the job");
    daemon.stop().await;
}

/// Rule: Cancel stops a streamed job, and the stream ends with an error under the same id.
#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_stream_has_stopped_its_job() {
    let daemon = World::with_hoot().await;
    let client = daemon.admin().await;
    let mut peer = raw(&daemon).await;
    let started = ask(&mut peer, request(JobSleepRequest { milliseconds: 60_000 }, STREAM)).await;
    let ResponseEnvelope::StreamStart { job_id: Some(job_id), .. } = started else {
        panic!("no stream: {started:?}")
    };
    let frame = request(JobSleepRequest { milliseconds: 2_000 }, STREAM);
    let request_id = frame.request_id;
    peer.send_frame(frame).await.unwrap();
    let (_, other) = within("a second stream", peer.recv_reply()).await;
    let ResponseEnvelope::StreamStart { job_id: Some(other_job), .. } = other else {
        panic!("no stream: {other:?}")
    };
    peer.send_frame(cancel(request_id)).await.unwrap();
    let ended = async {
        loop {
            match peer.recv_reply().await {
                (answered, ResponseEnvelope::Error(error)) => return (answered, error),
                (_, ResponseEnvelope::StreamChunk { .. }) => {}
                (_, other) => panic!("neither a chunk nor the end: {other:?}"),
            }
        }
    };
    let (answered, error) = within("the end of the stream", ended).await;
    assert_eq!((answered, error.code.as_str()), (request_id, "cancelled"));
    assert_ne!(error.certainty, Certainty::NotStarted);
    assert_eq!(state(&client, other_job).await, JobState::Cancelled);
    assert_eq!(state(&client, job_id).await, JobState::Running, "the first was not cancelled");
    // A stop would wait for the first stream while it is being read.
    drop(peer);
    daemon.stop().await;
}

/// Rule: dropping a call before its answer cancels it.
#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_future_and_a_dropped_stream_cancel_their_jobs() {
    let daemon = World::with_hoot().await;
    let client = daemon.admin().await;
    let running = async |n_jobs: u64| {
        wait_for("the job runs", async || jobs(&client).await.by_status.running == n_jobs).await;
    };
    let mut call =
        Box::pin(client.call_with::<JobSleep>(JobSleepRequest { milliseconds: 60_000 }, WAIT));
    tokio::select! {
        answer = &mut call => panic!("the call did not wait: {answer:?}"),
        () = running(1) => {}
    }
    drop(call);
    running(0).await;

    let mut stream = client.stream::<JobSleep>(JobSleepRequest { milliseconds: 60_000 }).unwrap();
    let started = within("the start", stream.next()).await.unwrap().unwrap();
    let StreamItem::Started { job_id: Some(job_id), .. } = started else { panic!("{started:?}") };
    drop(stream);
    assert_eq!(ended(&client, job_id).await, JobState::Cancelled);
    assert_eq!(jobs(&client).await.by_status.cancelled, 2);
    daemon.stop().await;
}

/// Rule: when a peer leaves, its waiting reads end, and the jobs whose IDs it knows go on.
#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_leaves_takes_its_reads_along_and_not_its_jobs() {
    let daemon =
        Setup::new().hoot().config(|config| config.calls_per_principal_max = 1).start().await;
    let admin = daemon.admin().await;
    let token = daemon.new_token(Level::Write, None).await.token;
    let client = daemon.client(&token).await;
    let mut peer = RawPeer::connect(daemon.calls(), Hello::dealer(&token)).await.unwrap();
    let started = ask(&mut peer, plain(JobSleepRequest { milliseconds: 60_000 })).await;
    let ResponseEnvelope::JobStarted { job_id, .. } = started else { panic!("{started:?}") };
    peer.send_frame(plain(poll(job_id))).await.unwrap();
    // Answered after it, so the poll is pending.
    assert_pings(&mut peer).await;
    let is_free = async || client.call::<JobStatus>(JobStatusRequest { job_id }).await.is_ok();
    wait_for("the poll takes the only place", async || !is_free().await).await;
    drop(peer);
    wait_for("the poll has ended", is_free).await;
    assert_eq!(state(&admin, job_id).await, JobState::Running);
    daemon.stop().await;
}

/// Rule: Disconnect is the same as leaving, now.
#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_says_goodbye_has_left_and_may_come_back() {
    let daemon =
        Setup::new().hoot().config(|config| config.calls_per_principal_max = 1).start().await;
    let admin = daemon.admin().await;
    let job_id = sleep_job(&admin, 60_000).await;
    let token = daemon.new_token(Level::Admin, None).await.token;
    let mut peer = RawPeer::connect(daemon.calls(), Hello::dealer(&token)).await.unwrap();
    peer.send_frame(plain(poll(job_id))).await.unwrap();
    let goodbye = ringback_proto::frame::Frame {
        command: ringback_proto::frame::Command::Disconnect,
        ..heartbeat()
    };
    peer.send_frame(goodbye).await.unwrap();
    let client = daemon.client(&token).await;
    wait_for("the poll has ended", async || {
        client.call::<JobStatus>(JobStatusRequest { job_id }).await.is_ok()
    })
    .await;
    assert_pings(&mut peer).await;
    daemon.stop().await;
}
