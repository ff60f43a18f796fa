//! `ringback verify client-tools`: a daemon in this process, behind a proxy that can cut
//! connections.

mod checks;
mod proxy;
mod stage;

use std::time::Duration;

use clap::Args;

use self::stage::Stage;
use super::candidate::{CandidateAccess, CandidateArgs, ended};
use super::check::Report;
use crate::connection::interruptible;
use crate::failure::Failure;
use crate::screen::Screen;

/// `ringback verify client-tools`
#[derive(Debug, Args)]
#[command(
    after_help = "A temporary daemon runs in this process. The candidate registers three tools under one clientID,\n\
                  with `graceMs` of 5000 or more: `echo` answers with its input as text, `slow` does the same \
                  after\n`ms` milliseconds and stops when it is cancelled, `fail` answers with status `error`. The \
                  kit calls the\ntools, cancels calls, cuts the connection, and reports the results.\n\n\
                  COMMAND finds the daemon's address in RINGBACK_URL and the token in RINGBACK_TOKEN."
)]
pub struct ClientToolsArgs {
    /// The program.
    #[command(flatten)]
    pub candidate: CandidateArgs,
}

pub(super) async fn run(args: &ClientToolsArgs) -> Result<(), Failure> {
    let screen = Screen::new(args.candidate.json);
    let stage = Box::pin(Stage::open(args.candidate.listen("http://")?)).await?;
    let verified = Box::pin(interruptible(verify(&stage, screen, &args.candidate))).await;
    stage.close().await?;
    verified
}

async fn verify(stage: &Stage, screen: Screen, args: &CandidateArgs) -> Result<(), Failure> {
    let url = format!("http://{}", stage.proxy.address());
    let (token, token_file) = (&stage.token, stage.token_file());
    let meeting =
        CandidateAccess { variable: "RINGBACK_URL", url: &url, token, token_file: &token_file };
    let mut candidate = args.meet(screen, &meeting)?;
    let tools = tokio::select! {
        tools = stage.candidate(Duration::from_secs(args.wait)) => tools?,
        text = ended(candidate.as_mut()) => return Err(Failure::Wrong(text)),
    };
    let mut report = Report::new(screen);
    checks::run(stage, &tools, &mut report).await?;
    report.conclude()
}
