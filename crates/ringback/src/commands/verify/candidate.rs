//! The program under test.

use std::ffi::OsString;
use std::net::SocketAddr;

use clap::Args;
use ringback_proto::secret::Secret;
use serde::Serialize;
use tokio::process::{Child, Command};

use crate::failure::Failure;
use crate::screen::Screen;

/// The program, and how to wait for it.
#[derive(Debug, Args)]
pub struct CandidateArgs {
    /// Loopback address with a port for the candidate to connect to [default: any free port]
    #[arg(value_name = "URL")]
    pub url: Option<String>,
    /// Candidate program; without it, start yours with the printed address
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
    /// Seconds to wait for the candidate to offer its tools
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub wait: u64,
    /// Print one JSON object per check
    #[arg(long)]
    pub json: bool,
}

/// The address and token for a candidate.
#[derive(Debug)]
pub(super) struct CandidateAccess<'a> {
    /// The environment variable for the address.
    pub(super) variable: &'static str,
    pub(super) url: &'a str,
    pub(super) token: &'a Secret,
    pub(super) token_file: &'a str,
}

/// The address for a candidate that is started by hand.
#[derive(Debug, Serialize)]
struct ManualStart<'a> {
    url: &'a str,
    token_file: &'a str,
}

impl CandidateArgs {
    /// Returns the address to listen on; it may start with `scheme`.
    pub(super) fn listen(&self, scheme: &str) -> Result<SocketAddr, Failure> {
        let text = self.url.as_deref().unwrap_or("127.0.0.1:0");
        let address = text.strip_prefix(scheme).unwrap_or(text).trim_end_matches('/');
        let address: Option<SocketAddr> = address.parse().ok();
        address.filter(|address| address.ip().is_loopback()).ok_or_else(|| {
            Failure::Usage(format!(
                "`{text}` is not a loopback address with a port, such as `127.0.0.1:8099`"
            ))
        })
    }

    /// Starts the candidate, or prints how to start it. A candidate started here ends with this
    /// process.
    pub(super) fn meet(
        &self,
        screen: Screen,
        meeting: &CandidateAccess<'_>,
    ) -> Result<Option<Child>, Failure> {
        let CandidateAccess { variable, url, token, token_file } = *meeting;
        let Some((program, arguments)) = self.command.split_first() else {
            screen.item(&ManualStart { url, token_file }, |ManualStart { url, token_file }| {
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
            // Standard output is only for the results.
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

/// Resolves when a candidate started here ends too early.
pub(super) async fn ended(candidate: Option<&mut Child>) -> String {
    match candidate {
        None => std::future::pending().await,
        Some(child) => match child.wait().await {
            Ok(status) => format!("the candidate ended before it offered its tools: {status}"),
            Err(error) => format!("cannot wait for the candidate: {error}"),
        },
    }
}
