//! `ringback mcp`: serves MCP on standard input and output through a daemon, and configures agents
//! to start it.

mod agents;
mod edit;
mod input;
mod install;

use std::net::SocketAddr;
use std::time::Duration;

use clap::{Args, Subcommand};
use ringback_mcp_bridge::Endpoint;
use ringback_proto::secret::Secret;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::commands::serve::Signals;
use crate::config::{Config, Environment, ServeFlags};
use crate::connection::{ConnectArgs, http_address};
use crate::daemon::Daemon;
use crate::failure::Failure;
use crate::telemetry::Telemetry;

pub use self::agents::Agent;
pub use self::install::InstallArgs;

/// Loopback answers immediately or not at all.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// Environment variables that may hold an agent's key, in order of precedence.
const KEYS: [&str; 2] = ["RINGBACK_API_KEY", "OUBLIETTE_API_KEY"];

/// `ringback mcp`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  ringback mcp                        started by an agent\n\n\
                  MCP messages are read from standard input and written to standard output, one per \
                  line. They are\npassed to this user's daemon; if none is running, one is started inside \
                  this process and ends with\nit. The key is RINGBACK_API_KEY (or OUBLIETTE_API_KEY), \
                  else the token that other commands use.")]
pub struct McpArgs {
    /// HTTP listener of the daemon [default: `http.listen`]
    #[arg(long, value_name = "ADDR")]
    pub http: Option<SocketAddr>,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
    /// Configure an agent instead of serving.
    #[command(subcommand)]
    pub command: Option<McpCommand>,
}

/// Actions other than serving.
#[derive(Debug, Subcommand)]
pub enum McpCommand {
    /// Configure an agent to start `ringback mcp`
    Install(InstallArgs),
    /// Undo `install`
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
        let text = "the daemon uses TLS, which `ringback mcp` does not support; give the agent the \
                    daemon's URL, ending in `/mcp`, and a token";
        return Err(Failure::Usage(text.to_owned()));
    }
    let address =
        args.http.or_else(|| http_address(&config).parse().ok()).unwrap_or(config.http.listen);
    match probe(address).await {
        Ok(()) => pass_on(endpoint(args, environment, &config, address)?).await,
        Err(source) if args.http.is_some() => {
            Err(Failure::NoDaemon { endpoint: address.to_string(), source })
        }
        Err(_) => embedded(args, environment, &config).await,
    }
}

/// Serves with a daemon inside this process. It listens at the configured addresses, so that a
/// second agent finds it.
async fn embedded(
    args: &McpArgs,
    environment: &Environment,
    config: &Config,
) -> Result<(), Failure> {
    let telemetry = Telemetry::install(&config.log, &config.telemetry, None)?;
    let daemon = Daemon::start(config, false, telemetry.metrics()).await?;
    let url = daemon.listening().http.clone();
    let address = url.trim_start_matches("http://").to_owned();
    let served = match address.parse() {
        Ok(address) => pass_on(endpoint(args, environment, config, address)?).await,
        Err(_) => {
            Err(Failure::Wrong(format!("the daemon listens on `{url}`, which is not an address")))
        }
    };
    daemon.stop().await;
    telemetry.shutdown().await;
    served
}

async fn pass_on(endpoint: Endpoint) -> Result<(), Failure> {
    let mut signals = Signals::new()?;
    let input = input::stdin()?;
    let served = ringback_mcp_bridge::serve(endpoint, input, tokio::io::stdout());
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

fn endpoint(
    args: &McpArgs,
    environment: &Environment,
    config: &Config,
    address: SocketAddr,
) -> Result<Endpoint, Failure> {
    let token = key(&args.connect, environment, config)?;
    Ok(daemon_at(address, token.as_ref()))
}

/// The daemon at an address, with a token.
pub(crate) fn daemon_at(address: SocketAddr, token: Option<&Secret>) -> Endpoint {
    let endpoint = Endpoint::of_daemon(address);
    match token {
        Some(token) => endpoint.with_bearer(token.expose()),
        None => endpoint,
    }
}

/// Returns the key to call with.
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
