//! The shell of the line engine: parties keep streams open and offer tools, callers wait for
//! answers.

mod call;
mod caller_stream;
mod callers;
mod follower;
mod inbox;
mod parties;
mod service;
mod stream;

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use ringback_core::deadline::Deadline;
use ringback_core::lines::{
    EndedCall, LineEffect, LineKind, LineLimits, LineName, LineTable, LineTool, Links, NewTool,
    may_offer,
};
use ringback_proto::any::{Any, Format};
use ringback_proto::event::{ClientToolCall, ClientTools};
use ringback_proto::ids::{CallId, JobId, SessionId};
use ringback_proto::principal::PrincipalId;
use ringback_proto::timing::ToolTiming;
use ringback_proto::tool::is_service_of_rows;
use ringback_proto::{Error, Event, Result};
use tokio::sync::{Notify, oneshot, watch};

pub(crate) use self::call::LineCaller;
pub use self::caller_stream::CallerStream;
pub use self::callers::{CallerCall, CallerTools, Callers};
pub(crate) use self::follower::LineFollower;
pub use self::inbox::ChunkInbox;
pub use self::parties::{CallContext, LineOffer, LineRequest, ToolOffer};
pub(crate) use self::service::ServiceCall;
pub(crate) use self::stream::CallChunks;
pub use self::stream::{ChunkSink, LineStream};
use crate::call::Calls;
use crate::kernel::Kernel;
use crate::payload::InputSchema;
use crate::sync::lock;

/// Longer descriptions are a mistake.
const DESCRIPTION_BYTES_MAX: usize = 16 << 10;
/// The longest part of a client-supplied id that is logged.
const LOGGED_CHARS_MAX: usize = 64;

/// The settings of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineSettings {
    /// How long a call of an HTTP client's tool may take by default.
    pub client_call_ms_default: u64,
    /// How long a call of a caller's tool may take when its declaration sets no limit.
    pub caller_call_ms_default: u64,
    /// How long a caller that polls counts as connected after its last poll.
    pub poll_grace_ms: u64,
    /// The limits of lines.
    pub limits: LineLimits,
}

impl Default for LineSettings {
    fn default() -> Self {
        Self {
            client_call_ms_default: 30_000,
            caller_call_ms_default: 60_000,
            poll_grace_ms: 10_000,
            limits: LineLimits::default(),
        }
    }
}

/// The broker's types for the engine.
#[derive(Debug)]
pub(crate) struct BrokerLinks;

impl Links for BrokerLinks {
    type Tool = ToolFace;
    type Out = Arc<LineCall>;
    type Caller = Waiter;
    type Bell = Arc<Notify>;
}

/// The description of a tool on a line.
#[derive(Debug)]
pub struct ToolFace {
    /// What it does.
    pub description: Box<str>,
    /// Its duration class.
    pub timing: ToolTiming,
    pub(crate) schema: InputSchema,
}

impl ToolFace {
    /// Returns the JSON Schema of its input, as its party sent it.
    #[must_use]
    pub const fn schema_json(&self) -> &Bytes {
        self.schema.json()
    }
}

/// A tool on a line.
pub type OfferedTool = LineTool<ToolFace>;

/// A call as its party receives it.
#[derive(Debug)]
pub struct LineCall {
    /// Its id.
    pub id: CallId,
    /// The id that its party answers with: the one that the caller chose, else the id above.
    pub request_id: Arc<str>,
    /// The tool.
    pub tool: Arc<OfferedTool>,
    /// The origin that the caller stated.
    pub context: CallContext,
    /// Its input, in the party's encoding.
    pub arguments: Any,
    /// Its deadline.
    pub deadline: Deadline,
    /// The job that it belongs to, which its answer must name again.
    pub job_id: Option<JobId>,
}

impl LineCall {
    /// Returns the caller it is for, if the tool is a caller's.
    #[must_use]
    pub fn caller_id(&self) -> Option<&str> {
        self.tool.line.caller_id()
    }

    /// Returns the session whose caller's tool it is for: the root of a tree.
    #[must_use]
    pub fn root_session(&self) -> Option<SessionId> {
        self.tool.line.session()
    }

    /// Returns the session that calls a caller's tool.
    #[must_use]
    pub fn from_session(&self) -> Option<SessionId> {
        match self.tool.line.kind() {
            LineKind::Caller => self.context.session_id.as_deref()?.parse().ok(),
            // Whatever it says is a claim of the client that calls.
            LineKind::Client | LineKind::Worker => None,
        }
    }

    fn told(&self) -> ClientToolCall {
        let text = |text: &Option<Arc<str>>| text.clone().unwrap_or_default();
        ClientToolCall {
            client_id: Arc::clone(self.tool.line.name()),
            request_id: Arc::clone(&self.request_id),
            session_id: text(&self.context.session_id),
            message_id: text(&self.context.message_id),
            call_id: text(&self.context.call_id),
            tool: Arc::clone(&self.tool.full_name),
        }
    }
}

/// The waiter for a call.
#[derive(Debug)]
pub(crate) struct Waiter {
    answer: oneshot::Sender<Result<Any>>,
    /// Where its chunks go; nowhere if the daemon itself calls.
    chunks: Option<Arc<CallChunks>>,
}

/// The lines: tools that parties outside the daemon offer, the streams they keep open, and the
/// calls on them.
#[derive(Debug)]
pub struct Lines {
    kernel: Arc<Kernel>,
    calls: Arc<Calls>,
    table: Mutex<LineTable<BrokerLinks>>,
    /// Counts the changes of the offered tools.
    changes: watch::Sender<u64>,
    /// Counts the changes of services that do the work of native tools.
    service_changes: watch::Sender<u64>,
    settings: LineSettings,
}

impl Lines {
    pub(crate) fn new(kernel: Arc<Kernel>, calls: Arc<Calls>) -> Self {
        let settings = kernel.config.lines;
        Self {
            kernel,
            calls,
            table: Mutex::new(LineTable::new(settings.limits)),
            changes: watch::Sender::new(0),
            service_changes: watch::Sender::new(0),
            settings,
        }
    }

    pub(crate) fn counts(&self) -> (usize, usize, usize) {
        lock(&self.table).counts()
    }

    pub(crate) fn next_lapse(&self) -> Option<u64> {
        lock(&self.table).next_lapse()
    }

    /// Checks whether a principal may call a tool on a line. An absent or invisible tool is left to
    /// the call.
    pub(crate) fn may_call(
        &self,
        principal: &ringback_proto::principal::Principal,
        tool: &str,
    ) -> Result<()> {
        // Nearly every principal may, and looks the tool up once.
        let Err(refusal) = may_offer(principal) else { return Ok(()) };
        match lock(&self.table).registry().find(principal, tool) {
            Err(error) if error.kind() == refusal.kind() => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Returns up to `limit` tools that this principal may call, by name.
    pub(crate) fn page(
        &self,
        principal: &ringback_proto::principal::Principal,
        after: &str,
        prefix: &str,
        limit: usize,
    ) -> Vec<Arc<OfferedTool>> {
        lock(&self.table).registry().page(principal, after, prefix, limit)
    }
}

/// Returns the encoding that a party of this line speaks.
const fn spoken(line: &LineName) -> Format {
    match line.kind() {
        LineKind::Client | LineKind::Caller => Format::Json,
        LineKind::Worker => Format::MsgPack,
    }
}

fn new_tool(offer: ToolOffer) -> Result<NewTool<ToolFace>> {
    if offer.description.len() > DESCRIPTION_BYTES_MAX {
        let message = format!("a description can have at most {} KiB", DESCRIPTION_BYTES_MAX >> 10);
        return Err(Error::invalid_field("description", message));
    }
    let schema = InputSchema::read(offer.input_schema)?;
    Ok(NewTool {
        name: offer.name.into(),
        weight: 256 + offer.description.len() + schema.json().len(),
        audience: offer.audience,
        timeout_ms: offer.timeout_ms,
        progress_extends: offer.progress_extends,
        idempotent: offer.idempotent,
        info: ToolFace {
            description: offer.description.into(),
            timing: offer.timing.unwrap_or(ToolTiming::AsyncShort),
            schema,
        },
    })
}

impl Lines {
    /// Runs the effects of an engine step.
    fn carry_out(&self, effects: Vec<LineEffect<BrokerLinks>>) {
        for effect in effects {
            match effect {
                LineEffect::Ring(bell) => bell.notify_one(),
                LineEffect::Failed(ended, error) => self.end_call(ended, Err(error)),
                LineEffect::Withdrawn { line, owner, tools } => {
                    self.announce(&line, owner, &[], &tools);
                }
            }
        }
    }

    /// Takes a party's answer: it ends the call that waits for it, or is recorded as an answer
    /// without a call.
    fn settle(
        &self,
        owner: PrincipalId,
        request_id: &str,
        answered: Result<EndedCall<BrokerLinks>, (Error, Option<CallId>)>,
        outcome: Result<Any>,
    ) -> Result<()> {
        match answered {
            Ok(ended) => {
                self.end_call(ended, outcome.map_err(parties::ran));
                Ok(())
            }
            Err((error, late)) => {
                // It is a client's text, of any length.
                let request_id: String = request_id.chars().take(LOGGED_CHARS_MAX).collect();
                tracing::warn!(principal = %owner, request_id, "an answer without a waiting call");
                if let Some(call) = late {
                    self.kernel.auditor.late_answer(call);
                }
                Err(error)
            }
        }
    }

    /// Sends the caller of a call on a line its outcome, unless the caller has left.
    fn end_call(&self, ended: EndedCall<BrokerLinks>, outcome: Result<Any>) {
        self.tell_client_event(&ended.out, |call| match &outcome {
            Ok(_) => Event::ClientToolCompleted { call, success: true },
            Err(error) => {
                let error = error.message().chars().take(300).collect();
                Event::ClientToolFailed { call, error }
            }
        });
        if let Some(chunks) = &ended.caller.chunks {
            chunks.end(&self.kernel);
        }
        drop(ended.caller.answer.send(outcome));
    }

    /// Publishes an event of a call, if an HTTP client is to run it.
    fn tell_client_event(&self, call: &LineCall, event: impl FnOnce(ClientToolCall) -> Event) {
        if call.tool.line.kind() == LineKind::Client {
            self.kernel.publish(event(call.told()), call.tool.owner, None);
        }
    }

    /// Publishes which tools are offered now, and which no longer are.
    fn announce(
        &self,
        line: &LineName,
        owner: PrincipalId,
        added: &[Arc<str>],
        removed: &[Arc<str>],
    ) {
        if line.kind() == LineKind::Worker && is_service_of_rows(line.name()) {
            // Its tools are listed as rows, which do not change.
            self.service_changes.send_modify(|n_changes| *n_changes += 1);
            return;
        }
        self.changes.send_modify(|n_changes| *n_changes += 1);
        let names = |names: &[Arc<str>]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        if line.kind() == LineKind::Client {
            let client_id = line.name().to_string();
            let event = if removed.is_empty() {
                Event::ClientToolRegistered(ClientTools { client_id, tool_ids: names(added) })
            } else {
                Event::ClientToolUnregistered(ClientTools { client_id, tool_ids: names(removed) })
            };
            self.kernel.publish(event, owner, None);
        }
        let (kind, name) = (line.kind().as_str().to_owned(), line.address());
        let (added, removed) = (names(added), names(removed));
        self.kernel.publish(Event::ToolsChanged { line: kind, name, added, removed }, owner, None);
    }

    /// Ends the lines whose time without a stream is over.
    pub(crate) fn expire(&self, now: ringback_core::Now) {
        let mut effects = Vec::new();
        lock(&self.table).expire(now, &mut effects);
        self.carry_out(effects);
    }
}
