//! `ringback-box`: runs a command in a sandbox, for trying things by hand. The tests of the sandbox
//! use it to try to escape.

use std::error::Error;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use lexopt::Arg::{Long, Short, Value};
use lexopt::ValueExt as _;
use ringback_sandbox::{
    BackendChoice, ConfinedProgram, LayerState, Limits, Network, Output, ReadOnly, Sandbox,
    SandboxSettings, SandboxSpec, Workspace,
};
use tokio::io::AsyncWrite;
use tokio::signal::unix::{SignalKind, signal};

const HELP: &str = "\
ringback-box --state DIR [OPTIONS] -- PROGRAM [ARGUMENTS]
ringback-box --state DIR --probe

  --workspace DIR    the directory at /workspace
  --workspace-to-read DIR   the same, read-only
  --home DIR         the directory at /home/agent
  --session DIR      the directory at /mcp
  --inside FILE      the program at /mcp/bin/ringback-inside
  --hidden DIR       refuse to expose this directory
  --read-only PATH   mount this path read-only, at the same path
  --env NAME=VALUE   set a variable; there are no others
  --env-from NAME    copy a variable from this program's environment
  --memory BYTES  --processes N  --cpu PERCENT  --file BYTES  --open-files N  --tmp BYTES
  --grace MS         how long the program may take to end after SIGTERM
  --backend NAME     what makes the sandbox: bubblewrap (the default), docker or auto
  --docker SOCKET    the socket of the container engine
  --image NAME       the image of containers
  --probe            report what this machine provides
";

#[derive(Debug)]
struct Options {
    settings: SandboxSettings,
    spec: SandboxSpec,
    grace: Duration,
    probe: bool,
}

type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let done = match parse(lexopt::Parser::from_env()) {
        Ok(Some(options)) => run(options).await,
        Ok(None) => std::io::stdout().write_all(HELP.as_bytes()).map(|()| 0).map_err(Into::into),
        Err(error) => Err(error),
    };
    match done {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
            let told = writeln!(std::io::stderr(), "ringback-box: {error}{cause}");
            ExitCode::from(if told.is_ok() { 125 } else { 126 })
        }
    }
}

fn parse(mut parser: lexopt::Parser) -> Result<Option<Options>, Failure> {
    let mut options = Options {
        settings: SandboxSettings {
            backend: BackendChoice::Bubblewrap,
            ..SandboxSettings::in_dir("")
        },
        spec: SandboxSpec {
            program: PathBuf::new(),
            args: Vec::new(),
            env: Vec::new(),
            workspace: Workspace::None,
            working_dir: None,
            home: None,
            session_dir: None,
            inside: None,
            read_only: Vec::new(),
            limits: Limits::none(),
            masked: Vec::new(),
            cache: None,
            network: Network::None,
            image: None,
        },
        grace: Duration::from_secs(3),
        probe: false,
    };
    let spec = &mut options.spec;
    while let Some(arg) = parser.next()? {
        match arg {
            Long("help") => return Ok(None),
            Long("state") => options.settings.state_dir = parser.value()?.into(),
            Long("workspace") => spec.workspace = Workspace::Write(parser.value()?.into()),
            Long("workspace-to-read") => spec.workspace = Workspace::Read(parser.value()?.into()),
            Long("home") => spec.home = Some(parser.value()?.into()),
            Long("session") => spec.session_dir = Some(parser.value()?.into()),
            Long("inside") => spec.inside = Some(parser.value()?.into()),
            Long("hidden") => options.settings.hidden.push(parser.value()?.into()),
            Long("read-only") => spec.read_only.push(ReadOnly::same(parser.value()?)),
            Long("env") => spec.env.push(variable(&parser.value()?.string()?)),
            Long("env-from") => {
                let name = parser.value()?;
                let value = std::env::var_os(&name).unwrap_or_default();
                spec.env.push((name, value));
            }
            Long("memory") => spec.limits.memory_bytes = Some(parser.value()?.parse()?),
            Long("processes") => spec.limits.processes = Some(parser.value()?.parse()?),
            Long("cpu") => spec.limits.cpu_percent = Some(parser.value()?.parse()?),
            Long("file") => spec.limits.file_bytes = Some(parser.value()?.parse()?),
            Long("open-files") => spec.limits.open_files = Some(parser.value()?.parse()?),
            Long("tmp") => spec.limits.tmp_bytes = parser.value()?.parse()?,
            Long("grace") => options.grace = Duration::from_millis(parser.value()?.parse()?),
            Long("backend") => {
                options.settings.backend = parser.value()?.parse_with(backend)?;
            }
            Long("docker") => options.settings.docker.socket = parser.value()?.string()?,
            Long("image") => options.settings.docker.image = Some(parser.value()?.string()?),
            Long("probe") => options.probe = true,
            Value(program) => {
                spec.program = program.into();
                spec.args = parser.raw_args()?.collect();
            }
            Short(_) | Long(_) => return Err(arg.unexpected().into()),
        }
    }
    Ok(Some(options))
}

fn backend(name: &str) -> Result<BackendChoice, String> {
    match name {
        "auto" => Ok(BackendChoice::Auto),
        "bubblewrap" => Ok(BackendChoice::Bubblewrap),
        "docker" => Ok(BackendChoice::Docker),
        other => Err(format!("unknown backend `{other}`")),
    }
}

fn variable(text: &str) -> (OsString, OsString) {
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    (name.into(), value.into())
}

async fn run(options: Options) -> Result<u8, Failure> {
    let sandbox = Sandbox::open(options.settings)?;
    if options.probe {
        return probe(&sandbox).await;
    }
    // Before the program exists, so that no signal is missed.
    let mut asked = signal(SignalKind::terminate())?;
    let ConfinedProgram { pipes, mut process, hold } = sandbox.start(options.spec).await?;
    drop(pipes.stdin);
    let mut passed = tokio::task::JoinSet::new();
    passed.spawn(pass(pipes.stdout, tokio::io::stdout()));
    passed.spawn(pass(pipes.stderr, tokio::io::stderr()));
    let ended = tokio::select! {
        ended = process.wait() => ended?,
        _ = asked.recv() => {
            process.terminate();
            match tokio::time::timeout(options.grace, process.wait()).await {
                Ok(ended) => ended?,
                Err(_) => {
                    process.kill();
                    process.wait().await?
                }
            }
        }
    };
    hold.gone().await;
    while let Some(passed) = passed.join_next().await {
        passed??;
    }
    Ok(ended.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(127))
}

async fn probe(sandbox: &Sandbox) -> Result<u8, Failure> {
    let probe = sandbox.probe(&Limits::default()).await;
    let mut out = std::io::stdout();
    for report in probe.layers.iter().chain(&probe.instead) {
        match &report.state {
            LayerState::Given { by } => writeln!(out, "given    {}: {by}", report.layer)?,
            LayerState::Missing { why, fix } => {
                writeln!(out, "missing  {}: {why}; {fix}", report.layer)?;
            }
        }
    }
    Ok(u8::from(!probe.is_complete()))
}

async fn pass(mut from: Output, mut to: impl AsyncWrite + Unpin) -> std::io::Result<()> {
    tokio::io::copy(&mut from, &mut to).await.map(drop)
}
