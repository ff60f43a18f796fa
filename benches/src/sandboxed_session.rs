//! A session in a sandbox: the time from its first message until its agent has listed its tools,
//! against a bare `bwrap` that runs the same agent and the same program inside.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;

use crate::circle::Session;
use crate::figure::{Figure, Line, Round};
use crate::inside::{built, built_static, median_us};
use crate::party::Connection;
use crate::process::Server;
use crate::settings::Settings;

/// Starts per round.
const STARTS: usize = 20;
/// How long to pause before each start, so that neither side pays for cleanup of the previous one,
const PAUSE: Duration = Duration::from_millis(200);
/// with a call now and then, so that neither pays for waking up the processor.
const EVERY: Duration = Duration::from_millis(2);
/// The paths of the agent and the program inside, in both kinds of sandboxes.
const AGENT: &str = "/mcp/bin/agent";
const INSIDE: &str = "/mcp/bin/ringback-inside";
/// The paths that the bare sandbox shares with this machine, as a session's does.
const SYSTEM: [&str; 4] = ["bin", "sbin", "lib", "lib64"];
/// How long the daemon may wait for the next event before it is polled again.
const WAIT_MS: u64 = 10_000;

/// Measures starts of sessions against starts of bare sandboxes.
pub(crate) async fn run(settings: &Settings) -> anyhow::Result<Vec<Figure>> {
    // No sandbox exposes the data directory, so the agent is elsewhere.
    let (dir, programs) = (settings.temporary()?, settings.temporary()?);
    let agent = built_static(programs.path(), "agent", include_str!("agent.c"))?;
    configure(dir.path(), &agent)?;
    let server = Server::daemon(settings, dir.path(), dir.path())?;
    let bare = BareBox::new(&server, programs.path(), agent, built(settings)?).await?;
    let mut caller = Connection::open(&server).await?;
    let project = json!({ "name": "bench", "agent": "bench" });
    let project = text(&call(&mut caller, "project_create", project).await?, "project_id")?;
    // The first start finds out what this machine provides.
    start_session(&mut caller, &project).await?;
    let mut rounds = Vec::new();
    for _ in 0..settings.n_rounds {
        let (mut bares, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..settings.size(STARTS) {
            pause(&mut caller).await?;
            bares.push(bare.start().await?);
            pause(&mut caller).await?;
            ours.push(start_session(&mut caller, &project).await?);
        }
        rounds.push(Round { bare: median_us(bares), ours: median_us(ours) });
    }
    let name = "sandboxed session: message to tools listed";
    let beyond: Vec<_> = rounds.iter().map(|round| round.ours - round.bare).collect();
    let beyond_name = "sandboxed session, beyond bare bwrap";
    Ok(vec![
        Figure::ratio(name, "µs", &rounds, Line::AtMost(2.0)),
        Figure::values(beyond_name, "µs", &beyond, Line::AtMost(4000.0)),
    ])
}

async fn pause(caller: &mut Connection) -> anyhow::Result<()> {
    let until = Instant::now() + PAUSE;
    while Instant::now() < until {
        call(caller, "ping", json!({})).await?;
        tokio::time::sleep(EVERY).await;
    }
    Ok(())
}

/// Configures an agent for a daemon that is about to start.
fn configure(home: &Path, agent: &Path) -> anyhow::Result<()> {
    let dir = home.join(".config/ringback");
    std::fs::create_dir_all(&dir)?;
    let agent = agent.display();
    let text = format!("[sessions.agents.bench]\ncommand = [\"{agent}\", \"{{inside}}\"]\n");
    std::fs::write(dir.join("config.toml"), text).context("cannot configure the agent")
}

/// Measures from the message that starts a session to its agent's output, and ends the session.
async fn start_session(caller: &mut Connection, project: &str) -> anyhow::Result<Duration> {
    let start = Instant::now();
    let message = json!({ "project_id": project, "message": "list", "create_workspace": true });
    let session = text(&call(caller, "session_message", message).await?, "session_id")?;
    let mut since = -1;
    let took = loop {
        let asked = json!({ "session_id": session, "since_index": since, "wait_ms": WAIT_MS });
        let page = call(caller, "session_events", asked).await?;
        let events = page["events"].as_array().context("the answer has no events")?;
        if events.iter().any(|event| event["text"] == "listed") {
            break start.elapsed();
        }
        let failed = events.iter().find(|event| event["type"] == "error");
        anyhow::ensure!(failed.is_none(), "the agent did not list its tools: {failed:?}");
        since = page["last_index"].as_i64().context("the answer has no last index")?;
    };
    call(caller, "session_end", json!({ "session_id": session })).await?;
    Ok(took)
}

async fn call(caller: &mut Connection, tool: &str, body: Value) -> anyhow::Result<Value> {
    let answer = caller.post(&format!("/v1/tools/{tool}/call"), body.to_string().into()).await?;
    let mut answer: Value = serde_json::from_slice(&answer)?;
    Ok(answer["result"].take())
}

fn text(answer: &Value, field: &str) -> anyhow::Result<String> {
    Ok(answer[field].as_str().with_context(|| format!("no `{field}`: {answer}"))?.to_owned())
}

/// The contents of a sandbox, without any bookkeeping.
struct BareBox {
    arguments: Vec<String>,
    _session: Session,
}

impl BareBox {
    async fn new(
        server: &Server,
        dir: &Path,
        agent: PathBuf,
        inside: PathBuf,
    ) -> anyhow::Result<Self> {
        let session = Session::open(server).await?;
        let workspace = dir.join("bare");
        std::fs::create_dir(&workspace)?;
        let mut arguments: Vec<String> =
            ["--unshare-all", "--die-with-parent", "--new-session", "--clearenv"]
                .map(str::to_owned)
                .into();
        let mut add = |option: &str, from: &str, to: &str| {
            arguments.extend([option, from, to].map(str::to_owned));
        };
        add("--ro-bind", "/usr", "/usr");
        for name in SYSTEM {
            add("--symlink", &format!("usr/{name}"), &format!("/{name}"));
        }
        add("--bind", &workspace.to_string_lossy(), "/workspace");
        add("--ro-bind", &session.socket.to_string_lossy(), "/mcp/relay.sock");
        add("--ro-bind", &agent.to_string_lossy(), AGENT);
        add("--ro-bind", &inside.to_string_lossy(), INSIDE);
        let private = ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--chdir"];
        arguments.extend(private.map(str::to_owned));
        arguments.extend(["/workspace", "--", AGENT, INSIDE].map(str::to_owned));
        Ok(Self { arguments, _session: session })
    }

    /// Measures from the start to the agent's output.
    async fn start(&self) -> anyhow::Result<Duration> {
        let start = Instant::now();
        let mut child = Command::new("bwrap")
            .args(&self.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("`bwrap` not found: apt install bubblewrap")?;
        let mut stdin = child.stdin.take().context("the process has no input")?;
        stdin.write_all(b"{\"type\":\"message\",\"text\":\"list\"}\n").await?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("the process has no output")?)
            .read_line(&mut line)
            .await?;
        let took = start.elapsed();
        anyhow::ensure!(line.contains("listed"), "unexpected output of the bare agent: `{line}`");
        drop(stdin);
        child.wait().await?;
        Ok(took)
    }
}
