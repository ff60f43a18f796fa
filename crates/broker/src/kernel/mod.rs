//! The kernel below every room of the broker: configuration, time, randomness, the store and the
//! content, tasks, events, the audit and the alarm. It does not know calls, jobs, lines or
//! sessions.

mod alarm;
mod blocking;
mod clock;
mod events;
mod pending_records;
mod reserve;
mod tasks;

use std::sync::Arc;
use std::time::Duration;

use ringback_blobs::{Blobs, Roots, Uploads};
use ringback_core::Now;
use ringback_proto::ids::ProjectId;
use ringback_proto::principal::PrincipalId;
use ringback_proto::record::Record;
use ringback_proto::{Error, Event, Result};
use ringback_store::{CommitError, QueueFull, ReadError, Store, WriteOutcome};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

pub(crate) use self::alarm::Alarm;
pub use self::blocking::Blocking;
pub use self::clock::{Clock, Entropy};
pub(crate) use self::events::EventHub;
pub use self::events::{DataListener, Heard, Subscription};
pub(crate) use self::pending_records::PendingRecords;
pub(crate) use self::reserve::Reserve;
pub(crate) use self::tasks::Tasks;
use crate::audit::Auditor;
use crate::config::Config;
use crate::failure;

/// About the duration of one commit, after which a full queue has room again.
const FULL_QUEUE_PAUSE: Duration = Duration::from_millis(2);

/// Only a person can free a full disk; afterwards jobs should continue without much delay.
const FULL_DISK_PAUSE: Duration = Duration::from_millis(250);

/// Another program, such as a shell on the database, holds its lock for a transaction.
const LOCKED_PAUSE: Duration = Duration::from_millis(50);

/// The state that all rooms share. It contains no room's table.
#[derive(Debug)]
pub(crate) struct Kernel {
    pub(crate) config: Config,
    pub(crate) clock: Clock,
    pub(crate) entropy: Entropy,
    pub(crate) blocking: Blocking,
    pub(crate) store: Store,
    pub(crate) blobs: Blobs,
    pub(crate) uploads: Uploads,
    pub(crate) roots: Roots,
    pub(crate) events: Arc<EventHub>,
    pub(crate) auditor: Auditor,
    pub(crate) alarm: Alarm,
    pub(crate) reserve: Reserve,
    pub(crate) pending_records: PendingRecords,
    /// Rung when a commit that cannot be refused waits for disk space.
    pub(crate) disk_full: Notify,
    /// Work that finishes even when its caller leaves.
    pub(crate) tasks: Tasks,
    pub(crate) stopping: CancellationToken,
}

impl Kernel {
    pub(crate) fn now(&self) -> Now {
        self.clock.now()
    }

    /// Writes records in one commit. They are durable when it returns.
    pub(crate) async fn commit(&self, records: Vec<Record>) -> Result<Vec<WriteOutcome>> {
        match self.store.commit_async(records).await {
            Ok(written) => written.map_err(failure::commit),
            Err(QueueFull) => Err(Error::busy("the store's queue")),
        }
    }

    /// Like [`Self::commit`], for records of work in progress that cannot be refused: waits for
    /// room in the queue and, unless the daemon stops, for disk space and the end of a foreign lock.
    pub(crate) async fn commit_for_sure(&self, records: &[Record]) -> Result<Vec<WriteOutcome>> {
        loop {
            let pause = match self.commit_with_reserve(records.to_vec()).await {
                Err(QueueFull) => FULL_QUEUE_PAUSE,
                Ok(Err(CommitError::DiskFull)) if !self.stopping.is_cancelled() => {
                    self.disk_full.notify_one();
                    FULL_DISK_PAUSE
                }
                Ok(Err(CommitError::Locked)) if !self.stopping.is_cancelled() => LOCKED_PAUSE,
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

    /// Runs a closure on a thread that may block, tracked so that a shutdown waits for it.
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
