//! The methods: from params to a call of the broker.

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use ringback_broker::{
    Answer, Broker, Call, CallContext, CallControl, CallEvent, CallFollower, Credential, Edge,
    LineRequest, request_from_json,
};
use ringback_mcp_wire::RawValue;
use ringback_proto::any::{Any, Format};
use ringback_proto::envelope::{CallOptions, RequestEnvelope, ToolCall};
use ringback_proto::ids::SessionId;
use ringback_proto::request::{ProjectListRequest, SessionEventsRequest, empty_as_none};
use ringback_proto::timing::ToolTiming;
use ringback_proto::tool::find;
use ringback_proto::{Error, ResponseEnvelope, ToolRequest, ToolResponse};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::callers::PeerView;
use crate::events::Events;
use crate::list::list;
use crate::outcome::{Face, Outcome};
use crate::refusal::Refusal;
use crate::request::Request;
use crate::socket::SocketContext;

/// Longer than any tool name.
const TOOL_NAME_BYTES_MAX: usize = 256;
/// The decoder's message is cut at this length: it quotes the caller's own text.
const MISFIT_CHARS_MAX: usize = 400;

/// An ended or running request.
pub(crate) enum RequestState {
    /// It has ended.
    Done(Outcome),
    /// It is running.
    Later(RunningRequest, Cancel),
}

/// A running request. Dropping it cancels it where possible.
pub(crate) enum RunningRequest {
    /// A call of a caller's tool.
    Caller(Box<CallFollower>),
    /// A call with a key.
    Tool(Box<CallFollower>, String, Face),
    /// Anything else.
    Other(Pin<Box<dyn Future<Output = Outcome> + Send>>),
}

/// The next step of a request.
pub(crate) enum Step {
    /// Progress.
    Progress { percent: f32, message: String },
    /// The end of the request.
    Done(Outcome),
}

/// How to cancel a request.
pub(crate) enum Cancel {
    /// As a call.
    Call(CallControl),
    /// By a token that it watches.
    Tell(CancellationToken),
    /// Not at all: it runs to its end.
    Never,
}

impl RunningRequest {
    /// Returns the next step.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing: the next call returns the same step.
    pub(crate) async fn next(&mut self) -> Step {
        let last = loop {
            let followed = match self {
                Self::Caller(follow) | Self::Tool(follow, ..) => follow.next().await,
                Self::Other(work) => return Step::Done(work.await),
            };
            match followed {
                CallEvent::Progress { percent, message } => {
                    return Step::Progress { percent, message };
                }
                // The protocol has no place for it.
                CallEvent::Log { .. } => {}
                CallEvent::Done(last) => break last,
            }
        };
        Step::Done(match self {
            Self::Tool(_, tool, face) => Outcome::of_tool(last, tool, *face),
            Self::Caller(_) | Self::Other(_) => Outcome::of_caller(last),
        })
    }
}

impl Cancel {
    /// Cancels the request for the peer.
    pub(crate) fn cancel(&self) {
        match self {
            Self::Call(control) => control.cancel(),
            Self::Tell(token) => token.cancel(),
            Self::Never => {}
        }
    }
}

/// Starts a request.
pub(crate) fn begin(
    socket_context: &Arc<SocketContext>,
    told: &mut PeerView,
    request: &Request<'_>,
) -> Result<RequestState, Refusal> {
    match request.method.as_ref() {
        "caller_tool" => caller_tool(socket_context, request),
        "oubliette_tools" => oubliette_tools(socket_context, told, request),
        "oubliette_call_tool" => oubliette_call_tool(socket_context, request),
        "session_message" => session_message(socket_context, request),
        "session_events" => session_events(socket_context, told, request),
        "project_list" => project_list(socket_context, request),
        method => Err(Refusal::no_method(method)),
    }
}

fn caller_tool(
    socket_context: &SocketContext,
    request: &Request<'_>,
) -> Result<RequestState, Refusal> {
    #[derive(Deserialize)]
    struct Params<'a> {
        tool: String,
        #[serde(borrow)]
        arguments: Option<&'a RawValue>,
        caller_id: Option<String>,
    }
    let Params { tool, arguments, caller_id } = request.params()?;
    let tool = bounded(tool)?;
    let answer = socket_context.broker.call_from_session(
        socket_context.session,
        caller_id.as_deref(),
        tool.clone(),
        payload(arguments),
        CallOptions { stream: true, ..CallOptions::default() },
        Edge::Relay,
    );
    Ok(match answer {
        Answer::Now(last) => RequestState::Done(Outcome::of_caller(last)),
        Answer::Later(replies, control) => {
            let follow = CallFollower::new(replies, control, tool, ToolTiming::AsyncShort);
            let cancel = Cancel::Call(follow.control());
            RequestState::Later(RunningRequest::Caller(Box::new(follow)), cancel)
        }
    })
}

fn oubliette_tools(
    socket_context: &SocketContext,
    told: &mut PeerView,
    request: &Request<'_>,
) -> Result<RequestState, Refusal> {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow)]
        api_key: Cow<'a, str>,
    }
    let Params { api_key } = request.params()?;
    let credential = authenticate(socket_context, &api_key)?;
    let listed = list(&socket_context.broker, &credential).map_err(Refusal::with_key)?;
    told.listed(&socket_context.broker, credential);
    Ok(RequestState::Done(Outcome::Json(listed)))
}

fn oubliette_call_tool(
    socket_context: &SocketContext,
    request: &Request<'_>,
) -> Result<RequestState, Refusal> {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow)]
        api_key: Cow<'a, str>,
        tool: String,
        #[serde(borrow)]
        arguments: Option<&'a RawValue>,
        message_id: Option<String>,
        call_id: Option<String>,
    }
    let Params { api_key, tool, arguments, message_id, call_id } = request.params()?;
    let credential = authenticate(socket_context, &api_key)?;
    let tool = bounded(tool)?;
    let may = socket_context.broker.may_call(&credential, Edge::Relay, &tool);
    may.map_err(Refusal::with_key)?;
    if arguments.is_some_and(|raw| !raw.get().starts_with('{')) {
        return Err(Refusal::bad_params("`arguments` must be an object"));
    }
    if let Some(row) = find(&tool) {
        let text = arguments.map_or("{}", RawValue::get);
        let call = match request_from_json(row.name, text.as_bytes()) {
            Some(Ok(call)) => call,
            Some(Err(error)) => return Ok(RequestState::Done(misfit(&tool, &error))),
            None => return Err(Error::not_found("tool", &tool).into()),
        };
        let is_streamed = row.makes_job && !row.timing.edge_wait().is_zero();
        let answer = call_native(&socket_context.broker, &credential, call, is_streamed);
        return Ok(request_state(answer, tool, row.timing, Face::Content));
    }
    let session = socket_context.session.to_string();
    let request_id = request.id.map(|id| id.get().to_owned());
    let answer = socket_context.broker.lines().call(LineRequest {
        credential: &credential,
        edge: Edge::Relay,
        tool: tool.clone(),
        arguments: payload(arguments),
        options: CallOptions { stream: true, ..CallOptions::default() },
        request_id: None,
        custom_id: None,
        context: CallContext {
            message_id: Some(message_id.unwrap_or_else(|| session.clone()).into()),
            call_id: call_id.or(request_id).map(Into::into),
            session_id: Some(session.into()),
        },
    });
    Ok(request_state(answer, tool, ToolTiming::AsyncShort, Face::Content))
}

fn project_list(
    socket_context: &SocketContext,
    request: &Request<'_>,
) -> Result<RequestState, Refusal> {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow)]
        api_key: Cow<'a, str>,
        #[serde(flatten)]
        request: ProjectListRequest,
    }
    let Params { api_key, request } = request.params()?;
    let credential = authenticate(socket_context, &api_key)?;
    let tool = "project_list".to_owned();
    let answer = call_native(&socket_context.broker, &credential, request.into(), false);
    Ok(request_state(answer, tool, ToolTiming::AsyncShort, Face::Bare))
}

fn session_message(
    socket_context: &Arc<SocketContext>,
    request: &Request<'_>,
) -> Result<RequestState, Refusal> {
    #[derive(Deserialize)]
    struct Params {
        message: String,
        #[serde(default, deserialize_with = "empty_as_none")]
        session_id: Option<SessionId>,
    }
    let Params { message, session_id } = request.params()?;
    let (broker, session) = (socket_context.broker.clone(), socket_context.session);
    // A session must not be left half started when its starter disconnects.
    let sent = socket_context
        .scope
        .tasks
        .spawn(async move { broker.session_message_from(session, message, session_id).await });
    let work = async move {
        match sent.await {
            Ok(Ok(messaged)) => Outcome::json(&ToolResponse::from(messaged)),
            Ok(Err(error)) => Outcome::Refused(error.into()),
            Err(error) => Outcome::Refused(Error::internal("relay", error).into()),
        }
    };
    Ok(RequestState::Later(RunningRequest::Other(Box::pin(work)), Cancel::Never))
}

fn session_events(
    socket_context: &SocketContext,
    told: &PeerView,
    request: &Request<'_>,
) -> Result<RequestState, Refusal> {
    #[derive(Deserialize)]
    struct Params {
        #[serde(default, deserialize_with = "empty_as_none")]
        session_id: Option<SessionId>,
        since_index: Option<i64>,
        max_events: Option<u32>,
        wait_ms: Option<u64>,
        include_children: Option<bool>,
    }
    let params: Params = request.params()?;
    let (broker, session) = (socket_context.broker.clone(), socket_context.session);
    let request = SessionEventsRequest {
        session_id: params.session_id.unwrap_or(session),
        since_index: params.since_index,
        // Such a client asks for all events each time.
        max_events: params.max_events.or(told.has_greeted.then_some(u32::MAX)),
        wait_ms: params.wait_ms,
        include_children: params.include_children.unwrap_or(false),
        follow: false,
    };
    let cancelled = CancellationToken::new();
    let cancel = Cancel::Tell(cancelled.clone());
    let has_greeted = told.has_greeted;
    let work = async move {
        let events = tokio::select! {
            biased;
            () = cancelled.cancelled() => Err(Error::cancelled("as the caller asked")),
            events = broker.session_events_from(session, request) => events,
        };
        match events {
            Ok(events) if has_greeted => Outcome::json(&Events::from(events)),
            Ok(events) => Outcome::json(&ToolResponse::from(events)),
            Err(error) => Outcome::Refused(error.into()),
        }
    };
    Ok(RequestState::Later(RunningRequest::Other(Box::pin(work)), cancel))
}

/// Returns the owner of a key, checked at every request.
fn authenticate(socket_context: &SocketContext, api_key: &str) -> Result<Credential, Refusal> {
    socket_context
        .broker
        .authenticate_in(socket_context.session, api_key)
        .map_err(Refusal::with_key)
}

fn call_native(
    broker: &Broker,
    credential: &Credential,
    call: ToolRequest,
    stream: bool,
) -> Answer {
    let options = CallOptions { stream, ..CallOptions::default() };
    let envelope = RequestEnvelope { request: ToolCall::Native(call), options };
    // Every client's JSON-RPC ids start at 0 or 1, so they do not identify a call.
    broker.call(Call { credential, edge: Edge::Relay, envelope, request_id: None })
}

fn request_state(answer: Answer, tool: String, timing: ToolTiming, face: Face) -> RequestState {
    match answer {
        Answer::Now(last) => RequestState::Done(Outcome::of_tool(last, &tool, face)),
        Answer::Later(replies, control) => {
            let follow = CallFollower::new(replies, control, tool.clone(), timing);
            let cancel = Cancel::Call(follow.control());
            RequestState::Later(RunningRequest::Tool(Box::new(follow), tool, face), cancel)
        }
    }
}

/// The arguments unchanged; absent ones are an empty object.
fn payload(arguments: Option<&RawValue>) -> Any {
    let bytes = arguments
        .map_or(Bytes::from_static(b"{}"), |raw| Bytes::copy_from_slice(raw.get().as_bytes()));
    Any { format: Format::Json, bytes }
}

fn bounded(tool: String) -> Result<String, Refusal> {
    if tool.is_empty() || tool.len() > TOOL_NAME_BYTES_MAX {
        let message = format!("`tool` must be a name of 1 to {TOOL_NAME_BYTES_MAX} bytes");
        return Err(Error::invalid_field("tool", message).into());
    }
    Ok(tool)
}

/// A result for the model, which can correct its arguments.
fn misfit(tool: &str, error: &serde_json::Error) -> Outcome {
    let text: String = error.to_string().chars().take(MISFIT_CHARS_MAX).collect();
    let error = Error::invalid(format!("invalid arguments for `{tool}`: {text}"));
    Outcome::of_tool(ResponseEnvelope::from(error), tool, Face::Content)
}
