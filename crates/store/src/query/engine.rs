//! The threads that run queries. They start with the first query and run when nothing else does.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, RwLock};
use std::thread::{self, JoinHandle};

use camino::Utf8PathBuf;
use ringback_sync::{lock, read, write};
use thread_priority::ThreadPriority;
use thread_priority::unix::{
    NormalThreadSchedulePolicy, ThreadSchedulePolicy, set_thread_priority_and_policy,
    thread_native_id,
};

use super::connection::QueryConnection;
use super::{QUERIES_MAX, Query, QueryDone, QueryError, StopSignal, run};

/// A query that waits for a thread.
struct Task {
    query: Query,
    stop: StopSignal,
    empty_log: EmptyLog,
    done: QueryDone,
}

/// Asks the writer to empty SQLite's log, and waits for it.
pub(crate) type EmptyLog = Box<dyn FnOnce() + Send>;

/// Runs queries on threads and connections of their own.
#[derive(Debug)]
pub(crate) struct Engine {
    files: Arc<Files>,
    threads: Mutex<Threads>,
    is_closing: Arc<AtomicBool>,
}

/// The database, and its log. Queries that always overlap would keep the log from being emptied, and
/// it would grow with every write. So a query that finds it large waits until it is alone.
#[derive(Debug)]
struct Files {
    database: Utf8PathBuf,
    log: Utf8PathBuf,
    log_bytes_max: u64,
    /// Held for reading by each query that runs.
    running: RwLock<()>,
}

impl Files {
    /// Empties the log if it is large.
    fn keep_log_short(&self, empty_log: EmptyLog) {
        let is_large =
            || std::fs::metadata(&self.log).is_ok_and(|log| log.len() > self.log_bytes_max);
        if is_large() {
            let alone = write(&self.running);
            if is_large() {
                empty_log();
            }
            drop(alone);
        }
    }
}

#[derive(Debug, Default)]
struct Threads {
    inbox: Option<SyncSender<Task>>,
    running: Vec<JoinHandle<()>>,
}

impl Engine {
    pub(crate) fn new(database: Utf8PathBuf, log_bytes_max: u64) -> Self {
        let log = Utf8PathBuf::from(format!("{database}-wal"));
        let files = Arc::new(Files { database, log, log_bytes_max, running: RwLock::new(()) });
        Self { files, threads: Mutex::default(), is_closing: Arc::default() }
    }

    /// Runs a query, and calls `done` with its answer.
    pub(crate) fn query(
        &self,
        query: Query,
        stop: StopSignal,
        empty_log: EmptyLog,
        done: QueryDone,
    ) {
        let is_closing = Arc::clone(&self.is_closing);
        let stop: StopSignal = Box::new(move || stop() || is_closing.load(Ordering::Relaxed));
        let task = Task { query, stop, empty_log, done };
        let sent = match self.inbox() {
            Ok(inbox) => inbox.try_send(task),
            Err(error) => return (task.done)(Err(error)),
        };
        match sent {
            Ok(()) => {}
            Err(TrySendError::Full(task)) => (task.done)(Err(QueryError::Busy)),
            Err(TrySendError::Disconnected(task)) => (task.done)(Err(QueryError::Stopped)),
        }
    }

    /// Stops running queries and waits for their threads.
    pub(crate) fn close(&self) {
        self.is_closing.store(true, Ordering::Relaxed);
        let Threads { inbox, running } = std::mem::take(&mut *lock(&self.threads));
        drop(inbox);
        for thread in running {
            // The last handle to the store may be dropped by `done`, on such a thread.
            if thread.thread().id() != thread::current().id() && thread.join().is_err() {
                tracing::error!("a thread for queries panicked");
            }
        }
    }

    /// Returns the way to the threads, and starts them if this is the first query.
    fn inbox(&self) -> Result<SyncSender<Task>, QueryError> {
        let mut threads = lock(&self.threads);
        if self.is_closing.load(Ordering::Relaxed) {
            return Err(QueryError::Stopped);
        }
        if let Some(inbox) = &threads.inbox {
            return Ok(inbox.clone());
        }
        let (inbox, tasks) = sync_channel(QUERIES_MAX);
        let tasks = Arc::new(Mutex::new(tasks));
        for number in 0..QUERIES_MAX {
            let (files, tasks) = (Arc::clone(&self.files), Arc::clone(&tasks));
            let started = thread::Builder::new()
                .name(format!("store-query-{number}"))
                .spawn(move || serve(&files, &tasks));
            let started =
                started.map_err(|error| QueryError::Database { source: Arc::new(error) })?;
            threads.running.push(started);
        }
        threads.inbox = Some(inbox.clone());
        Ok(inbox)
    }
}

/// Runs queries until the engine closes. A connection that failed is opened again.
fn serve(files: &Files, tasks: &Mutex<Receiver<Task>>) {
    let idle = set_thread_priority_and_policy(
        thread_native_id(),
        ThreadPriority::Min,
        ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle),
    );
    if let Err(error) = idle {
        tracing::warn!(?error, "queries cannot run at idle priority; they may slow other calls");
    }
    let mut connection = None;
    loop {
        let next = lock(tasks).recv();
        let Ok(Task { query, stop, empty_log, done }) = next else { return };
        files.keep_log_short(empty_log);
        let running = read(&files.running);
        let opened = match connection.take() {
            Some(open) => Ok(open),
            None => QueryConnection::open(&files.database),
        };
        let answer = match opened {
            Ok(mut open) => {
                // A panic must not take the thread: the next one would take the last.
                let ran = catch_unwind(AssertUnwindSafe(|| run::run(&mut open, &query, stop)));
                match ran {
                    Ok(Err(error @ QueryError::Database { .. })) => Err(error),
                    Ok(answer) => {
                        connection = (!open.is_spoilt).then_some(open);
                        answer
                    }
                    Err(_) => {
                        tracing::error!("a query panicked");
                        let source = Arc::new(std::io::Error::other("a query panicked"));
                        Err(QueryError::Database { source })
                    }
                }
            }
            Err(error) => Err(QueryError::Database { source: Arc::new(error) }),
        };
        drop(running);
        if catch_unwind(AssertUnwindSafe(|| done(answer))).is_err() {
            tracing::error!("the caller of a query panicked");
        }
    }
}
