//! Helpers for requests.

use bytes::Bytes;
use ringback_client::{Client, Outcome};
use ringback_proto::error::ToolError;
use ringback_proto::frame::{Body, Command, Frame};
use ringback_proto::ids::{JobId, RequestId};
use ringback_proto::record::JobState;
use ringback_proto::request::*;
use ringback_proto::tool::tools::*;
use ringback_proto::{
    CallOptions, Certainty, RequestEnvelope, ResponseEnvelope, ToolCall, ToolRequest, ToolResponse,
};
use ringback_testkit::{Hello, RawPeer, World, within};

pub(crate) const WAIT: CallOptions =
    CallOptions { timing_hint: None, wait_ms: Some(30_000), deadline_ms: None, stream: false };

pub(crate) const STREAM: CallOptions =
    CallOptions { timing_hint: None, wait_ms: None, deadline_ms: None, stream: true };

/// Returns a Request frame with a random ID.
pub(crate) fn request(tool: impl Into<ToolRequest>, options: CallOptions) -> Frame {
    let request = ToolCall::Native(tool.into());
    let body = RequestEnvelope { request, options }.encode();
    Frame::new(Command::Request, RequestId::random(), Body::MsgPack(body.into()))
}

pub(crate) fn plain(tool: impl Into<ToolRequest>) -> Frame {
    request(tool, CallOptions::default())
}

pub(crate) fn ping() -> Frame {
    plain(PingRequest {})
}

pub(crate) fn heartbeat() -> Frame {
    Frame::new(Command::Heartbeat, RequestId::random(), Body::Empty)
}

pub(crate) fn cancel(request_id: RequestId) -> Frame {
    Frame::new(Command::Cancel, request_id, Body::Empty)
}

pub(crate) fn poll(job_id: JobId) -> JobPollRequest {
    JobPollRequest { job_ids: vec![job_id], timeout_ms: 30_000, mode: None }
}

/// Returns a DEALER with the daemon's admin token.
pub(crate) async fn raw(daemon: &World) -> RawPeer {
    RawPeer::connect(daemon.calls(), Hello::dealer(daemon.admin_token())).await.unwrap()
}

/// Sends a frame and returns the content of the next reply, which must be the frame's own.
pub(crate) async fn ask(peer: &mut RawPeer, frame: Frame) -> ResponseEnvelope {
    let request_id = frame.request_id;
    peer.send_frame(frame).await.unwrap();
    let (answered, envelope) = within("a reply", peer.recv_reply()).await;
    assert_eq!(answered, request_id);
    envelope
}

/// Returns the error of a reply that must be one. Its certainty was on the wire, or it would not
/// decode.
pub(crate) fn error(envelope: ResponseEnvelope) -> ToolError {
    match envelope {
        ResponseEnvelope::Error(error) => error,
        other => panic!("not an error: {other:?}"),
    }
}

pub(crate) fn not_started(envelope: ResponseEnvelope, code: &str) {
    let error = error(envelope);
    assert_eq!((error.code.as_str(), error.certainty), (code, Certainty::NotStarted), "{error:?}");
}

pub(crate) async fn assert_pings(peer: &mut RawPeer) {
    let reply = ask(peer, ping()).await;
    let ResponseEnvelope::Success { response: ToolResponse::Pong(_) } = reply else {
        panic!("no pong: {reply:?}")
    };
}

pub(crate) async fn sleep_job(client: &Client, milliseconds: u64) -> JobId {
    match within("a job", client.submit::<JobSleep>(JobSleepRequest { milliseconds })).await {
        Ok(Outcome::Job { job_id, .. }) => job_id,
        other => panic!("not a job: {other:?}"),
    }
}

pub(crate) async fn state(client: &Client, job_id: JobId) -> JobState {
    within("a status", client.call::<JobStatus>(JobStatusRequest { job_id })).await.unwrap().status
}

/// Waits until a job has ended.
pub(crate) async fn ended(client: &Client, job_id: JobId) -> JobState {
    within("a poll", client.call::<JobPoll>(poll(job_id))).await.unwrap();
    state(client, job_id).await
}

/// Returns all jobs.
pub(crate) async fn jobs(client: &Client) -> JobListResponse {
    let request = JobListRequest { limit: Some(500), ..JobListRequest::default() };
    within("a list", client.call::<JobList>(request)).await.unwrap()
}

/// Returns `n_bytes` bytes with every value, not sorted.
pub(crate) fn content(n_bytes: usize) -> Bytes {
    let bytes = (0..n_bytes).map(|index| ((index * 167 + index / 256) % 256) as u8);
    bytes.collect::<Vec<_>>().into()
}

/// Returns the resident memory of the process, in bytes.
pub(crate) fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}
