//! The thread that writes. It writes all waiting requests as one transaction, then replies.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;

use ringback_proto::ids::JobId;
use ringback_proto::record::{Record, UnixMs};
use rusqlite::{Connection, ErrorCode};

use crate::error::{Cause, CommitError};
use crate::lock::DataLock;
use crate::manual_writer::CommitReport;
use crate::write::{self, ApplyError, Counts, LiveJobs, WriteOutcome};

/// Requests in one transaction: more would hardly save syncs, but delay the first reply.
const BATCH_MAX: usize = 256;

/// Called when a request is durable or refused.
pub(crate) type Reply<T> = Box<dyn FnOnce(Result<T, CommitError>) + Send>;

/// A request to the writer.
pub(crate) enum Message {
    /// Write these, all or none.
    Commit(Vec<Record>, Reply<Vec<WriteOutcome>>),
    /// Drop expired jobs.
    Purge { now: UnixMs, limit: usize, reply: Reply<Vec<JobId>> },
    /// Copy the log back and empty it, unless someone reads from it; then run this.
    EmptyLog(Box<dyn FnOnce() + Send>),
    /// Stop after everything before.
    Close,
}

/// Counters that all handles can read.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) commits: AtomicU64,
    pub(crate) requests: AtomicU64,
}

#[derive(Debug)]
pub(crate) struct Writer {
    connection: Connection,
    inbox: Receiver<Message>,
    counters: Arc<Counters>,
    failed: Option<Cause>,
    live: LiveJobs,
    // Last, so that the directory is free only when the connection is closed.
    lock: Arc<DataLock>,
}

/// The outcome of a request in a batch.
type Outcome = Result<RequestResult, CommitError>;

enum RequestResult {
    Applied(Vec<WriteOutcome>),
    Purged(Vec<JobId>),
}

enum BatchError {
    /// A request was refused half-way, so the others must be tried again without it.
    Torn,
    Database(rusqlite::Error),
}

#[derive(Clone, Copy)]
enum Isolation {
    /// Savepoints copy every page they touch; requests are hardly ever refused half-way.
    None,
    Savepoints,
}

impl From<rusqlite::Error> for BatchError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

impl Writer {
    pub(crate) fn new(
        connection: Connection,
        inbox: Receiver<Message>,
        counters: Arc<Counters>,
        lock: Arc<DataLock>,
    ) -> Self {
        Self { connection, inbox, counters, failed: None, live: LiveJobs::default(), lock }
    }

    pub(crate) fn run(mut self) {
        while let Ok(first) = self.inbox.recv() {
            let (batch, closing) = self.take(first);
            if !batch.is_empty() {
                self.commit(batch);
            }
            if closing {
                return;
            }
        }
    }

    /// Returns the waiting messages, and whether the end is among them.
    fn take(&self, first: Message) -> (Vec<Message>, bool) {
        let mut batch = Vec::new();
        let mut next = Some(first);
        while let Some(message) = next {
            match message {
                Message::Close => return (batch, true),
                // Between two transactions.
                Message::EmptyLog(done) => {
                    self.empty_log();
                    done();
                }
                Message::Commit(..) | Message::Purge { .. } => batch.push(message),
            }
            next = if batch.len() < BATCH_MAX { self.inbox.try_recv().ok() } else { None };
        }
        (batch, false)
    }

    /// A log that cannot be emptied now only stays long.
    fn empty_log(&self) {
        let emptied = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        if let Err(error) = emptied {
            tracing::warn!(%error, "cannot empty the log of the store");
        }
    }

    /// Returns the waiting messages, for a writer driven by hand.
    pub(crate) fn take_waiting(&self) -> Vec<Message> {
        self.inbox.try_recv().map_or_else(|_| Vec::new(), |first| self.take(first).0)
    }

    /// Makes one commit by hand; returns what became durable, after all replies.
    pub(crate) fn commit_and_reply(&mut self, batch: Vec<Message>) -> CommitReport {
        let outcomes = self.outcomes(&batch);
        let turn = durable(&batch, outcomes.as_deref().unwrap_or_default());
        self.reply_all(batch, outcomes);
        turn
    }

    /// Makes one commit by hand without any reply.
    pub(crate) fn commit_in_silence(&mut self, batch: &[Message]) -> CommitReport {
        durable(batch, self.outcomes(batch).as_deref().unwrap_or_default())
    }

    /// Refuses requests as a full disk does.
    pub(crate) fn refuse_as_full(&self, batch: Vec<Message>) {
        self.reply_all(batch, Err(CommitError::DiskFull));
    }

    fn commit(&mut self, batch: Vec<Message>) {
        let outcomes = self.outcomes(&batch);
        self.reply_all(batch, outcomes);
    }

    fn outcomes(&mut self, batch: &[Message]) -> Result<Vec<Outcome>, CommitError> {
        match &self.failed {
            Some(cause) => Err(CommitError::Failed { source: Arc::clone(cause) }),
            None => self.write(batch),
        }
    }

    fn reply_all(&self, batch: Vec<Message>, outcomes: Result<Vec<Outcome>, CommitError>) {
        self.counters.requests.fetch_add(batch.len() as u64, Ordering::Relaxed);
        match outcomes {
            Ok(outcomes) => batch.into_iter().zip(outcomes).for_each(|(m, o)| reply(m, o)),
            Err(error) => batch.into_iter().for_each(|m| reply(m, Err(error.clone()))),
        }
    }

    fn write(&mut self, batch: &[Message]) -> Result<Vec<Outcome>, CommitError> {
        let mut written = self.transaction(batch, Isolation::None);
        if matches!(written, Err(BatchError::Torn)) {
            self.live.forget();
            written = self.transaction(batch, Isolation::Savepoints);
        }
        if written.is_err() {
            self.live.forget();
        }
        match written {
            Ok(_) if !self.lock.is_in_place() => {
                let path = self.lock.dir().to_owned();
                tracing::error!(%path, "the data directory is gone; refusing all commits");
                Err(CommitError::Lost { path })
            }
            Ok(outcomes) => Ok(outcomes),
            Err(BatchError::Database(error)) => Err(self.fail(error)),
            Err(BatchError::Torn) => Err(self.fail(rusqlite::Error::ExecuteReturnedResults)),
        }
    }

    /// Runs one transaction; rolled back completely unless it is committed.
    fn transaction(
        &mut self,
        batch: &[Message],
        isolation: Isolation,
    ) -> Result<Vec<Outcome>, BatchError> {
        let mut transaction = self.connection.transaction()?;
        let mut counts = Counts::default();
        let mut outcomes = Vec::with_capacity(batch.len());
        let live = &mut self.live;
        for message in batch {
            outcomes.push(match isolation {
                Isolation::None => request(&transaction, message, live, &mut counts)?,
                Isolation::Savepoints => {
                    let savepoint = transaction.savepoint()?;
                    match request(&savepoint, message, live, &mut counts) {
                        Ok(outcome) => {
                            savepoint.commit()?;
                            outcome
                        }
                        // Dropped, so rolled back.
                        Err(WriteFailure::Refused(error)) => {
                            live.forget();
                            Err(error)
                        }
                        Err(WriteFailure::Database(error)) => return Err(error.into()),
                    }
                }
            });
        }
        counts.write(&transaction)?;
        transaction.commit()?;
        self.counters.commits.fetch_add(1, Ordering::Relaxed);
        Ok(outcomes)
    }

    /// A full disk or a lock of another program is noticed before the sync, and the rollback restores
    /// the previous state, so later commits may succeed. Any other failure is final: after a failed sync the kernel counts
    /// the pages as clean, so a second sync would succeed without the data being on the disk.
    fn fail(&mut self, error: rusqlite::Error) -> CommitError {
        if error.sqlite_error_code() == Some(ErrorCode::DiskFull) {
            tracing::error!("refusing a commit: the disk is full");
            return CommitError::DiskFull;
        }
        if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) {
            tracing::error!("refusing a commit: another program has locked the database");
            return CommitError::Locked;
        }
        tracing::error!(%error, "the store failed; refusing all further writes");
        let cause: Cause = Arc::new(error);
        self.failed = Some(Arc::clone(&cause));
        CommitError::Failed { source: cause }
    }
}

/// Returns what the accepted requests made durable.
fn durable(batch: &[Message], outcomes: &[Outcome]) -> CommitReport {
    let mut turn = CommitReport::default();
    for (message, outcome) in batch.iter().zip(outcomes) {
        match (message, outcome) {
            (Message::Commit(records, _), Ok(_)) => turn.written.push(records.clone()),
            (Message::Purge { .. }, Ok(RequestResult::Purged(ids))) => turn.purged.extend(ids),
            (
                Message::Commit(..) | Message::Purge { .. } | Message::EmptyLog(_) | Message::Close,
                _,
            ) => {}
        }
    }
    turn
}

/// A request that was refused after it had changed something, or a database that failed.
enum WriteFailure {
    Refused(CommitError),
    Database(rusqlite::Error),
}

impl From<WriteFailure> for BatchError {
    fn from(torn: WriteFailure) -> Self {
        match torn {
            WriteFailure::Refused(_) => Self::Torn,
            WriteFailure::Database(error) => Self::Database(error),
        }
    }
}

/// Writes one request. `Ok(Err(..))` is a refusal that left nothing to undo.
fn request(
    connection: &Connection,
    message: &Message,
    live: &mut LiveJobs,
    counts: &mut Counts,
) -> Result<Outcome, WriteFailure> {
    let mut own_counts = Counts::default();
    let done = match message {
        Message::Commit(records, _) => {
            let mut applied = Vec::with_capacity(records.len());
            for (record_idx, record) in records.iter().enumerate() {
                match write::apply(connection, record, live, &mut own_counts) {
                    Ok(decided) => applied.push(decided),
                    Err(ApplyError::Refused(error)) if record_idx == 0 => return Ok(Err(error)),
                    Err(ApplyError::Refused(error)) => return Err(WriteFailure::Refused(error)),
                    Err(ApplyError::Database(error)) => return Err(WriteFailure::Database(error)),
                }
            }
            RequestResult::Applied(applied)
        }
        Message::Purge { now, limit, .. } => {
            match write::purge_expired(connection, *now, *limit, &mut own_counts) {
                Ok(ids) => RequestResult::Purged(ids),
                Err(ApplyError::Refused(error)) => return Err(WriteFailure::Refused(error)),
                Err(ApplyError::Database(error)) => return Err(WriteFailure::Database(error)),
            }
        }
        Message::EmptyLog(_) | Message::Close => RequestResult::Applied(Vec::new()),
    };
    counts.merge(own_counts);
    Ok(Ok(done))
}

/// A callback that panics must not stop the writer, and with it all other commits.
fn reply(message: Message, outcome: Outcome) {
    let said = catch_unwind(AssertUnwindSafe(|| match (message, outcome) {
        (Message::Commit(_, reply), Ok(RequestResult::Applied(applied))) => reply(Ok(applied)),
        (Message::Purge { reply, .. }, Ok(RequestResult::Purged(ids))) => reply(Ok(ids)),
        (Message::Commit(_, reply), Err(error)) => reply(Err(error)),
        (Message::Purge { reply, .. }, Err(error)) => reply(Err(error)),
        (Message::Commit(..), Ok(RequestResult::Purged(_)))
        | (Message::Purge { .. }, Ok(RequestResult::Applied(_)))
        | (Message::EmptyLog(_) | Message::Close, _) => {}
    }));
    if said.is_err() {
        tracing::error!("a callback of the store panicked");
    }
}

/// Refuses a message that can no longer be accepted.
pub(crate) fn refuse(message: Message) {
    reply(message, Err(CommitError::Closed));
}
