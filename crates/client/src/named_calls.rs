//! Calls to tools outside the table, by full name: bytes in, bytes out.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::Stream;
use ringback_proto::any::Any;
use ringback_proto::{
    CallOptions, Error, RequestEnvelope, ResponseEnvelope, ToolCall, ToolResponse,
};

use crate::call::decode_passing;
use crate::client::Client;
use crate::error::unexpected;
use crate::stream::{Replies, StreamItem};

/// The chunks of one call to a tool on a line, then its end. An error is the end too. Dropping it
/// earlier cancels the call.
#[derive(Debug)]
#[must_use = "a stream that is dropped cancels its call"]
pub struct NamedStream {
    replies: Replies,
}

impl Client {
    /// Calls a tool on a line by its full name; input and answer are MsgPack.
    ///
    /// # Errors
    /// The tool's, `not_found` for a name that is not offered to this caller, and those of
    /// [`Client::call_raw`].
    ///
    /// # Cancel safety
    /// A call that is dropped is cancelled at the daemon, and from there at the tool's party.
    pub async fn call_named(
        &self,
        name: impl Into<String>,
        arguments: Any,
        options: CallOptions,
    ) -> Result<Any, Error> {
        let request = ToolCall::Named { name: name.into(), arguments };
        match self.call_envelope(RequestEnvelope { request, options }).await? {
            ResponseEnvelope::Success { response } => passed(response),
            ResponseEnvelope::Error(error) => Err(error.into()),
            ResponseEnvelope::JobStarted { .. } | ResponseEnvelope::Ack { .. } => {
                Err(unexpected("a job instead of an answer"))
            }
            ResponseEnvelope::StreamStart { .. }
            | ResponseEnvelope::StreamChunk { .. }
            | ResponseEnvelope::StreamEnd { .. } => Err(unexpected("an unrequested stream")),
        }
    }

    /// Calls a tool on a line by its full name and follows it while it runs, without its own time
    /// limit: the call ends with its deadline at the daemon.
    ///
    /// # Errors
    /// `busy` when too many calls are in flight.
    pub fn stream_named(
        &self,
        name: impl Into<String>,
        arguments: Any,
        options: CallOptions,
    ) -> Result<NamedStream, Error> {
        let request = ToolCall::Named { name: name.into(), arguments };
        Ok(NamedStream { replies: Replies::of(self, request, options)? })
    }
}

impl Stream for NamedStream {
    type Item = Result<StreamItem<Any>, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.replies.poll_next(cx, decode_passing, passed)
    }
}

fn passed(response: ToolResponse) -> Result<Any, Error> {
    let name = response.type_name();
    if let ToolResponse::Passed(passed) = response {
        Ok(passed)
    } else {
        Err(unexpected(format_args!("an answer of type `{name}` to a tool of another kind")))
    }
}
