//! `ringback serve`: runs the daemon until a signal.

mod background;

use std::path::PathBuf;

use clap::Args;
use ringback_service::Layer;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::config::{Config, Environment, ServeFlags};
use crate::daemon::{Daemon, DaemonAddresses};
use crate::failure::Failure;
use crate::running::AddressesFile;
use crate::screen::Screen;
use crate::telemetry::Telemetry;

/// `ringback serve`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ringback serve\n  ringback serve --data-dir /srv/ring --http 127.0.0.1:8080\n  \
                  ringback serve --hoot tcp://127.0.0.1:0 --iopub tcp://127.0.0.1:0 --json    any free ports\n\n\
                  The first start writes a token to `token` in the data directory, where this user's other \
                  commands\nfind it. Stop with Ctrl-C or SIGTERM; a second one aborts."
)]
pub struct ServeArgs {
    /// Configuration file; it must exist
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Directory for persistent data
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<String>,
    /// Address of the HTTP listener
    #[arg(long, value_name = "ADDR")]
    pub http: Option<String>,
    /// Endpoint for calls: tcp://ADDR:PORT
    #[arg(long, value_name = "ENDPOINT")]
    pub hoot: Option<String>,
    /// Endpoint for events: tcp://ADDR:PORT
    #[arg(long, value_name = "ENDPOINT")]
    pub iopub: Option<String>,
    /// Require no tokens; loopback only
    #[arg(long)]
    pub open: bool,
    /// End when idle, with a log file: how other commands start it
    #[arg(long, hide = true)]
    pub background: bool,
    /// Print the addresses as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// The signals that end a daemon.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    pub(super) fn new() -> Result<Self, Failure> {
        let listen = |kind| {
            signal(kind).map_err(|source| Failure::System { action: "listen for signals", source })
        };
        let interrupt = listen(SignalKind::interrupt())?;
        Ok(Self { interrupt, terminate: listen(SignalKind::terminate())? })
    }

    pub(super) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}

pub(crate) async fn run(args: &ServeArgs, environment: &Environment) -> Result<(), Failure> {
    let flags = ServeFlags {
        config: args.config.clone(),
        data_dir: args.data_dir.clone(),
        http: args.http.clone(),
        hoot: args.hoot.clone(),
        iopub: args.iopub.clone(),
        open: args.open,
    };
    if args.background {
        background::detach()?;
    }
    let config = Config::load(&flags, environment)?;
    let log = args.background.then(|| background::log(&config)).transpose()?;
    let mut signals = Signals::new()?;
    let telemetry = Telemetry::install(&config.log, &config.telemetry, log)?;
    for old_name in config.old_names() {
        tracing::warn!("{old_name}");
    }
    let result = Box::pin(live(args, &config, &telemetry, &mut signals)).await;
    telemetry.shutdown().await;
    result
}

async fn live(
    args: &ServeArgs,
    config: &Config,
    telemetry: &Telemetry,
    signals: &mut Signals,
) -> Result<(), Failure> {
    let daemon = tokio::select! {
        started = Daemon::start(config, args.open, telemetry.metrics()) => started?,
        name = signals.next() => {
            tracing::info!(signal = name, "stopped before startup was complete");
            return Ok(());
        }
    };
    let upkeep = telemetry.upkeep(daemon.token(Layer::Store));
    daemon.spawn(Layer::Store, "metrics", upkeep)?;
    let addresses = AddressesFile::write(config, daemon.listening(), args.background);
    let addresses = addresses.map_err(|source| {
        let path = config.root.runtime_dir.clone();
        Failure::File { action: "write the daemon's addresses to", path, source }
    })?;
    announce(Screen::new(args.json), daemon.listening())?;
    // Held until this process ends.
    let mut _lock = None;
    let broken = tokio::select! {
        name = signals.next() => {
            tracing::info!(signal = name, "stopping; a second signal aborts");
            None
        }
        broken = daemon.broken() => Some(broken),
        lock = background::idle(&daemon, config), if args.background => {
            tracing::info!("nothing left to do, stopping");
            _lock = Some(lock);
            None
        }
    };
    // First: no command looks for what is about to end.
    drop(addresses);
    tokio::select! {
        biased;
        name = signals.next() => {
            tracing::warn!(signal = name, "aborted");
            Err(Failure::Interrupted)
        }
        // Aborted tasks are in the log; everything acknowledged is on disk.
        _reports = daemon.stop() => broken.map_or(Ok(()), |text| Err(Failure::Wrong(text))),
    }
}

fn announce(screen: Screen, listening: &DaemonAddresses) -> Result<(), Failure> {
    screen.item(listening, |listening| {
        let also = |socket: &Option<String>| {
            socket.as_ref().map(|socket| format!(" and {socket}")).unwrap_or_default()
        };
        let token = listening.token_file.as_ref().map_or_else(
            || "none: every user of this machine may call".to_owned(),
            |path| format!("{} (readable only by you)", path.display()),
        );
        let mut pairs = vec![
            ("calls", format!("{}{}", listening.hoot, also(&listening.hoot_ipc))),
            ("events", format!("{}{}", listening.iopub, also(&listening.iopub_ipc))),
            ("http", format!("{}/health, /ready, /metrics", listening.http)),
            ("mcp", format!("{}/mcp", listening.http)),
            ("data", listening.data_dir.display().to_string()),
            ("token", token),
        ];
        pairs.extend(listening.server_key.clone().map(|key| ("public key", key)));
        let pairs = screen.pairs(&pairs);
        let data_dir = listening.data_dir.display();
        format!(
            "ringback {} is listening\n{pairs}\n\nTry it from another terminal:\n  ringback call ping\n  \
             ringback call job_sleep milliseconds=2000\n  ringback events --follow\n\nOther users and \
             directories: `--daemon {} --token-file {data_dir}/token`. Stop with Ctrl-C.",
            listening.version, listening.hoot
        )
    })
}
