//! The program that is to prove itself.

use std::ffi::OsString;
use std::net::SocketAddr;

use clap::Args;
use ringback_proto::secret::Secret;
use serde::Serialize;
use tokio::process::{Child, Command};

use crate::failure::Failure;
use crate::screen::Screen;

/// Which program, and how to wait for it.
#[derive(Debug, Args)]
pub struct CandidateArgs {
    /// Where to listen for the candidate: an address of this machine with a port [default: any free port]
    #[arg(value_name = "URL")]
    pub url: Option<String>,
    /// The candidate; without it, start yours when you are told where to connect
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
    /// How many seconds the candidate may take to offer its tools
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub wait: u64,
    /// Print one JSON line per check
    #[arg(long)]
    pub json: bool,
}

/// Where a candidate finds the kit.
#[derive(Debug)]
pub(super) struct Meeting<'a> {
    /// The environment variable that tells the address.
    pub(super) variable: &'static str,
    pub(super) url: &'a str,
    pub(super) token: &'a Secret,
    pub(super) token_file: &'a str,
}

/// Where a candidate that was not started here is to connect.
#[derive(Debug, Serialize)]
struct Waiting<'a> {
    url: &'a str,
    token_file: &'a str,
}

impl CandidateArgs {
    /// Where to listen; `scheme` may stand before the address.
    pub(super) fn listen(&self, scheme: &str) -> Result<SocketAddr, Failure> {
        let text = self.url.as_deref().unwrap_or("127.0.0.1:0");
        let address = text.strip_prefix(scheme).unwrap_or(text).trim_end_matches('/');
        let address: Option<SocketAddr> = address.parse().ok();
        address.filter(|address| address.ip().is_loopback()).ok_or_else(|| {
            Failure::Usage(format!("`{text}` is not an address of this machine with a port"))
        })
    }

    /// Starts the candidate, or tells whoever watches how to. One of ours ends with this process.
    pub(super) fn meet(
        &self,
        screen: Screen,
        meeting: &Meeting<'_>,
    ) -> Result<Option<Child>, Failure> {
        let Meeting { variable, url, token, token_file } = *meeting;
        let Some((program, arguments)) = self.command.split_first() else {
            screen.item(&Waiting { url, token_file }, |Waiting { url, token_file }| {
                format!(
                    "Start your program with\n  {variable}={url} RINGBACK_TOKEN=$(cat {token_file})\n"
                )
            })?;
            return Ok(None);
        };
        let started = Command::new(program)
            .args(arguments)
            .env(variable, url)
            .env("RINGBACK_TOKEN", token.expose())
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

/// Resolves when a candidate of ours ends before its time.
pub(super) async fn ended(candidate: Option<&mut Child>) -> String {
    match candidate {
        None => std::future::pending().await,
        Some(child) => match child.wait().await {
            Ok(status) => format!("the candidate ended before it had offered its tools: {status}"),
            Err(error) => format!("the candidate is lost: {error}"),
        },
    }
}
