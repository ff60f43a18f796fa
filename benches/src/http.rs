//! The HTTP load: ready-made requests on persistent connections. It parses of an answer only what
//! determines its end, to leave the shared core to the server.

use std::time::Instant;

use anyhow::Context;
use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::load::Measurement;
use crate::process::Server;

/// One part in this many is a warm-up, which is not measured: caches and buffers reach their size.
const WARM_UP: usize = 10;
/// Our own answers have about six.
const HEADERS_MAX: usize = 32;
/// An answer fits in, so that it takes one read.
const BUFFER_BYTES: usize = 4096;

/// One connection to a server.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// An answer; its body is what the connection read last.
#[derive(Debug)]
pub(crate) struct Answer {
    status: u16,
    /// The value of the header `mcp-session-id`.
    pub(crate) session: Option<String>,
    body_start: usize,
    /// `None` for an endless stream.
    body_bytes: Option<usize>,
}

impl Connection {
    pub(crate) async fn open(server: &Server) -> anyhow::Result<Self> {
        let address = server.http.trim_start_matches("http://");
        let stream = TcpStream::connect(address).await.context("cannot connect to the server")?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::with_capacity(BUFFER_BYTES) })
    }

    /// Sends a request and waits for its answer, or for the start of an endless one. It must be a
    /// success.
    pub(crate) async fn send(&mut self, request: &[u8]) -> anyhow::Result<Answer> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        loop {
            let n_bytes = self.stream.read_buf(&mut self.buffer).await?;
            anyhow::ensure!(n_bytes > 0, "the server closed the connection");
            let Some(answer) = parse(&self.buffer)? else { continue };
            let bytes = answer.body_start + answer.body_bytes.unwrap_or_default();
            if self.buffer.len() >= bytes {
                let text = String::from_utf8_lossy(&self.buffer);
                anyhow::ensure!((200..300).contains(&answer.status), "{text}");
                return Ok(answer);
            }
        }
    }

    /// Returns the body of the last answer.
    pub(crate) fn body(&self, answer: &Answer) -> &[u8] {
        &self.buffer[answer.body_start..]
    }
}

/// Returns `None` while the head of the answer is incomplete.
fn parse(bytes: &[u8]) -> anyhow::Result<Option<Answer>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut head = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(body_start) = head.parse(bytes)? else { return Ok(None) };
    let header = |name: &str| {
        let found = head.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
        found.and_then(|header| std::str::from_utf8(header.value).ok())
    };
    Ok(Some(Answer {
        status: head.code.context("a parsed answer has a status")?,
        session: header("mcp-session-id").map(str::to_owned),
        body_start,
        body_bytes: header("content-length").map(str::parse).transpose()?,
    }))
}

/// Repeats the same request, one at a time on each connection.
pub(crate) async fn measure(
    connections: &mut Vec<Connection>,
    server: &Server,
    in_flight: usize,
    request: &Bytes,
    count: usize,
) -> anyhow::Result<Measurement> {
    let each = count.div_ceil(in_flight);
    exchange(connections, in_flight, request, each.div_ceil(WARM_UP)).await?;
    let (start, cpu_us) = (Instant::now(), server.cpu_us()?);
    exchange(connections, in_flight, request, each).await?;
    let count = (each * in_flight) as f64;
    let us = start.elapsed().as_secs_f64() * 1e6 / count;
    Ok(Measurement { us, cpu_us: (server.cpu_us()? - cpu_us) / count })
}

async fn exchange(
    connections: &mut Vec<Connection>,
    in_flight: usize,
    request: &Bytes,
    each: usize,
) -> anyhow::Result<()> {
    let mut sending = JoinSet::new();
    for mut connection in connections.drain(..in_flight) {
        let request = request.clone();
        sending.spawn(async move {
            for _ in 0..each {
                connection.send(&request).await?;
            }
            anyhow::Ok(connection)
        });
    }
    while let Some(connection) = sending.join_next().await {
        connections.push(connection??);
    }
    Ok(())
}
