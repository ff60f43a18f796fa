//! The whole circle of a caller tool: agent, the program inside, socket, daemon, events to the
//! caller, its POST, and back; against a bare relay with the same hops. And many concurrent
//! sessions.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::Context;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::task::JoinSet;

use crate::bare_circle;
use crate::figure::{Figure, Line, Round};
use crate::load::Measurement;
use crate::party::Connection;
use crate::process::{Server, cpu_us_of};
use crate::settings::Settings;

/// About a second.
const CALLS: usize = 3000;
/// One part in this many is a warm-up, which is not measured.
const WARM_UP: usize = 10;
/// Sessions with open sockets and callers.
const SESSIONS: usize = 1000;
/// By then, memory that is needed only for opening them is released.
const SETTLE: Duration = Duration::from_secs(2);
/// How long an agent may take to start.
const START: Duration = Duration::from_secs(20);

/// Measures a call around the whole circle against the bare relay.
pub(crate) async fn calls(settings: &Settings) -> anyhow::Result<Vec<Figure>> {
    let dir = settings.temporary()?;
    let bare = Server::bare_circle(settings, dir.path())?;
    let daemon = Server::daemon(settings, dir.path(), dir.path())?;
    let mut to_bare = Circle::bare(settings, &bare, dir.path()).await?;
    let mut to_daemon = Circle::daemon(settings, &daemon).await?;
    let mut measured = Vec::new();
    for _ in 0..settings.n_rounds {
        let count = settings.size(CALLS);
        let bare = to_bare.measure(&bare, count).await?;
        measured.push((bare, to_daemon.measure(&daemon, count).await?));
    }
    let rounds = |value: &dyn Fn(&Measurement) -> f64| -> Vec<Round> {
        measured.iter().map(|(bare, ours)| Round { bare: value(bare), ours: value(ours) }).collect()
    };
    let p50 = rounds(&|measured| measured.us);
    let cpu = rounds(&|measured| measured.cpu_us);
    Ok(vec![
        Figure::ratio("caller tool, whole circle: p50", "µs", &p50, Line::AtMost(1.3)),
        Figure::ratio("caller tool, whole circle: CPU", "CPU µs", &cpu, Line::AtMost(1.3)),
    ])
}

/// Measures many sessions with open sockets and callers, and the CPU of a call among them.
pub(crate) async fn many(settings: &Settings) -> anyhow::Result<Vec<Figure>> {
    let n_sessions = settings.size(SESSIONS);
    let connections = (4 * SESSIONS).to_string();
    let live = (2 * SESSIONS).to_string();
    let env = [
        ("RINGBACK_HTTP__MAX_CONNECTIONS", connections.as_str()),
        ("RINGBACK_SESSIONS__MAX_SESSIONS", live.as_str()),
    ];
    let (few_dir, many_dir) = (settings.temporary()?, settings.temporary()?);
    let few = Server::daemon_with(settings, few_dir.path(), few_dir.path(), &env)?;
    let many = Server::daemon_with(settings, many_dir.path(), many_dir.path(), &env)?;
    let mut to_few = Circle::daemon(settings, &few).await?;
    let mut to_many = Circle::daemon(settings, &many).await?;
    let count = settings.size(CALLS);
    // Allocates what a call needs before memory is compared.
    to_many.measure(&many, count).await?;
    let mut held = Vec::new();
    let before_mib = many.resident_mib()?;
    for _ in 0..n_sessions {
        let Session { id, socket } = Session::open(&many).await?;
        held.push(OpenSession::open(&many, &id, &socket).await?);
    }
    tokio::time::sleep(SETTLE).await;
    let ours_mib = many.resident_mib()? - before_mib;
    let kib_each = (ours_mib - bare_mib(settings, n_sessions).await?) * 1024.0 / n_sessions as f64;
    let mut cpu = Vec::new();
    for _ in 0..settings.n_rounds {
        let bare = to_few.measure(&few, count).await?.cpu_us;
        cpu.push(Round { bare, ours: to_many.measure(&many, count).await?.cpu_us });
    }
    drop(held);
    Ok(vec![
        Figure::value(
            "1,000 sessions, each beyond its connections",
            "KiB",
            kib_each,
            Line::AtMost(8.0),
        ),
        Figure::ratio("caller tool, 1,000 sessions", "CPU µs", &cpu, Line::AtMost(1.3)),
    ])
}

/// Returns the memory of the same number of sockets and streams in the bare relay.
async fn bare_mib(settings: &Settings, count: usize) -> anyhow::Result<f64> {
    let dir = settings.temporary()?;
    let bare = Server::bare_circle(settings, dir.path())?;
    let mut to_bare = Circle::bare(settings, &bare, dir.path()).await?;
    to_bare.measure(&bare, settings.size(CALLS)).await?;
    let before_mib = bare.resident_mib()?;
    let mut held = Vec::new();
    for _ in 0..count {
        held.push(OpenSession::open(&bare, "bare", &dir.path().join(bare_circle::SOCKET)).await?);
    }
    tokio::time::sleep(SETTLE).await;
    Ok(bare.resident_mib()? - before_mib)
}

/// An agent on a socket and a caller on a stream.
struct OpenSession {
    _stream: (Connection, Incoming),
    _agent: UnixStream,
}

impl OpenSession {
    async fn open(server: &Server, session: &str, socket: &Path) -> anyhow::Result<Self> {
        let agent = UnixStream::connect(socket).await.context("the agent has no socket")?;
        let mut line = Connection::open(server).await?;
        let stream = line.events(session).await?;
        Ok(Self { _stream: (line, stream), _agent: agent })
    }
}

/// A session for an agent elsewhere, which has a socket as well.
pub(crate) struct Session {
    id: String,
    pub(crate) socket: PathBuf,
}

impl Session {
    pub(crate) async fn open(server: &Server) -> anyhow::Result<Self> {
        let mut connection = Connection::open(server).await?;
        let before = sockets(server);
        let tools = json!([{ "name": "echo", "inputSchema": { "type": "object" } }]);
        let body = json!({ "caller_id": "me", "caller_tools": tools }).to_string();
        let answer = connection.post("/v1/tools/session_open/call", body.into()).await?;
        let answer: Value = serde_json::from_slice(&answer)?;
        let id =
            answer["result"]["session_id"].as_str().context("the session has no ID")?.to_owned();
        // The newest directory among the daemon's sockets belongs to this session.
        let after = sockets(server);
        let socket = after.into_iter().find(|socket| !before.contains(socket));
        Ok(Self { id, socket: socket.context("the session has no socket")? })
    }
}

/// Returns the sockets of a daemon's sessions.
fn sockets(server: &Server) -> std::collections::HashSet<PathBuf> {
    let dirs = std::fs::read_dir(server.run_dir.join("s")).into_iter().flatten().flatten();
    dirs.map(|dir| dir.path().join("relay.sock")).filter(|socket| socket.exists()).collect()
}

/// An agent with the program inside, and perhaps a caller that answers.
pub(crate) struct Circle {
    inside: Child,
    stdin: ChildStdin,
    stdout: Lines<BufReader<ChildStdout>>,
    tool: &'static str,
    n_calls: u64,
    _answering: JoinSet<anyhow::Result<()>>,
}

impl Circle {
    async fn daemon(settings: &Settings, server: &Server) -> anyhow::Result<Self> {
        let session = Session::open(server).await?;
        let mut line = Connection::open(server).await?;
        let stream = line.events(&session.id).await?;
        let mut answering = JoinSet::new();
        let poster = Connection::open(server).await?;
        answering.spawn(answer(line, stream, poster, session.id));
        let program = (settings.ringback.clone(), vec!["inside".to_owned()]);
        let circle = Self::start(program, &session.socket, "me_echo").await?;
        Ok(Self { _answering: answering, ..circle })
    }

    async fn bare(settings: &Settings, server: &Server, dir: &Path) -> anyhow::Result<Self> {
        let mut line = Connection::open(server).await?;
        let stream = line.events("bare").await?;
        let mut answering = JoinSet::new();
        let poster = Connection::open(server).await?;
        answering.spawn(answer(line, stream, poster, "bare".to_owned()));
        let program = (settings.bench.clone(), vec![bare_circle::INSIDE_ROLE.to_owned()]);
        let circle = Self::start(program, &dir.join(bare_circle::SOCKET), "echo").await?;
        Ok(Self { _answering: answering, ..circle })
    }

    /// Starts the program inside and lists its tools; no caller answers them yet.
    pub(crate) async fn start(
        (program, mut arguments): (PathBuf, Vec<String>),
        socket: &Path,
        tool: &'static str,
    ) -> anyhow::Result<Self> {
        arguments.extend(["--socket".to_owned(), socket.display().to_string()]);
        let mut inside = Command::new(program)
            .args(arguments)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let stdin = inside.stdin.take().context("the program inside has no input")?;
        let stdout =
            BufReader::new(inside.stdout.take().context("the program inside has no output")?)
                .lines();
        let _answering = JoinSet::new();
        let mut circle = Self { inside, stdin, stdout, tool, n_calls: 0, _answering };
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
                            "clientInfo": {"name": "bench", "version": "1"}});
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        tokio::time::timeout(START, circle.exchange(&hello.to_string())).await??;
        let told = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        circle.stdin.write_all(format!("{told}\n").as_bytes()).await?;
        let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
        tokio::time::timeout(START, circle.exchange(&list.to_string())).await??;
        Ok(circle)
    }

    /// Returns the process of the program inside.
    pub(crate) fn process(&self) -> anyhow::Result<u32> {
        self.inside.id().context("the program inside has ended")
    }

    async fn exchange(&mut self, line: &str) -> anyhow::Result<String> {
        self.stdin.write_all(format!("{line}\n").as_bytes()).await?;
        self.stdout.next_line().await?.context("the program inside has ended")
    }

    async fn call(&mut self) -> anyhow::Result<()> {
        self.n_calls += 1;
        let (id, tool) = (self.n_calls + 1, self.tool);
        let params = format!(r#"{{"name":"{tool}","arguments":{{"text":"hello"}}}}"#);
        let line =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#);
        let answer = self.exchange(&line).await?;
        anyhow::ensure!(answer.contains("hello") && !answer.contains("isError\":true"), "{answer}");
        Ok(())
    }

    /// Makes calls one after another; returns the median time, and the CPU of both processes.
    async fn measure(&mut self, server: &Server, count: usize) -> anyhow::Result<Measurement> {
        for _ in 0..count.div_ceil(WARM_UP) {
            self.call().await?;
        }
        let inside = self.process()?;
        let cpu = || anyhow::Ok(server.cpu_us()? + cpu_us_of(inside)?);
        let before_us = cpu()?;
        let mut times = Vec::with_capacity(count);
        for _ in 0..count {
            let start = Instant::now();
            self.call().await?;
            times.push(start.elapsed());
        }
        times.sort();
        let us = times[times.len() / 2].as_secs_f64() * 1e6;
        Ok(Measurement { us, cpu_us: (cpu()? - before_us) / count as f64 })
    }
}

/// Acts as the caller: reads calls from its stream, and posts their answers.
async fn answer(
    line: Connection,
    mut stream: Incoming,
    mut poster: Connection,
    session: String,
) -> anyhow::Result<()> {
    let mut buffer = Vec::new();
    while let Some(frame) = stream.frame().await {
        buffer.extend_from_slice(&frame?.into_data().unwrap_or_default());
        while let Some(end) = buffer.windows(2).position(|pair| pair == b"\n\n") {
            let event: Vec<u8> = buffer.drain(..end + 2).collect();
            let event = String::from_utf8(event)?;
            if !event.contains("event: caller_tool_request") {
                continue;
            }
            let data = event.lines().find_map(|line| line.strip_prefix("data: "));
            let called: Value = serde_json::from_str(data.context("a call without data")?)?;
            let id = called["request_id"].as_str().context("a call without an ID")?;
            let body = format!(
                r#"{{"session_id":"{session}","request_id":"{id}","result":{{"text":"hello"}}}}"#
            );
            poster.post("/v1/tools/caller_tool_response/call", Bytes::from(body)).await?;
        }
    }
    drop(line);
    anyhow::bail!("the caller's stream ended")
}
