//! `tools/call` of an agent.

use ringback_broker::{Broker, CallContext, Edge, LineRequest, SessionPass};
use ringback_mcp_wire::{CallTool, Id};
use ringback_proto::any::{Any, Format};
use ringback_proto::envelope::CallOptions;
use ringback_proto::timing::ToolTiming;
use ringback_proto::{Error, ErrorKind};

use super::catalog::{Route, route};
use crate::tools::{self, CallState, Facts, NotificationOptions, Outcome};

/// Starts a call.
pub(crate) fn begin(
    broker: &Broker,
    pass: &SessionPass,
    id: &Id,
    call: &CallTool<'_>,
    wanted: NotificationOptions,
) -> CallState {
    let CallTool { name, arguments, .. } = call;
    let call_state = match route(broker, pass, name) {
        None => Err(Error::not_found("tool", name)),
        Some(Route::Native(row)) => match pass.key() {
            Some(key) => Ok(tools::call_native(broker, key, row, *arguments, wanted, false)),
            None => Err(no_key()),
        },
        Some(to @ (Route::Caller(..) | Route::OnALine(_))) => {
            tools::object(*arguments).and_then(|text| {
                let input = Any { format: Format::Json, bytes: text.into_owned().into() };
                relayed(broker, pass, id, to, input, wanted)
            })
        }
    };
    call_state.unwrap_or_else(|error| CallState::Done(Outcome::error(error, name)))
}

/// Passes a call on to the owner of the tool.
fn relayed(
    broker: &Broker,
    pass: &SessionPass,
    id: &Id,
    to: Route,
    arguments: Any,
    wanted: NotificationOptions,
) -> Result<CallState, Error> {
    let stream = wanted.is_any();
    let options = CallOptions { stream, ..CallOptions::default() };
    let session = pass.session();
    let (tool, answer) = match to {
        Route::Caller(caller_id, tool) => {
            let name = tool.name.to_string();
            let caller_id = Some(&*caller_id);
            let tool = name.clone();
            let answer =
                broker.call_from_session(session, caller_id, tool, arguments, options, Edge::Mcp);
            (name, answer)
        }
        Route::OnALine(tool) => {
            let credential = pass.key().ok_or_else(no_key)?;
            let (tool, session) = (tool.full_name.to_string(), session.to_string());
            let context = CallContext {
                message_id: Some(session.clone().into()),
                session_id: Some(session.into()),
                call_id: Some(match id {
                    Id::Number(id) | Id::Text(id) => id.clone().into(),
                }),
            };
            let request = LineRequest {
                credential,
                edge: Edge::Mcp,
                tool: tool.clone(),
                arguments,
                options,
                request_id: None,
                custom_id: None,
                context,
            };
            (tool, broker.lines().call(request))
        }
        Route::Native(row) => return Err(Error::not_found("tool", row.name)),
    };
    let streamed = stream.then_some(wanted);
    let (timing, is_long, interest) = (ToolTiming::AsyncShort, true, None);
    Ok(tools::call_state(answer, Facts { tool, timing, is_long, interest, streamed }))
}

/// The key ended between the list and the call.
fn no_key() -> Error {
    Error::new(
        ErrorKind::Unauthenticated,
        "this session has no session key for the daemon's own tools",
    )
}
