//! The HTTP listener over real sockets: limits, refusals and draining.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::routing::{get, post};
use ringback_service::{BindError, HttpConfig, HttpListener};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use support::{RunningListener, get_with, hello, read_all};

#[tokio::test]
async fn loopback_is_served_and_strangers_are_refused_before_any_route() {
    let running = RunningListener::start(HttpConfig::default(), hello()).await;
    let served = running.send(&get_with("Host: localhost:1\r\n")).await;
    assert!(served.starts_with("HTTP/1.1 200") && served.ends_with("hello"), "{served}");
    let misdirected = running.send(&get_with("Host: evil.example\r\n")).await;
    assert!(misdirected.starts_with("HTTP/1.1 421"), "{misdirected}");
    assert!(misdirected.contains("http.hosts") && !misdirected.contains("evil"), "{misdirected}");
    let forbidden =
        running.send(&get_with("Host: localhost\r\nOrigin: https://evil.example\r\n")).await;
    assert!(forbidden.starts_with("HTTP/1.1 403"), "{forbidden}");
    let no_route = "GET /nowhere HTTP/1.1\r\nHost: evil.example\r\n\r\n";
    assert!(running.send(no_route).await.starts_with("HTTP/1.1 421"));
    running.finish().await;
}

#[tokio::test]
async fn a_body_over_the_limit_is_413_announced_or_not() {
    let router = Router::new().route("/", post(async |body: Bytes| body.len().to_string()));
    let config = HttpConfig { max_body_bytes: 4, ..HttpConfig::default() };
    let running = RunningListener::start(config, router).await;
    let head = "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
    let fits = format!("{head}Content-Length: 4\r\n\r\nabcd");
    assert!(running.send(&fits).await.ends_with("\r\n4"));
    let announced = format!("{head}Content-Length: 5\r\n\r\nabcde");
    assert!(running.send(&announced).await.starts_with("HTTP/1.1 413"));
    let chunked = format!("{head}Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n");
    assert!(running.send(&chunked).await.starts_with("HTTP/1.1 413"));
    running.finish().await;
}

/// Rule: a limit that is hit is an answer, not a silent wait.
#[tokio::test]
async fn a_connection_beyond_the_limit_is_told_so() {
    let config = HttpConfig { max_connections: 1, ..HttpConfig::default() };
    let running = RunningListener::start(config, hello()).await;
    let mut first = TcpStream::connect(running.addr).await.unwrap();
    let keep_alive = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    first.write_all(keep_alive).await.unwrap();
    first.read_exact(&mut [0; 12]).await.unwrap();
    let refused = running.send(&get_with("Host: localhost\r\n")).await;
    assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
    assert!(refused.to_ascii_lowercase().contains("retry-after: 1"), "{refused}");
    drop(first);
    running.finish().await;
}

#[tokio::test]
async fn a_request_in_flight_is_answered_while_the_listener_drains() {
    let (entered, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let handler = {
        let (entered, release) = (Arc::clone(&entered), Arc::clone(&release));
        async move || {
            entered.notify_one();
            release.notified().await;
            "late but here"
        }
    };
    let mut running =
        RunningListener::start(HttpConfig::default(), Router::new().route("/", get(handler))).await;
    let mut stream = TcpStream::connect(running.addr).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    entered.notified().await;
    running.stop.accepting.cancel();
    running.stop.draining.cancel();
    release.notify_one();
    assert!(read_all(stream).await.ends_with("late but here"));
    running.tasks.join_next().await.unwrap().unwrap();
    TcpStream::connect(running.addr).await.unwrap_err();
}

#[tokio::test]
async fn an_open_connection_still_works_after_accepting_stopped() {
    let running = RunningListener::start(HttpConfig::default(), hello()).await;
    let mut stream = TcpStream::connect(running.addr).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    stream.read_exact(&mut [0; 12]).await.unwrap();
    running.stop.accepting.cancel();
    // The socket closes in its own time; once it is closed, no new connection is accepted.
    while TcpStream::connect(running.addr).await.is_ok() {
        tokio::task::yield_now().await;
    }
    stream.write_all(get_with("Host: localhost\r\n").as_bytes()).await.unwrap();
    assert_eq!(read_all(stream).await.matches("hello").count(), 2);
    running.finish().await;
}

#[tokio::test]
async fn a_handler_that_panics_takes_only_its_own_connection() {
    async fn rash() -> &'static str {
        panic!("in a handler")
    }
    let running =
        RunningListener::start(HttpConfig::default(), hello().route("/rash", get(rash))).await;
    let broken = running.send("GET /rash HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert_eq!(broken, "");
    assert!(running.send(&get_with("Host: localhost\r\n")).await.ends_with("hello"));
    running.finish().await;
}

#[tokio::test]
async fn an_address_in_use_is_named() {
    let running = RunningListener::start(HttpConfig::default(), hello()).await;
    let config = HttpConfig { listen: running.addr, ..HttpConfig::default() };
    let error = HttpListener::bind(config).await.unwrap_err();
    assert!(matches!(error, BindError::Listen { .. }));
    assert!(error.to_string().contains(&running.addr.to_string()), "{error}");
    running.finish().await;
}
