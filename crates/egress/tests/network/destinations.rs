//! Which places are reached, by name, by address, by redirect and by the addresses of a name.

use ringback_broker::NetworkOutcome;
use ringback_testkit::within;

use crate::support::{Server, World};

/// REQ: network policy `allow`: a listed name is reached at an address that is listed for it, by a
/// tunnel and by plain HTTP, and the host receives its own name.
#[tokio::test]
async fn a_listed_host_is_reached_by_a_tunnel_and_by_plain_http() {
    let server = Server::start("127.0.0.2").await;
    let port = server.port;
    let world = World::start(&format!("allow files.test:{port} 127.0.0.2:{port}"));
    world.names.set("files.test", &["127.0.0.2"]);
    let place = format!("files.test:{port}");
    assert_eq!(world.get(&place).await, (200, "127.0.0.2".to_owned()));
    let head = server.heads().remove(0);
    assert!(head.starts_with("GET / HTTP/1.1\r\n"), "{head}");
    assert!(head.contains(&format!("host: {place}\r\n")), "{head}");
    assert!(!head.contains("elsewhere"), "{head}");
    drop(world.echo(&place).await);
    drop(world.echo(&format!("127.0.0.2:{port}")).await);
    let records = world.records(3).await;
    assert!(records.iter().all(|record| record.outcome == NetworkOutcome::Passed), "{records:?}");
    assert_eq!(records[0].place, place);
    assert_eq!(records[1].bytes_up, "echo\nhello\n".len() as u64, "{records:?}");
    assert_eq!(records[1].bytes_down, "hello\n".len() as u64, "{records:?}");
    world.stop().await;
}

/// REQ: a host that is not on the list is not reached by its name, and its name is not looked up.
#[tokio::test]
async fn a_name_that_is_not_listed_is_refused_and_not_looked_up() {
    let server = Server::start("127.0.0.2").await;
    let port = server.port;
    let world = World::start(&format!("allow *.files.test:{port} 127.0.0.2:{port}"));
    for name in ["files.test", "evil.test", "files.test.evil.test", "xfiles.test", "localhost"] {
        world.names.set(name, &["127.0.0.2"]);
        let (status, said) = world.get(&format!("{name}:{port}")).await;
        assert_eq!(status, 403, "{name}: {said}");
        assert!(said.contains("ringback session network"), "{said}");
        assert_eq!(world.tunnel(&format!("{name}:{port}")).await.0, 403, "{name}");
    }
    assert_eq!(world.names.asked(), <[&str; 0]>::default());
    assert!(server.heads().is_empty());
    assert!(world.outcomes(10).await.iter().all(|found| *found == NetworkOutcome::HostRefused));
    world.names.set("a.files.test", &["127.0.0.2"]);
    assert_eq!(world.get(&format!("a.files.test:{port}")).await.0, 200);
    world.stop().await;
}

/// REQ: a host that is not on the list is not reached by its address, however it is written.
#[tokio::test]
async fn an_address_that_is_not_listed_is_refused_however_it_is_written() {
    let server = Server::start("127.0.0.2").await;
    let port = server.port;
    let world = World::start(&format!("allow files.test:{port} 127.0.0.3:{port}"));
    world.names.set("files.test", &["127.0.0.2"]);
    let spelled = [
        "127.0.0.2",
        "[::ffff:127.0.0.2]",
        "[::ffff:7f00:2]",
        "[::1]",
        "0.0.0.0",
        "169.254.169.254",
    ];
    for host in spelled {
        assert_eq!(world.tunnel(&format!("{host}:{port}")).await.0, 403, "{host}");
        assert_eq!(world.get(&format!("{host}:{port}")).await.0, 403, "{host}");
    }
    for host in ["127.2", "2130706434", "0x7f000002", "0177.0.0.2", "127.0.0.2.", "user@127.0.0.2"]
    {
        let (status, _) = world.get(&format!("{host}:{port}")).await;
        assert!([400, 403].contains(&status), "{host}: {status}");
    }
    assert!(server.heads().is_empty());
    world.stop().await;
}

/// REQ: a host that is not on the list is not reached by DNS: a listed name that has an address of
/// this machine or a private network is refused, and a mixed answer leads to what is allowed alone.
#[tokio::test]
async fn a_listed_name_that_turns_into_a_private_address_is_refused() {
    let server = Server::start("127.0.0.2").await;
    let port = server.port;
    for policy in [format!("allow files.test:{port}"), "full".to_owned()] {
        let world = World::start(&policy);
        for address in ["127.0.0.2", "::ffff:127.0.0.2", "::1", "10.0.0.1", "169.254.169.254"] {
            world.names.set("files.test", &[address]);
            let (status, said) = world.get(&format!("files.test:{port}")).await;
            assert_eq!(status, 403, "{policy}, {address}: {said}");
            assert_eq!(world.tunnel(&format!("files.test:{port}")).await.0, 403, "{address}");
        }
        let found = world.outcomes(10).await;
        assert!(found.iter().all(|found| *found == NetworkOutcome::AddressRefused), "{found:?}");
        world.stop().await;
    }
    assert!(server.heads().is_empty());
    let world = World::start(&format!("allow files.test:{port} 127.0.0.2:{port}"));
    world.names.set("files.test", &["127.0.0.9", "10.0.0.1", "127.0.0.2"]);
    assert_eq!(world.get(&format!("files.test:{port}")).await.1, "127.0.0.2");
    world.stop().await;
}

/// Rule: a name is looked up once for a connection, and the judged address is the one connected to.
#[tokio::test]
async fn a_name_is_looked_up_once_for_each_connection() {
    let server = Server::start("127.0.0.2").await;
    let port = server.port;
    let world = World::start(&format!("allow files.test:{port} 127.0.0.2:{port}"));
    world.names.set("files.test", &["127.0.0.2"]);
    drop(world.echo(&format!("files.test:{port}")).await);
    assert_eq!(world.names.asked(), ["files.test"]);
    world.names.set("files.test", &["127.0.0.3"]);
    assert_eq!(world.get(&format!("files.test:{port}")).await.0, 403, "it moved to another");
    assert_eq!(world.names.asked().len(), 2);
    world.stop().await;
}

/// REQ: a host that is not on the list is not reached by redirect: a redirect is passed on
/// unchanged, and following it is another request.
#[tokio::test]
async fn a_redirect_is_passed_on_and_judged_like_any_request() {
    let (server, other) = (Server::start("127.0.0.2").await, Server::start("127.0.0.3").await);
    let world = World::start(&format!("allow 127.0.0.2:{}", server.port));
    let target = format!("127.0.0.3:{}", other.port);
    let head = format!("GET http://127.0.0.2:{}/moved/{target} HTTP/1.1\r\nhost: a", server.port);
    assert_eq!(world.ask(&head).await.0, 302);
    assert_eq!(world.get(&target).await.0, 403);
    assert!(other.heads().is_empty());
    world.stop().await;
}

/// REQ: network policy `full`: the daemon's own machine and private networks must be listed.
#[tokio::test]
async fn full_reaches_this_machine_only_where_it_is_listed() {
    let (server, other) = (Server::start("127.0.0.2").await, Server::start("127.0.0.3").await);
    let world = World::start(&format!("full 127.0.0.2:{}", server.port));
    assert_eq!(world.get(&format!("127.0.0.2:{}", server.port)).await.0, 200);
    assert_eq!(world.get(&format!("127.0.0.3:{}", other.port)).await.0, 403);
    assert_eq!(world.get("[::1]:1").await.0, 403);
    world.stop().await;
}

/// Rule: a request that is not for a proxy is answered with how to use one.
#[tokio::test]
async fn what_does_not_say_where_to_is_told_how_to_ask() {
    let world = World::start("full");
    for head in [
        "GET / HTTP/1.1\r\nhost: files.test",
        "GET https://files.test/ HTTP/1.1\r\nhost: files.test",
        "CONNECT files.test:0 HTTP/1.1\r\nhost: files.test",
    ] {
        let (status, said) = world.ask(head).await;
        assert_eq!((status, said.contains("CONNECT HOST:PORT")), (400, true), "{head}: {said}");
    }
    assert_eq!(world.get("gone.test:80").await.0, 502);
    assert_eq!(world.outcomes(1).await, [NetworkOutcome::Unresolved]);
    within("the network proxies stop", world.stop()).await;
}
