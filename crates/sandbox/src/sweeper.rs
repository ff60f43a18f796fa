//! Cleans up after sandboxes on a thread of its own, so that dropping one does not block.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid};
use tokio::sync::oneshot;

use crate::cgroups;
use crate::error::OpenError;

/// The most sandboxes that may wait for cleanup; dropping a further one blocks.
const WAITING_MAX: usize = 256;
/// How long a killed sandbox may take to be gone.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a sandbox has outside of itself.
#[derive(Debug)]
pub(crate) enum Remains {
    /// That of a bubblewrap sandbox.
    Bubblewrap(BubblewrapRemains),
    /// A container.
    Docker {
        /// Its name.
        name: String,
    },
}

/// What a bubblewrap sandbox has outside of itself.
#[derive(Debug)]
pub(crate) struct BubblewrapRemains {
    /// Its first process; everything in the sandbox ends with it.
    pub(crate) first: Option<OwnedFd>,
    pub(crate) groups: Vec<PathBuf>,
    pub(crate) note: PathBuf,
}

#[derive(Debug)]
struct Job {
    swept: BubblewrapRemains,
    done: Option<oneshot::Sender<()>>,
}

/// Hands sandboxes to the thread.
#[derive(Debug, Clone)]
pub(crate) struct Sweeper(SyncSender<Job>);

impl Sweeper {
    /// Starts the thread. It ends once every handle is gone and everything is cleaned up.
    pub(crate) fn start() -> Result<(Self, JoinHandle<()>), OpenError> {
        let (jobs_in, jobs) = sync_channel::<Job>(WAITING_MAX);
        let thread = std::thread::Builder::new()
            .name("sandbox-sweeper".to_owned())
            .spawn(move || {
                for Job { swept, done } in jobs {
                    if let Err(error) = sweep(&swept) {
                        tracing::error!(note = %swept.note.display(), %error, "cannot clean up a sandbox; the next start tries again");
                    }
                    done.map(|done| done.send(()));
                }
            })
            .map_err(OpenError::Thread)?;
        Ok((Self(jobs_in), thread))
    }

    /// Ends a sandbox, removes its remains, and signals `done`.
    pub(crate) fn sweep(&self, swept: BubblewrapRemains, done: Option<oneshot::Sender<()>>) {
        if let Err(unsent) = self.0.send(Job { swept, done })
            && let Err(error) = sweep(&unsent.0.swept)
        {
            tracing::error!(%error, "cannot clean up a sandbox; the next start tries again");
        }
    }
}

fn sweep(swept: &BubblewrapRemains) -> io::Result<()> {
    let until = Instant::now() + PATIENCE;
    if let Some(first) = &swept.first {
        // A process that has ended is fine.
        pidfd_send_signal(first, Signal::KILL).unwrap_or_default();
        let mut ended = [PollFd::new(first, PollFlags::IN)];
        let limit = Timespec { tv_sec: PATIENCE.as_secs().cast_signed(), tv_nsec: 0 };
        if poll(&mut ended, Some(&limit))? == 0 {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "it was killed and has not ended"));
        }
        // Its parent is gone. It is a child of this process only if this is the first process of a
        // container; otherwise another init adopts it.
        let nobodys_child = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        waitid(WaitId::PidFd(first.as_fd()), nobodys_child).unwrap_or_default();
    }
    for dir in &swept.groups {
        cgroups::remove(dir, until)?;
    }
    match std::fs::remove_file(&swept.note) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
