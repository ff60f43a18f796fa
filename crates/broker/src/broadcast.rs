//! The stream of a call as everyone hears it who may see the call, whether or not anyone follows
//! it.
//!
//! Invariant: the chunks of one call are sent one after the other, so its numbers arrive in order.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ringback_core::stream_data::{NewData, n_pieces};
use ringback_proto::ids::{JobId, ProjectId, StreamId};
use ringback_proto::principal::PrincipalId;
use ringback_proto::{Event, StreamChunk};

use crate::kernel::Kernel;

/// The stream of one call.
#[derive(Debug)]
pub(crate) struct Broadcast {
    pub(crate) id: StreamId,
    has_started: AtomicBool,
    has_ended: AtomicBool,
    n_pieces: AtomicU64,
}

/// The call that a stream belongs to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) tool: &'a str,
    pub(crate) job_id: Option<JobId>,
    pub(crate) owner: PrincipalId,
    pub(crate) project: Option<ProjectId>,
}

impl Broadcast {
    /// Makes the stream of a call or job with these bytes as its id: one who knows the job also
    /// knows where it is heard.
    pub(crate) const fn of(id: &[u8; 16]) -> Self {
        Self {
            id: StreamId::from_random(*id),
            has_started: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
            n_pieces: AtomicU64::new(0),
        }
    }

    /// Publishes a chunk: lossless ones live, the others as events if the call is followed. Never
    /// waits; a chunk that no one listens to only counts.
    pub(crate) fn send(
        &self,
        kernel: &Kernel,
        source: Source<'_>,
        chunk: &StreamChunk,
        is_followed: bool,
    ) {
        let n_new = n_pieces(chunk);
        if (n_new == 0 && !is_followed) || self.has_ended.load(Ordering::Acquire) {
            return;
        }
        let Source { tool, job_id, owner, project } = source;
        let stream_id = self.id;
        if !self.has_started.swap(true, Ordering::AcqRel) {
            let event = Event::StreamStarted { stream_id, tool: tool.to_owned(), job_id };
            kernel.publish(event, owner, project);
        }
        if n_new == 0 {
            let event = Event::StreamChunk { stream_id, chunk: chunk.clone() };
            return kernel.publish(event, owner, project);
        }
        let first = self.n_pieces.fetch_add(n_new, Ordering::AcqRel) + 1;
        if kernel.events.has_listeners() {
            let chunk = chunk.clone();
            let new = NewData { stream_id, first, chunk, owner, project };
            kernel.events.publish_data(kernel.now(), new);
        }
    }

    /// Publishes the end, if there was a start.
    pub(crate) fn end(&self, kernel: &Kernel, source: Source<'_>) {
        let has_started = self.has_started.load(Ordering::Acquire);
        if has_started && !self.has_ended.swap(true, Ordering::AcqRel) {
            let data = self.n_pieces.load(Ordering::Acquire);
            let event = Event::StreamEnded { stream_id: self.id, job_id: source.job_id, data };
            kernel.publish(event, source.owner, source.project);
        }
    }
}
