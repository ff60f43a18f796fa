//! The program of a box, as it is waited for and signalled.

use std::io;
use std::os::fd::OwnedFd;
use std::process::ExitStatus;

use rustix::process::{Pid, Signal, kill_process_group, pidfd_send_signal};
use tokio::process::Child;

use crate::docker::Container;
use crate::watches::Reason;

/// The program of a box.
#[derive(Debug)]
pub struct Process {
    kind: Kind,
    why: Reason,
}

#[derive(Debug)]
enum Kind {
    /// What stands for the box outside of it, and the first process of the box. The first one ends as
    /// the program does, and must not be asked to end: it would take the program with it at once.
    Bubblewrap {
        child: Child,
        first: Pid,
        /// The first one, whatever its number becomes.
        held: OwnedFd,
    },
    Docker(Container),
}

impl Process {
    pub(crate) const fn bubblewrap(child: Child, first: Pid, held: OwnedFd, why: Reason) -> Self {
        Self { kind: Kind::Bubblewrap { child, first, held }, why }
    }

    pub(crate) const fn docker(container: Container, why: Reason) -> Self {
        Self { kind: Kind::Docker(container), why }
    }

    /// Why its box was ended, if the sandbox did that by itself.
    #[must_use]
    pub fn ended_because(&self) -> Option<&str> {
        self.why.get().map(String::as_str)
    }

    /// The first process of the box, if this machine's kernel knows it by a number.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        match &self.kind {
            Kind::Bubblewrap { first, .. } => Some(first.as_raw_nonzero().get().unsigned_abs()),
            Kind::Docker(container) => container.id,
        }
    }

    /// Waits for the end of the program: its own code, or 128 and the number of the signal.
    ///
    /// # Errors
    /// When nobody can say.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        match &mut self.kind {
            Kind::Bubblewrap { child, .. } => child.wait().await,
            Kind::Docker(container) => container.wait().await,
        }
    }

    /// Asks the program to end. One that is not there any more has what was wanted, and one that is
    /// not there yet never comes.
    pub fn terminate(&self) {
        match &self.kind {
            Kind::Bubblewrap { first, .. } => {
                // There is no group before the first process has made it, a moment after its start.
                if kill_process_group(*first, Signal::TERM).is_err() {
                    self.kill();
                }
            }
            Kind::Docker(container) => container.signal("SIGTERM"),
        }
    }

    /// Ends everything in the box: nothing in it outlives the first process.
    pub fn kill(&self) {
        match &self.kind {
            Kind::Bubblewrap { held, .. } => {
                pidfd_send_signal(held, Signal::KILL).unwrap_or_default();
            }
            Kind::Docker(container) => container.signal("SIGKILL"),
        }
    }
}
