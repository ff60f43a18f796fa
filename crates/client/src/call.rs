//! Typed calls: a tool's request in, its response out.

use std::num::NonZeroU64;
use std::time::Duration;

use bytes::Bytes;
use ringback_proto::frame::{Body, Command, Frame};
use ringback_proto::ids::{JobId, RequestId};
use ringback_proto::request::AckResponse;
use ringback_proto::{
    CallOptions, Certainty, Error, ErrorKind, RequestEnvelope, ResponseEnvelope, Tool, ToolCall,
    ToolRequest, ToolResponse, ToolTiming,
};

use crate::client::Client;
use crate::error::unexpected;

/// How much longer a call with a deadline waits for the daemon to report that it passed.
const DEADLINE_GRACE: Duration = Duration::from_secs(5);

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome<R> {
    /// The tool's answer.
    Done(R),
    /// The work continues as a job.
    Job {
        /// Its id.
        job_id: JobId,
        /// How long it is expected to take.
        expected_timing: ToolTiming,
    },
    /// The command is accepted.
    Accepted {
        /// What was accepted.
        message: String,
        /// The job that does the work.
        job_id: Option<JobId>,
    },
}

impl Client {
    /// Calls a tool and waits for its answer, for as long as its timing class allows.
    ///
    /// # Errors
    /// The tool's, those of [`Client::call_raw`], and `timeout` with the job's id when the work
    /// continues as a job.
    ///
    /// # Cancel safety
    /// A call that is dropped is cancelled at the daemon, unless its job id was already returned.
    pub async fn call<T: Tool>(&self, request: T::Request) -> Result<T::Response, Error> {
        let wait_ms = T::ROW.makes_job.then(|| millis(T::TIMING.wait_max()));
        let options = CallOptions { wait_ms, ..CallOptions::default() };
        match self.call_with::<T>(request, options).await? {
            Outcome::Done(response) => Ok(response),
            Outcome::Job { job_id, .. } => Err(still_running(T::NAME, Some(job_id))),
            Outcome::Accepted { message, .. } if T::TIMING == ToolTiming::FireAndForget => {
                typed::<T>(AckResponse { message }.into())
            }
            Outcome::Accepted { job_id, .. } => Err(still_running(T::NAME, job_id)),
        }
    }

    /// Submits work and returns its job id immediately; a tool that creates no job is just called.
    ///
    /// # Errors
    /// As [`Client::call_with`].
    ///
    /// # Cancel safety
    /// As [`Client::call_with`].
    pub async fn submit<T: Tool>(
        &self,
        request: T::Request,
    ) -> Result<Outcome<T::Response>, Error> {
        self.call_with::<T>(request, CallOptions::default()).await
    }

    /// Calls a tool with options.
    ///
    /// # Errors
    /// The tool's, and those of [`Client::call_raw`].
    ///
    /// # Cancel safety
    /// A call that is dropped is cancelled at the daemon, unless its job id was already returned.
    pub async fn call_with<T: Tool>(
        &self,
        request: T::Request,
        options: CallOptions,
    ) -> Result<Outcome<T::Response>, Error> {
        let request = ToolCall::Native(request.into());
        match self.call_envelope(RequestEnvelope { request, options }).await? {
            ResponseEnvelope::Success { response } => typed::<T>(response).map(Outcome::Done),
            ResponseEnvelope::JobStarted { job_id, expected_timing, .. } => {
                Ok(Outcome::Job { job_id, expected_timing })
            }
            ResponseEnvelope::Ack { message, job_id } => Ok(Outcome::Accepted { message, job_id }),
            ResponseEnvelope::Error(error) => Err(error.into()),
            ResponseEnvelope::StreamStart { .. }
            | ResponseEnvelope::StreamChunk { .. }
            | ResponseEnvelope::StreamEnd { .. } => Err(unexpected("an unrequested stream")),
        }
    }

    /// Calls any tool, native or not, and returns the reply unchanged.
    ///
    /// # Errors
    /// Those of [`Client::call_raw`]; what the daemon answers is in the envelope.
    ///
    /// # Cancel safety
    /// A call that is dropped is cancelled at the daemon, unless its job id was already returned.
    pub async fn call_envelope(
        &self,
        envelope: RequestEnvelope,
    ) -> Result<ResponseEnvelope, Error> {
        let timeout = self.reply_timeout(&envelope.options);
        let decode = match &envelope.request {
            ToolCall::Native(_) => decode_reply,
            ToolCall::Named { .. } => decode_passing,
        };
        let reply = self.call_within(request_frame(envelope)?, timeout).await?;
        decode(reply.body)
    }

    fn reply_timeout(&self, options: &CallOptions) -> Duration {
        let deadline = options.deadline_ms.map(NonZeroU64::get).map(Duration::from_millis);
        deadline
            .map_or(self.config().reply_timeout, |deadline| deadline.saturating_add(DEADLINE_GRACE))
    }
}

/// Makes the frame of a request. Content is sent separately, so that it is neither copied nor
/// scanned.
pub(crate) fn request_frame(mut envelope: RequestEnvelope) -> Result<Frame, Error> {
    let data = match &mut envelope.request {
        ToolCall::Native(ToolRequest::CasStore(request)) => {
            Some(std::mem::take(&mut request.data).0)
        }
        ToolCall::Native(_) | ToolCall::Named { .. } => None,
    };
    let encoded = Bytes::from(envelope.try_encode()?);
    let body = match data {
        Some(data) => Body::RawBinary { data, header: encoded },
        None => Body::MsgPack(encoded),
    };
    Ok(Frame::new(Command::Request, RequestId::random(), body))
}

pub(crate) fn decode_reply(body: Body) -> Result<ResponseEnvelope, Error> {
    match body {
        Body::MsgPack(bytes) => ResponseEnvelope::decode(&bytes).map_err(unexpected),
        Body::RawBinary { data, header } => {
            let mut envelope = ResponseEnvelope::decode(&header).map_err(unexpected)?;
            envelope.put_data(data);
            Ok(envelope)
        }
        Body::Empty | Body::Credit(_) => Err(unexpected("it is empty")),
    }
}

/// Like [`decode_reply`], for a tool outside the table: its answer keeps the bytes as received.
pub(crate) fn decode_passing(body: Body) -> Result<ResponseEnvelope, Error> {
    match body {
        Body::MsgPack(bytes) => ResponseEnvelope::decode_passing(&bytes).map_err(unexpected),
        Body::RawBinary { .. } => Err(unexpected("separate bytes with an answer that takes none")),
        Body::Empty | Body::Credit(_) => Err(unexpected("it is empty")),
    }
}

pub(crate) fn typed<T: Tool>(response: ToolResponse) -> Result<T::Response, Error> {
    let found = response.type_name();
    T::Response::try_from(response)
        .map_err(|_| unexpected(format_args!("`{}` was answered with `{found}`", T::NAME)))
}

fn still_running(tool: &str, job_id: Option<JobId>) -> Error {
    let job = job_id.map_or_else(|| "a job".to_owned(), |job_id| job_id.to_string());
    let message =
        format!("`{tool}` is not done yet and continues as {job}; follow it with `job_poll`");
    Error::new(ErrorKind::Timeout, message).with_certainty(Certainty::MayHaveRun)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
