//! A policy that changes, and a session that ends, while connections are open.

use ringback_broker::NetworkOutcome;
use ringback_testkit::within;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::{Server, World, heard};

/// REQ: a change of the network takes effect immediately: it closes what is no longer allowed and
/// leaves the rest, and the next request reaches what is newly allowed.
#[tokio::test]
async fn a_change_closes_what_is_not_allowed_any_more_and_nothing_else() {
    let server = Server::start("127.0.0.2").await;
    let other = Server::start("127.0.0.3").await;
    let (kept, lost) = (format!("127.0.0.2:{}", server.port), format!("127.0.0.3:{}", other.port));
    let world = World::start(&format!("allow {kept}"));
    assert_eq!(world.tunnel(&lost).await.0, 403);
    world.change(&format!("allow {kept} {lost}"));
    let (mut of_kept, mut of_lost) = (world.echo(&kept).await, world.echo(&lost).await);
    world.change(&format!("allow {kept}"));
    assert_eq!(heard(&mut of_lost).await, "", "it was closed");
    of_kept.write_all(b"still\n").await.unwrap();
    assert_eq!(heard(&mut of_kept).await, "still\n");
    assert_eq!(world.tunnel(&lost).await.0, 403);
    world.change("none");
    assert_eq!(heard(&mut of_kept).await, "");
    assert_eq!(world.tunnel(&kept).await.0, 403);
    let outcomes = world.outcomes(5).await;
    assert_eq!(outcomes.iter().filter(|found| **found == NetworkOutcome::Closed).count(), 2);
    world.stop().await;
}

/// The same for an answer of plain HTTP that is on its way.
#[tokio::test]
async fn a_change_cuts_off_an_answer_that_is_not_allowed_any_more() {
    let server = Server::start("127.0.0.2").await;
    let place = format!("127.0.0.2:{}", server.port);
    let world = World::start(&format!("allow {place}"));
    let mut stream = world.connect().await;
    let head = format!("GET http://{place}/hangs HTTP/1.1\r\nhost: a\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut received = Vec::new();
    while !received.ends_with(b"127.0.0.2") {
        let mut byte = [0];
        within("the answer begins", stream.read_exact(&mut byte)).await.unwrap();
        received.push(byte[0]);
    }
    world.change("model");
    let mut rest = Vec::new();
    drop(within("it is cut off", stream.read_to_end(&mut rest)).await);
    assert!(rest.is_empty());
    assert_eq!(world.outcomes(1).await, [NetworkOutcome::Closed]);
    world.stop().await;
}

/// Rule: the end of a session closes its network proxy, with every connection.
#[tokio::test]
async fn the_end_of_a_session_closes_its_door_and_its_connections() {
    let server = Server::start("127.0.0.2").await;
    let place = format!("127.0.0.2:{}", server.port);
    let mut world = World::start(&format!("allow {place}"));
    let mut stream = world.echo(&place).await;
    let socket = world.dir.path().join("network.sock");
    assert!(socket.exists());
    world.guard.take();
    assert_eq!(heard(&mut stream).await, "");
    assert!(!socket.exists());
    assert_eq!(world.outcomes(1).await, [NetworkOutcome::Closed]);
    world.stop().await;
}
