//! A stream that a party keeps open: it delivers the party's calls, and dropping it closes it.

use std::sync::Arc;

use ringback_core::lines::{LineName, Offer, PartyMessage, StreamNo};
use ringback_core::policy;
use ringback_proto::ids::{CallId, ProjectId};
use ringback_proto::principal::{Principal, PrincipalId};
use ringback_proto::{Event, Result, StreamChunk};
use tokio::sync::Notify;

use super::{LineCall, LineOffer, Lines, OfferedTool};
use crate::broadcast::{Broadcast, Source};
use crate::identity::Credential;
use crate::kernel::Kernel;
use crate::stream::Stream;
use crate::sync::lock;

/// An open stream of a line.
#[derive(Debug)]
pub struct LineStream {
    lines: Arc<Lines>,
    credential: Credential,
    line: LineName,
    number: StreamNo,
    bell: Arc<Notify>,
}

impl LineStream {
    pub(super) const fn new(
        lines: Arc<Lines>,
        credential: Credential,
        line: LineName,
        number: StreamNo,
        bell: Arc<Notify>,
    ) -> Self {
        Self { lines, credential, line, number, bell }
    }

    /// Returns the line it belongs to.
    #[must_use]
    pub const fn line(&self) -> &LineName {
        &self.line
    }

    /// Returns the next message to the party. A call that it returns counts as delivered. `None`
    /// when the party's token has ended, or the broker stops.
    ///
    /// # Cancel safety
    /// Dropping it loses nothing: nothing is taken before it returns.
    pub async fn next(&mut self) -> Option<PartyMessage<Arc<LineCall>>> {
        loop {
            if let Some(post) = self.take() {
                return Some(post);
            }
            tokio::select! {
                biased;
                () = self.lines.kernel.stopping.cancelled() => return None,
                () = self.credential.ended() => return None,
                // Not immediately: calls that are made at the same time go out in one write.
                () = self.bell.notified() => tokio::task::yield_now().await,
            }
        }
    }

    fn take(&self) -> Option<PartyMessage<Arc<LineCall>>> {
        if !self.credential.is_valid(self.lines.kernel.now()) {
            return None;
        }
        let post = lock(&self.lines.table).next(self.number)?;
        if let PartyMessage::Call(call) = &post {
            self.lines.kernel.auditor.delivered(self.lines.kernel.now(), call.id);
            self.lines.tell_client_event(call, Event::ClientToolExecuting);
        }
        Some(post)
    }

    /// Offers tools that this stream answers for, replacing those it offered before. Other streams
    /// of the same line may offer them too.
    ///
    /// # Errors
    /// As [`Lines::offer`].
    pub fn offer(&self, tools: Vec<super::ToolOffer>) -> Result<Vec<Arc<str>>> {
        let principal = Arc::clone(self.credential.principal(self.lines.kernel.now())?);
        let offer = LineOffer { line: self.line.clone(), grace_ms: None, tools };
        self.lines.offer_on(&principal, offer, Some(self.number))
    }
}

impl Drop for LineStream {
    fn drop(&mut self) {
        let mut effects = Vec::new();
        lock(&self.lines.table).close(self.lines.kernel.now(), self.number, &mut effects);
        self.lines.carry_out(effects);
        self.lines.kernel.alarm.ring();
    }
}

/// Where the chunks of a call go: to its caller if it follows the call, and to everyone who
/// listens and may see the call.
#[derive(Debug)]
pub(crate) struct CallChunks {
    stream: Option<Arc<Stream>>,
    broadcast: Broadcast,
    tool: Arc<str>,
    owner: PrincipalId,
    project: Option<ProjectId>,
}

impl CallChunks {
    pub(super) fn new(
        id: CallId,
        tool: &OfferedTool,
        caller: &Principal,
        stream: Option<Arc<Stream>>,
    ) -> Self {
        Self {
            stream,
            broadcast: Broadcast::of(id.as_bytes()),
            tool: Arc::clone(&tool.full_name),
            owner: caller.id,
            project: policy::provenance(caller, None).project,
        }
    }

    /// Ends the stream: the call is over.
    pub(super) fn end(&self, kernel: &Kernel) {
        self.broadcast.end(kernel, self.source());
        if let Some(stream) = &self.stream {
            stream.finish();
        }
    }

    fn source(&self) -> Source<'_> {
        Source { tool: &self.tool, job_id: None, owner: self.owner, project: self.project }
    }
}

/// The destination of one call's chunks.
#[derive(Debug, Clone)]
pub struct ChunkSink {
    kernel: Arc<Kernel>,
    chunks: Option<Arc<CallChunks>>,
}

impl ChunkSink {
    pub(super) const fn new(kernel: Arc<Kernel>, chunks: Option<Arc<CallChunks>>) -> Self {
        Self { kernel, chunks }
    }

    /// Publishes a chunk and passes it to the caller; waits while the caller is behind with lossless
    /// ones. A caller that follows no stream gets none.
    pub async fn send(&self, chunk: StreamChunk) {
        let Some(chunks) = &self.chunks else { return };
        let is_followed = chunks.stream.is_some();
        chunks.broadcast.send(&self.kernel, chunks.source(), &chunk, is_followed);
        if let Some(stream) = &chunks.stream {
            stream.send(chunk).await;
        }
    }
}

impl Lines {
    /// Offers tools on a line, or on one of its streams.
    pub(super) fn offer_on(
        &self,
        principal: &Principal,
        offer: LineOffer,
        stream: Option<StreamNo>,
    ) -> Result<Vec<Arc<str>>> {
        let LineOffer { line, grace_ms, tools } = offer;
        let tools = tools.into_iter().map(super::new_tool).collect::<Result<Vec<_>>>()?;
        let offer = Offer { line: line.clone(), grace_ms, stream, tools };
        let mut effects = Vec::new();
        let offered = lock(&self.table).offer(self.kernel.now(), principal, offer, &mut effects);
        self.carry_out(effects);
        let full_names = offered?;
        self.announce(&line, principal.id, &full_names, &[]);
        self.kernel.alarm.ring();
        Ok(full_names)
    }
}
