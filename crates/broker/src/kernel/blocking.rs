//! Where work that blocks runs: on threads, or in a simulation where it stands.

use std::time::Duration;

use ringback_proto::Result;
use tokio_util::task::TaskTracker;

use crate::failure;

/// What a simulated read of the disk takes: long enough that other calls come between.
const SIMULATED_DELAY: Duration = Duration::from_millis(1);

/// Where work that blocks runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocking {
    /// On threads that may block.
    Threads,
    /// Where it stands, after a fixed delay: threads end in an order that no seed decides.
    Simulated,
}

impl Blocking {
    /// Runs something, tracked so that whoever owns the tracker can wait for it.
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
