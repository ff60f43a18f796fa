//! The tools of a worker, and a call to one of them.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ringback_proto::any::{Any, Format};
use ringback_proto::frame::{Body, Command, Frame};
use ringback_proto::ids::{RequestId, StreamId};
use ringback_proto::ready::OfferedTool;
use ringback_proto::{Certainty, Error, ErrorKind, ResponseEnvelope, StreamChunk, ToolResponse};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::credit::CallCredit;

/// The default number of calls that run at the same time.
const CONCURRENCY: usize = 16;

type ToolFuture = Pin<Box<dyn Future<Output = Result<Bytes, Error>> + Send>>;
type Handler = Box<dyn Fn(WorkerCall) -> ToolFuture + Send + Sync>;
type PreparationFuture = Pin<Box<dyn Future<Output = ()> + Send>>;
type Preparation = Box<dyn Fn() -> PreparationFuture + Send + Sync>;

/// The tools that one worker offers, as a service.
pub struct WorkerTools {
    service: String,
    offered: Vec<OfferedTool>,
    handlers: HashMap<String, Handler>,
    concurrency: usize,
    preparation: Option<Preparation>,
}

impl std::fmt::Debug for WorkerTools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "WorkerTools({}: {} tools)", self.service, self.offered.len())
    }
}

impl WorkerTools {
    /// Makes a service without tools. A tool is called as `{service}_{tool}`.
    #[must_use]
    pub fn new(service: impl Into<String>) -> Self {
        Self {
            service: service.into(),
            offered: Vec::new(),
            handlers: HashMap::new(),
            concurrency: CONCURRENCY,
            preparation: None,
        }
    }

    /// Sets work to do on each connection before the tools are offered on it. Without an end to it
    /// they are never offered, so it must keep its own time.
    #[must_use]
    pub fn before_offer<W>(mut self, prepare: impl Fn() -> W + Send + Sync + 'static) -> Self
    where
        W: Future<Output = ()> + Send + 'static,
    {
        self.preparation = Some(Box::new(move || Box::pin(prepare())));
        self
    }

    /// Sets how many calls run at the same time; further ones wait.
    #[must_use]
    pub fn concurrency(mut self, calls_max: usize) -> Self {
        self.concurrency = calls_max.max(1);
        self
    }

    /// Adds a tool with typed input and output. Input that does not match is `invalid`, and the
    /// handler does not run.
    #[must_use]
    pub fn tool<A, R, W>(
        self,
        offered: OfferedTool,
        handler: impl Fn(A, WorkerCall) -> W + Send + Sync + Clone + 'static,
    ) -> Self
    where
        A: DeserializeOwned + Send + 'static,
        R: Serialize,
        W: Future<Output = Result<R, Error>> + Send + 'static,
    {
        self.raw_tool(offered, move |call| {
            let handler = handler.clone();
            async move {
                let arguments = call.decode()?;
                let result = handler(arguments, call).await?;
                let encoded = rmp_serde::to_vec_named(&result).map_err(|error| {
                    let message = format!("the result cannot be encoded: {error}");
                    Error::new(ErrorKind::ToolFailed, message).with_certainty(Certainty::Ran)
                })?;
                Ok(Bytes::from(encoded))
            }
        })
    }

    /// Adds a tool that takes and returns one MsgPack value each, as bytes.
    #[must_use]
    pub fn raw_tool<W>(
        mut self,
        offered: OfferedTool,
        handler: impl Fn(WorkerCall) -> W + Send + Sync + 'static,
    ) -> Self
    where
        W: Future<Output = Result<Bytes, Error>> + Send + 'static,
    {
        let (OfferedTool::Name(name) | OfferedTool::Described { name, .. }) = &offered;
        let handler: Handler = Box::new(move |call| Box::pin(handler(call)));
        self.handlers.insert(name.clone(), handler);
        self.offered.push(offered);
        self
    }

    pub(crate) fn service(&self) -> &str {
        &self.service
    }

    pub(super) fn offered(&self) -> &[OfferedTool] {
        &self.offered
    }

    /// Returns the work to do before the tools are offered, if any.
    pub(super) fn prepare(&self) -> Option<PreparationFuture> {
        self.preparation.as_ref().map(|prepare| prepare())
    }

    pub(super) const fn calls_max(&self) -> usize {
        self.concurrency
    }

    /// Returns the work of a call, if the tool exists.
    pub(super) fn work(&self, tool: &str, call: WorkerCall) -> Option<ToolFuture> {
        self.handlers.get(tool).map(|handler| handler(call))
    }
}

/// A call that a worker runs.
#[derive(Debug, Clone)]
pub struct WorkerCall {
    pub(super) request_id: RequestId,
    pub(super) stream_id: StreamId,
    pub(super) arguments: Bytes,
    pub(super) job_id: Option<String>,
    pub(super) session_id: Option<String>,
    pub(super) deadline: Duration,
    pub(super) cancelled: CancellationToken,
    pub(super) credit: Arc<CallCredit>,
    pub(super) outbox: mpsc::Sender<Frame>,
}

impl WorkerCall {
    /// Returns the input: one MsgPack value.
    #[must_use]
    pub const fn arguments(&self) -> &Bytes {
        &self.arguments
    }

    /// Decodes the input.
    ///
    /// # Errors
    /// `invalid` if it does not match.
    pub fn decode<A: DeserializeOwned>(&self) -> Result<A, Error> {
        rmp_serde::from_slice(&self.arguments)
            .map_err(|error| Error::invalid(format!("the input does not match the tool: {error}")))
    }

    /// Returns the id of the job that the call belongs to, if any. The answer returns it
    /// automatically.
    #[must_use]
    pub fn job_id(&self) -> Option<&str> {
        self.job_id.as_deref()
    }

    /// Returns the session the call belongs to, if any.
    #[must_use]
    pub fn session_id(&self) -> Option<&str> {
        self.session_id.as_deref()
    }

    /// Returns how long the call may take from its arrival on.
    #[must_use]
    pub const fn deadline(&self) -> Duration {
        self.deadline
    }

    /// Returns a token that is cancelled when the answer is no longer wanted. A handler that
    /// ignores it does useless work.
    #[must_use]
    pub const fn cancelled(&self) -> &CancellationToken {
        &self.cancelled
    }

    /// Sends a chunk to the caller; waits while the connection is full, and with audio, MIDI or
    /// content until the daemon grants credit. A call that is cancelled sends nothing more.
    pub async fn send(&self, mut chunk: StreamChunk) {
        let n_bytes = chunk.lossless_weight();
        if n_bytes > 0 {
            tokio::select! {
                biased;
                () = self.cancelled.cancelled() => return,
                () = self.credit.take(n_bytes) => {}
            }
        }
        let data = chunk.take_data();
        let chunk = ResponseEnvelope::StreamChunk { stream_id: self.stream_id, chunk };
        let header = chunk.encode().into();
        let body = match data {
            Some(data) => Body::RawBinary { data, header },
            None => Body::MsgPack(header),
        };
        // A worker that has ended has no connection left.
        drop(self.outbox.send(Frame::new(Command::Reply, self.request_id, body)).await);
    }

    /// Reports the progress of the work to the caller.
    pub async fn progress(&self, percent: f32, message: impl Into<String>) {
        self.send(StreamChunk::Progress { percent, message: message.into() }).await;
    }
}

/// A Request that is to be answered.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) request_id: RequestId,
    /// The job it belongs to, which the reply must name again.
    pub(super) job_id: Option<String>,
}

impl Asked {
    /// Makes the last reply of a call.
    pub(super) fn outcome(&self, outcome: Result<Bytes, Error>) -> Frame {
        let envelope = match outcome {
            Ok(bytes) => {
                let response = ToolResponse::Passed(Any { format: Format::MsgPack, bytes });
                ResponseEnvelope::Success { response }
            }
            Err(error) => error.into(),
        };
        let body = match &self.job_id {
            Some(job_id) => envelope.encode_for_job(job_id),
            None => envelope.encode(),
        };
        Frame::new(Command::Reply, self.request_id, Body::MsgPack(body.into()))
    }
}
