//! The callers of sessions: the program that started a session declares tools for it, and its
//! agents call them.
//!
//! A caller is addressed by the root session of a tree and its `caller_id`; every session of the
//! tree uses the same callers. Sessions decide who may declare for them: this module only ensures
//! that a `caller_id` belongs to the principal that declared it first.

use std::sync::Arc;

use ringback_core::lines::{Declaration, LineName, NewTool};
use ringback_proto::any::Any;
use ringback_proto::envelope::CallOptions;
use ringback_proto::ids::{CallId, RequestId, SessionId};
use ringback_proto::principal::Principal;
use ringback_proto::{Error, ErrorKind, Result, StreamChunk};

use super::call::{LineCaller, Outgoing, followed};
use super::{CallContext, LineCall, Lines, ToolFace, ToolOffer, new_tool};
use crate::call::{Answer, Edge};
use crate::identity::Credential;
use crate::payload;
use crate::sync::lock;

/// The tools that one caller of a session has declared.
pub type CallerTools = ringback_core::lines::CallerTools<ToolFace>;

/// An agent's call of a tool of its session's caller.
#[derive(Debug)]
pub struct CallerCall<'a> {
    /// The owner of the session: the call counts against this principal's limits, and is audited as
    /// its.
    pub principal: Arc<Principal>,
    /// The root of the session tree.
    pub session: SessionId,
    /// The session of that tree that calls.
    pub from: SessionId,
    /// The caller; may be absent if only one caller has a tool of this name.
    pub caller_id: Option<&'a str>,
    /// The tool, as its caller named it.
    pub tool: String,
    /// Its input.
    pub arguments: Any,
    /// Its options.
    pub options: CallOptions,
    /// The edge.
    pub edge: Edge,
}

/// The lines of sessions' callers.
#[derive(Debug, Clone)]
pub struct Callers(pub(super) Arc<Lines>);

impl Callers {
    pub(crate) fn on(lines: &Arc<Lines>) -> Self {
        Self(Arc::clone(lines))
    }

    /// Declares all tools of a caller of a session, replacing those it declared before: all of them
    /// or, if one is refused, none. An empty list removes the caller.
    ///
    /// # Errors
    /// `forbidden` without scope `write`, `conflict` when the `caller_id` is another principal's,
    /// `invalid` for bad names and schemas, `busy` past a limit.
    pub fn declare(
        &self,
        credential: &Credential,
        session: SessionId,
        caller_id: &str,
        tools: Vec<ToolOffer>,
    ) -> Result<()> {
        let now = self.0.kernel.now();
        let principal = credential.principal(now)?;
        let tools = tools.into_iter().map(declared).collect::<Result<Vec<_>>>()?;
        let declaration = Declaration {
            session,
            caller_id: caller_id.into(),
            grace_ms: self.0.settings.poll_grace_ms,
            tools,
        };
        let mut effects = Vec::new();
        let full_names =
            lock(&self.0.table).callers().declare(now, principal, declaration, &mut effects);
        self.0.carry_out(effects);
        let full_names = full_names?;
        if !full_names.is_empty() {
            let line = LineName::caller(session, caller_id);
            self.0.announce(&line, principal.id, &full_names, &[]);
        }
        self.0.kernel.alarm.ring();
        Ok(())
    }

    /// Returns the tools that the callers of a session have declared, by `caller_id`.
    /// [`Lines::changes`] reports when to look again.
    #[must_use]
    pub fn tools(&self, session: SessionId) -> Vec<CallerTools> {
        lock(&self.0.table).callers().of(session)
    }

    /// Takes an agent's call of a tool of its session's caller. Its caller sees it under a new
    /// random id.
    #[must_use]
    pub fn call(&self, call: CallerCall<'_>) -> Answer {
        let lines = &self.0;
        let now = lines.kernel.now();
        let CallerCall { principal, session, from, caller_id, tool, arguments, options, edge } =
            call;
        let id = CallId::from_random(lines.kernel.entropy.bytes());
        let found = {
            let mut table = lock(&lines.table);
            table.callers().find(session, caller_id, &tool)
        };
        let found = found.and_then(|tool| {
            let deadline = lines.deadline(now, &tool, &options);
            let admitted = lines.calls.admit(id, principal.id, deadline)?;
            Ok((tool, deadline, admitted))
        });
        let (tool, deadline, admitted) = match found {
            Ok(found) => found,
            Err(error) => {
                lines.kernel.auditor.refused_in(
                    now,
                    (principal.id, Some(from)),
                    edge,
                    tool.into(),
                    id,
                    &error,
                );
                return Answer::Now(error.into());
            }
        };
        let caller = LineCaller {
            id,
            tool: Arc::clone(&tool.full_name),
            principal,
            edge,
            deadline,
            request_id: None,
            session: Some(from),
        };
        let request_id = RequestId::from_random(lines.kernel.entropy.bytes()).to_string();
        let session_id = Some(from.to_string().into());
        let out = Outgoing {
            tool,
            arguments,
            custom_id: Some(request_id.into()),
            context: CallContext { session_id, ..CallContext::default() },
            stream: followed(&options),
        };
        lines.start_call(now, caller, out, admitted)
    }

    /// Returns every call of a session's agents that waits for an answer from this principal, in
    /// order, delivered or not.
    ///
    /// # Errors
    /// `unauthenticated` once the token is no longer valid.
    pub fn pending(
        &self,
        credential: &Credential,
        session: SessionId,
    ) -> Result<Vec<Arc<LineCall>>> {
        let owner = credential.principal(self.0.kernel.now())?.id;
        Ok(lock(&self.0.table).callers().pending(owner, session))
    }

    /// Answers a call for a caller. The first answer counts.
    ///
    /// # Errors
    /// `not_found` when no such call of this session waits for an answer from this principal: it
    /// does not exist, belongs to another principal or session, or has ended.
    pub fn answer(
        &self,
        credential: &Credential,
        session: SessionId,
        request_id: &str,
        outcome: Result<Any>,
    ) -> Result<()> {
        let now = self.0.kernel.now();
        let owner = credential.principal(now)?.id;
        let answered = {
            let mut table = lock(&self.0.table);
            let awaited = table.waiting(owner, request_id);
            let is_meant = awaited.and_then(|awaited| {
                is_of_session(awaited.out, session)
                    .then(|| awaited.tool.line.clone())
                    .ok_or_else(|| elsewhere(session, request_id))
            });
            let answered = is_meant.and_then(|line| {
                table.callers().touch(now, &line);
                table.answer(owner, request_id)
            });
            answered.map_err(|error| (error, table.ended(owner, request_id)))
        };
        self.0.settle(owner, request_id, answered, outcome)
    }

    /// Reports a caller's progress. The agent sees it if it follows the call.
    ///
    /// # Errors
    /// `not_found` as for [`Self::answer`].
    pub async fn progress(
        &self,
        credential: &Credential,
        session: SessionId,
        request_id: &str,
        percent: f32,
        message: String,
    ) -> Result<()> {
        let now = self.0.kernel.now();
        let owner = credential.principal(now)?.id;
        {
            let mut table = lock(&self.0.table);
            let awaited = table.waiting(owner, request_id)?;
            if !is_of_session(awaited.out, session) {
                return Err(elsewhere(session, request_id));
            }
            let line = awaited.tool.line.clone();
            table.callers().touch(now, &line);
        }
        let sink = self.0.sink_of(owner, request_id)?;
        sink.send(StreamChunk::Progress { percent, message }).await;
        Ok(())
    }

    /// Ends the callers of a session that has ended: their tools go, waiting calls fail, streams
    /// end.
    pub fn end(&self, session: SessionId) {
        let mut effects = Vec::new();
        lock(&self.0.table).callers().end(session, &mut effects);
        self.0.carry_out(effects);
    }
}

/// Returns whether a call is on a line of this session, or comes from it.
fn is_of_session(call: &LineCall, session: SessionId) -> bool {
    [call.root_session(), call.from_session()].contains(&Some(session))
}

fn elsewhere(session: SessionId, request_id: &str) -> Error {
    let message = format!(
        "no request with the id {request_id} of session {session} is waiting for an answer from \
         you"
    );
    Error::new(ErrorKind::NotFound, message)
}

/// Converts a declared tool; its schema gets the type `object`, which agents require.
fn declared(tool: ToolOffer) -> Result<NewTool<ToolFace>> {
    let name = tool.name.clone();
    let typed = tool.input_schema.map(payload::typed_as_object).transpose();
    typed
        .and_then(|input_schema| new_tool(ToolOffer { input_schema, ..tool }))
        .map_err(|error| refused_tool(&name, &error))
}

/// Rewords an error about a tool in the terms of its declaration.
fn refused_tool(name: &str, error: &Error) -> Error {
    let message = format!("tool `{name}`: {}", error.message());
    if error.kind() != ErrorKind::Invalid {
        return Error::new(error.kind(), message);
    }
    let field = match error.context().field.as_deref() {
        Some("parameters") | None => "inputSchema",
        Some(field) => field,
    };
    Error::invalid_field(field, message)
}
