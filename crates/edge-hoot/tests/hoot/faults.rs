//! Links that fail, daemons that restart, peers that come and go.

use std::time::Duration;

use futures_util::future::join_all;
use ringback_client::{Client, LinkState};
use ringback_proto::record::JobState;
use ringback_proto::request::*;
use ringback_proto::tool::tools::*;
use ringback_proto::{Certainty, ErrorKind};
use ringback_testkit::{Fault, GRACE, Hello, Proxy, RawPeer, World, wait_for, within};
use tokio::time::Instant;

use crate::support::*;

/// Long enough for thousands of connections, short enough for daily use.
const CHURN: Duration = Duration::from_secs(3);

async fn link_is(client: &Client, wanted: LinkState) {
    let link = client.link();
    wait_for(&format!("the link is {wanted:?}"), async || *link.borrow() == wanted).await;
}

/// Rule: a client reconnects to a restarted daemon, and its jobs are still known there.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_survives_the_restart_of_its_daemon() {
    let daemon = World::with_hoot().await;
    let client = daemon.admin().await;
    let done = sleep_job(&client, 0).await;
    assert_eq!(ended(&client, done).await, JobState::Complete);
    let interrupted = sleep_job(&client, 60_000).await;
    wait_for("it runs", async || state(&client, interrupted).await == JobState::Running).await;
    let daemon = daemon.restart(GRACE).await;
    wait_for("calls are answered again", async || {
        client.call::<Ping>(PingRequest {}).await.is_ok()
    })
    .await;
    assert_eq!(state(&client, done).await, JobState::Complete);
    assert_eq!(state(&client, interrupted).await, JobState::Failed);
    let again = daemon.restart(GRACE).await;
    link_is(&client, LinkState::Up).await;
    again.stop().await;
}

/// Rule: a daemon that stops answers pending calls.
#[tokio::test(flavor = "multi_thread")]
async fn calls_under_way_are_answered_before_a_stop() {
    let daemon = World::with_hoot().await;
    let client = daemon.admin().await;
    let sleeps = (0..20).map(|step| {
        client.call_with::<JobSleep>(JobSleepRequest { milliseconds: 200 + step }, WAIT)
    });
    let sleeps = join_all(sleeps);
    let stop = async {
        let other = daemon.admin().await;
        wait_for("all are under way", async || jobs(&other).await.total == 20).await;
        drop(other);
        daemon.stop().await;
    };
    let (answers, ()) = tokio::join!(sleeps, stop);
    for answer in answers {
        answer.unwrap();
    }
}

/// Rule: calls on a lost link end as `gone` and may have run; then the client reconnects.
#[tokio::test(flavor = "multi_thread")]
async fn a_cut_link_ends_its_calls_and_is_made_again() {
    let daemon = World::with_hoot().await;
    let proxy = Proxy::start(daemon.calls()).await;
    let mut config = daemon.client_config(daemon.admin_token());
    config.endpoint = proxy.endpoint().to_owned();
    let client = Client::connect(config).await.unwrap();
    let job_id = sleep_job(&client, 60_000).await;
    let polled = client.call::<JobPoll>(poll(job_id));
    let cut = async {
        client.call::<Ping>(PingRequest {}).await.unwrap();
        proxy.set(Fault::Cut);
    };
    let (polled, ()) = tokio::join!(polled, cut);
    let error = polled.unwrap_err();
    assert_eq!((error.kind(), error.certainty()), (ErrorKind::Gone, Certainty::MayHaveRun));
    let refused = client.call::<Ping>(PingRequest {}).await.unwrap_err();
    assert_eq!((refused.kind(), refused.certainty()), (ErrorKind::Gone, Certainty::NotStarted));
    proxy.set(Fault::None);
    link_is(&client, LinkState::Up).await;
    assert_eq!(state(&client, job_id).await, JobState::Running, "the job goes on");
    daemon.stop().await;
}

/// Rule: a silent link is noticed, and the client reconnects.
#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_link_is_noticed_and_made_again() {
    let daemon = World::with_hoot().await;
    let proxy = Proxy::start(daemon.calls()).await;
    let mut config = daemon.client_config(daemon.admin_token());
    config.endpoint = proxy.endpoint().to_owned();
    config.heartbeat_interval = Duration::from_millis(100);
    let client = Client::connect(config).await.unwrap();
    proxy.set(Fault::Freeze);
    let lost = within("the end", client.call::<Ping>(PingRequest {})).await.unwrap_err();
    assert_eq!(lost.kind(), ErrorKind::Gone);
    proxy.set(Fault::None);
    link_is(&client, LinkState::Up).await;
    within("a ping", client.call::<Ping>(PingRequest {})).await.unwrap();
    daemon.stop().await;
}

/// Rule: how bytes are split in transit does not matter.
#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_dribbles_or_delays_carries_everything() {
    let daemon = World::with_hoot().await;
    for fault in [Fault::Dribble, Fault::Delay(Duration::from_millis(5))] {
        let proxy = Proxy::start(daemon.calls()).await;
        proxy.set(fault);
        let mut config = daemon.client_config(daemon.admin_token());
        config.endpoint = proxy.endpoint().to_owned();
        let client = within("the handshake", Client::connect(config)).await.unwrap();
        let content = content(20_000);
        let stored = within("an upload", client.upload(&content[..], "a/b")).await.unwrap();
        let mut back = Vec::new();
        let got = client.download(stored.hash.unwrap(), &mut back);
        within("a download", got).await.unwrap();
        assert!(back == content);
    }
    daemon.stop().await;
}

/// Rule: peers that come and go, half of them with a reused name, lose no call.
#[tokio::test(flavor = "multi_thread")]
async fn no_call_is_lost_while_peers_come_and_go() {
    let daemon = World::with_hoot().await;
    let end = Instant::now() + CHURN;
    let workers = (0..16).map(|worker| {
        let daemon = &daemon;
        async move {
            let identity = format!("worker-{worker}");
            let mut n_calls = 0;
            while Instant::now() < end {
                let hello = Hello::dealer(daemon.admin_token());
                let hello = if worker % 2 == 0 { hello.named(identity.as_bytes()) } else { hello };
                let connected = within("a connection", RawPeer::connect(daemon.calls(), hello));
                let mut peer = connected.await.unwrap();
                for _ in 0..5 {
                    assert_pings(&mut peer).await;
                    let sleep = request(JobSleepRequest { milliseconds: 0 }, WAIT);
                    ask(&mut peer, sleep).await;
                    n_calls += 2;
                }
            }
            n_calls
        }
    });
    let n_calls: u32 = join_all(workers).await.into_iter().sum();
    assert!(n_calls > 500, "{n_calls}");
    daemon.stop().await;
}
