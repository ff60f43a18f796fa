//! A job that has not ended, and its waiters.

use std::sync::{Arc, Mutex};

use ringback_core::policy::Provenance;
use ringback_proto::ids::JobId;
use ringback_proto::principal::PrincipalId;
use ringback_proto::tool::ToolRow;
use ringback_proto::{Result, ToolRequest, ToolResponse};
use tokio::sync::SetOnce;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Span;

use super::Jobs;
use crate::broadcast::{Broadcast, Source};
use crate::garden::SentCommand;
use crate::identity::Credential;
use crate::kernel::Kernel;
use crate::rooms::Outcome;
use crate::stream::Stream;
use crate::sync::lock;

/// A job that has not ended.
#[derive(Debug)]
pub(crate) struct LiveJob {
    pub(crate) id: JobId,
    pub(crate) row: &'static ToolRow,
    pub(crate) owner: PrincipalId,
    /// The session key, if an agent started it: the job may do no more than the key.
    pub(super) held: Option<Credential>,
    /// Where the call came from.
    pub(crate) provenance: Provenance,
    /// The trace of the call that started it, if it has one.
    pub(super) trace: Span,
    pub(super) request: Mutex<Option<ToolRequest>>,
    /// The command of the job, if it was sent before the job was durable.
    pub(crate) sent: Option<SentCommand>,
    pub(super) stop: CancellationToken,
    /// The blocking parts of the work, waited for before the job counts as stopped.
    pub(crate) blocking: TaskTracker,
    pub(super) streams: Mutex<Vec<Arc<Stream>>>,
    /// What everyone hears who may see the job.
    pub(super) broadcast: Broadcast,
    /// The callers that wait for it, and whether any caller got its id: a job whose id is unknown
    /// and that has no waiters is stopped.
    pub(super) callers: Mutex<Callers>,
    /// The result of the work, until it is durable.
    pub(super) result: Mutex<Option<ToolResponse>>,
    pub(super) outcome: SetOnce<Outcome>,
}

#[derive(Debug, Default)]
pub(super) struct Callers {
    pub(super) n_waiting: usize,
    pub(super) is_known: bool,
}

/// One caller's interest in a job. Dropping it means that the caller has left.
#[derive(Debug)]
pub(crate) struct Interest {
    jobs: Arc<Jobs>,
    live: Arc<LiveJob>,
}

impl Interest {
    pub(crate) fn new(jobs: &Arc<Jobs>, live: Arc<LiveJob>) -> Self {
        lock(&live.callers).n_waiting += 1;
        Self { jobs: Arc::clone(jobs), live }
    }

    /// Marks that the caller gets the job's id, so that the job continues without it.
    pub(crate) fn hand_out(&self) {
        lock(&self.live.callers).is_known = true;
    }
}

impl std::ops::Deref for Interest {
    type Target = LiveJob;

    fn deref(&self) -> &LiveJob {
        &self.live
    }
}

impl Drop for Interest {
    fn drop(&mut self) {
        let is_abandoned = {
            let mut callers = lock(&self.live.callers);
            callers.n_waiting -= 1;
            callers.n_waiting == 0 && !callers.is_known
        };
        if is_abandoned && self.live.outcome.get().is_none() {
            self.jobs.stop_soon(self.live.id);
        }
    }
}

impl LiveJob {
    pub(super) fn new(id: JobId, request: ToolRequest, owner: PrincipalId) -> Self {
        Self {
            id,
            row: request.row(),
            owner,
            held: None,
            provenance: Provenance::default(),
            trace: Span::none(),
            request: Mutex::new(Some(request)),
            sent: None,
            stop: CancellationToken::new(),
            blocking: TaskTracker::new(),
            streams: Mutex::default(),
            broadcast: Broadcast::of(id.as_bytes()),
            callers: Mutex::default(),
            result: Mutex::default(),
            outcome: SetOnce::new(),
        }
    }

    /// Waits for the outcome to be durable.
    pub(crate) async fn outcome(&self) -> Outcome {
        Arc::clone(self.outcome.wait().await)
    }

    /// Adds a reader.
    pub(crate) fn attach(&self, stream: Arc<Stream>) {
        // Under the lock: an end at this moment finds the stream in the list.
        let mut streams = lock(&self.streams);
        match self.outcome.get() {
            Some(_) => stream.finish(),
            None => streams.push(stream),
        }
    }

    /// Returns what the stream of the job says about its origin.
    pub(super) fn source(&self) -> Source<'_> {
        let (tool, job_id) = (self.row.name, Some(self.id));
        Source { tool, job_id, owner: self.owner, project: self.provenance.project }
    }

    /// Ends the job. The first outcome counts.
    pub(super) fn end(&self, kernel: &Kernel, outcome: Result<ToolResponse>) {
        self.broadcast.end(kernel, self.source());
        drop(self.outcome.set(Arc::new(outcome)));
        for stream in lock(&self.streams).drain(..) {
            stream.finish();
        }
    }
}
