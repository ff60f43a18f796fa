//! The failures of commands and their exit codes, which are defined only here.

use std::io;
use std::path::PathBuf;

use ringback_client::line::LineError;
use ringback_client::{ConnectError, SubscribeError};
use ringback_proto::chain;
use ringback_proto::error::ToolError;
use ringback_proto::{Certainty, Error, ErrorKind};
use serde::Serialize;

use crate::config::{ConfigError, EXIT_BAD_CONFIG};
use crate::daemon::StartDaemonError;
use crate::telemetry::TelemetryError;

/// The operation was tried and failed.
const EXIT_FAILED: u8 = 1;
/// The command line is invalid; clap uses the same code.
const EXIT_USAGE: u8 = 2;
/// No daemon answers.
const EXIT_NO_DAEMON: u8 = 69;
/// The daemon refuses.
const EXIT_NOT_ALLOWED: u8 = 77;
/// Ended by Ctrl-C, as shells report it.
const EXIT_INTERRUPTED: u8 = 130;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The command line is well-formed, but its values are not usable.
    #[error("{0}")]
    Usage(String),
    /// The configuration is bad.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// No daemon listens at the endpoint.
    #[error("no daemon answers at `{endpoint}`; start one with `ringback serve`")]
    NoDaemon {
        /// The endpoint.
        endpoint: String,
        /// The system error.
        #[source]
        source: io::Error,
    },
    /// The daemon that a command started in the background did not come up.
    #[error("the daemon did not start: {}; its log is `{}`", shown_reason(.reason), .log.display())]
    NotStarted {
        /// Its log.
        log: PathBuf,
        /// The last line that it wrote there.
        reason: String,
    },
    /// The connection to a daemon failed.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The token file cannot be read.
    #[error("cannot read the token from `{}`; choose a file with `--token-file`", path.display())]
    TokenFile {
        /// The file.
        path: PathBuf,
        /// The system error.
        #[source]
        source: io::Error,
    },
    /// The daemon refuses the token, or needs one.
    #[error(
        "the daemon at `{endpoint}` refuses the token ({reason}); it was taken from {origin}; set \
         `RINGBACK_TOKEN`, or choose a file with `--token-file`"
    )]
    Refused {
        /// The daemon.
        endpoint: String,
        /// The daemon's reason.
        reason: String,
        /// Where the token came from.
        origin: String,
    },
    /// The tool answered with an error.
    #[error("{}", explain(.0))]
    Tool(Error),
    /// The line failed.
    #[error(transparent)]
    Line(#[from] LineError),
    /// The event subscription ended.
    #[error(transparent)]
    Subscribe(#[from] SubscribeError),
    /// The daemon did not start.
    #[error(transparent)]
    Start(#[from] StartDaemonError),
    /// Logs, traces or metrics cannot be set up.
    #[error(transparent)]
    Telemetry(#[from] TelemetryError),
    /// A local file cannot be used.
    #[error("cannot {action} `{}`", path.display())]
    File {
        /// What was attempted.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system error.
        #[source]
        source: io::Error,
    },
    /// The answer cannot be written.
    #[error("cannot write the answer")]
    Output(#[source] io::Error),
    /// The system refuses something that every process needs.
    #[error("cannot {action}")]
    System {
        /// What was attempted.
        action: &'static str,
        /// The system error.
        #[source]
        source: io::Error,
    },
    /// The operation failed, or its result is not as expected.
    #[error("{0}")]
    Wrong(String),
    /// A command run for the user failed; it has printed the reason.
    #[error("the command ended with code {code}")]
    Command {
        /// Its exit code.
        code: u8,
    },
    /// Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}

/// An error in JSON.
#[derive(Debug, Serialize)]
struct Report {
    error: ToolError,
}

impl Failure {
    /// Returns the exit code of the process.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => EXIT_USAGE,
            Self::Config(_) => EXIT_BAD_CONFIG,
            Self::NoDaemon { .. } | Self::NotStarted { .. } => EXIT_NO_DAEMON,
            Self::Connect(error) => match error {
                ConnectError::Unreachable { .. } => EXIT_NO_DAEMON,
                ConnectError::Open { .. } | ConnectError::ServerKey => EXIT_USAGE,
                ConnectError::Token | ConnectError::Refused { .. } => EXIT_NOT_ALLOWED,
            },
            Self::TokenFile { .. } | Self::Refused { .. } => EXIT_NOT_ALLOWED,
            Self::Line(LineError::Connect { .. }) => EXIT_NO_DAEMON,
            Self::Line(error) if matches!(error.status(), Some(401 | 403)) => EXIT_NOT_ALLOWED,
            Self::Tool(error) if is_denial(error.kind()) => EXIT_NOT_ALLOWED,
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
            Self::Interrupted => EXIT_INTERRUPTED,
            Self::Command { code } => *code,
            Self::Start(error) if error.is_bad_config() => EXIT_BAD_CONFIG,
            Self::Telemetry(TelemetryError::NoExporter) => EXIT_BAD_CONFIG,
            Self::Tool(_)
            | Self::Line(_)
            | Self::Subscribe(_)
            | Self::Start(_)
            | Self::Telemetry(_)
            | Self::File { .. }
            | Self::Output(_)
            | Self::System { .. }
            | Self::Wrong(_) => EXIT_FAILED,
        }
    }

    /// Returns the text for standard error; `None` if the user already knows: the output was
    /// closed, Ctrl-C was pressed, or a command has printed the reason.
    #[must_use]
    pub fn report(&self, json: bool) -> Option<String> {
        if matches!(self, Self::Interrupted | Self::Command { .. }) || self.exit_code() == 0 {
            return None;
        }
        if !json {
            return Some(format!("error: {}", chain(self)));
        }
        let error = if let Self::Tool(error) = self {
            ToolError::from(error)
        } else {
            ToolError::from(Error::new(self.kind(), chain(self)))
        };
        serde_json::to_string(&Report { error }).ok()
    }

    fn kind(&self) -> ErrorKind {
        match self.exit_code() {
            EXIT_USAGE | EXIT_BAD_CONFIG => ErrorKind::Invalid,
            EXIT_NO_DAEMON => ErrorKind::Gone,
            EXIT_NOT_ALLOWED => ErrorKind::Unauthenticated,
            _ => ErrorKind::ToolFailed,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Tool(error)
    }
}

const fn is_denial(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Unauthenticated | ErrorKind::Forbidden)
}

fn shown_reason(reason: &str) -> &str {
    if reason.is_empty() { "it said nothing" } else { reason }
}

/// Formats the daemon's message, and whether a retry is safe.
fn explain(error: &Error) -> String {
    let ran = match error.certainty() {
        Certainty::NotStarted => "nothing was done",
        Certainty::MayHaveRun => "it may have run",
        Certainty::Ran => "it ran and failed",
    };
    format!("{} ({ran})", error.message())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ringback_client::ConnectError;
    use ringback_proto::Error;

    use super::Failure;

    #[test]
    fn codes_tell_scripts_what_to_do() {
        let unreachable =
            ConnectError::Unreachable { endpoint: "tcp://x".to_owned(), timeout: Duration::ZERO };
        let codes = [
            (Failure::Usage(String::new()), 2),
            (unreachable.into(), 69),
            (Error::forbidden("this", "admin").into(), 77),
            (Error::invalid("no").into(), 1),
            (Failure::Interrupted, 130),
            (Failure::Command { code: 7 }, 7),
            (Failure::Output(std::io::ErrorKind::BrokenPipe.into()), 0),
        ];
        for (failure, code) in codes {
            assert_eq!(failure.exit_code(), code, "{failure:?}");
        }
    }

    /// Rule: every failure shows whether the tool ran.
    #[test]
    fn a_tool_error_says_whether_it_ran() {
        let failure = Failure::from(Error::invalid("no such thing"));
        assert_eq!(failure.report(false).unwrap(), "error: no such thing (nothing was done)");
        let json = failure.report(true).unwrap();
        assert!(json.contains(r#""certainty":"not_started""#), "{json}");
    }
}
