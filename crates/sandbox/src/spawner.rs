//! Starts children from one thread. The system ends a child with the thread that started it, and a
//! runtime's threads come and go.

use std::io;
use std::process::Command;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use tokio::process::Child;
use tokio::runtime::Handle;

use crate::error::OpenError;

/// Children that wait to be started; whoever wants another is told that it is too much.
const WAITING_MAX: usize = 256;

struct Job {
    command: Command,
    runtime: Handle,
    started: SyncSender<io::Result<Child>>,
}

/// Hands commands to the thread.
#[derive(Debug, Clone)]
pub(crate) struct Spawner(SyncSender<Job>);

impl Spawner {
    /// The thread ends once every handle is gone; what it has started ends with it.
    pub(crate) fn start() -> Result<(Self, JoinHandle<()>), OpenError> {
        let (jobs_in, jobs) = sync_channel::<Job>(WAITING_MAX);
        let thread = std::thread::Builder::new()
            .name("sandbox-spawner".to_owned())
            .spawn(move || {
                for Job { command, runtime, started } in jobs {
                    let _entered = runtime.enter();
                    let child = tokio::process::Command::from(command).kill_on_drop(true).spawn();
                    // Whoever does not wait any more gets nothing: the child ends with its handle.
                    drop(started.send(child));
                }
            })
            .map_err(OpenError::Thread)?;
        Ok((Self(jobs_in), thread))
    }

    /// Starts a child, and ends it when its handle is dropped. Waits for it: call it where that may be.
    pub(crate) fn spawn(&self, command: Command, runtime: &Handle) -> io::Result<Child> {
        let (started, child) = sync_channel(1);
        let job = Job { command, runtime: runtime.clone(), started };
        self.0.try_send(job).map_err(|_| io::Error::other("too many sandboxes start at once"))?;
        child.recv().map_err(|_| io::Error::other("the thread that starts sandboxes has ended"))?
    }
}
