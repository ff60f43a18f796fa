//! The load of client tools: one client that answers, and callers with a number of calls in flight.

use std::time::Instant;

use anyhow::Context;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::load::Measurement;
use crate::process::Server;

/// The client that is called.
const CLIENT: &str = "bench";
/// One part in this many is a warm-up, which is not measured: connections, caches and buffers reach
/// their size.
const WARM_UP: usize = 10;
/// The most calls that wait for a connection to be answered on.
const ANSWERS_MAX: usize = 64;
const CALL: &[u8] = br#"{"toolID":"client_bench_echo","sessionID":"session","messageID":"message","callID":"call","input":{"text":"hello"}}"#;
const ANSWER: &str = r#""result":{"status":"success","title":"","output":"hello"}}"#;

/// One persistent connection to a server.
#[derive(Debug)]
pub(crate) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    host: String,
    bearer: String,
    _driving: JoinSet<()>,
}

/// A client that answers, and connections for calling it.
#[derive(Debug)]
pub(crate) struct Party {
    callers: Vec<Connection>,
    _answering: JoinSet<anyhow::Result<()>>,
}

#[derive(Deserialize)]
struct CallMessage<'a> {
    #[serde(rename = "requestID")]
    request_id: &'a str,
}

impl Connection {
    pub(crate) async fn open(server: &Server) -> anyhow::Result<Self> {
        Self::to(&server.http, &server.token).await
    }

    /// Does the same with an address, such as `http://127.0.0.1:7180`.
    pub(crate) async fn to(http: &str, token: &str) -> anyhow::Result<Self> {
        let host = http.trim_start_matches("http://").to_owned();
        let stream = TcpStream::connect(&host).await.context("cannot connect to the server")?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let mut driving = JoinSet::new();
        driving.spawn(async move { drop(connection.await) });
        Ok(Self { sender, host, bearer: format!("Bearer {token}"), _driving: driving })
    }

    /// Sends a request; the answer must be a success.
    async fn send(
        &mut self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> anyhow::Result<Response<Incoming>> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, &self.host)
            .header(AUTHORIZATION, &self.bearer)
            .header(CONTENT_TYPE, "application/json");
        self.sender.ready().await?;
        let response = self.sender.send_request(request.body(Full::new(body))?).await?;
        let status = response.status();
        if !status.is_success() {
            let body = response.into_body().collect().await?.to_bytes();
            anyhow::bail!("{path} returned {status}: {}", String::from_utf8_lossy(&body));
        }
        Ok(response)
    }

    pub(crate) async fn post(&mut self, path: &str, body: Bytes) -> anyhow::Result<Bytes> {
        let response = self.send(Method::POST, path, body).await?;
        Ok(response.into_body().collect().await?.to_bytes())
    }

    pub(crate) async fn get(&mut self, path: &str) -> anyhow::Result<Bytes> {
        let response = self.send(Method::GET, path, Bytes::new()).await?;
        Ok(response.into_body().collect().await?.to_bytes())
    }

    /// Registers tools of a client.
    pub(crate) async fn register(&mut self, client: &str, tools: &[&str]) -> anyhow::Result<()> {
        let tools: Vec<_> = tools
            .iter()
            .map(|tool| {
                serde_json::json!({
                    "id": tool,
                    "description": "says it again",
                    "parameters": { "type": "object", "properties": { "text": { "type": "string" } } },
                })
            })
            .collect();
        let body = serde_json::json!({ "clientID": client, "tools": tools });
        self.post("/client-tools/register", body.to_string().into()).await.map(drop)
    }

    /// Opens the stream of a session, and stays connected as its caller.
    pub(crate) async fn events(&mut self, session: &str) -> anyhow::Result<Incoming> {
        let path = format!("/v1/sessions/{session}/events");
        Ok(self.send(Method::GET, &path, Bytes::new()).await?.into_body())
    }

    /// Opens a stream of anything.
    pub(crate) async fn stream(&mut self, path: &str) -> anyhow::Result<Incoming> {
        Ok(self.send(Method::GET, path, Bytes::new()).await?.into_body())
    }

    /// Opens a client's stream.
    pub(crate) async fn pending(&mut self, client: &str) -> anyhow::Result<Incoming> {
        let path = format!("/client-tools/pending/{client}");
        Ok(self.send(Method::GET, &path, Bytes::new()).await?.into_body())
    }
}

impl Party {
    /// Registers a tool, and answers its calls on one connection per pending call.
    pub(crate) async fn serve(server: &Server, in_flight: usize) -> anyhow::Result<Self> {
        let mut line = Connection::open(server).await?;
        line.register(CLIENT, &["echo"]).await?;
        let stream = line.pending(CLIENT).await?;
        let mut answering = JoinSet::new();
        let (mut callers, mut posts) = (Vec::new(), Vec::new());
        for _ in 0..in_flight {
            callers.push(Connection::open(server).await?);
            let (sender, calls) = mpsc::channel(ANSWERS_MAX);
            answering.spawn(answer(Connection::open(server).await?, calls));
            posts.push(sender);
        }
        answering.spawn(read(line, stream, posts));
        Ok(Self { callers, _answering: answering })
    }

    /// Makes `count` calls with `in_flight` of them pending, after a warm-up.
    pub(crate) async fn measure(
        &mut self,
        server: &Server,
        in_flight: usize,
        count: usize,
    ) -> anyhow::Result<Measurement> {
        self.exchange(in_flight, count.div_ceil(WARM_UP)).await?;
        let (start, cpu_us) = (Instant::now(), server.cpu_us()?);
        let count = self.exchange(in_flight, count).await? as f64;
        let us = start.elapsed().as_secs_f64() * 1e6 / count;
        Ok(Measurement { us, cpu_us: (server.cpu_us()? - cpu_us) / count })
    }

    /// Makes about `count` calls; returns the exact number.
    async fn exchange(&mut self, in_flight: usize, count: usize) -> anyhow::Result<usize> {
        let each = count.div_ceil(in_flight);
        let mut calling = JoinSet::new();
        for mut caller in self.callers.drain(..in_flight) {
            calling.spawn(async move {
                for _ in 0..each {
                    caller.post("/client-tools/execute", Bytes::from_static(CALL)).await?;
                }
                anyhow::Ok(caller)
            });
        }
        while let Some(caller) = calling.join_next().await {
            self.callers.push(caller??);
        }
        Ok(each * in_flight)
    }
}

/// Reads the stream and distributes the calls, in turn.
async fn read(
    line: Connection,
    mut stream: Incoming,
    posts: Vec<mpsc::Sender<String>>,
) -> anyhow::Result<()> {
    let (mut buffer, mut turn) = (Vec::new(), posts.iter().cycle());
    while let Some(frame) = stream.frame().await {
        buffer.extend_from_slice(&frame?.into_data().unwrap_or_default());
        while let Some(end) = buffer.windows(2).position(|pair| pair == b"\n\n") {
            let event: Vec<u8> = buffer.drain(..end + 2).collect();
            let Some(data) = event.strip_prefix(b"event: tool-request\ndata: ") else { continue };
            let called: CallMessage<'_> = serde_json::from_slice(data)?;
            let post = turn.next().context("a connection for answers is open")?;
            post.send(called.request_id.to_owned()).await?;
        }
    }
    drop(line);
    anyhow::bail!("the stream ended")
}

async fn answer(
    mut connection: Connection,
    mut calls: mpsc::Receiver<String>,
) -> anyhow::Result<()> {
    while let Some(request_id) = calls.recv().await {
        let body = format!("{{\"requestID\":\"{request_id}\",{ANSWER}");
        connection.post("/client-tools/result", body.into()).await?;
    }
    Ok(())
}
