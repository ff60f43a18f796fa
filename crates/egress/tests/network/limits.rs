//! The limits of a network proxy, in size and time.

use std::time::Duration;

use ringback_broker::NetworkOutcome;
use ringback_egress::NetworkConfig;
use ringback_testkit::within;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::{Server, World, heard};

/// Rule: connections of a session have a limit, tunnels among them.
#[tokio::test]
async fn a_connection_too_many_is_closed_at_once() {
    let server = Server::start("127.0.0.2").await;
    let place = format!("127.0.0.2:{}", server.port);
    let config = NetworkConfig { connections_max: 1, ..NetworkConfig::default() };
    let world = World::start_with(&format!("allow {place}"), config);
    let mut first = world.echo(&place).await;
    let mut second = world.connect().await;
    let mut said = Vec::new();
    drop(within("it is closed", second.read_to_end(&mut said)).await);
    assert!(said.is_empty());
    first.write_all(b"still\n").await.unwrap();
    assert_eq!(heard(&mut first).await, "still\n");
    drop(first);
    world.records(1).await;
    drop(world.echo(&place).await);
    world.stop().await;
}

/// Rule: a connection on which nothing passes is closed.
#[tokio::test]
async fn a_connection_on_which_nothing_passes_is_closed() {
    let server = Server::start("127.0.0.2").await;
    let place = format!("127.0.0.2:{}", server.port);
    let idle_timeout = Duration::from_millis(50);
    let config = NetworkConfig { idle_timeout, ..NetworkConfig::default() };
    let world = World::start_with(&format!("allow {place}"), config);
    let (_, mut stream) = world.tunnel(&place).await;
    assert_eq!(heard(&mut stream).await, "");
    assert_eq!(world.outcomes(1).await, [NetworkOutcome::Idle]);
    world.stop().await;
}

/// Rule: a head has a limit of size and of time.
#[tokio::test]
async fn a_head_that_is_too_long_or_does_not_come_is_given_up() {
    let head_timeout = Duration::from_millis(50);
    let world =
        World::start_with("full", NetworkConfig { head_timeout, ..NetworkConfig::default() });
    let mut silent = world.connect().await;
    let mut said = Vec::new();
    drop(within("it is closed", silent.read_to_end(&mut said)).await);
    assert!(!said.starts_with(b"HTTP/1.1 200"));
    let (long, usual) = ("x".repeat(100_000), World::start("full"));
    let mut stream = usual.connect().await;
    // It may be closed before all is written.
    drop(stream.write_all(format!("GET http://a.test/{long} HTTP/1.1\r\n").as_bytes()).await);
    let mut said = Vec::new();
    drop(within("it is answered", stream.read_to_end(&mut said)).await);
    assert!(!said.starts_with(b"HTTP/1.1 200"));
    assert_eq!(usual.names.asked(), <[&str; 0]>::default());
    usual.stop().await;
    world.stop().await;
}
