//! `ringback stop`: ends this user's daemon.

use std::io;
use std::path::Path;
use std::time::Duration;

use clap::Args;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::Serialize;
use tokio::net::UnixStream;
use tokio::time::{sleep, timeout};

use crate::commands::local::LocalArgs;
use crate::config::{Config, Environment};
use crate::failure::Failure;

/// Longer than all stages of a daemon's end together.
const STOP_TIMEOUT: Duration = Duration::from_secs(120);

/// How often the process is looked for.
const LOOK_PERIOD: Duration = Duration::from_millis(5);
/// Fields between the state of a process and its start.
const START_FIELD: usize = 18;

/// `ringback stop`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  ringback stop\n  ringback stop --data-dir /srv/ring\n\n\
                  It ends the daemon in the background as well as one that `ringback serve` runs in \
                  another\nterminal. Running sessions are interrupted; a message continues them later.")]
pub struct StopArgs {
    /// Where the daemon is.
    #[command(flatten)]
    pub local: LocalArgs,
}

/// The answer.
#[derive(Debug, Serialize)]
struct Stopped {
    /// The process that ended; absent if none was running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
}

pub(crate) async fn run(args: &StopArgs, environment: &Environment) -> Result<(), Failure> {
    let config = Config::load(&args.local.flags(), environment)?;
    let Some(sockets) = config.ipc_sockets() else {
        let text = "this daemon has no socket to find it by (`hoot.ipc = false`); end its process";
        return Err(Failure::Usage(text.to_owned()));
    };
    let pid = match listener(&sockets.hoot).await {
        Ok(pid) => Some(pid),
        Err(error) if is_absent(&error) => None,
        Err(source) => {
            return Err(Failure::File { action: "ask", path: sockets.hoot, source });
        }
    };
    if let Some(pid) = pid {
        end(pid).await?;
    }
    let stopped = Stopped { pid: pid.map(|pid| pid.as_raw_nonzero().get().unsigned_abs()) };
    args.local.screen().answer(&stopped, |stopped| match stopped.pid {
        Some(pid) => format!("stopped the daemon (process {pid})"),
        None => "no daemon is running".to_owned(),
    })
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

/// Returns the process that listens at a socket, from the kernel: a number in a file may by now be
/// another process.
async fn listener(path: &Path) -> io::Result<Pid> {
    let peer = UnixStream::connect(path).await?.peer_cred()?;
    peer.pid().and_then(Pid::from_raw).ok_or_else(|| {
        io::Error::other("its process is not visible from here; end it where it runs")
    })
}

/// Asks a process to end, and waits until it has.
async fn end(pid: Pid) -> Result<(), Failure> {
    let failed = |action| move |source| Failure::System { action, source };
    let process = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(process) => process,
        Err(rustix::io::Errno::SRCH) => return Ok(()),
        Err(error) => return Err(failed("open the daemon's process")(error.into())),
    };
    match pidfd_send_signal(&process, Signal::TERM) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => {}
        Err(error) => return Err(failed("signal the daemon")(error.into())),
    }
    match timeout(STOP_TIMEOUT, gone(pid)).await {
        Ok(()) => Ok(()),
        Err(_) => {
            let pid = pid.as_raw_nonzero();
            Err(Failure::Wrong(format!(
                "the daemon (process {pid}) has not ended within two minutes; `kill -9 {pid}` ends it \
                 without saving what is in progress"
            )))
        }
    }
}

/// Waits until a process is gone, or a zombie that its parent has not collected. One that takes over
/// its number started later.
async fn gone(pid: Pid) {
    let path = format!("/proc/{}/stat", pid.as_raw_nonzero());
    let look = || std::fs::read_to_string(&path).ok().and_then(|text| started(&text));
    let first = look();
    while first.is_some() && look() == first {
        sleep(LOOK_PERIOD).await;
    }
}

/// Returns when a process started, from the text in `/proc`, if it still runs.
fn started(stat: &str) -> Option<String> {
    // The name before may contain anything.
    let (_, after) = stat.rsplit_once(')')?;
    let mut fields = after.split_whitespace();
    let state = fields.next()?;
    let start = fields.nth(START_FIELD)?;
    (!matches!(state, "Z" | "X")).then(|| start.to_owned())
}

#[cfg(test)]
mod tests {
    use super::started;

    #[test]
    fn a_process_runs_until_it_is_a_zombie() {
        let stat =
            |state| format!("7 (a) (b) {state} 1 7 7 0 -1 4 1 2 3 4 5 6 7 8 20 0 9 0 4242 1 2");
        assert_eq!(started(&stat("S")).as_deref(), Some("4242"));
        assert_eq!(started(&stat("Z")), None);
        assert_eq!(started(""), None);
    }
}
