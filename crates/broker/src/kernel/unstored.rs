//! Records of what has happened already and cannot be written yet, because the disk is full. They wait
//! in memory, in their order, so that nothing that ends has to wait for them. A crash loses them, and
//! costs nothing: the next start finds such sessions unfinished, and interrupts them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ringback_proto::Result;
use ringback_proto::record::Record;
use ringback_store::{CommitError, Full};
use tokio::sync::Notify;

use super::Kernel;
use crate::failure;
use crate::sync::lock;

/// How long whoever ends something waits for a store that does not answer.
const WAIT: Duration = Duration::from_secs(2);
/// A full disk takes a person to free it; then records should follow without much delay.
const RETRY_PERIOD: Duration = Duration::from_millis(250);

/// What waits to be written.
#[derive(Debug, Default)]
pub(crate) struct Unstored {
    waiting: Mutex<VecDeque<Vec<Record>>>,
    /// Rung when something waits.
    bell: Notify,
}

impl Unstored {
    /// Takes records that could not be written. A state of a session that a later one follows need not
    /// be written at all, so that this does not grow with time.
    fn push(&self, records: Vec<Record>) {
        let mut waiting = lock(&self.waiting);
        for record in &records {
            let Record::SessionChanged { id: session, .. } = record else { continue };
            let is_older = |record: &Record| matches!(record, Record::SessionChanged { id, .. } if id == session);
            waiting.iter_mut().for_each(|older| older.retain(|record| !is_older(record)));
        }
        waiting.retain(|records| !records.is_empty());
        waiting.push_back(records);
        drop(waiting);
        self.bell.notify_one();
    }

    fn is_empty(&self) -> bool {
        lock(&self.waiting).is_empty()
    }
}

impl Kernel {
    /// Writes what has happened already and cannot be refused. They are durable when it returns, unless
    /// the disk is full or does not answer: then they are written as soon as there is room.
    ///
    /// # Errors
    /// When the store refuses them for good.
    pub(crate) async fn commit_or_later(self: &Arc<Self>, records: Vec<Record>) -> Result<()> {
        let kernel = Arc::clone(self);
        let writing = self.tasks.spawn(async move { kernel.commit_now_or_later(records).await });
        match tokio::time::timeout(WAIT, writing).await {
            Ok(written) => written.unwrap_or_else(|error| Err(failure::internal(error))),
            Err(_) => {
                tracing::warn!("the store does not answer; what ended is written when it does");
                Ok(())
            }
        }
    }

    async fn commit_now_or_later(&self, records: Vec<Record>) -> Result<()> {
        // What waits comes first, so that the last word of a session stays the last.
        if !self.unstored.is_empty() && !self.store_waiting().await {
            self.unstored.push(records);
            return Ok(());
        }
        match self.commit_with_reserve(records.clone()).await {
            Ok(Ok(_)) => Ok(()),
            Err(Full) | Ok(Err(CommitError::DiskFull)) => {
                self.unstored.push(records);
                Ok(())
            }
            Ok(Err(error)) => Err(failure::commit(error)),
        }
    }

    /// Writes records of a deletion, after what waits: a session that ended on a full disk does not hold
    /// up the deletion that makes room.
    ///
    /// # Errors
    /// As [`Kernel::commit`].
    pub(crate) async fn commit_deletion(&self, records: Vec<Record>) -> Result<()> {
        self.store_waiting().await;
        match self.commit_with_reserve(records).await {
            Ok(written) => written.map(drop).map_err(failure::commit),
            Err(Full) => Err(ringback_proto::Error::busy("the store's queue")),
        }
    }

    /// Writes what waits. Whether all of it is written.
    pub(crate) async fn store_waiting(&self) -> bool {
        loop {
            let Some(records) = lock(&self.unstored.waiting).pop_front() else { return true };
            match self.commit_with_reserve(records.clone()).await {
                Ok(Ok(_)) => {}
                Err(Full) | Ok(Err(CommitError::DiskFull)) => {
                    lock(&self.unstored.waiting).push_front(records);
                    return false;
                }
                // Such as the end of a session whose record is deleted.
                Ok(Err(error)) => tracing::warn!(%error, "what ended earlier is not stored"),
            }
        }
    }

    /// Writes what waits, as soon as that is possible, until the broker stops.
    pub(crate) async fn store_when_there_is_room(self: Arc<Self>) {
        loop {
            tokio::select! {
                biased;
                () = self.stopping.cancelled() => break,
                () = self.unstored.bell.notified() => {}
            }
            while !self.store_waiting().await {
                tokio::select! {
                    biased;
                    () = self.stopping.cancelled() => break,
                    () = tokio::time::sleep(RETRY_PERIOD) => {}
                }
                if self.stopping.is_cancelled() {
                    break;
                }
            }
        }
        self.store_waiting().await;
    }
}
