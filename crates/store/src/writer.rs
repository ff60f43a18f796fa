//! The thread that writes. It takes what is waiting as one transaction and says so afterwards.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;

use ringback_proto::ids::JobId;
use ringback_proto::record::{Record, UnixMs};
use rusqlite::{Connection, ErrorCode};

use crate::by_hand::Turn;
use crate::error::{Cause, CommitError};
use crate::lock::DataLock;
use crate::write::{self, Applied, ApplyError, Counts, LiveJobs};

/// Requests in one transaction: more would hardly save syncs but delay the first answer.
const BATCH_MAX: usize = 256;

/// Said when a request is durable or refused.
pub(crate) type Reply<T> = Box<dyn FnOnce(Result<T, CommitError>) + Send>;

/// What the writer is asked to do.
pub(crate) enum Message {
    /// Write these, all or none.
    Commit(Vec<Record>, Reply<Vec<Applied>>),
    /// Drop jobs whose time is over.
    Purge { now: UnixMs, limit: usize, reply: Reply<Vec<JobId>> },
    /// End after everything before.
    Close,
}

/// What has been done, for all to see.
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

/// What a request of a batch came to.
type Outcome = Result<Done, CommitError>;

enum Done {
    Applied(Vec<Applied>),
    Purged(Vec<JobId>),
}

enum BatchError {
    /// A request was refused half-way, so its neighbours must be tried again without it.
    Torn,
    Database(rusqlite::Error),
}

#[derive(Clone, Copy)]
enum Isolation {
    /// Savepoints copy every page they touch; hardly any request is refused half-way.
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

    /// What is waiting now, and whether the end is among it.
    fn take(&self, first: Message) -> (Vec<Message>, bool) {
        let mut batch = Vec::new();
        let mut next = Some(first);
        while let Some(message) = next {
            if matches!(message, Message::Close) {
                return (batch, true);
            }
            batch.push(message);
            next = if batch.len() < BATCH_MAX { self.inbox.try_recv().ok() } else { None };
        }
        (batch, false)
    }

    /// What is waiting, for a writer that is moved by hand.
    pub(crate) fn take_waiting(&self) -> Vec<Message> {
        self.inbox.try_recv().map_or_else(|_| Vec::new(), |first| self.take(first).0)
    }

    /// One commit by hand: says what became durable, after everybody was told.
    pub(crate) fn commit_and_reply(&mut self, batch: Vec<Message>) -> Turn {
        let outcomes = self.outcomes(&batch);
        let turn = durable(&batch, outcomes.as_deref().unwrap_or_default());
        self.reply_all(batch, outcomes);
        turn
    }

    /// One commit by hand of which nobody is told.
    pub(crate) fn commit_in_silence(&mut self, batch: &[Message]) -> Turn {
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
                tracing::error!(%path, "the data directory is gone; nothing more is acknowledged");
                Err(CommitError::Lost { path })
            }
            Ok(outcomes) => Ok(outcomes),
            Err(BatchError::Database(error)) => Err(self.fail(error)),
            Err(BatchError::Torn) => Err(self.fail(rusqlite::Error::ExecuteReturnedResults)),
        }
    }

    /// One transaction; rolled back whole unless it is committed.
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
                        Err(Torn::Refused(error)) => {
                            live.forget();
                            Err(error)
                        }
                        Err(Torn::Database(error)) => return Err(error.into()),
                    }
                }
            });
        }
        counts.write(&transaction)?;
        transaction.commit()?;
        self.counters.commits.fetch_add(1, Ordering::Relaxed);
        Ok(outcomes)
    }

    /// A full disk is noticed before the sync, and the rollback leaves all as it was, so later
    /// commits may succeed. Any other failure is final: after a failed sync the kernel counts the
    /// pages as clean, so a second sync would succeed without the data being on the disk.
    fn fail(&mut self, error: rusqlite::Error) -> CommitError {
        if error.sqlite_error_code() == Some(ErrorCode::DiskFull) {
            tracing::error!("the disk is full, a commit was refused");
            return CommitError::DiskFull;
        }
        tracing::error!(%error, "the store failed and writes nothing more");
        let cause: Cause = Arc::new(error);
        self.failed = Some(Arc::clone(&cause));
        CommitError::Failed { source: cause }
    }
}

/// What the requests that were taken made durable.
fn durable(batch: &[Message], outcomes: &[Outcome]) -> Turn {
    let mut turn = Turn::default();
    for (message, outcome) in batch.iter().zip(outcomes) {
        match (message, outcome) {
            (Message::Commit(records, _), Ok(_)) => turn.written.push(records.clone()),
            (Message::Purge { .. }, Ok(Done::Purged(ids))) => turn.purged.extend(ids),
            (Message::Commit(..) | Message::Purge { .. } | Message::Close, _) => {}
        }
    }
    turn
}

/// A request that was refused after it had changed something, or a database that failed.
enum Torn {
    Refused(CommitError),
    Database(rusqlite::Error),
}

impl From<Torn> for BatchError {
    fn from(torn: Torn) -> Self {
        match torn {
            Torn::Refused(_) => Self::Torn,
            Torn::Database(error) => Self::Database(error),
        }
    }
}

/// Writes one request. `Ok(Err(..))` is a refusal that left nothing to undo.
fn request(
    connection: &Connection,
    message: &Message,
    live: &mut LiveJobs,
    counts: &mut Counts,
) -> Result<Outcome, Torn> {
    let mut own_counts = Counts::default();
    let done = match message {
        Message::Commit(records, _) => {
            let mut applied = Vec::with_capacity(records.len());
            for (record_idx, record) in records.iter().enumerate() {
                match write::apply(connection, record, live, &mut own_counts) {
                    Ok(decided) => applied.push(decided),
                    Err(ApplyError::Refused(error)) if record_idx == 0 => return Ok(Err(error)),
                    Err(ApplyError::Refused(error)) => return Err(Torn::Refused(error)),
                    Err(ApplyError::Database(error)) => return Err(Torn::Database(error)),
                }
            }
            Done::Applied(applied)
        }
        Message::Purge { now, limit, .. } => {
            match write::purge_expired(connection, *now, *limit, &mut own_counts) {
                Ok(ids) => Done::Purged(ids),
                Err(ApplyError::Refused(error)) => return Err(Torn::Refused(error)),
                Err(ApplyError::Database(error)) => return Err(Torn::Database(error)),
            }
        }
        Message::Close => Done::Applied(Vec::new()),
    };
    counts.merge(own_counts);
    Ok(Ok(done))
}

/// A callback that panics must not take the writer, and so everybody's commits, with it.
fn reply(message: Message, outcome: Outcome) {
    let said = catch_unwind(AssertUnwindSafe(|| match (message, outcome) {
        (Message::Commit(_, reply), Ok(Done::Applied(applied))) => reply(Ok(applied)),
        (Message::Purge { reply, .. }, Ok(Done::Purged(ids))) => reply(Ok(ids)),
        (Message::Commit(_, reply), Err(error)) => reply(Err(error)),
        (Message::Purge { reply, .. }, Err(error)) => reply(Err(error)),
        (Message::Commit(..), Ok(Done::Purged(_)))
        | (Message::Purge { .. }, Ok(Done::Applied(_)))
        | (Message::Close, _) => {}
    }));
    if said.is_err() {
        tracing::error!("a callback of the store panicked");
    }
}

/// Refuses a message that can no longer be taken.
pub(crate) fn refuse(message: Message) {
    reply(message, Err(CommitError::Closed));
}
