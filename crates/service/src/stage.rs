//! A named group of tasks that are started, counted, stopped and joined together.

use std::any::Any;
use std::collections::BTreeMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures_util::FutureExt;
use ringback_sync::lock;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long aborted tasks get to reach their next await. A task that computes for longer without
/// yielding is reported as aborted and left behind rather than holding up the process.
const ABORT_WAIT: Duration = Duration::from_secs(1);

/// Owns tasks: names them, stops them, waits for them, aborts those that do not end.
///
/// Dropping a stage aborts everything in it.
#[must_use = "dropping a stage aborts its tasks"]
#[derive(Debug)]
pub struct Stage {
    inner: Arc<Inner>,
}

/// Adds tasks to a [`Stage`] without owning it.
#[derive(Clone, Debug)]
pub struct Spawner {
    inner: Arc<Inner>,
}

/// How a stage ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StageEnd {
    /// Every task ended on its own within the grace period.
    Clean,
    /// Some did not, and were aborted.
    Forced {
        /// The number of aborted tasks.
        n_aborted: usize,
        /// Their names, sorted.
        names: Vec<String>,
    },
}

/// The stage has stopped and accepts no more tasks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot start task `{task}`: stage `{stage}` has stopped")]
pub struct StageClosed {
    /// The stage.
    pub stage: &'static str,
    /// The task that was refused.
    pub task: String,
}

/// One task that panicked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskPanic {
    /// The task's name.
    pub task: String,
    /// The message, if it panicked with text.
    pub message: String,
}

/// The panics of a stage so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Panics {
    /// How many tasks panicked.
    pub n_total: u64,
    /// The first of them, which is most often the cause of the others.
    pub first: Option<TaskPanic>,
}

#[derive(Debug)]
struct Inner {
    name: &'static str,
    token: CancellationToken,
    tracker: TaskTracker,
    table: Mutex<Table>,
    panics: watch::Sender<Panics>,
}

#[derive(Debug, Default)]
struct Table {
    closed: bool,
    next_key: u64,
    running: BTreeMap<u64, RunningTask>,
}

#[derive(Debug)]
struct RunningTask {
    name: String,
    abort: AbortHandle,
}

/// Removes its task from the table when the task ends, however it ends.
struct TaskGuard {
    inner: Arc<Inner>,
    key: u64,
}

impl Stage {
    /// Creates a stage without tasks.
    pub fn new(name: &'static str) -> Self {
        let (panics, _) = watch::channel(Panics::default());
        let inner = Inner {
            name,
            token: CancellationToken::new(),
            tracker: TaskTracker::new(),
            table: Mutex::default(),
            panics,
        };
        Self { inner: Arc::new(inner) }
    }

    /// The stage's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.inner.name
    }

    /// Fires when the tasks of this stage should finish their work and end.
    #[must_use]
    pub fn token(&self) -> CancellationToken {
        self.inner.token.clone()
    }

    /// A handle for parts that start tasks here later.
    #[must_use]
    pub fn spawner(&self) -> Spawner {
        Spawner { inner: Arc::clone(&self.inner) }
    }

    /// Starts a task.
    ///
    /// # Errors
    /// When the stage has stopped. A draining stage still accepts tasks.
    pub fn spawn<F>(&self, name: impl Into<String>, future: F) -> Result<(), StageClosed>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Inner::spawn(&self.inner, name.into(), future)
    }

    /// The names of the running tasks, sorted.
    #[must_use]
    pub fn running(&self) -> Vec<String> {
        self.inner.running()
    }

    /// Follows the panics of this stage, so that a part that depends on a task can end the process
    /// in order.
    #[must_use]
    pub fn panics(&self) -> watch::Receiver<Panics> {
        self.inner.panics.subscribe()
    }

    /// Fires the token, waits for the tasks for at most `grace`, aborts the rest.
    ///
    /// # Cancel safety
    /// Dropping the future aborts every task of the stage.
    pub async fn shutdown(self, grace: Duration) -> StageEnd {
        let inner = &self.inner;
        inner.token.cancel();
        inner.tracker.close();
        // Checked, because an endless grace period must not overflow the clock.
        let clean = match Instant::now().checked_add(grace) {
            Some(deadline) => timeout_at(deadline, inner.drained()).await.is_ok(),
            None => {
                inner.drained().await;
                true
            }
        };
        if clean {
            return StageEnd::Clean;
        }
        let names = inner.abort_all();
        if timeout(ABORT_WAIT, inner.tracker.wait()).await.is_err() {
            tracing::error!(stage = inner.name, tasks = ?inner.running(), "tasks ignore their abort");
        }
        match names.len() {
            0 => StageEnd::Clean,
            n_aborted => StageEnd::Forced { n_aborted, names },
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.inner.token.cancel();
        drop(self.inner.abort_all());
    }
}

impl Spawner {
    /// As [`Stage::spawn`].
    ///
    /// # Errors
    /// When the stage has stopped.
    pub fn spawn<F>(&self, name: impl Into<String>, future: F) -> Result<(), StageClosed>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Inner::spawn(&self.inner, name.into(), future)
    }

    /// As [`Stage::token`].
    #[must_use]
    pub fn token(&self) -> CancellationToken {
        self.inner.token.clone()
    }
}

impl Inner {
    fn spawn<F>(this: &Arc<Self>, name: String, future: F) -> Result<(), StageClosed>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        // Held until the task is in the table: a task that ends immediately waits for it in
        // `TaskGuard`.
        let mut table = this.table();
        if table.closed {
            return Err(StageClosed { stage: this.name, task: name });
        }
        let key = table.next_key;
        table.next_key += 1;
        let leave = TaskGuard { inner: Arc::clone(this), key };
        let task_name = name.clone();
        let task = async move {
            let leave = leave;
            let outcome = AssertUnwindSafe(future).catch_unwind().await;
            let inner = Arc::clone(&leave.inner);
            // Out of the table first: an observer of the panic no longer sees the task running.
            drop(leave);
            if let Err(payload) = outcome {
                inner.panicked(task_name, payload.as_ref());
            }
        };
        let abort = this.tracker.spawn(task).abort_handle();
        table.running.insert(key, RunningTask { name, abort });
        Ok(())
    }

    /// Resolves when no task is left, and closes the stage at the same instant.
    async fn drained(&self) {
        loop {
            self.tracker.wait().await;
            let mut table = self.table();
            if table.running.is_empty() {
                table.closed = true;
                return;
            }
        }
    }

    fn abort_all(&self) -> Vec<String> {
        let mut table = self.table();
        table.closed = true;
        for task in table.running.values() {
            task.abort.abort();
        }
        table.names()
    }

    fn running(&self) -> Vec<String> {
        self.table().names()
    }

    fn panicked(&self, task: String, payload: &(dyn Any + Send)) {
        let message = panic_message(payload);
        tracing::error!(stage = self.name, task, message, "a task panicked");
        metrics::counter!("ringback_task_panics_total", "stage" => self.name).increment(1);
        self.panics.send_modify(|panics| {
            panics.n_total += 1;
            panics.first.get_or_insert(TaskPanic { task, message });
        });
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        lock(&self.table)
    }
}

impl Table {
    fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = self.running.values().map(|task| task.name.clone()).collect();
        names.sort_unstable();
        names
    }
}

impl Drop for TaskGuard {
    fn drop(&mut self) {
        self.inner.table().running.remove(&self.key);
    }
}

/// The text of a panic, which is a `&str` or a `String` unless the payload was another value.
pub(crate) fn panic_message(payload: &(dyn Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::time::Duration;

    use super::{Stage, StageEnd};

    const GRACE: Duration = Duration::from_secs(5);

    #[tokio::test]
    async fn tasks_that_heed_the_token_end_cleanly() {
        let stage = Stage::new("test");
        for name in ["a", "b"] {
            let token = stage.token();
            stage.spawn(name, async move { token.cancelled().await }).unwrap();
        }
        assert_eq!(stage.running(), ["a", "b"]);
        assert_eq!(stage.shutdown(GRACE).await, StageEnd::Clean);
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_ignores_the_token_is_aborted_and_named() {
        let stage = Stage::new("test");
        let token = stage.token();
        stage.spawn("polite", async move { token.cancelled().await }).unwrap();
        stage.spawn("stuck", pending()).unwrap();
        let stopped = stage.shutdown(GRACE).await;
        assert_eq!(stopped, StageEnd::Forced { n_aborted: 1, names: vec!["stuck".to_owned()] });
    }

    #[tokio::test(start_paused = true)]
    async fn a_grace_without_end_does_not_overflow() {
        let stage = Stage::new("test");
        let token = stage.token();
        stage.spawn("polite", async move { token.cancelled().await }).unwrap();
        assert_eq!(stage.shutdown(Duration::MAX).await, StageEnd::Clean);
    }

    #[tokio::test]
    async fn a_panicking_task_is_reported_and_the_others_go_on() {
        let stage = Stage::new("test");
        let token = stage.token();
        stage.spawn("steady", async move { token.cancelled().await }).unwrap();
        let mut panics = stage.panics();
        stage.spawn("rash", async { panic!("at {}", "once") }).unwrap();
        let seen = panics.wait_for(|panics| panics.n_total == 1).await.unwrap().clone();
        let first = seen.first.unwrap();
        assert_eq!((first.task.as_str(), first.message.as_str()), ("rash", "at once"));
        assert_eq!(stage.running(), ["steady"]);
        assert_eq!(stage.shutdown(GRACE).await, StageEnd::Clean);
    }

    #[tokio::test]
    async fn a_stopped_stage_refuses_tasks_by_name() {
        let stage = Stage::new("edges");
        let spawner = stage.spawner();
        assert_eq!(stage.shutdown(GRACE).await, StageEnd::Clean);
        let refused = spawner.spawn("late", pending()).unwrap_err();
        assert_eq!(refused.to_string(), "cannot start task `late`: stage `edges` has stopped");
    }

    #[tokio::test]
    async fn a_draining_stage_still_takes_tasks_and_waits_for_them() {
        let stage = Stage::new("test");
        let (token, spawner) = (stage.token(), stage.spawner());
        let (sender, receiver) = tokio::sync::oneshot::channel();
        stage
            .spawn("parent", async move {
                token.cancelled().await;
                spawner.spawn("child", async { sender.send(()).unwrap() }).unwrap();
            })
            .unwrap();
        assert_eq!(stage.shutdown(GRACE).await, StageEnd::Clean);
        receiver.await.unwrap();
    }

    #[tokio::test]
    async fn dropping_a_stage_aborts_its_tasks() {
        let stage = Stage::new("test");
        let (sender, receiver) = tokio::sync::oneshot::channel::<()>();
        stage
            .spawn("held", async move {
                pending::<()>().await;
                drop(sender);
            })
            .unwrap();
        drop(stage);
        receiver.await.unwrap_err();
    }
}
