//! `ringback mcp`: an agent on standard input and output, by way of a daemon; and how agents are told
//! to start it.

mod agents;
mod edit;
mod input;
mod install;

use std::net::SocketAddr;
use std::time::Duration;

use clap::{Args, Subcommand};
use ringback_edge_mcp::stdio::{self, Target};
use ringback_proto::secret::Secret;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::commands::serve::Signals;
use crate::config::{Config, Environment, ServeFlags};
use crate::connect::ConnectArgs;
use crate::daemon::Daemon;
use crate::failure::Failure;
use crate::telemetry::Telemetry;

pub use self::agents::Agent;
pub use self::install::InstallArgs;

/// Loopback answers at once or not at all.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// The variables that have an agent's key, the first one first.
const KEYS: [&str; 2] = ["RINGBACK_API_KEY", "OUBLIETTE_API_KEY"];

/// `ringback mcp`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  ringback mcp                        what an agent starts\n\n\
                  Messages come on standard input and go to standard output, one per line. They are \
                  passed to the daemon of this user; if none runs, one is started inside this process \
                  and ends with it. The key is RINGBACK_API_KEY (or OUBLIETTE_API_KEY), else the token \
                  that other commands use.")]
pub struct McpArgs {
    /// HTTP listener of the daemon [default: http.listen of the configuration]
    #[arg(long, value_name = "ADDR")]
    pub http: Option<SocketAddr>,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
    /// Something else than serving.
    #[command(subcommand)]
    pub command: Option<McpCommand>,
}

/// What else can be done.
#[derive(Debug, Subcommand)]
pub enum McpCommand {
    /// Tell an agent to start `ringback mcp`
    Install(InstallArgs),
    /// Undo that
    Uninstall(InstallArgs),
}

pub(crate) async fn run(args: McpArgs, environment: &Environment) -> Result<(), Failure> {
    match &args.command {
        None => Box::pin(serve(&args, environment)).await,
        Some(McpCommand::Install(args)) => install::install(args, environment),
        Some(McpCommand::Uninstall(args)) => install::uninstall(args, environment),
    }
}

async fn serve(args: &McpArgs, environment: &Environment) -> Result<(), Failure> {
    let flags = ServeFlags {
        config: args.connect.config.clone(),
        data_dir: args.connect.data_dir.clone(),
        ..ServeFlags::default()
    };
    let config = Config::load(&flags, environment)?;
    if config.http.tls.is_some() {
        let text = "this daemon speaks TLS, and `ringback mcp` does not; give the agent its URL, \
                    which ends in `/mcp`, and a token";
        return Err(Failure::Usage(text.to_owned()));
    }
    let address = args.http.unwrap_or(config.http.listen);
    match probe(address).await {
        Ok(()) => pass_on(target(args, environment, &config, address)?).await,
        Err(source) if args.http.is_some() => {
            Err(Failure::NoDaemon { endpoint: address.to_string(), source })
        }
        Err(_) => embedded(args, environment, &config).await,
    }
}

/// With a daemon inside this process. It listens where the configuration says, so that a second
/// agent finds it.
async fn embedded(
    args: &McpArgs,
    environment: &Environment,
    config: &Config,
) -> Result<(), Failure> {
    let telemetry = Telemetry::install(&config.log, &config.telemetry)?;
    let daemon = Daemon::start(config, false, telemetry.metrics()).await?;
    let url = daemon.listening().http.clone();
    let address = url.trim_start_matches("http://").to_owned();
    let served = match address.parse() {
        Ok(address) => pass_on(target(args, environment, config, address)?).await,
        Err(_) => {
            Err(Failure::Wrong(format!("the daemon listens on `{url}`, which is no address")))
        }
    };
    daemon.stop().await;
    telemetry.shutdown().await;
    served
}

async fn pass_on(target: Target) -> Result<(), Failure> {
    let mut signals = Signals::new()?;
    let input = input::stdin()?;
    let served = stdio::serve(target, input, tokio::io::stdout());
    tokio::select! {
        served = served => {
            served.map_err(|source| Failure::System { action: "read standard input", source })
        }
        _ = signals.next() => Ok(()),
    }
}

async fn probe(address: SocketAddr) -> std::io::Result<()> {
    match timeout(PROBE_TIMEOUT, TcpStream::connect(address)).await {
        Ok(connected) => connected.map(drop),
        Err(_) => Err(std::io::ErrorKind::TimedOut.into()),
    }
}

fn target(
    args: &McpArgs,
    environment: &Environment,
    config: &Config,
    address: SocketAddr,
) -> Result<Target, Failure> {
    let token = key(&args.connect, environment, config)?;
    Ok(Target { address: address.to_string(), token })
}

/// The key to call with.
pub(crate) fn key(
    connect: &ConnectArgs,
    environment: &Environment,
    config: &Config,
) -> Result<Option<Secret>, Failure> {
    let key = KEYS.iter().find_map(|name| environment.get(name)).and_then(|key| key.to_str());
    match key.map(str::trim).filter(|key| !key.is_empty()) {
        Some(key) => Ok(Some(Secret::new(key.to_owned()))),
        None => connect.token(environment, config),
    }
}
