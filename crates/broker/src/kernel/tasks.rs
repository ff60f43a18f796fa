//! The broker's tasks: owned, joined at shutdown, and always on the broker's own runtime.

use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

/// Tasks that finish even when their starter leaves. An edge may call from a thread with its own
/// runtime, which must stay free for its sockets: the work never runs there.
#[derive(Debug)]
pub(crate) struct Tasks {
    tracker: TaskTracker,
    workers: Handle,
}

impl Tasks {
    /// Creates tasks on the current runtime.
    pub(crate) fn here() -> Self {
        Self { tracker: TaskTracker::new(), workers: Handle::current() }
    }

    pub(crate) fn spawn<F>(&self, task: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        self.tracker.spawn_on(task, &self.workers)
    }

    /// Returns the tracker, for blocking work.
    pub(crate) const fn tracker(&self) -> &TaskTracker {
        &self.tracker
    }

    /// Waits until all tasks have ended.
    pub(crate) async fn end(&self) {
        self.tracker.close();
        self.tracker.wait().await;
    }
}
