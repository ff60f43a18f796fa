//! Export over OTLP needs the subscriber of the process, so this test has its own process.
#![cfg(feature = "otel")]

use ringback::config::{Config, Environment, ServeFlags};
use ringback::telemetry::Telemetry;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

/// The preface of every HTTP/2 connection, and so of every gRPC one.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

#[tokio::test(flavor = "multi_thread")]
async fn spans_are_sent_to_the_collector_at_the_latest_at_shutdown() {
    let collector = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", collector.local_addr().unwrap());
    let variables = [("HOME", "/nowhere"), ("RINGBACK_TELEMETRY__OTLP_ENDPOINT", &endpoint)];
    let environment: Environment = variables.into_iter().collect();
    let config = Config::load(&ServeFlags::default(), &environment).unwrap();

    let telemetry = Telemetry::install(&config.log, &config.telemetry, None).unwrap();
    tracing::info_span!("call").in_scope(|| tracing::info!("inside"));
    let collect = async {
        let (mut stream, _) = collector.accept().await.unwrap();
        let mut preface = [0; HTTP2_PREFACE.len()];
        stream.read_exact(&mut preface).await.unwrap();
        drop((stream, collector));
        preface
    };
    let ((), preface) = tokio::join!(telemetry.shutdown(), collect);
    assert_eq!(preface, HTTP2_PREFACE);
}
