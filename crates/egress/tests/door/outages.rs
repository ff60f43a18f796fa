//! A provider that is down or redirects, and the end of a session.

use std::time::Duration;

use hyper::{Response, StatusCode};
use ringback_egress::Config;
use ringback_testkit::within;
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, UnixStream};

use crate::support::{Upstream, World, full, post};

/// Rule: a provider that is down yields a clear answer, without an internal address.
#[tokio::test]
async fn a_provider_that_is_down_says_what_happened_and_what_to_do() {
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let mut world = World::start(&format!("http://localhost:{port}"));
    let answer = world.post("/v1/messages", "{}").await;
    assert_eq!(answer.status, StatusCode::BAD_GATEWAY);
    assert!(answer.body.contains("the model `m` cannot be reached: it refuses connections"));
    assert!(answer.body.contains("`url`"), "{answer:?}");
    for inside in ["127.0.0.1", &port.to_string(), "os error", "sk-"] {
        assert!(!answer.body.contains(inside), "{answer:?}");
    }
    let (_, record) = world.records(1).await.remove(0);
    assert_eq!((record.status, record.usage.bytes_down), (Some(502), 0));
    world.stop().await;
}

#[tokio::test]
async fn a_provider_that_does_not_answer_in_time_is_given_up() {
    let config = Config {
        connect_timeout: Duration::from_millis(100),
        answer_timeout: Duration::from_millis(300),
        ..Config::default()
    };
    let upstream = Upstream::start(|_| std::future::pending()).await;
    let mut world = World::start_with(&upstream.url, config, |_| ());
    assert_eq!(world.post("/", "").await.status, StatusCode::GATEWAY_TIMEOUT);
    world.stop().await;

    // It accepts the connection, and sends no TLS.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}", silent.local_addr().unwrap().port());
    let mut world = World::start_with(&url, config, |_| ());
    let answer = world.post("/", "").await;
    assert_eq!(answer.status, StatusCode::BAD_GATEWAY);
    assert!(answer.body.contains("took too long"), "{answer:?}");
    world.stop().await;
}

/// Rule: a redirect is never followed: the key goes where the configuration says.
#[tokio::test]
async fn a_redirect_is_passed_on_and_not_followed() {
    let elsewhere = Upstream::fine().await;
    let target = format!("{}/stolen", elsewhere.url);
    let upstream = Upstream::start(move |_| {
        let redirect = Response::builder().status(307).header("location", &target);
        let redirect = redirect.body(full("")).unwrap();
        async { redirect }
    })
    .await;
    let mut world = World::start(&upstream.url);
    let answer = world.post("/v1", "{}").await;
    assert_eq!(answer.status, StatusCode::TEMPORARY_REDIRECT);
    assert!(answer.headers["location"].to_str().unwrap().ends_with("/stolen"));
    assert_eq!((upstream.asked().len(), elsewhere.asked().len()), (1, 0));
    world.stop().await;
}

/// Rule: the end of a session closes its model proxy, with every connection and request.
#[tokio::test]
async fn the_end_of_a_session_closes_its_door() {
    let upstream = Upstream::start(|_| std::future::pending()).await;
    let mut world = World::start(&upstream.url);
    let mut idle = UnixStream::connect(world.socket()).await.unwrap();
    let mut agent = world.connect().await;
    let asking = agent.send_request(post("/v1", full("{}")));
    let ending = async {
        while upstream.asked().is_empty() {
            tokio::task::yield_now().await;
        }
        world.guard.take();
    };
    let (answer, ()) = within("it ends", async { tokio::join!(asking, ending) }).await;
    assert!(answer.is_err(), "the request is over");
    let mut rest = Vec::new();
    assert_eq!(within("it closes", idle.read_to_end(&mut rest)).await.unwrap(), 0);
    assert!(!world.socket().exists() && UnixStream::connect(world.socket()).await.is_err());
    world.stop().await;
}

/// Rule: only the daemon's user can reach the socket.
#[tokio::test]
async fn a_door_is_private_and_opens_for_known_models_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::start("http://127.0.0.1:1");
    let mode = std::fs::metadata(world.socket()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let dir = world.socket().parent().unwrap().to_owned();
    let records = || std::sync::Arc::<crate::support::Records>::default();
    let opened = world.doors.serve(
        records(),
        world.session,
        &dir,
        "other",
        crate::support::SessionKey::default(),
    );
    assert!(opened.is_err_and(|error| error.to_string().contains("`other`")));
    let doors = std::sync::Arc::clone(&world.doors);
    world.stop().await;
    let opened = doors.serve(
        records(),
        crate::support::session(1),
        &dir,
        "m",
        crate::support::SessionKey::default(),
    );
    assert!(opened.is_err_and(|error| error.to_string().contains("stopped")));
}
