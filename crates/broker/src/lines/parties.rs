//! What edges do with lines: offer and withdraw tools, open streams, answer calls, make calls.

use std::sync::Arc;

use ringback_core::lines::{Audience, LineKind, LineName, may_offer};
use ringback_proto::any::Any;
use ringback_proto::envelope::CallOptions;
use ringback_proto::ids::{CallId, RequestId};
use ringback_proto::principal::PrincipalId;
use ringback_proto::timing::ToolTiming;
use ringback_proto::{Certainty, Error, ErrorKind, Result, StreamChunk};
use tokio::sync::{Notify, watch};

use super::{ChunkSink, LineCall, LineStream, Lines, OfferedTool};
use crate::call::Edge;
use crate::identity::Credential;
use crate::sync::lock;

/// Tools that a party offers.
#[derive(Debug)]
pub struct LineOffer {
    /// The line.
    pub line: LineName,
    /// How long its calls wait for a new stream when the last one closed; unchanged if absent.
    pub grace_ms: Option<u64>,
    /// The tools.
    pub tools: Vec<ToolOffer>,
}

/// A tool that a party offers.
#[derive(Debug, Default)]
pub struct ToolOffer {
    /// Its name at its party.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The JSON Schema of its input; any object if absent.
    pub input_schema: Option<Any>,
    /// Its duration class.
    pub timing: Option<ToolTiming>,
    /// How long a call may take.
    pub timeout_ms: Option<u64>,
    /// Whether each progress report restarts the time limit of a call.
    pub progress_extends: bool,
    /// Whether running it twice does no harm.
    pub idempotent: bool,
    /// Who else may use it.
    pub audience: Audience,
}

/// The origin of a call, as the caller states it; passed on, never interpreted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallContext {
    /// The session.
    pub session_id: Option<Arc<str>>,
    /// The message in it.
    pub message_id: Option<Arc<str>>,
    /// The call's number at the caller.
    pub call_id: Option<Arc<str>>,
}

/// A call of a tool on a line.
#[derive(Debug)]
pub struct LineRequest<'a> {
    /// The caller.
    pub credential: &'a Credential,
    /// The edge.
    pub edge: Edge,
    /// The tool's full name.
    pub tool: String,
    /// Its input.
    pub arguments: Any,
    /// Its options.
    pub options: CallOptions,
    /// The caller's id for it, which identifies a repeat.
    pub request_id: Option<RequestId>,
    /// An id that the party is to see instead of the daemon's own; it must not be in use.
    pub custom_id: Option<Arc<str>>,
    /// Its origin.
    pub context: CallContext,
}

impl Lines {
    /// Checks whether a principal may offer tools, or call those of others.
    ///
    /// # Errors
    /// `unauthenticated` once the token is no longer valid, `forbidden` without scope `write`.
    pub fn may_offer(&self, credential: &Credential) -> Result<()> {
        may_offer(credential.principal(self.kernel.now())?)
    }

    /// Offers tools on a line: all of them or, if one is refused, none. Returns their full names.
    ///
    /// # Errors
    /// `forbidden` without scope `write` or when the line's name belongs to another principal,
    /// `invalid` for bad names and schemas, `conflict` when a name is taken, `busy` past a limit.
    pub fn offer(&self, credential: &Credential, offer: LineOffer) -> Result<Vec<Arc<str>>> {
        let principal = Arc::clone(credential.principal(self.kernel.now())?);
        self.offer_on(&principal, offer, None)
    }

    /// Takes tools off a line: those named, by either name, or all. Returns their full names.
    ///
    /// # Errors
    /// `forbidden` when the line is another principal's.
    pub fn withdraw(
        &self,
        credential: &Credential,
        line: &LineName,
        tools: Option<&[String]>,
    ) -> Result<Vec<Arc<str>>> {
        let owner = credential.principal(self.kernel.now())?.id;
        let mut effects = Vec::new();
        let withdrawn = lock(&self.table).withdraw_named(owner, line, tools, &mut effects);
        self.carry_out(effects);
        withdrawn
    }

    /// Opens a stream of a line; dropping it closes it.
    ///
    /// # Errors
    /// As [`Self::offer`], except those about tools.
    pub fn open(self: &Arc<Self>, credential: &Credential, line: &LineName) -> Result<LineStream> {
        let now = self.kernel.now();
        let principal = credential.principal(now)?;
        let bell = Arc::new(Notify::new());
        let mut effects = Vec::new();
        let opened = lock(&self.table).open(now, principal, line, Arc::clone(&bell), &mut effects);
        self.carry_out(effects);
        let lines = Arc::clone(self);
        Ok(LineStream::new(lines, credential.clone(), line.clone(), opened?, bell))
    }

    /// Returns the tools of one line that this caller may see, in the order of registration.
    ///
    /// # Errors
    /// `unauthenticated` once the token is no longer valid.
    pub fn tools_of(
        &self,
        credential: &Credential,
        line: &LineName,
    ) -> Result<Vec<Arc<OfferedTool>>> {
        let principal = credential.principal(self.kernel.now())?;
        Ok(lock(&self.table).tools_of(principal, line))
    }

    /// Returns every tool on a line of this kind that this caller may see, in the order of
    /// registration.
    ///
    /// # Errors
    /// `unauthenticated` once the token is no longer valid.
    pub fn tools(&self, credential: &Credential, kind: LineKind) -> Result<Vec<Arc<OfferedTool>>> {
        let principal = credential.principal(self.kernel.now())?;
        let mut tools = lock(&self.table).registry().seen_by(principal, kind);
        tools.sort_by_key(|tool| tool.seq);
        Ok(tools)
    }

    /// Answers a call for a party. The first answer counts.
    ///
    /// # Errors
    /// `not_found` when no such call waits for an answer from this principal: it does not exist,
    /// belongs to another principal, or has ended.
    pub fn answer(
        &self,
        credential: &Credential,
        request_id: &str,
        outcome: Result<Any>,
    ) -> Result<()> {
        let now = self.kernel.now();
        let owner = credential.principal(now)?.id;
        let answered = {
            let mut table = lock(&self.table);
            // A caller names the session it answers for; see `Callers::answer`.
            let awaited = table.waiting(owner, request_id);
            if awaited.is_ok_and(|awaited| awaited.tool.line.kind() == LineKind::Caller) {
                Err((Error::not_found("request", request_id), None))
            } else {
                let answered = table.answer(owner, request_id);
                answered.map_err(|error| (error, table.ended(owner, request_id)))
            }
        };
        self.settle(owner, request_id, answered, outcome)
    }

    /// Reports a party's progress. The caller sees it if it follows the call, and the time limit
    /// restarts if the tool asked for that.
    ///
    /// # Errors
    /// `not_found` as for [`Self::answer`].
    pub fn chunk_sink(&self, credential: &Credential, request_id: &str) -> Result<ChunkSink> {
        let owner = credential.principal(self.kernel.now())?.id;
        self.sink_of(owner, request_id)
    }

    pub(super) fn sink_of(&self, owner: PrincipalId, request_id: &str) -> Result<ChunkSink> {
        let (call, extends, chunks) = {
            let table = lock(&self.table);
            let awaited = table.waiting(owner, request_id)?;
            let extends = awaited.tool.timeout_ms.filter(|_| awaited.tool.progress_extends);
            (awaited.id, extends, awaited.caller.chunks.clone())
        };
        if let Some(ms) = extends {
            self.calls.extend(call, ms);
        }
        Ok(ChunkSink::new(Arc::clone(&self.kernel), chunks))
    }

    /// Reports a party's progress; see [`Self::chunk_sink`].
    ///
    /// # Errors
    /// `not_found` as for [`Self::answer`].
    pub async fn progress(
        &self,
        credential: &Credential,
        request_id: &str,
        percent: f32,
        message: String,
    ) -> Result<()> {
        let sink = self.chunk_sink(credential, request_id)?;
        sink.send(StreamChunk::Progress { percent, message }).await;
        Ok(())
    }

    /// Returns a call on a line that has not ended, for the line's owner and those who see
    /// everything.
    #[must_use]
    pub fn waiting_call(&self, credential: &Credential, call: CallId) -> Option<Arc<LineCall>> {
        let principal = credential.principal(self.kernel.now()).ok()?;
        lock(&self.table).peek(principal, call).cloned()
    }

    /// Returns a call on one of the caller's own lines that has not ended, by the id that its party
    /// knows.
    #[must_use]
    pub fn waiting_request(
        &self,
        credential: &Credential,
        request_id: &str,
    ) -> Option<Arc<LineCall>> {
        let principal = credential.principal(self.kernel.now()).ok()?;
        let table = lock(&self.table);
        let call = table.waiting(principal.id, request_id).ok()?.id;
        table.peek(principal, call).cloned()
    }

    /// Counts the changes of the tools offered on lines, so that a client that shows a list knows
    /// when to look again.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

/// A tool that reports a failure has run, unless its party says otherwise.
pub(super) fn ran(error: Error) -> Error {
    match (error.kind(), error.certainty()) {
        (ErrorKind::ToolFailed, Certainty::NotStarted) => error.with_certainty(Certainty::Ran),
        _ => error,
    }
}
