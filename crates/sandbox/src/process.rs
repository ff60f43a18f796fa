//! The program of a sandbox, to wait for and to signal.

use std::io;
use std::os::fd::OwnedFd;
use std::process::ExitStatus;

use rustix::process::{Pid, Signal, kill_process_group, pidfd_send_signal};
use tokio::process::Child;

use crate::docker::Container;
use crate::watches::Reason;

/// The program of a sandbox.
#[derive(Debug)]
pub struct Process {
    kind: Kind,
    why: Reason,
}

#[derive(Debug)]
enum Kind {
    /// The process that represents the sandbox outside, and the first process inside. The outer one
    /// exits like the program, and must not be terminated: it would kill the program immediately.
    Bubblewrap {
        child: Child,
        first: Pid,
        /// The first process, even if its number is reused.
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

    /// Returns why the sandbox ended the program, if it did.
    #[must_use]
    pub fn ended_because(&self) -> Option<&str> {
        self.why.get().map(String::as_str)
    }

    /// Returns the first process of the sandbox, if this machine's kernel knows it by a number.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        match &self.kind {
            Kind::Bubblewrap { first, .. } => Some(first.as_raw_nonzero().get().unsigned_abs()),
            Kind::Docker(container) => container.id,
        }
    }

    /// Waits for the end of the program: its own code, or 128 plus the number of the signal.
    ///
    /// # Errors
    /// If the result is unknown.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        match &mut self.kind {
            Kind::Bubblewrap { child, .. } => child.wait().await,
            Kind::Docker(container) => container.wait().await,
        }
    }

    /// Asks the program to end. A program that has ended is fine, and one that has not started yet
    /// never starts.
    pub fn terminate(&self) {
        match &self.kind {
            Kind::Bubblewrap { first, .. } => {
                // The process group does not exist until the first process makes it, just after its
                // start.
                if kill_process_group(*first, Signal::TERM).is_err() {
                    self.kill();
                }
            }
            Kind::Docker(container) => container.signal("SIGTERM"),
        }
    }

    /// Ends everything in the sandbox: nothing in it outlives the first process.
    pub fn kill(&self) {
        match &self.kind {
            Kind::Bubblewrap { held, .. } => {
                pidfd_send_signal(held, Signal::KILL).unwrap_or_default();
            }
            Kind::Docker(container) => container.signal("SIGKILL"),
        }
    }
}
