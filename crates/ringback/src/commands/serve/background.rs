//! The daemon in the background: away from its terminal, with a log file that stays small, and over
//! when it has nothing more to do.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::config::Config;
use crate::daemon::Daemon;
use crate::failure::Failure;
use crate::running::{StartLock, log_file};
use crate::telemetry::LogFile;

/// How many looks fit into the idle time.
const LOOKS: u32 = 8;
/// The shortest and the longest time between two looks.
const LOOK_MIN: Duration = Duration::from_millis(10);
const LOOK_MAX: Duration = Duration::from_secs(5);

/// Leaves the session of the terminal, whose Ctrl-C and end would reach this process.
pub(super) fn detach() -> Result<(), Failure> {
    rustix::process::setsid().map(drop).map_err(|error| Failure::System {
        action: "leave the terminal's session",
        source: error.into(),
    })
}

/// Opens the log file. Standard error is the same file, for what is not logged.
pub(super) fn log(config: &Config) -> Result<LogFile, Failure> {
    let path = log_file(config);
    LogFile::open(path.clone(), config.background.log_max.0).map_err(|source| Failure::File {
        action: "open",
        path,
        source,
    })
}

/// Resolves when the daemon has had nothing to do for as long as configured. The lock keeps commands
/// from starting another one until this process has ended.
pub(super) async fn idle(daemon: &Daemon, config: &Config) -> StartLock {
    let limit = config.background.idle.0;
    let period = (limit / LOOKS).clamp(LOOK_MIN, LOOK_MAX);
    let (mut seen, mut since) = (daemon.activity(), Instant::now());
    loop {
        sleep(period).await;
        let activity = daemon.activity();
        if activity.is_busy || activity != seen {
            (seen, since) = (activity, Instant::now());
            continue;
        }
        if since.elapsed() < limit {
            continue;
        }
        match StartLock::try_take(config) {
            // Nothing came in between.
            Ok(Some(lock)) if daemon.activity() == seen => return lock,
            // A command is about to use this daemon.
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "cannot lock the runtime directory"),
        }
    }
}
