//! Streams of a call's chunks.

use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::Stream;
use ringback_proto::chunk::Delivery;
use ringback_proto::frame::{Body, Command, Frame};
use ringback_proto::ids::{JobId, StreamId};
use ringback_proto::{
    CallOptions, Error, RequestEnvelope, ResponseEnvelope, StreamChunk, Tool, ToolCall,
    ToolResponse,
};
use tokio::sync::mpsc;

use crate::call::{decode_reply, request_frame, typed};
use crate::client::{Client, InFlightCall};
use crate::error::{closed, unexpected};
use crate::pending::Answer;

/// Half of what the daemon sends without credit, so that the flow does not pause.
const CREDIT_STEP: u64 = 512 << 10;

/// An item of a stream.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamItem<R> {
    /// The stream has started.
    Started {
        /// Its id.
        stream_id: StreamId,
        /// The job that does the work.
        job_id: Option<JobId>,
    },
    /// A chunk.
    Chunk(StreamChunk),
    /// The end, with the tool's answer. Nothing follows.
    End(Option<R>),
}

/// The chunks of one call, then its end. An error is the end too. Dropping it earlier cancels the
/// call.
#[derive(Debug)]
#[must_use = "a stream that is dropped cancels its call"]
pub struct CallStream<T: Tool> {
    replies: Replies,
    tool: PhantomData<fn() -> T>,
}

/// The replies to one call, for any tool.
#[derive(Debug)]
pub(crate) struct Replies {
    client: Client,
    frames: mpsc::Receiver<Answer>,
    in_flight: InFlightCall,
    /// Lossless bytes read and not yet credited.
    uncredited: u64,
    ended: bool,
}

impl Client {
    /// Calls a tool and follows it while it runs.
    ///
    /// # Errors
    /// `busy` when too many calls are in flight.
    pub fn stream<T: Tool>(&self, request: T::Request) -> Result<CallStream<T>, Error> {
        self.stream_with(request, CallOptions::default())
    }

    /// Calls a tool with options and follows it while it runs.
    ///
    /// # Errors
    /// `busy` when too many calls are in flight.
    pub fn stream_with<T: Tool>(
        &self,
        request: T::Request,
        options: CallOptions,
    ) -> Result<CallStream<T>, Error> {
        let replies = Replies::of(self, ToolCall::Native(request.into()), options)?;
        Ok(CallStream { replies, tool: PhantomData })
    }
}

impl Replies {
    /// Sends the call.
    pub(crate) fn of(
        client: &Client,
        request: ToolCall,
        options: CallOptions,
    ) -> Result<Self, Error> {
        let options = CallOptions { stream: true, ..options };
        let frame = request_frame(RequestEnvelope { request, options })?;
        let (frames, in_flight) = client.open_stream(frame)?;
        Ok(Self { client: client.clone(), frames, in_flight, uncredited: 0, ended: false })
    }

    /// Returns the next item of the stream, decoded in two steps: the reply, and the tool's answer
    /// in it.
    pub(crate) fn poll_next<R>(
        &mut self,
        cx: &mut Context<'_>,
        decode: fn(Body) -> Result<ResponseEnvelope, Error>,
        read: fn(ToolResponse) -> Result<R, Error>,
    ) -> Poll<Option<Result<StreamItem<R>, Error>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let answer = ready!(self.frames.poll_recv(cx));
        let item = answer
            .unwrap_or_else(|| Err(closed()))
            .and_then(|frame| decode(frame.body))
            .and_then(|reply| self.item(reply, read));
        if matches!(item, Ok(StreamItem::End(_)) | Err(_)) {
            self.ended = true;
            self.in_flight.stream_finished();
        }
        Poll::Ready(Some(item))
    }

    fn item<R>(
        &mut self,
        reply: ResponseEnvelope,
        read: fn(ToolResponse) -> Result<R, Error>,
    ) -> Result<StreamItem<R>, Error> {
        match reply {
            ResponseEnvelope::StreamStart { stream_id, job_id, .. } => {
                Ok(StreamItem::Started { stream_id, job_id })
            }
            ResponseEnvelope::StreamChunk { chunk, .. } => {
                self.credit(&chunk);
                Ok(StreamItem::Chunk(chunk))
            }
            ResponseEnvelope::StreamEnd { final_response, .. } => {
                final_response.map(read).transpose().map(StreamItem::End)
            }
            ResponseEnvelope::Success { response } => {
                read(response).map(|response| StreamItem::End(Some(response)))
            }
            ResponseEnvelope::Error(error) => Err(error.into()),
            ResponseEnvelope::JobStarted { .. } | ResponseEnvelope::Ack { .. } => {
                Err(unexpected("a job instead of a stream"))
            }
        }
    }

    /// Reports to the daemon how much was read. If there is no room now, the next chunk does.
    fn credit(&mut self, chunk: &StreamChunk) {
        if chunk.delivery() == Delivery::Lossless {
            self.uncredited += chunk.weight() as u64;
        }
        if self.uncredited >= CREDIT_STEP {
            let body = Body::Credit(self.uncredited);
            let frame = Frame::new(Command::Credit, self.in_flight.request_id(), body);
            if self.client.try_tell(frame) {
                self.uncredited = 0;
            }
        }
    }
}

impl<T: Tool> Stream for CallStream<T> {
    type Item = Result<StreamItem<T::Response>, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.replies.poll_next(cx, decode_reply, typed::<T>)
    }
}
