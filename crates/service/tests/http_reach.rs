//! Access over real sockets: browsers' preflights, TLS, and peers that stall.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::routing::post;
use rcgen::CertifiedKey;
use ringback_service::http::{BodyLimit, Timeouts};
use ringback_service::{HttpConfig, Tls, TlsError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use support::{RunningListener, get_with, hello};

fn with_origin() -> HttpConfig {
    HttpConfig { origins: vec!["https://app.example".to_owned()], ..HttpConfig::default() }
}

fn preflight(origin: &str) -> String {
    format!(
        "OPTIONS /v1/tools HTTP/1.1\r\nHost: localhost\r\nOrigin: {origin}\r\n\
         Access-Control-Request-Method: POST\r\n\
         Access-Control-Request-Headers: authorization,content-type\r\nConnection: close\r\n\r\n"
    )
}

/// The value of a header in an answer.
fn header<'a>(answer: &'a str, name: &str) -> Option<&'a str> {
    let head = answer.split("\r\n\r\n").next()?;
    head.lines().find_map(|line| {
        let (found, value) = line.split_once(": ")?;
        found.eq_ignore_ascii_case(name).then_some(value)
    })
}

/// Rule: a page of a listed origin may send what the routes need, and read what they answer.
#[tokio::test]
async fn a_preflight_of_a_listed_origin_is_answered_for_every_header_in_use() {
    let running = RunningListener::start(with_origin(), hello()).await;
    let answer = running.send(&preflight("https://app.example")).await;
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
    assert_eq!(header(&answer, "access-control-allow-origin"), Some("https://app.example"));
    assert_eq!(header(&answer, "vary"), Some("Origin"));
    let allowed = header(&answer, "access-control-allow-headers").unwrap().to_ascii_lowercase();
    for name in ["authorization", "content-type", "prefer", "idempotency-key", "last-event-id"] {
        assert!(allowed.split(", ").any(|found| found == name), "{name}: {allowed}");
    }
    let methods = header(&answer, "access-control-allow-methods").unwrap();
    assert!(["GET", "POST", "PUT", "DELETE"].iter().all(|name| methods.contains(name)));
    assert_eq!(header(&answer, "access-control-allow-credentials"), None);
    running.finish().await;
}

#[tokio::test]
async fn an_answer_may_be_read_by_the_page_that_asked_and_by_no_other() {
    let running = RunningListener::start(with_origin(), hello()).await;
    let from = |origin: &str| get_with(&format!("Host: localhost\r\nOrigin: {origin}\r\n"));
    for origin in ["https://app.example", "http://localhost:3000"] {
        let answer = running.send(&from(origin)).await;
        assert!(answer.ends_with("hello"), "{answer}");
        assert_eq!(header(&answer, "access-control-allow-origin"), Some(origin));
        assert!(header(&answer, "access-control-expose-headers").unwrap().contains("Location"));
    }
    for request in [from("https://evil.example"), preflight("https://evil.example")] {
        let answer = running.send(&request).await;
        assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
        assert_eq!(header(&answer, "access-control-allow-origin"), None);
    }
    let plain = running.send(&get_with("Host: localhost\r\n")).await;
    assert_eq!(header(&plain, "access-control-allow-origin"), None);
    running.finish().await;
}

#[tokio::test]
async fn an_answer_of_the_listener_itself_may_be_read_by_the_page_too() {
    let config = HttpConfig { max_body_bytes: 4, ..with_origin() };
    let running = RunningListener::start(config, hello()).await;
    let request = "POST / HTTP/1.1\r\nHost: localhost\r\nOrigin: https://app.example\r\n\
                   Content-Length: 5\r\n\r\nabcde";
    let answer = running.send(request).await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert_eq!(header(&answer, "access-control-allow-origin"), Some("https://app.example"));
    running.finish().await;
}

#[tokio::test]
async fn a_path_that_streams_takes_more_than_the_others() {
    let size = async |body: Bytes| body.len().to_string();
    let router = Router::new().route("/", post(size)).route("/blobs/{id}", post(size));
    let larger_bodies = vec![BodyLimit { path: "/blobs", max_bytes: 8 }];
    let config = HttpConfig { max_body_bytes: 4, larger_bodies, ..HttpConfig::default() };
    let running = RunningListener::start(config, router).await;
    let chunked = |path: &str, body: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
            body.len()
        )
    };
    assert!(running.send(&chunked("/blobs/1", "abcdefgh")).await.ends_with("\r\n8"));
    assert!(running.send(&chunked("/blobs/1", "abcdefghi")).await.starts_with("HTTP/1.1 413"));
    assert!(running.send(&chunked("/", "abcde")).await.starts_with("HTTP/1.1 413"));
    running.finish().await;
}

/// Rule: a sender that dribbles or stops holds its place for a bounded time.
#[tokio::test]
async fn a_head_or_a_body_that_never_ends_is_cut_off() {
    let short = Duration::from_millis(50);
    let patience = Timeouts { head: short, body: short, ..Timeouts::default() };
    let read = async |body: Result<Bytes, _>| match body {
        Ok(_) => StatusCode::OK,
        Err(_) => StatusCode::REQUEST_TIMEOUT,
    };
    let router = Router::new().route("/", post(read));
    let running =
        RunningListener::start(HttpConfig { patience, ..HttpConfig::default() }, router).await;
    let head = running.send("POST / HTTP/1.1\r\nHost: loc").await;
    assert!(head.is_empty() || head.starts_with("HTTP/1.1 408"), "{head}");
    let body = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc";
    assert!(running.send(body).await.starts_with("HTTP/1.1 408"));
    running.finish().await;
}

/// A self-signed certificate for `localhost`: its PEM files, and a client that trusts it.
fn certificate(dir: &Path) -> (Tls, TlsConnector) {
    let CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (cert_file, key_file) = (dir.join("cert.pem"), dir.join("key.pem"));
    std::fs::write(&cert_file, cert.pem()).unwrap();
    std::fs::write(&key_file, signing_key.serialize_pem()).unwrap();
    std::fs::set_permissions(&key_file, PermissionsExt::from_mode(0o600)).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    (Tls::load(&cert_file, &key_file).unwrap(), TlsConnector::from(Arc::new(config)))
}

#[tokio::test]
async fn tls_serves_those_who_speak_it_and_drops_those_who_do_not() {
    let dir = tempfile::tempdir().unwrap();
    let (tls, connector) = certificate(dir.path());
    let config = HttpConfig { tls: Some(tls), ..HttpConfig::default() };
    let running = RunningListener::start(config, hello()).await;
    let stream = TcpStream::connect(running.addr).await.unwrap();
    let mut stream = connector.connect("localhost".try_into().unwrap(), stream).await.unwrap();
    stream.write_all(get_with("Host: localhost\r\n").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("hello"), "{answer}");

    let mut plain = TcpStream::connect(running.addr).await.unwrap();
    plain.write_all(get_with("Host: localhost\r\n").as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    drop(plain.read_to_end(&mut answer).await);
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");

    // A peer that never completes a handshake does not keep the listener from ending.
    let silent = TcpStream::connect(running.addr).await.unwrap();
    running.finish().await;
    drop(silent);
}

#[tokio::test]
async fn a_certificate_that_cannot_be_used_is_named() {
    let dir = tempfile::tempdir().unwrap();
    drop(certificate(dir.path()));
    let path = |name: &str| dir.path().join(name);
    let (cert, key) = (path("cert.pem"), path("key.pem"));
    let load = |cert: &str, key: &str| Tls::load(&path(cert), &path(key)).unwrap_err();
    assert!(matches!(load("none.pem", "key.pem"), TlsError::Read { .. }));
    assert!(matches!(load("key.pem", "key.pem"), TlsError::Pem { what: "certificate", .. }));
    assert!(matches!(load("cert.pem", "cert.pem"), TlsError::Exposed { .. }));
    std::fs::set_permissions(&cert, PermissionsExt::from_mode(0o600)).unwrap();
    assert!(matches!(load("cert.pem", "cert.pem"), TlsError::Pem { what: "private key", .. }));
    let other = tempfile::tempdir().unwrap();
    drop(certificate(other.path()));
    std::fs::copy(other.path().join("key.pem"), &key).unwrap();
    let mismatch = load("cert.pem", "key.pem");
    assert!(matches!(mismatch, TlsError::Unusable { .. }), "{mismatch}");
    assert!(mismatch.to_string().contains("key.pem"), "{mismatch}");
}
