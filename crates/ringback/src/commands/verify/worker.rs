//! `ringback verify worker`: this process acts as the daemon, frame by frame.

mod checks;
mod message;
mod mock_daemon;
mod zmtp;

use std::time::Duration;

use clap::Args;
use ringback_proto::ids::RequestId;
use ringback_proto::secret::Secret;

use self::mock_daemon::MockDaemon;
use super::candidate::{CandidateAccess, CandidateArgs, ended};
use super::check::Report;
use crate::connection::interruptible;
use crate::failure::Failure;
use crate::screen::Screen;

/// `ringback verify worker`
#[derive(Debug, Args)]
#[command(
    after_help = "This process acts as the daemon. The candidate connects a DEALER (PLAIN, any user name, the token \
                  as\npassword) and offers four tools with Ready, under any service: `echo` returns its arguments, \
                  `slow`\nreports progress, returns its arguments after `ms` milliseconds and stops when it is \
                  cancelled,\n`fail` answers with an error, `pour` sends `bytes` bytes in chunks of \
                  `partial_content` before its\nanswer. The kit calls the tools, cancels calls, cuts the \
                  connection, and reports the results.\n\n\
                  COMMAND finds the address in RINGBACK_DAEMON and the token in RINGBACK_TOKEN."
)]
pub struct WorkerArgs {
    /// The program.
    #[command(flatten)]
    pub candidate: CandidateArgs,
    /// Seconds of silence after which a worker counts as gone
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub silence: u64,
}

pub(super) async fn run(args: &WorkerArgs) -> Result<(), Failure> {
    let listen = args.candidate.listen("tcp://")?;
    let screen = Screen::new(args.candidate.json);
    let token = new_token();
    let file = token_file(&token)?;
    let action = "listen for the candidate";
    let daemon = MockDaemon::start(listen, token.clone())
        .await
        .map_err(|source| Failure::System { action, source })?;
    let url = format!("tcp://{}", daemon.address());
    let token_file = file.path().display().to_string();
    let meeting = CandidateAccess {
        variable: "RINGBACK_DAEMON",
        url: &url,
        token: &token,
        token_file: &token_file,
    };
    Box::pin(interruptible(verify(&daemon, screen, args, &meeting))).await
}

async fn verify(
    daemon: &MockDaemon,
    screen: Screen,
    args: &WorkerArgs,
    meeting: &CandidateAccess<'_>,
) -> Result<(), Failure> {
    let mut candidate = args.candidate.meet(screen, meeting)?;
    tokio::select! {
        offered = daemon.offered(Duration::from_secs(args.candidate.wait), 0) => {
            offered.map_err(Failure::Wrong)?;
        }
        text = ended(candidate.as_mut()) => return Err(Failure::Wrong(text)),
    }
    let mut report = Report::new(screen);
    checks::run(daemon, Duration::from_secs(args.silence), &mut report).await?;
    report.conclude()
}

/// Creates a token in the daemon's format, valid only for this run.
fn new_token() -> Secret {
    let halves = [RequestId::random(), RequestId::random()];
    let digits = halves.iter().flat_map(|half| *half.as_bytes());
    Secret::new(digits.fold("oub_".to_owned(), |text, byte| format!("{text}{byte:02x}")))
}

/// Writes the token to a temporary file that only this user can read.
fn token_file(token: &Secret) -> Result<tempfile::NamedTempFile, Failure> {
    let action = "write a token for the candidate";
    let written = tempfile::Builder::new().prefix("ringback-verify-").tempfile();
    written
        .and_then(|mut file| {
            std::io::Write::write_all(&mut file, token.expose().as_bytes()).map(|()| file)
        })
        .map_err(|source| Failure::System { action, source })
}
