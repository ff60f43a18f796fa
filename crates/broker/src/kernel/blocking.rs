//! Where blocking work runs: on threads, or inline in a simulation.

use std::time::Duration;

use ringback_proto::Result;
use tokio_util::task::TaskTracker;

use crate::failure;

/// The duration of a simulated disk read: long enough for other calls to come in between.
const SIMULATED_DELAY: Duration = Duration::from_millis(1);

/// Where blocking work runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocking {
    /// On threads that may block.
    Threads,
    /// Inline, after a fixed delay: no seed decides the order in which threads end.
    Simulated,
}

impl Blocking {
    /// Runs a closure, tracked so that the owner of the tracker can wait for it.
    pub(crate) async fn run<T: Send + 'static>(
        self,
        tracker: &TaskTracker,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        match self {
            Self::Threads => {
                let running = tracker.spawn_blocking(work);
                running.await.unwrap_or_else(|error| Err(failure::internal(error)))
            }
            Self::Simulated => {
                tokio::time::sleep(SIMULATED_DELAY).await;
                work()
            }
        }
    }
}
