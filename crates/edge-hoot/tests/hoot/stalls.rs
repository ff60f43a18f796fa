//! Peers that do not read.

use std::time::Duration;

use ringback_proto::principal::Level;
use ringback_proto::request::*;
use ringback_proto::tool::tools::*;
use ringback_testkit::{Hello, RawPeer, Setup, pass, wait_for, within};

use crate::support::*;

/// How long a peer may read nothing while much waits for it.
const PATIENCE: Duration = Duration::from_secs(10);
/// Far more replies than its budget and the buffers on the way hold.
const N_ENOUGH: usize = 32;

/// Rule: a stalled peer delays no one, has a budget of bytes, and is disconnected beyond it.
#[tokio::test]
async fn a_peer_that_asks_for_much_and_reads_nothing_is_disconnected() {
    let setup = Setup::new().hoot_with(|hoot| {
        hoot.peer_backlog_bytes_max = 8 << 20;
        hoot.peer_idle = PATIENCE;
    });
    let daemon = setup.start().await;
    let client = daemon.admin().await;
    let content = content(2 << 20);
    let hash = client.upload(&content[..], "a/b").await.unwrap().hash.unwrap();
    client.close().await;
    let before = resident();
    let mut stalled = raw(&daemon).await;
    let mut other = raw(&daemon).await;
    let mut most = 0;
    let mut n_asked = 0;
    let flood = async {
        loop {
            let get = plain(CasGetRequest { hash, offset: None, length: None });
            if stalled.send_frame(get).await.is_err() {
                return;
            }
            n_asked += 1;
            most = most.max(resident());
            assert_pings(&mut other).await;
            if n_asked == N_ENOUGH {
                pass(PATIENCE).await;
            }
        }
    };
    within("the disconnection", flood).await;
    let grown = most.saturating_sub(before);
    assert!(grown < 300 << 20, "{n_asked} replies made it grow by {} MiB", grown >> 20);
    assert_pings(&mut other).await;
    daemon.stop().await;
}

/// Rule: replies without content count against the budget too.
#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_beats_and_never_listens_is_disconnected() {
    let setup = Setup::new().hoot_with(|hoot| hoot.peer_backlog_bytes_max = 1 << 20);
    let daemon = setup.start().await;
    let mut stalled =
        RawPeer::connect_small(daemon.calls(), Hello::dealer(daemon.admin_token())).await.unwrap();
    let mut other = raw(&daemon).await;
    let flood = async {
        loop {
            for _ in 0..500 {
                if stalled.send_frame(heartbeat()).await.is_err() {
                    return;
                }
            }
            assert_pings(&mut other).await;
        }
    };
    within("the disconnection", flood).await;
    assert_pings(&mut other).await;
    daemon.stop().await;
}

/// Rule: many large concurrent replies are not a stall: a peer that reads gets them all.
#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_reads_gets_more_than_its_budget_at_once() {
    let setup = Setup::new().hoot_with(|hoot| hoot.peer_backlog_bytes_max = 8 << 20);
    let daemon = setup.start().await;
    let client = daemon.admin().await;
    let content = content(1 << 20);
    let hash = client.upload(&content[..], "a/b").await.unwrap().hash.unwrap();
    let gets =
        (0..64).map(|_| client.call::<CasGet>(CasGetRequest { hash, offset: None, length: None }));
    for got in within("all of them", futures_util::future::join_all(gets)).await {
        assert!(got.unwrap().data.0 == content);
    }
    daemon.stop().await;
}

/// Rule: a peer whose machine vanished is gone after a period of silence, and with it its waits.
#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_peer_is_noticed_by_its_silence() {
    let setup = Setup::new()
        .hoot_with(|hoot| hoot.peer_idle = Duration::from_millis(600))
        .config(|config| config.calls_per_principal_max = 1);
    let daemon = setup.start().await;
    let admin = daemon.admin().await;
    let token = daemon.new_token(Level::Admin, None).await.token;
    let job_id = sleep_job(&admin, 60_000).await;
    let client = daemon.client(&token).await;
    let mut frozen = RawPeer::connect(daemon.calls(), Hello::dealer(&token)).await.unwrap();
    frozen.send_frame(plain(poll(job_id))).await.unwrap();
    assert_pings(&mut frozen).await;
    let is_free = async || client.call::<JobStatus>(JobStatusRequest { job_id }).await.is_ok();
    wait_for("the poll takes the only place", async || !is_free().await).await;
    wait_for("the frozen peer is gone", is_free).await;
    daemon.stop().await;
}
