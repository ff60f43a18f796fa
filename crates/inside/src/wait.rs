//! `wait`: does nothing until a signal, for a container whose work is started from outside.

use std::io;
use std::process::ExitCode;

use rustix::process::{WaitOptions, wait as reap};
use tokio::signal::unix::{SignalKind, signal};

use crate::log;

/// Waits for SIGTERM, SIGINT or SIGHUP. It may be the first process of its container, so it
/// inherits orphaned children and reaps them.
///
/// # Cancel safety
/// Nothing is lost.
pub async fn wait() -> ExitCode {
    match until_told().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log(&format!("cannot wait: {error}"));
            ExitCode::FAILURE
        }
    }
}

async fn until_told() -> io::Result<()> {
    let mut children = signal(SignalKind::child())?;
    let [terminate, interrupt, hang_up] =
        [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()].map(signal);
    let (mut terminate, mut interrupt, mut hang_up) = (terminate?, interrupt?, hang_up?);
    loop {
        // Also those that ended before the signal was watched.
        while let Ok(Some(_)) = reap(WaitOptions::NOHANG) {}
        tokio::select! {
            Some(()) = terminate.recv() => return Ok(()),
            Some(()) = interrupt.recv() => return Ok(()),
            Some(()) = hang_up.recv() => return Ok(()),
            Some(()) = children.recv() => {}
        }
    }
}
