//! A thread with its own runtime for engine requests that no task waits for: dropped sandboxes are
//! cleaned up there, whatever happens to the runtime that dropped them.

use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::error::OpenError;

/// The thread. Dropping this waits for work in progress.
#[derive(Debug)]
pub(crate) struct Worker {
    handle: WorkerHandle,
    /// Dropped to let the thread end.
    open: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Hands work to the thread.
#[derive(Debug, Clone)]
pub(crate) struct WorkerHandle {
    runtime: Handle,
    tasks: TaskTracker,
}

impl Worker {
    pub(crate) fn start() -> Result<Self, OpenError> {
        let runtime =
            Builder::new_current_thread().enable_all().build().map_err(OpenError::Thread)?;
        let handle = WorkerHandle { runtime: runtime.handle().clone(), tasks: TaskTracker::new() };
        let (open, closed) = oneshot::channel::<()>();
        let tasks = handle.tasks.clone();
        let thread = std::thread::Builder::new()
            .name("sandbox-engine".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    drop(closed.await);
                    tasks.wait().await;
                });
            })
            .map_err(OpenError::Thread)?;
        Ok(Self { handle, open: Some(open), thread: Some(thread) })
    }

    pub(crate) const fn handle(&self) -> &WorkerHandle {
        &self.handle
    }
}

impl WorkerHandle {
    /// Runs work that is waited for only at the end of the thread.
    pub(crate) fn hand_over(&self, work: impl Future<Output = ()> + Send + 'static) {
        drop(self.tasks.spawn_on(work, &self.runtime));
    }

    /// Runs work while the handle exists.
    pub(crate) fn hold<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> AbortOnDropHandle<T> {
        AbortOnDropHandle::new(self.runtime.spawn(work))
    }

    /// Runs work, and blocks until it is done. `None` if the thread ends first.
    pub(crate) fn wait_for<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let (done_in, done) = sync_channel(1);
        self.hand_over(async move { drop(done_in.send(work.await)) });
        done.recv().ok()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.handle.tasks.close();
        drop(self.open.take());
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread for the container engine panicked");
        }
    }
}
