//! The calls that a worker was given, until they end.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use ringback_proto::ids::{JobId, RequestId};
use ringback_sync::lock;
use tokio::sync::mpsc;

use super::reply::WorkerReply;

/// Chunks of one call that its caller has not read yet.
const CHUNKS_MAX: usize = 256;
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
    pub(super) chunks: Option<mpsc::Sender<WorkerReply>>,
}

/// The broker's id of a call, the sender of its chunks, and the receiver if it has no reader yet.
pub(super) type Chunks = (Arc<str>, mpsc::Sender<WorkerReply>, Option<mpsc::Receiver<WorkerReply>>);

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

    /// The sender of a call's chunks, with the receiver at the first one.
    pub(super) fn chunks(&self, request_id: RequestId) -> Option<Chunks> {
        let mut given = self.lock();
        let call = given.open.get_mut(&request_id)?;
        if let Some(chunks) = &call.chunks {
            return Some((Arc::clone(&call.id), chunks.clone(), None));
        }
        let (chunks, inbox) = mpsc::channel(CHUNKS_MAX);
        call.chunks = Some(chunks.clone());
        Some((Arc::clone(&call.id), chunks, Some(inbox)))
    }

    /// The broker's id of a call that was taken back.
    pub(super) fn late(&self, request_id: RequestId) -> Option<Arc<str>> {
        let given = self.lock();
        let late = given.taken_back.iter().find(|(taken_back, _)| *taken_back == request_id);
        late.map(|(_, id)| Arc::clone(id))
    }
}
