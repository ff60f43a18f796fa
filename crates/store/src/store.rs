//! The handle to a data directory's records.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use ringback_proto::ids::JobId;
use ringback_proto::record::{Record, UnixMs};
use ringback_sync::lock;
use tokio::sync::{Notify, oneshot};

use crate::error::{CommitError, OpenStoreError, QueueFull};
use crate::lock::DataLock;
use crate::manual_writer::ManualWriter;
use crate::private;
use crate::query::{Engine, Query, QueryDone, StopSignal};
use crate::readers::Readers;
use crate::schema;
use crate::write::WriteOutcome;
use crate::writer::{Counters, Message, Writer, refuse};

/// Runs on the writer's thread once a request is durable or refused: it must be short and never
/// wait.
pub type Completion = Box<dyn FnOnce(Result<Vec<WriteOutcome>, CommitError>) + Send>;

/// Limits of the store.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Requests that may wait for the writer.
    pub queue_max: usize,
    /// Connections that read at the same time; further readers wait for one.
    pub readers_max: usize,
    /// The size of SQLite's log from which on a query waits until it is emptied, in bytes. It is
    /// four times the size at which the writer copies it back.
    pub log_bytes_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { queue_max: 4096, readers_max: 4, log_bytes_max: 64 << 20 }
    }
}

/// How long a query waits for the writer to empty the log.
const LOG_WAIT: Duration = Duration::from_millis(500);

/// Counters of the writer since the store was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    /// Transactions that were synced.
    pub commits: u64,
    /// Requests that were answered.
    pub requests: u64,
}

/// The records of a data directory. Clones share it; dropping the last one closes it.
#[derive(Debug, Clone)]
pub struct Store(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    inbox: SyncSender<Message>,
    /// Notified for the hand that drives the writer, if there is one.
    bell: Option<Arc<Notify>>,
    counters: Arc<Counters>,
    thread: Mutex<Option<JoinHandle<()>>>,
    readers: Readers,
    queries: Engine,
    // Last, so that the directory is free only when nothing in it is open.
    lock: Arc<DataLock>,
}

impl Store {
    /// Opens a data directory, creating it if needed, and migrates its records.
    pub fn open(dir: &Utf8Path) -> Result<Self, OpenStoreError> {
        Self::open_with(dir, Limits::default())
    }

    /// Like [`Store::open`], with other limits.
    pub fn open_with(dir: &Utf8Path, limits: Limits) -> Result<Self, OpenStoreError> {
        let (mut inner, writer) = Inner::open(dir, limits)?;
        let thread = thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || writer.run())
            .map_err(|source| OpenStoreError::File {
                action: "start a thread for",
                path: dir.to_owned(),
                source,
            })?;
        inner.thread = Mutex::new(Some(thread));
        Ok(Self(Arc::new(inner)))
    }

    /// Like [`Store::open`], but the writer has no thread: it writes when the hand drives it.
    pub fn open_by_hand(dir: &Utf8Path) -> Result<(Self, ManualWriter), OpenStoreError> {
        let (mut inner, writer) = Inner::open(dir, Limits::default())?;
        let bell = Arc::new(Notify::new());
        inner.bell = Some(Arc::clone(&bell));
        Ok((Self(Arc::new(inner)), ManualWriter::new(dir, writer, bell)))
    }

    /// Writes records, all or none. `done` runs once they are durable or refused, in the order of
    /// the requests. When the queue is full, nothing happens and `done` is dropped.
    pub fn commit(&self, records: Vec<Record>, done: Completion) -> Result<(), QueueFull> {
        self.send(Message::Commit(records, done))
    }

    /// Writes records, all or none, and waits until they are durable.
    ///
    /// # Cancel safety
    ///
    /// If dropped before it ends, the records may or may not be written.
    pub async fn commit_async(
        &self,
        records: Vec<Record>,
    ) -> Result<Result<Vec<WriteOutcome>, CommitError>, QueueFull> {
        let (sender, receiver) = oneshot::channel();
        self.commit(records, Box::new(move |outcome| drop(sender.send(outcome))))?;
        Ok(receiver.await.unwrap_or(Err(CommitError::Closed)))
    }

    /// Drops up to `limit` ended jobs that had expired at `now`, and returns their ids.
    pub fn purge_expired(
        &self,
        now: UnixMs,
        limit: usize,
        done: Box<dyn FnOnce(Result<Vec<JobId>, CommitError>) + Send>,
    ) -> Result<(), QueueFull> {
        self.send(Message::Purge { now, limit, reply: done })
    }

    /// Like [`Store::purge_expired`], but waits for the end.
    ///
    /// # Cancel safety
    ///
    /// If dropped before it ends, the jobs may or may not be gone.
    pub async fn purge_expired_async(
        &self,
        now: UnixMs,
        limit: usize,
    ) -> Result<Result<Vec<JobId>, CommitError>, QueueFull> {
        let (sender, receiver) = oneshot::channel();
        self.purge_expired(now, limit, Box::new(move |outcome| drop(sender.send(outcome))))?;
        Ok(receiver.await.unwrap_or(Err(CommitError::Closed)))
    }

    /// Runs SQL of a caller, and calls `done` with its answer.
    pub fn query(&self, query: Query, stop: StopSignal, done: QueryDone) {
        let inbox = self.0.inbox.clone();
        let empty_log = Box::new(move || {
            let (sender, emptied) = sync_channel(1);
            let done = Box::new(move || {
                sender.send(()).ok();
            });
            if inbox.try_send(Message::EmptyLog(done)).is_ok() {
                // Without an answer the query runs all the same.
                emptied.recv_timeout(LOG_WAIT).ok();
            }
        });
        self.0.queries.query(query, stop, empty_log, done);
    }

    /// Returns the writer's counters so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats {
            commits: self.0.counters.commits.load(Ordering::Relaxed),
            requests: self.0.counters.requests.load(Ordering::Relaxed),
        }
    }

    /// Writes all waiting requests, then stops the writer; blocks until it has stopped. Later
    /// commits are refused, reads still work.
    pub fn close(&self) {
        self.0.close();
    }

    /// Returns whether the data directory is still where it was opened: what is written into a
    /// deleted one is lost.
    #[must_use]
    pub fn is_in_place(&self) -> bool {
        self.0.lock.is_in_place()
    }

    pub(crate) fn readers(&self) -> &Readers {
        &self.0.readers
    }

    fn send(&self, message: Message) -> Result<(), QueueFull> {
        match self.0.inbox.try_send(message) {
            Ok(()) => {
                if let Some(bell) = &self.0.bell {
                    bell.notify_one();
                }
                Ok(())
            }
            Err(TrySendError::Full(_)) => Err(QueueFull),
            Err(TrySendError::Disconnected(message)) => {
                refuse(message);
                Ok(())
            }
        }
    }
}

impl Inner {
    /// Opens everything except for the writer's driver.
    fn open(dir: &Utf8Path, limits: Limits) -> Result<(Self, Writer), OpenStoreError> {
        let lock = Arc::new(DataLock::take(dir)?);
        let path = dir.join("ringback.db");
        make_private(&path)?;
        let connection = schema::open_writer(&path)?;
        let counters = Arc::new(Counters::default());
        let (inbox, messages) = sync_channel(limits.queue_max);
        let writer = Writer::new(connection, messages, Arc::clone(&counters), Arc::clone(&lock));
        let queries = Engine::new(path.clone(), limits.log_bytes_max);
        let readers = Readers::new(path, limits.readers_max);
        let thread = Mutex::new(None);
        Ok((Self { inbox, bell: None, counters, thread, readers, queries, lock }, writer))
    }

    fn close(&self) {
        let thread = lock(&self.thread).take();
        let Some(thread) = thread else { return };
        // The last handle may be dropped inside a callback, on the writer's own thread; that thread
        // then ends on its own, because no sender is left.
        if thread.thread().id() == thread::current().id() {
            return;
        }
        drop(self.inbox.send(Message::Close));
        if thread.join().is_err() {
            tracing::error!("the store's writer panicked");
        }
    }
}

/// SQLite creates the files beside a database with the database's mode.
fn make_private(database: &Utf8Path) -> Result<(), OpenStoreError> {
    let made = private::options().append(true).open(database).map(drop);
    let beside = ["", "-wal", "-shm"].map(|end| Utf8PathBuf::from(format!("{database}{end}")));
    let mut done = made;
    for path in &beside {
        done = done.and_then(|()| private::file(path));
    }
    done.map_err(|source| OpenStoreError::File {
        action: "restrict access to",
        path: database.to_owned(),
        source,
    })
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.queries.close();
        self.close();
    }
}
