//! The calls that a worker was given, until they end.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use ringback_broker::ChunkInbox;
use ringback_proto::Result;
use ringback_proto::any::Any;
use ringback_proto::ids::{JobId, RequestId};
use ringback_sync::lock;
use tokio::sync::oneshot;

/// Calls taken back whose answer may still arrive.
const TAKEN_BACK_MAX: usize = 64;

/// The calls that were given to the peer.
#[derive(Debug, Clone, Default)]
pub(super) struct OpenCalls(Arc<Mutex<CallTable>>);

#[derive(Debug, Default)]
pub(super) struct CallTable {
    /// The calls that have not ended.
    pub(super) open: HashMap<RequestId, OpenCall>,
    /// The last calls taken back, by both ids: an answer to them is late.
    taken_back: VecDeque<(RequestId, Arc<str>)>,
}

#[derive(Debug)]
pub(super) struct OpenCall {
    /// The broker's id of the call.
    pub(super) id: Arc<str>,
    /// The job that its answer must name.
    pub(super) job_id: Option<JobId>,
    /// The destination of its chunks, and after the first also of its end, so that the order holds.
    pub(super) chunks: Option<OpenChunks>,
}

/// Where the chunks of a call go, and after them its end. Dropping it ends them.
#[derive(Debug)]
pub(super) struct OpenChunks {
    inbox: Arc<ChunkInbox>,
    end: Option<oneshot::Sender<Result<Any>>>,
}

impl OpenChunks {
    /// The call has ended: its outcome follows the chunks. Returns it if no one waits for it.
    pub(super) fn end(mut self, outcome: Result<Any>) -> Option<Result<Any>> {
        match self.end.take() {
            Some(end) => end.send(outcome).err(),
            None => Some(outcome),
        }
    }
}

impl Drop for OpenChunks {
    fn drop(&mut self) {
        self.inbox.finish();
    }
}

/// What passes on the chunks of a call, and then its end.
#[derive(Debug)]
pub(super) struct Passing {
    pub(super) inbox: Arc<ChunkInbox>,
    pub(super) end: oneshot::Receiver<Result<Any>>,
}

/// The broker's id of a call, where its chunks go, and what passes them on if nothing does yet.
pub(super) type Chunks = (Arc<str>, Arc<ChunkInbox>, Option<Passing>);

impl OpenCalls {
    pub(super) fn lock(&self) -> MutexGuard<'_, CallTable> {
        lock(&self.0)
    }

    pub(super) fn take(&self, request_id: RequestId) -> Option<OpenCall> {
        self.lock().open.remove(&request_id)
    }

    pub(super) fn take_back(&self, request_id: RequestId) {
        let mut given = self.lock();
        let Some(call) = given.open.remove(&request_id) else { return };
        if given.taken_back.len() >= TAKEN_BACK_MAX {
            given.taken_back.pop_front();
        }
        given.taken_back.push_back((request_id, call.id));
    }

    /// Where a call's chunks go; with the first one also what passes them on.
    pub(super) fn chunks(&self, request_id: RequestId) -> Option<Chunks> {
        let mut given = self.lock();
        let call = given.open.get_mut(&request_id)?;
        if let Some(chunks) = &call.chunks {
            return Some((Arc::clone(&call.id), Arc::clone(&chunks.inbox), None));
        }
        let inbox = Arc::<ChunkInbox>::default();
        let (end, ended) = oneshot::channel();
        call.chunks = Some(OpenChunks { inbox: Arc::clone(&inbox), end: Some(end) });
        let passing = Passing { inbox: Arc::clone(&inbox), end: ended };
        Some((Arc::clone(&call.id), inbox, Some(passing)))
    }

    /// The broker's id of a call that was taken back.
    pub(super) fn late(&self, request_id: RequestId) -> Option<Arc<str>> {
        let given = self.lock();
        let late = given.taken_back.iter().find(|(taken_back, _)| *taken_back == request_id);
        late.map(|(_, id)| Arc::clone(id))
    }
}
