//! The room of queries: whose turn it is. A principal has one query at a time, and the store runs
//! two.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use ringback_proto::principal::PrincipalId;
use ringback_proto::{Error, Result};
use ringback_store::query::{QUERIES_MAX, Query, QueryAnswer, QueryError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

use crate::failure;
use crate::kernel::Kernel;
use crate::sync::lock;

/// How long a query waits for its turn: five times as long as one may take.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// Who runs a query.
#[derive(Debug)]
pub(crate) struct Queries {
    kernel: Arc<Kernel>,
    connections: Arc<Semaphore>,
    /// The turn of each principal that has a query.
    turns: Mutex<HashMap<PrincipalId, Weak<Semaphore>>>,
}

impl Queries {
    pub(crate) fn new(kernel: Arc<Kernel>) -> Self {
        let connections = Arc::new(Semaphore::new(QUERIES_MAX));
        Self { kernel, connections, turns: Mutex::default() }
    }

    /// Runs a query when it is its turn. Dropping the future stops the query.
    pub(crate) async fn ask(
        &self,
        principal: PrincipalId,
        query: Query,
        stop: &CancellationToken,
    ) -> Result<QueryAnswer> {
        let turn = self.turn(principal);
        let both = async { (permit(turn).await, permit(Arc::clone(&self.connections)).await) };
        let permits = tokio::time::timeout(WAIT_MAX, both).await.map_err(|_| busy())?;
        let stop = stop.child_token();
        let on_drop = stop.clone().drop_guard();
        let (sender, receiver) = oneshot::channel();
        let done = move |answer| {
            // The next query may start only when this one has left its connection.
            drop(permits);
            drop(sender.send(answer));
        };
        self.kernel.store.query(query, Box::new(move || stop.is_cancelled()), Box::new(done));
        let answer = receiver.await.unwrap_or(Err(QueryError::Stopped));
        drop(on_drop);
        answer.map_err(failure::query)
    }

    fn turn(&self, principal: PrincipalId) -> Arc<Semaphore> {
        let mut turns = lock(&self.turns);
        turns.retain(|_, turn| turn.strong_count() > 0);
        if let Some(turn) = turns.get(&principal).and_then(Weak::upgrade) {
            return turn;
        }
        let turn = Arc::new(Semaphore::new(1));
        turns.insert(principal, Arc::downgrade(&turn));
        turn
    }
}

async fn permit(semaphore: Arc<Semaphore>) -> OwnedSemaphorePermit {
    semaphore.acquire_owned().await.expect("it is never closed")
}

fn busy() -> Error {
    Error::busy("the number of queries")
}
