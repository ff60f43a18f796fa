//! What one peer may use, and that it costs no other peer anything.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use ringback_broker::Credential;
use ringback_edge_relay::Config;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use crate::support::{World, refused, tool};

/// REQ: design "The sandbox socket": 16 MiB per line.
/// Rule: a line that is too long is skipped and reported; the connection continues.
#[tokio::test]
async fn a_line_of_17_mib_is_refused_and_one_of_15_passes() {
    let world = World::start().await;
    let who = Credential::local();
    let session = world.session(&who, json!([tool("x")])).await;
    let mut caller = world.caller(&who, session);
    let mut peer = world.settled(session).await;
    peer.writer.write_all(&vec![b'x'; 17 << 20]).await.unwrap();
    peer.writer.write_all(b"\n").await.unwrap();
    let answer = peer.next().await;
    assert_eq!(refused(&answer), "-32600 too_large not_started");
    assert_eq!(answer["id"], Value::Null);

    let text = "y".repeat(15 << 20);
    peer.ask(1, "caller_tool", json!({ "tool": "x", "arguments": { "text": text } })).await;
    let call = caller.next_call().await;
    assert_eq!(call.arguments.bytes.len(), text.len() + r#"{"text":""}"#.len());
    world.answer(&caller, &call, &format!("\"{text}\"")).await.unwrap();
    assert_eq!(peer.answer(1).await["result"], text);
    world.stop().await;
}

/// Rule: a result that does not fit in a line is an error that says so, and that the tool ran.
#[tokio::test]
async fn a_result_that_fits_in_no_line_is_an_error() {
    let config = Config { line_bytes_max: 10_000, ..Config::default() };
    let world = World::start_with(config, |_| ()).await;
    let who = Credential::local();
    let session = world.session(&who, json!([tool("x")])).await;
    let mut caller = world.caller(&who, session);
    let mut peer = world.settled(session).await;
    peer.ask(1, "caller_tool", json!({ "tool": "x" })).await;
    let call = caller.next_call().await;
    world.answer(&caller, &call, &format!("\"{}\"", "y".repeat(10_000))).await.unwrap();
    assert_eq!(refused(&peer.answer(1).await), "-32000 too_large ran");
    world.stop().await;
}

/// Rule: requests of one connection are bounded, by number and by bytes; beyond that the answer is
/// `busy`, immediately.
#[tokio::test]
async fn too_many_requests_on_one_connection_are_busy() {
    let config = Config { requests_max: 3, request_bytes_max: 5000, ..Config::default() };
    let world = World::start_with(config, |_| ()).await;
    let who = Credential::local();
    let session = world.session(&who, json!([tool("x")])).await;
    let mut caller = world.caller(&who, session);
    let mut peer = world.settled(session).await;
    let mut calls = Vec::new();
    for id in 0..3 {
        peer.ask(id, "caller_tool", json!({ "tool": "x" })).await;
        calls.push(caller.next_call().await);
    }
    let busy = peer.get(3, "caller_tool", json!({ "tool": "x" })).await;
    assert_eq!(refused(&busy), "-32000 busy not_started");
    assert_eq!(busy["error"]["data"]["retryable"], true);
    let mut other = world.settled(session).await;
    other.ask(1, "caller_tool", json!({ "tool": "x" })).await;
    calls.push(caller.next_call().await);
    for call in &calls {
        world.answer(&caller, call, "1").await.unwrap();
    }
    assert_eq!(peer.answer(2).await["result"], 1);
    let large = json!({ "tool": "x", "arguments": { "text": "y".repeat(5000) } });
    let busy = peer.get(4, "caller_tool", large).await;
    assert_eq!(refused(&busy), "-32000 busy not_started");
    drop((peer, other));
    world.stop().await;
}

/// Rule: connections of one session are bounded; one too many is refused with an answer, and a
/// freed place is used again.
#[tokio::test]
async fn too_many_connections_of_one_session_are_turned_away() {
    let config = Config { connections_max: 2, ..Config::default() };
    let world = World::start_with(config, |_| ()).await;
    let who = Credential::local();
    let session = world.session(&who, json!([tool("x")])).await;
    let first = world.settled(session).await;
    let mut second = world.settled(session).await;
    let mut third = world.connect(session).await;
    assert_eq!(refused(&third.next().await), "-32000 busy not_started");
    third.closed().await;
    let another = world.session(&who, json!([])).await;
    world.settled(another).await;
    drop(first);
    loop {
        let mut peer = world.connect(session).await;
        let line = peer.next_line().await;
        if line.is_some_and(|line| line.contains("caller_tools_config")) {
            break;
        }
    }
    world.works(&who, session, &mut second).await;
    world.stop().await;
}

/// Rule: a slow reader costs only itself: it is disconnected, and others are served in the
/// meantime.
#[tokio::test]
async fn a_peer_that_does_not_read_is_disconnected_alone() {
    let config = Config { line_bytes_max: 1 << 20, outbox_bytes_max: 1 << 20, ..Config::default() };
    let world = World::start_with(config, |_| ()).await;
    let who = Credential::local();
    let session = world.session(&who, json!([tool("x")])).await;
    let mut slow = world.settled(session).await;
    let mut quick = world.settled(session).await;
    let line = format!("{{\"id\":\"{}\",\"method\":\"nothing\"}}\n", "i".repeat(1000));
    let mut n_sent = 0_usize;
    // Each line is answered with one of its size; no one reads the answers.
    while slow.writer.write_all(line.as_bytes()).await.is_ok() {
        n_sent += line.len();
        assert!(n_sent < 64 << 20, "the daemon holds all of it");
    }
    world.works(&who, session, &mut quick).await;
    world.stop().await;
}

/// Rule: a peer that reads nothing for too long is disconnected, however little waits for it.
#[tokio::test]
async fn a_peer_that_stalls_is_disconnected() {
    let config = Config { stall: Duration::from_millis(50), ..Config::default() };
    let world = World::start_with(config, |_| ()).await;
    let who = Credential::local();
    let session = world.session(&who, json!([tool("x")])).await;
    let mut caller = world.caller(&who, session);
    let mut peer = world.settled(session).await;
    peer.ask(1, "caller_tool", json!({ "tool": "x" })).await;
    let call = caller.next_call().await;
    // More than a socket holds.
    world.answer(&caller, &call, &format!("\"{}\"", "y".repeat(8 << 20))).await.unwrap();
    while peer.writer.write_all(b"\n").await.is_ok() {
        tokio::task::yield_now().await;
    }
    let mut other = world.settled(session).await;
    other.ask(2, "caller_tool", json!({ "tool": "x" })).await;
    let call = caller.next_call().await;
    world.answer(&caller, &call, "1").await.unwrap();
    assert_eq!(other.answer(2).await["result"], 1);
    world.stop().await;
}

/// Rule: only the daemon's user can reach the socket.
#[tokio::test]
async fn the_socket_is_for_its_owner_alone() {
    let world = World::start().await;
    let session = world.session(&Credential::local(), json!([])).await;
    let path = world.socket(session);
    let mode =
        |path: &camino::Utf8Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    world.stop().await;
}
