//! MCP over HTTP: `tools/call` against a bare handler, and the memory of an open MCP session.

use std::time::Duration;

use bytes::Bytes;

use crate::figure::{Figure, Line, Round};
use crate::http::{self, Connection};
use crate::load::Measurement;
use crate::process::Server;
use crate::settings::Settings;

/// About a second each.
const CALLS_ONE: usize = 10_000;
const CALLS_MANY: usize = 30_000;
const IN_FLIGHT: usize = 64;
const SESSIONS: usize = 1000;
/// By then, memory that is needed only for opening them is released.
const SETTLE: Duration = Duration::from_secs(2);

const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ping","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"}}}}"#;
const CALL_HEADERS: &str =
    "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: ping\r\n";
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// Measures a call of a native tool with a JSON answer.
pub(crate) async fn calls(settings: &Settings) -> anyhow::Result<Vec<Figure>> {
    let dir = settings.temporary()?;
    let bare = Side::open(Server::bare_mcp(settings)?).await?;
    let daemon = Side::open(Server::daemon(settings, dir.path(), dir.path())?).await?;
    let mut sides = [bare, daemon];
    let (mut one, mut many) = (Vec::new(), Vec::new());
    for _ in 0..settings.n_rounds {
        for (rounds, in_flight, count) in
            [(&mut one, 1, CALLS_ONE), (&mut many, IN_FLIGHT, CALLS_MANY)]
        {
            let count = settings.size(count);
            let [bare, daemon] = &mut sides;
            rounds.push((
                bare.measure(in_flight, count).await?,
                daemon.measure(in_flight, count).await?,
            ));
        }
    }
    let rate = |measured: &Measurement| 1e6 / measured.us;
    let cpu = |measured: &Measurement| measured.cpu_us;
    Ok(vec![
        Figure::ratio(
            "tools/call, 1 in flight",
            "calls/s",
            &rounds(&one, rate),
            Line::AtLeast(0.6),
        ),
        Figure::ratio(
            "tools/call, 1 in flight: CPU",
            "CPU µs",
            &rounds(&one, cpu),
            Line::AtMost(1.25),
        ),
        Figure::ratio(
            "tools/call, 64 in flight",
            "calls/s",
            &rounds(&many, rate),
            Line::AtLeast(0.6),
        ),
        Figure::ratio(
            "tools/call, 64 in flight: CPU",
            "CPU µs",
            &rounds(&many, cpu),
            Line::AtMost(1.3),
        ),
    ])
}

/// Measures MCP sessions with an open stream each, against connections that made a call and are
/// kept open.
pub(crate) async fn sessions(settings: &Settings) -> anyhow::Result<Vec<Figure>> {
    let mut most_kib = f64::MIN;
    for _ in 0..settings.n_rounds {
        let bare_kib = resident_kib_each(settings, Kind::Bare).await?;
        let ours_kib = resident_kib_each(settings, Kind::Session).await?;
        most_kib = most_kib.max(ours_kib - bare_kib);
    }
    let name = "1,000 sessions, each beyond its connection";
    Ok(vec![Figure::value(name, "KiB", most_kib, Line::AtMost(6.0))])
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Bare,
    Session,
}

async fn resident_kib_each(settings: &Settings, kind: Kind) -> anyhow::Result<f64> {
    let dir = settings.temporary()?;
    let server = Server::daemon(settings, dir.path(), dir.path())?;
    let (call, n_sessions) = (post(&server, CALL_HEADERS, CALL), settings.size(SESSIONS));
    // Allocates what the first call needs before memory is compared.
    Connection::open(&server).await?.send(&call).await?;
    tokio::time::sleep(SETTLE).await;
    let before_mib = server.resident_mib()?;
    let mut connections = Vec::with_capacity(n_sessions);
    for _ in 0..n_sessions {
        let mut connection = Connection::open(&server).await?;
        match kind {
            Kind::Bare => connection.send(&call).await.map(drop)?,
            Kind::Session => open_session(&server, &mut connection).await?,
        }
        connections.push(connection);
    }
    tokio::time::sleep(SETTLE).await;
    Ok((server.resident_mib()? - before_mib) * 1024.0 / n_sessions as f64)
}

/// Performs a handshake, and opens the notification stream.
async fn open_session(server: &Server, connection: &mut Connection) -> anyhow::Result<()> {
    let opened = connection.send(&post(server, "", INITIALIZE)).await?;
    let session = opened
        .session
        .ok_or_else(|| anyhow::anyhow!("the handshake did not open an MCP session"))?;
    let headers = format!("mcp-protocol-version: 2025-11-25\r\nmcp-session-id: {session}\r\n");
    connection.send(&post(server, &headers, INITIALIZED)).await?;
    let host = server.http.trim_start_matches("http://");
    let stream = format!(
        "GET /mcp HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {}\r\naccept: text/event-stream\r\n{headers}\r\n",
        server.token
    );
    connection.send(stream.as_bytes()).await.map(drop)
}

/// A server, and connections to it.
struct Side {
    server: Server,
    connections: Vec<Connection>,
    call: Bytes,
}

impl Side {
    async fn open(server: Server) -> anyhow::Result<Self> {
        let mut connections = Vec::with_capacity(IN_FLIGHT);
        for _ in 0..IN_FLIGHT {
            connections.push(Connection::open(&server).await?);
        }
        let call = Bytes::from(post(&server, CALL_HEADERS, CALL));
        let answer = connections[0].send(&call).await?;
        let body: serde_json::Value = serde_json::from_slice(connections[0].body(&answer))?;
        let kind = &body["result"]["structuredContent"]["type"];
        anyhow::ensure!(kind == "pong", "not the answer to a ping: {body}");
        Ok(Self { server, connections, call })
    }

    async fn measure(&mut self, in_flight: usize, count: usize) -> anyhow::Result<Measurement> {
        http::measure(&mut self.connections, &self.server, in_flight, &self.call, count).await
    }
}

fn post(server: &Server, headers: &str, body: &str) -> Vec<u8> {
    let (host, token, length) =
        (server.http.trim_start_matches("http://"), &server.token, body.len());
    format!(
        "POST /mcp HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\ncontent-type: \
         application/json\r\naccept: application/json, text/event-stream\r\n{headers}content-length: \
         {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

fn rounds(
    measured: &[(Measurement, Measurement)],
    value: impl Fn(&Measurement) -> f64,
) -> Vec<Round> {
    measured.iter().map(|(bare, ours)| Round { bare: value(bare), ours: value(ours) }).collect()
}
