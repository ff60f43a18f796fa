//! Full queues, and the visibility of jobs.

use std::collections::HashSet;

use futures_util::future::join_all;
use ringback_proto::ids::JobId;
use ringback_proto::record::JobState;
use ringback_proto::request::*;
use ringback_proto::tool::tools::*;
use ringback_proto::{Certainty, Error, ErrorKind, Event};
use ringback_testkit::{Setup, World, wait_for, within};

use crate::support::*;

fn assert_busy(error: &Error) {
    assert_eq!((error.kind(), error.certainty()), (ErrorKind::Busy, Certainty::NotStarted));
}

/// Rule: a full queue answers `busy` immediately, and nothing of the call has run.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_list_of_jobs_is_busy_until_one_ends() {
    let daemon = Setup::new()
        .hoot()
        .config(|config| {
            config.jobs_running_max = 1;
            (config.jobs_live_max, config.jobs_per_principal_max) = (2, 2);
        })
        .start()
        .await;
    let client = daemon.admin().await;
    let first = sleep_job(&client, 60_000).await;
    let second = sleep_job(&client, 60_000).await;
    let third = client.submit::<JobSleep>(JobSleepRequest { milliseconds: 1 }).await;
    assert_busy(&third.unwrap_err());
    assert_eq!(jobs(&client).await.total, 2, "what was refused left nothing behind");
    assert_eq!(state(&client, second).await, JobState::Pending);
    client.call::<JobCancel>(JobCancelRequest { job_id: first }).await.unwrap();
    let fourth = sleep_job(&client, 1).await;
    client.call::<JobCancel>(JobCancelRequest { job_id: second }).await.unwrap();
    assert_eq!(ended(&client, fourth).await, JobState::Complete);
    daemon.stop().await;
}

/// Rule: a principal with too many pending calls gets `busy`; the others do not.
#[tokio::test(flavor = "multi_thread")]
async fn too_many_calls_of_one_principal_are_busy_for_it_alone() {
    let daemon =
        Setup::new().hoot().config(|config| config.calls_per_principal_max = 2).start().await;
    let other = daemon.new_token(ringback_proto::principal::Level::Read, None).await.token;
    let (client, other) = (daemon.admin().await, daemon.client(&other).await);
    let job_id = sleep_job(&client, 60_000).await;
    let asking =
        async || within("an answer", client.call::<JobStatus>(JobStatusRequest { job_id })).await;
    let mut peer = raw(&daemon).await;
    for _ in 0..2 {
        peer.send_frame(plain(poll(job_id))).await.unwrap();
    }
    // Answered after them, so both polls are pending.
    assert_pings(&mut peer).await;
    assert_busy(&asking().await.unwrap_err());
    within("a ping", client.call::<Ping>(PingRequest {})).await.unwrap();
    within("a list", other.call::<JobList>(JobListRequest::default())).await.unwrap();
    drop(peer);
    wait_for("there is room again", async || asking().await.is_ok()).await;
    daemon.stop().await;
}

/// Rule: no list and no event shows a job before it is durable: each ID can be looked up
/// immediately.
#[tokio::test(flavor = "multi_thread")]
async fn whatever_a_list_or_an_event_shows_can_be_looked_up_at_once() {
    let daemon = World::with_hoot().await;
    let (writer, reader) = (daemon.admin().await, daemon.admin().await);
    let burst = async {
        for _ in 0..20 {
            join_all((0..50).map(|_| sleep_job(&writer, 0))).await;
        }
    };
    let looking = async {
        let mut seen = HashSet::new();
        let mut cursor = None;
        while seen.len() < 1000 {
            let listed = jobs(&reader).await.jobs.into_iter().map(|job| job.job_id);
            let request = EventPollRequest { cursor, limit: Some(500), ..Default::default() };
            let polled = within("events", reader.call::<EventPoll>(request)).await.unwrap();
            cursor = Some(polled.cursor);
            let told = polled.events.into_iter().filter_map(|event| match event.event {
                Event::JobStateChanged { job_id, .. } => Some(job_id),
                _ => None,
            });
            let new: Vec<JobId> =
                listed.chain(told).filter(|job_id| seen.insert(*job_id)).collect();
            join_all(new.into_iter().map(async |job_id| state(&reader, job_id).await)).await;
        }
    };
    tokio::join!(burst, looking);
    daemon.stop().await;
}

/// Rule: a retry with the same request ID never runs the tool twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_frame_sent_again_by_another_connection_is_the_same_call() {
    let daemon = World::with_hoot().await;
    let frame = plain(JobSleepRequest { milliseconds: 1 });
    let mut replies = Vec::new();
    for _ in 0..3 {
        replies.push(ask(&mut raw(&daemon).await, frame.clone()).await);
    }
    assert!(replies.iter().all(|reply| *reply == replies[0]), "{replies:?}");
    assert_eq!(jobs(&daemon.admin().await).await.total, 1);
    let other = plain(JobSleepRequest { milliseconds: 2 });
    let other = ringback_proto::frame::Frame { request_id: frame.request_id, ..other };
    not_started(ask(&mut raw(&daemon).await, other).await, "conflict");
    daemon.stop().await;
}
