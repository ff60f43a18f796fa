//! What all parts of the broker share.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ringback_blobs::{Blobs, Roots, Uploads};
use ringback_core::Now;
use ringback_core::policy::Sight;
use ringback_proto::ids::ProjectId;
use ringback_proto::principal::PrincipalId;
use ringback_proto::record::Record;
use ringback_proto::{Error, Event, Result};
use ringback_store::{Applied, CommitError, Full, ReadError, Store, Visible};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::audit::Auditor;
use crate::blocking::Blocking;
use crate::call::Calls;
use crate::clock::{Clock, Entropy};
use crate::config::Config;
use crate::containers::Containers;
use crate::events::EventHub;
use crate::failure;
use crate::handlers::{Facts, Studio};
use crate::identity::Tokens;
use crate::jobs::Jobs;
use crate::lines::Lines;
use crate::repeats::Repeats;
use crate::reserve::Reserve;
use crate::sessions::Sessions;
use crate::tasks::Tasks;
use crate::unstored::Unstored;

/// About the time of one commit, after which a full queue has places again.
const FULL_QUEUE_PAUSE: Duration = Duration::from_millis(2);

/// A full disk takes a person to free it; then jobs should go on without much delay.
const FULL_DISK_PAUSE: Duration = Duration::from_millis(250);

/// Everything the broker owns.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) clock: Clock,
    pub(crate) blocking: Blocking,
    pub(crate) entropy: Entropy,
    pub(crate) facts: Facts,
    pub(crate) store: Store,
    pub(crate) blobs: Blobs,
    pub(crate) uploads: Uploads,
    pub(crate) roots: Roots,
    pub(crate) tokens: Tokens,
    pub(crate) calls: Mutex<Calls>,
    pub(crate) jobs: Jobs,
    pub(crate) lines: Lines,
    pub(crate) repeats: Repeats,
    pub(crate) events: Arc<EventHub>,
    pub(crate) auditor: Auditor,
    pub(crate) studio: Studio,
    pub(crate) sessions: Sessions,
    pub(crate) containers: Containers,
    pub(crate) reserve: Reserve,
    pub(crate) unstored: Unstored,
    /// Rung when a commit that cannot be refused waits for room on the disk.
    pub(crate) disk_full: Notify,
    /// Work that finishes even when its caller leaves.
    pub(crate) tasks: Tasks,
    pub(crate) stopping: CancellationToken,
}

impl Shared {
    pub(crate) fn now(&self) -> Now {
        self.clock.now()
    }

    /// Writes records as one commit. They are durable when it returns.
    pub(crate) async fn commit(&self, records: Vec<Record>) -> Result<Vec<Applied>> {
        match self.store.commit_async(records).await {
            Ok(written) => written.map_err(failure::commit),
            Err(Full) => Err(Error::busy("the store's queue")),
        }
    }

    /// Like [`Self::commit`] for what is already under way and so cannot be refused: waits for a
    /// place in the queue, and for space on the disk unless the daemon stops.
    pub(crate) async fn commit_for_sure(&self, records: &[Record]) -> Result<Vec<Applied>> {
        loop {
            let pause = match self.commit_with_reserve(records.to_vec()).await {
                Err(Full) => FULL_QUEUE_PAUSE,
                Ok(Err(CommitError::DiskFull)) if !self.stopping.is_cancelled() => {
                    self.disk_full.notify_one();
                    FULL_DISK_PAUSE
                }
                Ok(written) => return written.map_err(failure::commit),
            };
            tokio::time::sleep(pause).await;
        }
    }

    /// Reads the store on a thread that may block.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Store) -> Result<T, ReadError> + Send + 'static,
    ) -> Result<T> {
        let store = self.store.clone();
        self.blocking(move || read(&store).map_err(failure::read)).await
    }

    /// Runs something on a thread that may block, tracked so that a shutdown waits for it.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.blocking.run(self.tasks.tracker(), work).await
    }

    pub(crate) fn publish(&self, event: Event, owner: PrincipalId, project: Option<ProjectId>) {
        self.events.publish(self.now(), event, owner, project);
    }
}

/// Whose rows the store may show.
pub(crate) fn visible(sight: Sight) -> Visible {
    match sight {
        Sight::All => Visible::All,
        Sight::Own { owner, projects } => Visible::Owner { owner, projects },
    }
}

/// The outcome of a job or call, shared by whoever waits for it.
pub(crate) type Outcome = Arc<Result<ringback_proto::ToolResponse, Error>>;
