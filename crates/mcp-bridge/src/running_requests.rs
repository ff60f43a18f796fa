//! The requests under way.

use std::collections::HashMap;
use std::hash::Hash;

use tokio::task::{AbortHandle, JoinError, JoinSet};

/// Running requests. Dropping one, or all with this, cancels it.
#[derive(Debug)]
pub struct RunningRequests<K> {
    tasks: JoinSet<Option<K>>,
    /// Those that can be cancelled.
    by_id: HashMap<K, AbortHandle>,
}

impl<K> Default for RunningRequests<K> {
    fn default() -> Self {
        Self { tasks: JoinSet::new(), by_id: HashMap::new() }
    }
}

impl<K: Eq + Hash + Clone + Send + 'static> RunningRequests<K> {
    /// Their number.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Whether nothing is under way.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Starts a request; with an id it can be cancelled.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start(&mut self, id: Option<K>, request: impl Future<Output = ()> + Send + 'static) {
        let name = id.clone();
        let handle = self.tasks.spawn(async move {
            request.await;
            name
        });
        if let Some(id) = id {
            self.by_id.insert(id, handle);
        }
    }

    /// Cancels a request; returns whether it was under way.
    pub fn cancel(&mut self, id: &K) -> bool {
        self.by_id.remove(id).inspect(AbortHandle::abort).is_some()
    }

    /// Waits until one has ended; `None` if nothing is under way.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn ended(&mut self) -> Option<()> {
        let ended = self.tasks.join_next().await?;
        self.on_ended(ended);
        Some(())
    }

    /// Forgets those that have ended, without a wait.
    pub fn reap(&mut self) {
        while let Some(ended) = self.tasks.try_join_next() {
            self.on_ended(ended);
        }
    }

    /// Cancels all, and waits until they have ended.
    pub async fn shutdown(&mut self) {
        self.tasks.shutdown().await;
        self.by_id.clear();
    }

    fn on_ended(&mut self, ended: Result<Option<K>, JoinError>) {
        match ended {
            Ok(Some(id)) => drop(self.by_id.remove(&id)),
            Ok(None) => {}
            Err(error) if error.is_cancelled() => {}
            Err(error) => tracing::error!(%error, "a request failed: its task panicked"),
        }
    }
}
