//! `ringback verify`: a kit with which any program that holds a line can prove itself, whatever it is
//! written in.

mod checks;
mod proxy;
mod stage;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde::Serialize;
use tokio::process::{Child, Command};

use self::checks::Check;
use self::stage::Stage;
use crate::connect::interruptible;
use crate::failure::Failure;
use crate::screen::Screen;

/// `ringback verify`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ringback verify client-tools -- node my-client.js\n  ringback verify client-tools \
                  http://127.0.0.1:8099    a program that is started by hand"
)]
pub struct VerifyArgs {
    /// What is to be proved.
    #[command(subcommand)]
    pub what: What,
}

/// What can be proved.
#[derive(Debug, Subcommand)]
pub enum What {
    /// That a program offers tools over `/client-tools`
    ClientTools(ClientToolsArgs),
}

/// `ringback verify client-tools`
#[derive(Debug, Args)]
#[command(
    after_help = "A daemon of its own runs in this process, in a temporary directory. The candidate registers three \
                  tools under one clientID, with `graceMs` of 5000 or more: `echo` answers with its input as text, \
                  `slow` does the same after `ms` milliseconds and stops when it is cancelled, `fail` answers with \
                  status `error`. The kit calls them, takes calls back, cuts the connection, and tells what it saw.\n\n\
                  COMMAND finds the daemon's address in RINGBACK_URL and the token in RINGBACK_TOKEN."
)]
pub struct ClientToolsArgs {
    /// Where to listen for the candidate, such as `http://127.0.0.1:8099` [default: any free port]
    #[arg(value_name = "URL")]
    pub url: Option<String>,
    /// The candidate; without it, start yours when you are told where to connect
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
    /// How many seconds the candidate may take to register
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub wait: u64,
    /// Print one JSON line per check
    #[arg(long)]
    pub json: bool,
}

/// Where a candidate that was not started here is to connect.
#[derive(Debug, Serialize)]
struct Waiting<'a> {
    url: &'a str,
    token_file: String,
}

impl VerifyArgs {
    pub(crate) const fn wants_json(&self) -> bool {
        match &self.what {
            What::ClientTools(args) => args.json,
        }
    }
}

impl ClientToolsArgs {
    fn listen(&self) -> Result<SocketAddr, Failure> {
        let text = self.url.as_deref().unwrap_or("127.0.0.1:0");
        let address = text.strip_prefix("http://").unwrap_or(text).trim_end_matches('/');
        let address: Option<SocketAddr> = address.parse().ok();
        address.filter(|address| address.ip().is_loopback()).ok_or_else(|| {
            Failure::Usage(format!("`{text}` is not an address of this machine with a port"))
        })
    }

    /// Starts the candidate, if it is ours to start. It ends with this process.
    fn start(&self, stage: &Stage, url: &str) -> Result<Option<Child>, Failure> {
        let Some((program, arguments)) = self.command.split_first() else { return Ok(None) };
        let started = Command::new(program)
            .args(arguments)
            .env("RINGBACK_URL", url)
            .env("RINGBACK_TOKEN", stage.token.expose())
            .stdin(std::process::Stdio::null())
            // Standard output is for the verdicts alone.
            .stdout(std::io::stderr())
            .kill_on_drop(true)
            .spawn();
        started.map(Some).map_err(|source| Failure::File {
            action: "run",
            path: program.into(),
            source,
        })
    }
}

pub(crate) async fn run(args: VerifyArgs) -> Result<(), Failure> {
    match args.what {
        What::ClientTools(args) => client_tools(&args).await,
    }
}

async fn client_tools(args: &ClientToolsArgs) -> Result<(), Failure> {
    let screen = Screen::new(args.json);
    let stage = Box::pin(Stage::open(args.listen()?)).await?;
    let verified = Box::pin(interruptible(verify(&stage, screen, args))).await;
    stage.close().await?;
    verified
}

async fn verify(stage: &Stage, screen: Screen, args: &ClientToolsArgs) -> Result<(), Failure> {
    let url = format!("http://{}", stage.proxy.address());
    let mut candidate = args.start(stage, &url)?;
    if candidate.is_none() {
        let waiting = Waiting { url: &url, token_file: stage.token_file() };
        screen.item(&waiting, |Waiting { url, token_file }| {
            format!(
                "Start your program with\n  RINGBACK_URL={url} RINGBACK_TOKEN=$(cat {token_file})\n"
            )
        })?;
    }
    let tools = tokio::select! {
        tools = stage.candidate(Duration::from_secs(args.wait)) => tools?,
        text = ended(candidate.as_mut()) => return Err(Failure::Wrong(text)),
    };
    let (mut n_checks, mut n_failed) = (0, 0);
    checks::run(stage, &tools, |check| {
        n_checks += 1;
        n_failed += usize::from(!check.passed);
        screen.item(&check, |check| verdict(screen, check))
    })
    .await?;
    match n_failed {
        0 => Ok(()),
        n => Err(Failure::Wrong(format!("{n} of {n_checks} checks failed"))),
    }
}

/// Resolves when a candidate of ours ends before its time.
async fn ended(candidate: Option<&mut Child>) -> String {
    match candidate {
        None => std::future::pending().await,
        Some(child) => match child.wait().await {
            Ok(status) => {
                format!("the candidate ended before it had registered its tools: {status}")
            }
            Err(error) => format!("the candidate is lost: {error}"),
        },
    }
}

fn verdict(screen: Screen, check: &Check) -> String {
    match &check.reason {
        None => format!("pass  {}", check.check),
        Some(reason) => format!("{}  {}\n      {reason}", screen.bold("FAIL"), check.check),
    }
}
