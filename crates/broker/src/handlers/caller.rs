//! Calls to the tools that callers offer: `caller_tool_*`.

use std::sync::Arc;
use std::time::Duration;

use ringback_core::Now;
use ringback_proto::any::Format;
use ringback_proto::ids::SessionId;
use ringback_proto::raw::Raw;
use ringback_proto::request::{
    AckResponse, CallerMessageType, CallerToolProgressRequest, CallerToolRequestInfo,
    CallerToolRequestsRequest, CallerToolRequestsResponse, CallerToolResponseRequest,
};
use ringback_proto::tool::tools;
use ringback_proto::{Certainty, Error, ErrorKind, Result};

use super::Native;
use crate::Broker;
use crate::call::Edge;
use crate::handler::{Context, Handler};
use crate::lines::LineCall;
use crate::sync::lock;

/// The longest wait for a call.
const WAIT_MS_MAX: u64 = 30_000;
/// The longest error of a tool that is passed on.
const ERROR_BYTES_MAX: usize = 64 << 10;

impl Handler<tools::CallerToolResponse> for Native {
    async fn handle(ctx: Context, request: CallerToolResponseRequest) -> Result<AckResponse> {
        let CallerToolResponseRequest { session_id, request_id, result, error } = request;
        let outcome = match (result, error) {
            (Some(_), Some(_)) => {
                let message = "send `result` or `error`, not both; the call still waits";
                return Err(Error::invalid_field("error", message));
            }
            (_, Some(error)) if error.len() > ERROR_BYTES_MAX => {
                let message = format!("`error` can have at most {} KiB", ERROR_BYTES_MAX >> 10);
                return Err(Error::invalid_field("error", message));
            }
            (None, Some(error)) => Err(Error::new(ErrorKind::ToolFailed, error)),
            (Some(result), None) => Ok(result.into()),
            (None, None) => Ok(Raw::null().into()),
        };
        let credential = ctx.rooms.identity.credential_of(&ctx.principal)?;
        let root = root_of(&ctx, session_id)?;
        ctx.rooms.callers.answer(&credential, root, &request_id, outcome)?;
        Ok(AckResponse { message: "the answer was delivered to the agent".to_owned() })
    }
}

impl Handler<tools::CallerToolProgress> for Native {
    async fn handle(ctx: Context, request: CallerToolProgressRequest) -> Result<AckResponse> {
        let CallerToolProgressRequest { session_id, request_id, percent, message } = request;
        if !(0.0..=100.0).contains(&percent) {
            return Err(Error::invalid_field("percent", "`percent` must be 0 to 100"));
        }
        let credential = ctx.rooms.identity.credential_of(&ctx.principal)?;
        let root = root_of(&ctx, session_id)?;
        let message = message.unwrap_or_default();
        ctx.rooms.callers.progress(&credential, root, &request_id, percent, message).await?;
        Ok(AckResponse { message: "noted".to_owned() })
    }
}

impl Handler<tools::CallerToolRequests> for Native {
    async fn handle(
        ctx: Context,
        request: CallerToolRequestsRequest,
    ) -> Result<CallerToolRequestsResponse> {
        let CallerToolRequestsRequest { session_id, caller_id, wait_ms } = request;
        let root = root_of(&ctx, session_id)?;
        let credential = ctx.rooms.identity.credential_of(&ctx.principal)?;
        let callers = &ctx.rooms.callers;
        let only = caller_id.map(|only| vec![Arc::from(only)]);
        let wait = Duration::from_millis(wait_ms.unwrap_or(0).min(WAIT_MS_MAX));
        let calls = callers.poll(&credential, root, only, wait).await?;
        let (calls, unsayable) = match ctx.edge {
            Some(Edge::Hoot) => calls.into_iter().partition(|call| is_sayable(call)),
            Some(Edge::Http | Edge::Mcp | Edge::Relay) | None => (calls, Vec::new()),
        };
        for call in unsayable {
            let message = "the arguments contain an integer that MsgPack, the encoding in which \
                the caller polls, cannot represent";
            let refused = Err(Error::invalid(message).with_certainty(Certainty::NotStarted));
            // If it has ended meanwhile, the refusal is not needed.
            drop(callers.answer(&credential, root, &call.request_id, refused));
        }
        let now = ctx.now();
        let requests = calls.iter().map(|call| told(root, call, now)).collect();
        Ok(CallerToolRequestsResponse { requests })
    }
}

/// Returns whether MsgPack can represent the arguments: a call that it cannot must not hide the
/// others of an answer.
fn is_sayable(call: &LineCall) -> bool {
    call.arguments.clone().translate(Format::MsgPack).is_ok()
}

impl Broker {
    /// Returns a call as its caller receives it.
    #[must_use]
    pub fn caller_request(&self, root: SessionId, call: &LineCall) -> CallerToolRequestInfo {
        told(root, call, self.now())
    }
}

fn told(root: SessionId, call: &LineCall, now: Now) -> CallerToolRequestInfo {
    CallerToolRequestInfo {
        kind: CallerMessageType::CallerToolRequest,
        session_id: call.from_session().unwrap_or(root),
        root_session_id: root,
        request_id: call.request_id.to_string(),
        caller_id: call.caller_id().unwrap_or_default().to_owned(),
        tool: call.tool.name.to_string(),
        arguments: Raw(call.arguments.clone()),
        deadline_ms: call.deadline.remaining_ms(now),
    }
}

/// Returns the root session, whose callers serve a session. A session that the principal may not
/// see counts as not found.
fn root_of(ctx: &Context, session: SessionId) -> Result<SessionId> {
    let sight = ctx.sight();
    lock(&ctx.rooms.register.table)
        .find(session)
        .filter(|(place, _)| sight.includes(place.owner, Some(place.project)))
        .map(|(place, _)| place.root)
        .ok_or_else(|| Error::not_found("session", session))
}
