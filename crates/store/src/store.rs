//! The handle to a data directory's records.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use camino::{Utf8Path, Utf8PathBuf};
use ringback_proto::ids::JobId;
use ringback_proto::record::{Record, UnixMs};
use tokio::sync::{Notify, oneshot};

use crate::by_hand::Hand;
use crate::error::{CommitError, Full, OpenStoreError};
use crate::lock::DataLock;
use crate::private;
use crate::readers::Readers;
use crate::schema;
use crate::write::Applied;
use crate::writer::{Counters, Message, Writer, refuse};

/// Runs on the writer's thread once a request is durable or refused: short, and it never waits.
pub type Done = Box<dyn FnOnce(Result<Vec<Applied>, CommitError>) + Send>;

/// How much the store takes on.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Requests that may wait for the writer.
    pub queue_max: usize,
    /// Connections that read at the same time; further readers wait for one.
    pub readers_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { queue_max: 4096, readers_max: 4 }
    }
}

/// What the writer has done since the store was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    /// Transactions that were synced.
    pub commits: u64,
    /// Requests that were answered.
    pub requests: u64,
}

/// The records of a data directory. Clones share it; the last one to go closes it.
#[derive(Debug, Clone)]
pub struct Store(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    inbox: SyncSender<Message>,
    /// Rung for the hand that moves the writer, if one does.
    bell: Option<Arc<Notify>>,
    counters: Arc<Counters>,
    thread: Mutex<Option<JoinHandle<()>>>,
    readers: Readers,
    // Last, so that the directory is free only when nothing in it is open.
    lock: Arc<DataLock>,
}

impl Store {
    /// Takes a data directory, making it if needed, and brings its records up to date.
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

    /// Like [`Store::open`], but the writer has no thread: it writes when the hand moves it.
    pub fn open_by_hand(dir: &Utf8Path) -> Result<(Self, Hand), OpenStoreError> {
        let (mut inner, writer) = Inner::open(dir, Limits::default())?;
        let bell = Arc::new(Notify::new());
        inner.bell = Some(Arc::clone(&bell));
        Ok((Self(Arc::new(inner)), Hand::new(dir, writer, bell)))
    }

    /// Writes records, all or none. `done` runs once they are durable or refused, in the order of
    /// the requests. When the queue is full nothing happens and `done` is dropped.
    pub fn commit(&self, records: Vec<Record>, done: Done) -> Result<(), Full> {
        self.send(Message::Commit(records, done))
    }

    /// Writes records, all or none, and waits until they are durable.
    ///
    /// # Cancel safety
    ///
    /// Dropped before its end, the records may or may not be written.
    pub async fn commit_async(
        &self,
        records: Vec<Record>,
    ) -> Result<Result<Vec<Applied>, CommitError>, Full> {
        let (sender, receiver) = oneshot::channel();
        self.commit(records, Box::new(move |outcome| drop(sender.send(outcome))))?;
        Ok(receiver.await.unwrap_or(Err(CommitError::Closed)))
    }

    /// Drops up to `limit` ended jobs whose time was over at `now`, and says which.
    pub fn purge_expired(
        &self,
        now: UnixMs,
        limit: usize,
        done: Box<dyn FnOnce(Result<Vec<JobId>, CommitError>) + Send>,
    ) -> Result<(), Full> {
        self.send(Message::Purge { now, limit, reply: done })
    }

    /// Like [`Store::purge_expired`], waiting for the end.
    ///
    /// # Cancel safety
    ///
    /// Dropped before its end, the jobs may or may not be gone.
    pub async fn purge_expired_async(
        &self,
        now: UnixMs,
        limit: usize,
    ) -> Result<Result<Vec<JobId>, CommitError>, Full> {
        let (sender, receiver) = oneshot::channel();
        self.purge_expired(now, limit, Box::new(move |outcome| drop(sender.send(outcome))))?;
        Ok(receiver.await.unwrap_or(Err(CommitError::Closed)))
    }

    /// What the writer has done so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats {
            commits: self.0.counters.commits.load(Ordering::Relaxed),
            requests: self.0.counters.requests.load(Ordering::Relaxed),
        }
    }

    /// Writes what is waiting, then ends the writer; blocks until it has. Later commits are
    /// refused, reads go on.
    pub fn close(&self) {
        self.0.close();
    }

    /// Whether the data directory is still where it was opened: what is written into one that was
    /// deleted is lost.
    #[must_use]
    pub fn is_in_place(&self) -> bool {
        self.0.lock.is_in_place()
    }

    pub(crate) fn readers(&self) -> &Readers {
        &self.0.readers
    }

    fn send(&self, message: Message) -> Result<(), Full> {
        match self.0.inbox.try_send(message) {
            Ok(()) => {
                if let Some(bell) = &self.0.bell {
                    bell.notify_one();
                }
                Ok(())
            }
            Err(TrySendError::Full(_)) => Err(Full),
            Err(TrySendError::Disconnected(message)) => {
                refuse(message);
                Ok(())
            }
        }
    }
}

impl Inner {
    /// Everything but who moves the writer.
    fn open(dir: &Utf8Path, limits: Limits) -> Result<(Self, Writer), OpenStoreError> {
        let lock = Arc::new(DataLock::take(dir)?);
        let path = dir.join("ringback.db");
        make_private(&path)?;
        let connection = schema::open_writer(&path)?;
        let counters = Arc::new(Counters::default());
        let (inbox, messages) = sync_channel(limits.queue_max);
        let writer = Writer::new(connection, messages, Arc::clone(&counters), Arc::clone(&lock));
        let readers = Readers::new(path, limits.readers_max);
        let thread = Mutex::new(None);
        Ok((Self { inbox, bell: None, counters, thread, readers, lock }, writer))
    }

    fn close(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(thread) = thread else { return };
        // The last handle may go inside a callback, on the writer's own thread; that thread then
        // ends by itself, because nobody is left to send.
        if thread.thread().id() == thread::current().id() {
            return;
        }
        drop(self.inbox.send(Message::Close));
        if thread.join().is_err() {
            tracing::error!("the store's writer panicked");
        }
    }
}

/// SQLite makes what is beside a database with the mode of that.
fn make_private(database: &Utf8Path) -> Result<(), OpenStoreError> {
    let made = private::options().append(true).open(database).map(drop);
    let beside = ["", "-wal", "-shm"].map(|end| Utf8PathBuf::from(format!("{database}{end}")));
    let mut done = made;
    for path in &beside {
        done = done.and_then(|()| private::file(path));
    }
    done.map_err(|source| OpenStoreError::File {
        action: "make private",
        path: database.to_owned(),
        source,
    })
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.close();
    }
}
