//! Tokens: wrong, revoked and expired ones.

use bytes::Bytes;
use ringback_client::{ConnectError, LinkState};
use ringback_proto::frame::{Body, Command, Frame};
use ringback_proto::ids::RequestId;
use ringback_proto::principal::Level;
use ringback_proto::request::*;
use ringback_proto::secret::Secret;
use ringback_proto::tool::tools::*;
use ringback_proto::{Certainty, ErrorKind};
use ringback_testkit::{HandshakeError, Hello, RawPeer, Setup, World, wait_for, within};

use crate::support::*;

/// Rule: a connection without a valid token is refused in the handshake, on both sockets.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_token_is_refused_in_the_handshake() {
    let daemon = World::with_hoot().await;
    let wrong = Secret::new(format!("oub_{}", "0".repeat(64)));
    let refused = within("the refusal", daemon.try_client(&wrong)).await.unwrap_err();
    assert!(matches!(refused, ConnectError::Refused { .. }), "{refused:?}");
    for token in [Some(&wrong), None] {
        for (endpoint, socket_type) in [(daemon.calls(), "DEALER"), (daemon.events(), "SUB")] {
            let hello = Hello { token, identity: None, socket_type };
            let refused = within("the refusal", RawPeer::connect(endpoint, hello)).await;
            let refused = refused.expect_err("no token, no connection");
            assert!(token.is_none() || matches!(refused, HandshakeError::Refused(_)), "{refused}");
        }
    }
    daemon.stop().await;
}

/// Rule: an open daemon asks for no token.
#[tokio::test(flavor = "multi_thread")]
async fn an_open_daemon_takes_anyone() {
    let daemon = Setup::new().hoot_with(|hoot| hoot.open = true).start().await;
    let hello = Hello { token: None, identity: None, socket_type: "DEALER" };
    assert_pings(&mut RawPeer::connect(daemon.calls(), hello).await.unwrap()).await;
    let client = daemon.admin().await;
    within("a list", client.call::<TokenList>(TokenListRequest {})).await.unwrap();
    daemon.stop().await;
}

/// Rule: a revoked token works for no further call, and its connections are closed almost
/// immediately.
#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_token_is_refused_at_the_next_call_and_its_connections_are_closed() {
    let daemon = World::with_hoot().await;
    let admin = daemon.admin().await;
    let TokenCreatedResponse { token, token_id, .. } = daemon.new_token(Level::Write, None).await;
    let mut client = daemon.client(&token).await;
    let mut silent = RawPeer::connect(daemon.calls(), Hello::dealer(&token)).await.unwrap();
    let hello = Hello { socket_type: "SUB", ..Hello::dealer(&token) };
    let mut subscriber = RawPeer::connect(daemon.events(), hello).await.unwrap();
    within("a ping", client.call::<Ping>(PingRequest {})).await.unwrap();
    admin.call::<TokenRevoke>(TokenRevokeRequest { token_id }).await.unwrap();
    let refused = within("the refusal", client.call::<Ping>(PingRequest {})).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unauthenticated);
    assert_eq!(refused.certainty(), Certainty::NotStarted);
    closed(&mut client).await;
    assert_eq!(within("the end of a peer that never spoke", silent.recv()).await, None);
    assert_eq!(within("the end of a subscriber", subscriber.recv()).await, None);
    within("a ping", admin.call::<Ping>(PingRequest {})).await.unwrap();
    daemon.stop().await;
}

/// Rule: an expired token works for no further call, and its connections are closed almost
/// immediately.
#[tokio::test(flavor = "multi_thread")]
async fn an_expired_token_is_refused_and_its_connections_are_closed() {
    let daemon = World::with_hoot().await;
    let TokenCreatedResponse { token, expires_at, .. } =
        daemon.new_token(Level::Write, Some(1)).await;
    let mut client = daemon.client(&token).await;
    let mut silent = RawPeer::connect(daemon.calls(), Hello::dealer(&token)).await.unwrap();
    let expires_at = expires_at.unwrap();
    loop {
        let asked_at = daemon.broker.now().unix;
        let answer = within("an answer", client.call::<Ping>(PingRequest {})).await;
        match answer {
            Ok(_) => assert!(asked_at <= expires_at, "an expired token worked"),
            Err(error) => {
                assert!([ErrorKind::Unauthenticated, ErrorKind::Gone].contains(&error.kind()));
                break;
            }
        }
    }
    assert!(daemon.broker.now().unix >= expires_at);
    closed(&mut client).await;
    assert_eq!(within("the end of a peer that never spoke", silent.recv()).await, None);
    within("the refusal", daemon.try_client(&token)).await.unwrap_err();
    daemon.stop().await;
}

async fn closed(client: &mut ringback_client::Client) {
    let link = client.link();
    wait_for("the connection is closed", async || *link.borrow() != LinkState::Up).await;
}

/// Rule: a call beyond a token's scope is refused, and the error names the missing scope.
#[tokio::test(flavor = "multi_thread")]
async fn a_denial_says_what_was_missing_and_that_nothing_ran() {
    let daemon = World::with_hoot().await;
    let token = daemon.new_token(Level::Read, None).await.token;
    let mut peer = RawPeer::connect(daemon.calls(), Hello::dealer(&token)).await.unwrap();
    let denied = error(ask(&mut peer, plain(JobSleepRequest { milliseconds: 1 })).await);
    assert_eq!((&*denied.code, denied.certainty), ("permission_denied", Certainty::NotStarted));
    assert!(denied.context.missing.is_some(), "{denied:?}");
    // The scope is checked first, whatever the input and the form of the request.
    for body in [
        &b"\x81\xa4tool\xa9job_sleep"[..],
        b"\x81\xa4tool\xactoken_create",
        b"\x92\xa9job_sleep\xa1x",
        b"\x81\xa7request\x81\xa4tool\xa9job_sleep",
    ] {
        let body = Body::MsgPack(Bytes::copy_from_slice(body));
        let frame = Frame::new(Command::Request, RequestId::random(), body.clone());
        let denied = error(ask(&mut peer, frame).await);
        assert_eq!(denied.code, "permission_denied", "{body:?}");
    }
    daemon.stop().await;
}
