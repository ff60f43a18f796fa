//! `ringback doctor`: checks everything that has to fit together, and suggests fixes.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use camino::Utf8PathBuf;
use clap::{Args, ValueEnum as _};
use ringback_blobs::{Survey, survey};
use ringback_sandbox::{LayerReport, LayerState};
use serde::Serialize;
use tokio::net::{TcpListener, TcpStream};

use crate::commands::mcp::{Agent, daemon_at, key};
use crate::config::{Config, ConfigError, Environment, SandboxBackend};
use crate::confinement;
use crate::connection::{ConnectArgs, http_address};
use crate::daemon::TOKEN_FILE;
use crate::daemon::settings::provider;
use crate::failure::Failure;
use crate::progress;
use crate::running::{RunningDaemon, log_file};
use crate::screen::Screen;

/// A local service accepts a connection within milliseconds.
const MODEL_LIMIT: Duration = Duration::from_secs(2);

/// `ringback doctor`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ringback doctor\n  ringback doctor --json\n  ringback doctor --verify\n\n\
                  Exits with 1 if there is a problem. A daemon that is not running is not a problem."
)]
pub struct DoctorArgs {
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
    /// Read all stored content and compare it with its hashes
    #[arg(long)]
    pub verify: bool,
    /// Print the findings as JSON
    #[arg(long)]
    pub json: bool,
}

/// The state of one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Health {
    /// As it should be.
    Good,
    /// Worth knowing.
    Note,
    /// Wrong.
    Bad,
}

#[derive(Debug, Serialize)]
struct Finding {
    what: String,
    health: Health,
    text: String,
}

/// The findings so far.
#[derive(Debug, Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, what: &str, health: Health, text: impl Into<String>) {
        self.0.push(Finding { what: what.to_owned(), health, text: text.into() });
    }
}

pub(crate) async fn run(args: &DoctorArgs, environment: &Environment) -> Result<(), Failure> {
    let mut findings = Findings::default();
    let screen = Screen::new(args.json);
    match args.connect.config(environment) {
        Ok(config) => {
            findings.add("configuration", Health::Good, "valid");
            for old_name in config.old_names() {
                findings.add("configuration", Health::Note, old_name.to_string());
            }
            look_at_files(&mut findings, &config);
            if args.verify {
                verify_content(&mut findings, &config, screen).await;
            }
            look_at_providers(&mut findings, &config);
            look_at_sandbox(&mut findings, &config).await;
            look_at_daemon(&mut findings, args, environment, &config).await;
            look_at_models(&mut findings, &config).await;
        }
        Err(Failure::Config(error)) => findings.add("configuration", Health::Bad, advice(&error)),
        Err(failure) => return Err(failure),
    }
    look_at_agents(&mut findings, environment);
    let Findings(findings) = findings;
    let n_bad = findings.iter().filter(|finding| finding.health == Health::Bad).count();
    screen.answer(&findings, |findings| {
        let lines = findings.iter().map(|Finding { what, health, text }| {
            let mark = match health {
                Health::Good => "ok  ",
                Health::Note => "note",
                Health::Bad => "BAD ",
            };
            format!("{mark} {what}: {text}")
        });
        lines.collect::<Vec<_>>().join("\n")
    })?;
    match n_bad {
        0 => Ok(()),
        1 => Err(Failure::Wrong("found one problem".to_owned())),
        n_bad => Err(Failure::Wrong(format!("found {n_bad} problems"))),
    }
}

fn advice(error: &ConfigError) -> String {
    format!("{error}; docs/configuration.md lists all keys")
}

fn look_at_files(findings: &mut Findings, config: &Config) {
    let dir = &config.root.data_dir;
    match mode(dir) {
        None => findings.add(
            "data directory",
            Health::Note,
            format!("`{}` does not exist yet; `ringback serve` creates it", dir.display()),
        ),
        Some(mode) if mode & 0o077 != 0 => findings.add(
            "data directory",
            Health::Bad,
            format!("other users can enter `{}`; run `chmod 700` on it", dir.display()),
        ),
        Some(_) => findings.add("data directory", Health::Good, dir.display().to_string()),
    }
    let token = dir.join(TOKEN_FILE);
    match mode(&token) {
        None => findings.add("token file", Health::Note, "none; the first `serve` writes one"),
        Some(mode) if mode & 0o077 != 0 => findings.add(
            "token file",
            Health::Bad,
            format!("other users can read `{}`; run `chmod 600` on it", token.display()),
        ),
        Some(_) => findings.add("token file", Health::Good, token.display().to_string()),
    }
}

/// Compares all content with its hashes. Safe while a daemon runs: nothing is changed.
async fn verify_content(findings: &mut Findings, config: &Config, screen: Screen) {
    let Ok(dir) = Utf8PathBuf::try_from(config.root.data_dir.join(ringback_blobs::DIR)) else {
        return findings.add("content", Health::Bad, "the path of the data directory is not UTF-8");
    };
    let bar = progress::transfer(screen, "reading all content", None);
    let reading = tokio::task::spawn_blocking(move || {
        let read = survey(&dir, |so_far| bar.set_position(so_far.bytes));
        bar.finish_and_clear();
        read
    });
    let found = match reading.await {
        Ok(Ok(found)) => found,
        Ok(Err(error)) => return findings.add("content", Health::Bad, cause(&error)),
        Err(error) => return findings.add("content", Health::Bad, error.to_string()),
    };
    let Survey { blobs, bytes, damaged } = found;
    for hash in &damaged {
        let text =
            format!("{hash} is damaged; repair it with `ringback cas put` of the original file");
        findings.add("content", Health::Bad, text);
    }
    let n_sound = blobs - damaged.len() as u64;
    let text = format!("{n_sound} of {blobs} blobs match their hashes ({bytes} bytes read)");
    let health = if damaged.is_empty() { Health::Good } else { Health::Bad };
    findings.add("content", health, text);
}

fn look_at_providers(findings: &mut Findings, config: &Config) {
    let vault = Arc::new(config.vault());
    for (name, model) in &config.providers_in_use() {
        let what = format!("provider {name}");
        match provider(name, model, &vault).check() {
            Ok(()) if model.key_file.is_some() || model.secret.is_some() => {
                findings.add(&what, Health::Good, format!("{}, with its key", model.url));
            }
            Ok(()) => findings.add(&what, Health::Good, format!("{}, without a key", model.url)),
            Err(error) => findings.add(&what, Health::Bad, error.to_string()),
        }
    }
}

async fn look_at_sandbox(findings: &mut Findings, config: &Config) {
    if config.sandbox.backend == SandboxBackend::None {
        let text = "agents run unconfined, because `sandbox.backend` is `none`";
        return findings.add("sandbox", Health::Note, text);
    }
    let probe = match confinement::probe(&config.sandbox).await {
        Ok(probe) => probe,
        Err(failure) => return findings.add("sandbox", Health::Bad, failure.to_string()),
    };
    for LayerReport { layer, state } in probe.layers.into_iter().chain(probe.instead) {
        let what = format!("sandbox, {layer}");
        match state {
            LayerState::Given { by } => findings.add(&what, Health::Good, by),
            LayerState::Missing { why, fix } => {
                let text = format!("{why}, so no agent is started; {fix}");
                findings.add(&what, Health::Bad, text);
            }
        }
    }
    findings.add("sandbox, shared with the daemon's user", Health::Note, shared());
}

/// Describes what the kernel limits per user: all sandboxes run as the daemon's.
fn shared() -> String {
    let counted = [
        ("fs.epoll.max_user_watches", "/proc/sys/fs/epoll/max_user_watches"),
        ("fs.inotify.max_user_instances", "/proc/sys/fs/inotify/max_user_instances"),
        ("fs.pipe-user-pages-soft", "/proc/sys/fs/pipe-user-pages-soft"),
    ];
    let limit = |path| fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    let counted =
        counted.iter().filter_map(|(name, path)| Some(format!("{name} is {}", limit(path)?)));
    let counted = counted.collect::<Vec<_>>().join(", ");
    let root = if rustix::process::geteuid().is_root() {
        "; that user is root, and a dedicated one would be safer"
    } else {
        ""
    };
    format!(
        "epoll and inotify watches, pipe pages, queued signals and locked memory are limited per user \
         ({counted}); a sandbox that uses up the watches is ended{root}"
    )
}

async fn look_at_daemon(
    findings: &mut Findings,
    args: &DoctorArgs,
    environment: &Environment,
    config: &Config,
) {
    let running = RunningDaemon::find(config);
    let address = http_address(config).parse().unwrap_or(config.http.listen);
    if TcpStream::connect(address).await.is_err() {
        let text = format!(
            "no daemon at {address}; `ringback run` starts one in the background, `ringback serve` \
             one for a terminal or a service"
        );
        findings.add("daemon", Health::Note, text);
        for (what, address) in [("http port", address), ("hoot port", config.hoot.listen.0)] {
            look_at_port(findings, what, address).await;
        }
        return;
    }
    let token = match key(&args.connect, environment, config) {
        Ok(token) => token,
        Err(failure) => return findings.add("token", Health::Bad, failure.to_string()),
    };
    match ringback_mcp_bridge::version(daemon_at(address, token.as_ref())).await {
        Ok(version) => {
            let text = format!(
                "version {version} at http://{address}{}",
                how_it_runs(running.as_ref(), config)
            );
            findings.add("daemon", Health::Good, text);
            findings.add("token", Health::Good, "accepted by the daemon");
            findings.add("mcp", Health::Good, format!("http://{address}/mcp"));
        }
        Err(fault) => findings.add("daemon", Health::Bad, format!("at {address}: {fault}")),
    }
}

/// Describes a daemon that runs in the background.
fn how_it_runs(running: Option<&RunningDaemon>, config: &Config) -> String {
    let Some(RunningDaemon { pid, background: true, .. }) = running else { return String::new() };
    let (log, idle) = (log_file(config), config.background.idle);
    format!(
        ", in the background (process {pid}, log {}); it ends when idle for {idle}, or with `ringback \
         stop`",
        log.display()
    )
}

async fn look_at_port(findings: &mut Findings, what: &str, address: SocketAddr) {
    match TcpListener::bind(address).await {
        Ok(_) => findings.add(what, Health::Good, format!("{address} is free")),
        Err(error) => findings.add(
            what,
            Health::Bad,
            format!("cannot use {address} ({error}); choose another in the configuration"),
        ),
    }
}

/// Checks that each music service accepts connections; only a call can check more.
async fn look_at_models(findings: &mut Findings, config: &Config) {
    for (service, endpoint) in config.services.endpoints() {
        let what = format!("music service {service}");
        let connecting = TcpStream::connect(endpoint.address());
        let connected = tokio::time::timeout(MODEL_LIMIT, connecting).await;
        if connected.is_ok_and(|connected| connected.is_ok()) {
            findings.add(&what, Health::Good, format!("reachable at {endpoint}"));
        } else {
            let text = format!(
                "not reachable at {endpoint}; start it, or correct `studio.services.{service}`"
            );
            findings.add(&what, Health::Bad, text);
        }
    }
}

fn look_at_agents(findings: &mut Findings, environment: &Environment) {
    for agent in Agent::value_variants() {
        let Some(path) = agent.file(environment) else { continue };
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let name = agent.name();
        if text.contains("ringback") {
            findings.add(&name, Health::Good, format!("configured in `{}`", path.display()));
        } else {
            let text = format!("installed but not configured; run `ringback mcp install {name}`");
            findings.add(&name, Health::Note, text);
        }
    }
}

/// Formats an error with its cause.
fn cause(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

fn mode(path: &Path) -> Option<u32> {
    fs::metadata(path).ok().map(|metadata| metadata.permissions().mode() & 0o777)
}
