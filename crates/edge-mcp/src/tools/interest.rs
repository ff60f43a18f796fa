//! The events of a session that a call wants in addition to its answer.

use std::sync::Arc;

use ringback_broker::Broker;
use ringback_proto::envelope::ToolCall;
use ringback_proto::ids::SessionId;
use ringback_proto::record::SessionState;
use ringback_proto::request::{CallerTool, SessionContext, SessionEventsRequest};
use ringback_proto::{ToolRequest, ToolResponse};

use super::outcome::Outcome;

/// The events of a session that a call wants in addition to its answer.
#[derive(Debug, Clone)]
pub(crate) enum Interest {
    /// It starts a session, or sends a message to one.
    Says {
        /// The caller id under which it offers the agent tools.
        caller_id: Option<Arc<str>>,
        /// Whether it stays until the agent is done.
        follow: bool,
    },
    /// It stays and reads the events of a session.
    Hears(Box<SessionEventsRequest>),
    /// It answers a call, which need not be reported to it any more.
    Answers(Arc<str>),
}

/// The session of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Subject {
    pub(crate) session: SessionId,
    /// The session whose callers serve it.
    pub(crate) root: SessionId,
    /// The caller id under which the call offers tools.
    pub(crate) caller_id: Option<Arc<str>>,
    /// The last event that the client knows.
    pub(crate) since: Option<u64>,
    /// Whether the agent is idle.
    pub(crate) rests: bool,
}

impl Interest {
    pub(super) fn of(call: &ToolCall) -> Option<Self> {
        let ToolCall::Native(request) = call else { return None };
        if let ToolRequest::SessionMessage(request) = request {
            let own = (&request.caller_id, &request.caller_tools);
            let caller_id = caller(own, request.context.as_ref());
            return Some(Self::Says { caller_id, follow: request.follow });
        }
        if let ToolRequest::SessionSpawn(request) = request {
            let own = (&request.caller_id, &request.caller_tools);
            let caller_id = caller(own, request.context.as_ref());
            return Some(Self::Says { caller_id, follow: false });
        }
        if let ToolRequest::SessionOpen(request) = request {
            let own = (&request.caller_id, &request.caller_tools);
            let caller_id = caller(own, request.context.as_ref());
            return Some(Self::Says { caller_id, follow: false });
        }
        if let ToolRequest::CallerToolResponse(request) = request {
            return Some(Self::Answers(request.request_id.as_str().into()));
        }
        if let ToolRequest::SessionEvents(request) = request
            && request.follow
        {
            return Some(Self::Hears(Box::new(request.clone())));
        }
        None
    }

    /// Whether the answer waits until the agent is done.
    pub(crate) fn follows(&self) -> bool {
        match self {
            Self::Says { follow, .. } => *follow,
            Self::Hears(_) => true,
            Self::Answers(_) => false,
        }
    }

    /// The session of the call, once the call has succeeded.
    pub(crate) fn subject(&self, broker: &Broker, outcome: &Outcome) -> Option<Subject> {
        let Outcome::Native(response) = outcome else { return None };
        let since = |index: i64| u64::try_from(index).ok();
        match (self, response.as_ref()) {
            (Self::Says { caller_id, .. }, ToolResponse::SessionMessaged(told)) => Some(Subject {
                session: told.session_id,
                root: told.root_session_id,
                caller_id: caller_id.clone(),
                since: since(told.last_event_index),
                rests: false,
            }),
            (Self::Says { caller_id, .. }, ToolResponse::Session(told)) => Some(Subject {
                session: told.session_id,
                root: told.root_session_id,
                caller_id: caller_id.clone(),
                since: None,
                rests: false,
            }),
            (Self::Says { caller_id, .. }, ToolResponse::SessionOpened(told)) => Some(Subject {
                session: told.session_id,
                root: root(broker, told.session_id),
                caller_id: caller_id.clone(),
                since: None,
                rests: false,
            }),
            (Self::Hears(request), ToolResponse::SessionEvents(told)) => Some(Subject {
                session: told.session_id,
                root: root(broker, told.session_id),
                caller_id: None,
                since: request.since_index.and_then(since),
                rests: rests(told.status),
            }),
            _ => None,
        }
    }
}

/// The session whose callers serve a session.
fn root(broker: &Broker, session: SessionId) -> SessionId {
    broker.session_view(session).map_or(session, |view| view.root)
}

/// Whether the agent of a session is idle.
pub(crate) const fn rests(state: SessionState) -> bool {
    match state {
        SessionState::Starting | SessionState::Running => false,
        SessionState::Idle
        | SessionState::Ended
        | SessionState::Failed
        | SessionState::Interrupted => true,
    }
}

/// The caller id that offers tools with a message, or did so before and names itself; not one that
/// withdraws them.
fn caller(
    (caller_id, tools): (&Option<String>, &Option<Vec<CallerTool>>),
    context: Option<&SessionContext>,
) -> Option<Arc<str>> {
    let tools = tools.as_ref().or_else(|| context?.caller_tools.as_ref());
    let caller_id = caller_id.as_ref().or_else(|| context?.caller_id.as_ref())?;
    tools.is_none_or(|tools| !tools.is_empty()).then(|| caller_id.as_str().into())
}
