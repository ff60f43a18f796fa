//! A listener that runs in the test's own runtime, and requests as bytes.

use std::net::SocketAddr;

use axum::Router;
use axum::routing::get;
use ringback_service::{HttpConfig, HttpListener, Stop};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// A listener that runs in the test's own runtime.
pub(crate) struct RunningListener {
    pub(crate) addr: SocketAddr,
    pub(crate) stop: Stop,
    pub(crate) tasks: JoinSet<()>,
}

impl RunningListener {
    pub(crate) async fn start(config: HttpConfig, router: Router) -> Self {
        let listen = "127.0.0.1:0".parse().unwrap();
        let listener = HttpListener::bind(HttpConfig { listen, ..config }).await.unwrap();
        let addr = listener.local_addr();
        let stop = Stop { accepting: CancellationToken::new(), draining: CancellationToken::new() };
        let mut tasks = JoinSet::new();
        tasks.spawn(listener.serve(router, stop.clone()));
        Self { addr, stop, tasks }
    }

    pub(crate) async fn send(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.addr).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        read_all(stream).await
    }

    pub(crate) async fn finish(mut self) {
        self.stop.accepting.cancel();
        self.stop.draining.cancel();
        self.tasks.join_next().await.unwrap().unwrap();
    }
}

pub(crate) async fn read_all(mut stream: TcpStream) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

pub(crate) fn hello() -> Router {
    Router::new().route("/", get(async || "hello"))
}

pub(crate) fn get_with(headers: &str) -> String {
    format!("GET / HTTP/1.1\r\n{headers}Connection: close\r\n\r\n")
}
