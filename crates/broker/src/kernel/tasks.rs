//! The broker's tasks: owned, joined at the end, and always on the broker's own runtime.

use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

/// Tasks that finish even when whoever started them leaves. An edge may call from a thread with a
/// runtime of its own, which must stay free for its sockets: the work never lands there.
#[derive(Debug)]
pub(crate) struct Tasks {
    tracker: TaskTracker,
    workers: Handle,
}

impl Tasks {
    /// Tasks on the runtime this is called on.
    pub(crate) fn here() -> Self {
        Self { tracker: TaskTracker::new(), workers: Handle::current() }
    }

    pub(crate) fn spawn<F>(&self, task: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        self.tracker.spawn_on(task, &self.workers)
    }

    /// What runs, for work that blocks.
    pub(crate) const fn tracker(&self) -> &TaskTracker {
        &self.tracker
    }

    /// Waits until all have ended.
    pub(crate) async fn end(&self) {
        self.tracker.close();
        self.tracker.wait().await;
    }
}
