//! Records of events that have happened but cannot be written yet, because the disk is full. They
//! wait in memory, in order, so that nothing that ends has to wait for them. Losing them in a crash
//! is harmless: the next start finds such sessions unfinished, and interrupts them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ringback_proto::Result;
use ringback_proto::record::Record;
use ringback_store::{CommitError, QueueFull};
use tokio::sync::Notify;

use super::Kernel;
use crate::failure;
use crate::sync::lock;

/// How long the end of something waits for a store that does not answer.
const WAIT: Duration = Duration::from_secs(2);
/// Only a person can free a full disk; afterwards records should follow without much delay.
const RETRY_PERIOD: Duration = Duration::from_millis(250);

/// The records that wait to be written.
#[derive(Debug, Default)]
pub(crate) struct PendingRecords {
    waiting: Mutex<VecDeque<Vec<Record>>>,
    /// Rung when a record waits.
    bell: Notify,
}

impl PendingRecords {
    /// Takes records that could not be written. A session state that a later one replaces is
    /// dropped, so that the queue does not grow with time.
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
    /// Writes records of what has happened already and cannot be refused. They are durable when it
    /// returns, unless the disk is full or does not answer: then they are written as soon as
    /// possible.
    ///
    /// # Errors
    /// When the store refuses them permanently.
    pub(crate) async fn commit_or_later(self: &Arc<Self>, records: Vec<Record>) -> Result<()> {
        let kernel = Arc::clone(self);
        let writing = self.tasks.spawn(async move { kernel.commit_now_or_later(records).await });
        match tokio::time::timeout(WAIT, writing).await {
            Ok(written) => written.unwrap_or_else(|error| Err(failure::internal(error))),
            Err(_) => {
                tracing::warn!(
                    "the store does not answer; records of ended work wait until it does"
                );
                Ok(())
            }
        }
    }

    async fn commit_now_or_later(&self, records: Vec<Record>) -> Result<()> {
        // Waiting records go first, so that a session's last state stays the last.
        if !self.pending_records.is_empty() && !self.store_waiting().await {
            self.pending_records.push(records);
            return Ok(());
        }
        match self.commit_with_reserve(records.clone()).await {
            Ok(Ok(_)) => Ok(()),
            Err(QueueFull) | Ok(Err(CommitError::DiskFull | CommitError::Locked)) => {
                self.pending_records.push(records);
                Ok(())
            }
            Ok(Err(error)) => Err(failure::commit(error)),
        }
    }

    /// Writes records of a deletion, after those that wait: a session that ended on a full disk
    /// does not block the deletion that frees space.
    ///
    /// # Errors
    /// As [`Kernel::commit`].
    pub(crate) async fn commit_deletion(&self, records: Vec<Record>) -> Result<()> {
        self.store_waiting().await;
        match self.commit_with_reserve(records).await {
            Ok(written) => written.map(drop).map_err(failure::commit),
            Err(QueueFull) => Err(ringback_proto::Error::busy("the store's queue")),
        }
    }

    /// Writes the waiting records. Returns whether all of them are written.
    pub(crate) async fn store_waiting(&self) -> bool {
        loop {
            let Some(records) = lock(&self.pending_records.waiting).pop_front() else {
                return true;
            };
            match self.commit_with_reserve(records.clone()).await {
                Ok(Ok(_)) => {}
                Err(QueueFull) | Ok(Err(CommitError::DiskFull | CommitError::Locked)) => {
                    lock(&self.pending_records.waiting).push_front(records);
                    return false;
                }
                // Such as the end of a session whose record was deleted.
                Ok(Err(error)) => tracing::warn!(%error, "cannot store an earlier end"),
            }
        }
    }

    /// Writes waiting records as soon as possible, until the broker stops.
    pub(crate) async fn store_when_there_is_room(self: Arc<Self>) {
        loop {
            tokio::select! {
                biased;
                () = self.stopping.cancelled() => break,
                () = self.pending_records.bell.notified() => {}
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
