//! Routing IDs: who owns them, and who gets the replies.

use ringback_proto::principal::Level;
use ringback_proto::request::*;
use ringback_proto::tool::tools::*;
use ringback_testkit::{Hello, RawPeer, World, within};

use crate::support::*;

/// Rule: a stranger cannot take over a peer's routing ID and speak as it.
#[tokio::test(flavor = "multi_thread")]
async fn a_routing_id_in_use_is_refused_to_another_principal() {
    let daemon = World::with_hoot().await;
    let stranger = daemon.new_token(Level::Write, None).await.token;
    let hello = Hello::dealer(daemon.admin_token()).named(b"mine");
    let mut holder = RawPeer::connect(daemon.calls(), hello).await.unwrap();
    let waits = request(JobSleepRequest { milliseconds: 200 }, WAIT);
    holder.send_frame(waits.clone()).await.unwrap();
    for _ in 0..5 {
        // Refused in the handshake or right after it; either way nothing is answered.
        if let Ok(mut thief) =
            RawPeer::connect(daemon.calls(), Hello::dealer(&stranger).named(b"mine")).await
        {
            drop(thief.send_frame(ping()).await);
            assert_eq!(within("the refusal", thief.recv()).await, None);
        }
    }
    let (answered, _) = within("the holder's answer", holder.recv_reply()).await;
    assert_eq!(answered, waits.request_id);
    assert_pings(&mut holder).await;
    daemon.stop().await;
}

/// Rule: a reply goes only to the connection that made the request, even if another peer has its
/// routing ID by now.
#[tokio::test(flavor = "multi_thread")]
async fn a_reused_routing_id_gets_none_of_the_replies_of_its_predecessor() {
    let daemon = World::with_hoot().await;
    let stranger = daemon.new_token(Level::Write, None).await.token;
    for round in 0..60_u64 {
        let hello = Hello::dealer(daemon.admin_token()).named(b"left");
        let mut first = RawPeer::connect(daemon.calls(), hello).await.unwrap();
        for milliseconds in 0..8 {
            let sleep = JobSleepRequest { milliseconds: milliseconds + round % 4 };
            first.send_frame(request(sleep, WAIT)).await.unwrap();
        }
        assert_own(&mut first).await;
        drop(first);
        let second = async {
            loop {
                let hello = Hello::dealer(&stranger).named(b"left");
                let Ok(mut peer) = RawPeer::connect(daemon.calls(), hello).await else { continue };
                let own = ping();
                if peer.send_frame(own.clone()).await.is_err() {
                    continue;
                }
                // Refused while the first is not known to be gone.
                let Some(parts) = peer.recv().await else { continue };
                let frame = ringback_proto::frame::Frame::decode(&parts[..]).unwrap();
                assert_eq!(frame.request_id, own.request_id, "another peer's reply");
                return peer;
            }
        };
        let mut second = within("the second holder", second).await;
        for _ in 0..5 {
            assert_pings(&mut second).await;
        }
    }
    daemon.stop().await;
}

/// Reads until the answer to a ping, so that the daemon has seen the frames before it.
async fn assert_own(peer: &mut RawPeer) {
    let own = ping();
    peer.send_frame(own.clone()).await.unwrap();
    while within("the pong", peer.recv_reply()).await.0 != own.request_id {}
}

/// Rule: a principal that returns under its own routing ID is served immediately, even while its
/// old connection is not known to be dead.
#[tokio::test(flavor = "multi_thread")]
async fn a_principal_takes_its_own_routing_id_over() {
    let daemon = World::with_hoot().await;
    let hello = || Hello::dealer(daemon.admin_token()).named(b"again");
    let mut old = RawPeer::connect(daemon.calls(), hello()).await.unwrap();
    let client = daemon.admin().await;
    let job_id = sleep_job(&client, 60_000).await;
    let waits = plain(poll(job_id));
    old.send_frame(waits.clone()).await.unwrap();
    let mut new = RawPeer::connect(daemon.calls(), hello()).await.unwrap();
    for _ in 0..20 {
        assert_pings(&mut new).await;
    }
    assert_eq!(within("the end of the old connection", old.recv()).await, None);
    drop(old);
    client.call::<JobCancel>(JobCancelRequest { job_id }).await.unwrap();
    for _ in 0..20 {
        assert_pings(&mut new).await;
    }
    daemon.stop().await;
}
