//! The calls that callers make, and the recorded parts of replies.

use std::num::NonZeroU64;
use std::time::Duration;

use rand::RngExt as _;
use ringback_broker::Edge;
use ringback_proto::data::Data;
use ringback_proto::envelope::CallOptions;
use ringback_proto::ids::{JobId, RequestId};
use ringback_proto::principal::Level;
use ringback_proto::request::{
    ArtifactCreateRequest, CasStoreRequest, EventPollRequest, JobCancelRequest, JobListRequest,
    JobPollRequest, JobSleepRequest, JobStatusRequest, PingRequest, PollMode, TokenCreateRequest,
    TokenRevokeRequest,
};
use ringback_proto::{Error, ResponseEnvelope, ToolCall, ToolRequest, ToolResponse};

use super::World;
use super::parties::{arguments, marker};
use crate::history::{CallRecord, CallerIndex, LineTool, Marker, Op, Reply};

/// The callers after the set-up: the daemon's own user, three with scope `write`, one with `read`,
/// one with `write` whose token expires.
pub(super) const CALLERS: [(Level, Option<u64>); 6] = [
    (Level::Admin, None),
    (Level::Write, None),
    (Level::Write, None),
    (Level::Write, None),
    (Level::Read, None),
    (Level::Write, Some(90)),
];
/// The caller whose token may be revoked.
const REVOCABLE: CallerIndex = 3;
/// The longest sleep.
const SLEEP_MS_MAX: Marker = 40_000;
/// The wait of edges for a tool that takes a moment.
const HABIT_WAIT_MS: u64 = 30_000;

/// A randomly chosen call.
#[derive(Debug)]
pub(super) struct RandomCall {
    pub(super) called: CallRecord,
    pub(super) edge: Edge,
    pub(super) options: CallOptions,
    pub(super) cancel_after: Option<Duration>,
    pub(super) leave_after: Option<Duration>,
}

impl World {
    pub(super) fn draw(&mut self) -> RandomCall {
        let (who, op, request_id) = self.draw_request();
        let options = CallOptions {
            timing_hint: None,
            wait_ms: self.maybe(0.4, |world| world.draw_ms()),
            deadline_ms: self.maybe(0.25, |world| world.draw_ms().max(1)).and_then(NonZeroU64::new),
            stream: self.rng.random_bool(0.2),
        };
        let edge = if self.rng.random_bool(0.8) { Edge::Hoot } else { Edge::Http };
        let habit = (edge == Edge::Http).then_some(HABIT_WAIT_MS);
        let called = CallRecord {
            call: self.n_calls,
            who,
            op,
            request_id,
            wait_ms: options.wait_ms.or(habit),
            deadline_ms: options.deadline_ms.map(NonZeroU64::get),
            stream: options.stream,
        };
        self.n_calls += 1;
        let cancel_after = self.maybe(0.1, |world| Duration::from_millis(world.draw_ms()));
        let leave_after = self.maybe(0.1, |world| Duration::from_millis(world.draw_ms()));
        RandomCall { called, edge, options, cancel_after, leave_after }
    }

    /// Returns the time until the next call.
    pub(super) fn draw_pause(&mut self) -> Duration {
        Duration::from_millis(match self.rng.random_range(0..200) {
            0..110 => 0,
            110..180 => self.rng.random_range(1..50),
            180..199 => self.rng.random_range(100..5000),
            // Longer than calls without a job are remembered.
            _ => 11 * 60 * 1000,
        })
    }

    fn draw_request(&mut self) -> (CallerIndex, Op, Option<RequestId>) {
        let who = self.rng.random_range(0..self.callers.len());
        let dice = self.rng.random_range(0..100);
        if dice < 20 && !self.repeatable.is_empty() {
            return self.draw_repeat(dice < 5);
        }
        let op = match dice {
            0..38 => Op::OnLine(self.draw_tool(), self.draw_marker()),
            38..55 => Op::Sleep(self.draw_marker()),
            55..63 => Op::CreateArtifact(self.draw_marker()),
            63..66 => Op::CreateToken(self.draw_marker()),
            66..68 => Op::Store,
            68..70 => return (0, Op::Revoke(REVOCABLE), None),
            70..72 => Op::Ping,
            72..75 => Op::Events,
            75..80 => Op::List,
            80..100 => self.draw_look(dice),
            _ => unreachable!("the dice has 100 sides"),
        };
        // An agent's program has no request IDs.
        let share = if matches!(op, Op::OnLine(LineTool::Ask, _)) { 0.0 } else { 0.6 };
        let request_id = self.maybe(share, |world| RequestId::from_bytes(world.rng.random()));
        if let (Some(request_id), Some(_)) = (request_id, op.marker()) {
            self.repeatable.push((who, request_id, op.clone()));
        }
        (who, op, request_id)
    }

    /// Reuses a request ID, for the same call or another.
    fn draw_repeat(&mut self, is_other: bool) -> (CallerIndex, Op, Option<RequestId>) {
        let newest = self.repeatable.len();
        let index = newest - 1 - self.rng.random_range(0..newest.min(12));
        let (who, request_id, op) = self.repeatable[index].clone();
        let op = if is_other { Op::Sleep(self.draw_marker()) } else { op };
        (who, op, Some(request_id))
    }

    /// Chooses a query of known jobs.
    fn draw_look(&mut self, dice: u32) -> Op {
        let Some(job) = self.draw_job() else { return Op::List };
        match dice {
            80..87 => Op::Status(job),
            87..94 => Op::Cancel(job),
            _ => Op::Poll([Some(job), self.draw_job()].into_iter().flatten().collect()),
        }
    }

    fn draw_job(&mut self) -> Option<JobId> {
        let ago = self.rng.random_range(0..10);
        self.recorder.told_job(ago).or_else(|| self.recorder.told_job(0))
    }

    fn draw_tool(&mut self) -> LineTool {
        use LineTool::{Ask, Idempotent, Page, Render, Tab};
        [Tab, Page, Render, Idempotent, Ask][self.rng.random_range(0..5)]
    }

    fn draw_marker(&mut self) -> Marker {
        loop {
            let marker = match self.rng.random_range(0..4) {
                0 => self.rng.random_range(0..100),
                1 | 2 => self.rng.random_range(0..3000),
                _ => self.rng.random_range(0..SLEEP_MS_MAX),
            };
            if self.markers.insert(marker) {
                return marker;
            }
        }
    }

    fn draw_ms(&mut self) -> u64 {
        match self.rng.random_range(0..3) {
            0 => self.rng.random_range(0..10),
            1 => self.rng.random_range(0..500),
            _ => self.rng.random_range(0..20_000),
        }
    }

    fn maybe<T>(&mut self, share: f64, draw: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.rng.random_bool(share).then(|| draw(self))
    }

    pub(super) fn request(&self, op: &Op, edge: Edge) -> ToolCall {
        let request: ToolRequest = match op {
            Op::OnLine(tool, marker) => {
                return ToolCall::Named {
                    name: tool.full_name().to_owned(),
                    arguments: arguments(*marker, edge.format()),
                };
            }
            Op::Sleep(milliseconds) => JobSleepRequest { milliseconds: *milliseconds }.into(),
            Op::Store => content().into(),
            Op::CreateArtifact(marker) => ArtifactCreateRequest {
                content_hash: self.content,
                metadata: None,
                tags: Vec::new(),
                creator: Some(format!("m{marker}")),
                parent_id: None,
                variation_set_id: None,
            }
            .into(),
            Op::CreateToken(marker) => token(format!("m{marker}"), Level::Read, None).into(),
            Op::Revoke(who) => {
                let token = self.callers[*who].token.as_ref();
                let token_id = token.expect("only holders of tokens are revoked").0;
                TokenRevokeRequest { token_id }.into()
            }
            Op::Cancel(job_id) => JobCancelRequest { job_id: *job_id }.into(),
            Op::Status(job_id) => JobStatusRequest { job_id: *job_id }.into(),
            Op::Poll(job_ids) => {
                let mode = Some(PollMode::All);
                JobPollRequest { job_ids: job_ids.clone(), timeout_ms: 5000, mode }.into()
            }
            Op::List => JobListRequest { limit: Some(500), ..JobListRequest::default() }.into(),
            Op::Events => {
                EventPollRequest { wait_ms: Some(2000), ..EventPollRequest::default() }.into()
            }
            Op::Ping => PingRequest {}.into(),
        };
        ToolCall::Native(request)
    }
}

/// Returns the content for artifacts.
pub(super) fn content() -> CasStoreRequest {
    CasStoreRequest {
        data: Data(bytes::Bytes::from_static(b"the same content for every caller")),
        mime_type: "text/plain".to_owned(),
        upload_id: None,
        offset: None,
        last: None,
    }
}

pub(super) fn token(name: String, scope: Level, expires_in: Option<u64>) -> TokenCreateRequest {
    TokenCreateRequest { name, scope, projects: None, expires_in }
}

/// Returns the marker in the name of a token or the creator of an artifact.
pub(super) fn marker_of(name: &str) -> Option<Marker> {
    name.strip_prefix('m')?.parse().ok()
}

/// Returns the recorded part of a reply: no texts, and no IDs that the checker does not use.
pub(super) fn reply(envelope: ResponseEnvelope) -> Reply {
    match envelope {
        ResponseEnvelope::Success { response } => success(response),
        ResponseEnvelope::JobStarted { job_id, .. } => Reply::JobStarted(job_id),
        ResponseEnvelope::Ack { job_id, .. } => job_id.map_or(Reply::Done, Reply::JobStarted),
        ResponseEnvelope::Error(error) => {
            let error = Error::from(error);
            Reply::Failed(error.kind(), error.certainty())
        }
        ResponseEnvelope::StreamStart { job_id, .. } => {
            job_id.map_or(Reply::LineStream, Reply::StreamStart)
        }
        ResponseEnvelope::StreamChunk { .. } => Reply::Chunk,
        ResponseEnvelope::StreamEnd { final_response, .. } => match final_response {
            Some(ToolResponse::Slept(slept)) => Reply::StreamEnd(slept.milliseconds),
            Some(ToolResponse::Passed(passed)) => Reply::Passed(marker(&passed)),
            other => {
                unreachable!("only sleeps and lines stream, and they end with an answer: {other:?}")
            }
        },
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "other replies are recorded as done")]
fn success(response: ToolResponse) -> Reply {
    match response {
        ToolResponse::Slept(slept) => Reply::Slept(slept.milliseconds),
        ToolResponse::Passed(passed) => Reply::Passed(marker(&passed)),
        ToolResponse::JobStatus(status) => Reply::Jobs(vec![(status.job_id, status.status)]),
        ToolResponse::JobCancelled(cancelled) => {
            Reply::Jobs(vec![(cancelled.job_id, cancelled.status)])
        }
        ToolResponse::JobList(list) => {
            Reply::Jobs(list.jobs.iter().map(|job| (job.job_id, job.status)).collect())
        }
        ToolResponse::JobPollResult(polled) => {
            Reply::Polled([polled.completed, polled.failed].concat(), polled.pending)
        }
        ToolResponse::ArtifactCreated(created) => {
            marker_of(&created.creator).map_or(Reply::Done, Reply::Made)
        }
        ToolResponse::TokenCreated(created) => {
            marker_of(&created.name).map_or(Reply::Done, Reply::Made)
        }
        _ => Reply::Done,
    }
}
