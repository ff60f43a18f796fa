//! A call on a line that its caller follows: its chunks as they come, then its outcome.

use std::sync::Arc;

use ringback_proto::any::Any;
use ringback_proto::ids::StreamId;
use ringback_proto::{Certainty, Error, ErrorKind, ResponseEnvelope, Result, ToolResponse};

use super::Lines;
use crate::replies::Pending;
use crate::stream::{NextItem, Stream};

/// A call on a line that one caller follows.
pub(crate) struct LineFollower {
    pub(super) lines: Arc<Lines>,
    pub(super) id: StreamId,
    pub(super) tool: Arc<str>,
    pub(super) stream: Arc<Stream>,
    /// The call itself; `None` once it has ended.
    pub(super) running: Option<Pending<Result<Any>>>,
    pub(super) outcome: Option<Result<Any>>,
    pub(super) started: bool,
}

impl LineFollower {
    /// Returns the next reply, and whether it is the last.
    ///
    /// # Cancel safety
    /// Dropping it loses nothing.
    pub(crate) async fn next(&mut self) -> (ResponseEnvelope, bool) {
        if !self.started {
            self.started = true;
            let (stream_id, tool) = (self.id, self.tool.to_string());
            return (ResponseEnvelope::StreamStart { stream_id, tool, job_id: None }, false);
        }
        loop {
            let Some(running) = &mut self.running else {
                return self.rest().await;
            };
            tokio::select! {
                biased;
                next = self.stream.next(&self.lines.kernel.clock) => match next {
                    NextItem::Chunk(chunk) => return (self.chunk(chunk), false),
                    NextItem::Lagged => return (lagged().into(), true),
                    NextItem::End => self.outcome = Some(running.await),
                },
                outcome = running.as_mut() => {
                    self.stream.finish();
                    self.outcome = Some(outcome);
                }
            }
            self.running = None;
        }
    }

    /// Returns the remaining replies once the call has ended.
    async fn rest(&mut self) -> (ResponseEnvelope, bool) {
        match self.stream.next(&self.lines.kernel.clock).await {
            NextItem::Chunk(chunk) => (self.chunk(chunk), false),
            NextItem::Lagged => (lagged().into(), true),
            NextItem::End => {
                let ended = || Err(Error::internal("line", "a stream was read past its end"));
                let last = match self.outcome.take().unwrap_or_else(ended) {
                    Ok(passed) => ResponseEnvelope::StreamEnd {
                        stream_id: self.id,
                        final_response: Some(ToolResponse::Passed(passed)),
                    },
                    Err(error) => error.into(),
                };
                (last, true)
            }
        }
    }

    fn chunk(&self, chunk: ringback_proto::StreamChunk) -> ResponseEnvelope {
        ResponseEnvelope::StreamChunk { stream_id: self.id, chunk }
    }
}

fn lagged() -> Error {
    let message =
        "the stream's reader gave no credit for too long (lagged); the call was cancelled";
    Error::new(ErrorKind::Busy, message).with_certainty(Certainty::MayHaveRun)
}
