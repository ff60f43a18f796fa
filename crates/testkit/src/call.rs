//! Calls of the broker itself, without an edge.

use ringback_broker::{Answer, Broker, Call, Credential, Edge};
use ringback_proto::envelope::{CallOptions, RequestEnvelope, ToolCall};
use ringback_proto::error::ToolError;
use ringback_proto::{ResponseEnvelope, ToolRequest, ToolResponse};

/// How long a call waits for its result.
pub(crate) const WAIT: CallOptions =
    CallOptions { timing_hint: None, wait_ms: Some(30_000), deadline_ms: None, stream: false };

/// Returns a call without options.
pub fn plain(credential: &Credential, request: impl Into<ToolRequest>) -> Call<'_> {
    let envelope = RequestEnvelope::plain(ToolCall::Native(request.into()));
    Call { credential, edge: Edge::Hoot, envelope, request_id: None }
}

/// Makes a call and returns the first reply.
///
/// # Panics
/// If no reply comes.
pub async fn reply(broker: &Broker, call: Call<'_>) -> ResponseEnvelope {
    match broker.call(call) {
        Answer::Now(reply) => reply,
        Answer::Later(mut replies, _) => replies.next().await.expect("a first reply"),
    }
}

/// Makes a call, waits for its result, and returns it.
///
/// # Errors
/// The error of the call.
///
/// # Panics
/// If the reply is neither a result nor an error.
pub async fn result(
    broker: &Broker,
    credential: &Credential,
    request: impl Into<ToolRequest>,
) -> Result<ToolResponse, ToolError> {
    let mut call = plain(credential, request);
    call.envelope.options = WAIT;
    match reply(broker, call).await {
        ResponseEnvelope::Success { response } => Ok(response),
        ResponseEnvelope::Error(error) => Err(error),
        other @ (ResponseEnvelope::JobStarted { .. }
        | ResponseEnvelope::Ack { .. }
        | ResponseEnvelope::StreamStart { .. }
        | ResponseEnvelope::StreamChunk { .. }
        | ResponseEnvelope::StreamEnd { .. }) => {
            panic!("neither a result nor an error: {other:?}")
        }
    }
}
