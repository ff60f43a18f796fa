//! `GET /v1/jobs/{job_id}/events`: a job from its current state to its end, as it happens.

use std::collections::VecDeque;

use axum::extract::State as With;
use axum::response::Response;
use axum::response::sse;
use futures_util::stream;
use ringback_broker::{Credential, Published, Subscription};
use ringback_proto::Event;
use ringback_proto::ids::JobId;
use ringback_proto::request::{JobStatusRequest, JobStatusResponse};
use ringback_proto::tool::tools::JobStatus;

use super::{ask, id};
use crate::caller::StreamCaller;
use crate::edge::State;
use crate::error::HttpError;
use crate::extractors::PathValue;
use crate::sse::{named, response};

pub(super) const ABOUT: &str = "First `job`, the job in its current state; then \
    `job.state_changed` and `job.progress` as they happen; finally `end`, the job with its result \
    or error.";

/// Events to read at a time: few enough to keep in memory for each follower.
const PAGE: usize = 64;

/// A follower of a job.
struct Follower {
    state: State,
    credential: Credential,
    job_id: JobId,
    subscription: Subscription,
    /// The last event that was read, relevant or not.
    seq: u64,
    waiting: VecDeque<sse::Event>,
    has_ended: bool,
}

pub(super) async fn events(
    With(state): With<State>,
    StreamCaller(credential): StreamCaller,
    PathValue(job_id): PathValue<String>,
) -> Result<Response, HttpError> {
    let job_id = id("job_id", &job_id)?;
    // Subscribe first, then read: an event in between is seen twice rather than never.
    let subscription = state.broker().subscribe();
    let seq = subscription.heads(state.broker().now(), None).seq;
    let mut follower = Follower {
        state: state.clone(),
        credential: credential.clone(),
        job_id,
        subscription,
        seq,
        waiting: VecDeque::new(),
        has_ended: false,
    };
    follower.look().await?;
    Ok(response(&state, credential, stream::unfold(follower, Follower::step)))
}

impl Follower {
    async fn step(mut self) -> Option<(sse::Event, Self)> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Some((event, self));
            }
            if self.has_ended {
                return None;
            }
            let page = self.subscription.next(PAGE).await;
            self.take(&page).await.ok()?;
        }
    }

    async fn take(&mut self, page: &[std::sync::Arc<Published>]) -> Result<(), HttpError> {
        let mut kept = page.iter().filter(|published| !published.event.event.is_live());
        let first = kept.next().map_or(0, |published| published.event.seq);
        let has_missed = first > self.seq + 1;
        self.seq = kept.next_back().map_or(self.seq.max(first), |published| published.event.seq);
        if has_missed {
            return self.look().await;
        }
        for published in page {
            let event = &published.event.event;
            if !self.concerns(event) {
                continue;
            }
            self.waiting.push_back(named(event.topic(), event));
            if matches!(event, Event::JobStateChanged { state, .. } if state.is_terminal()) {
                return self.look().await;
            }
        }
        Ok(())
    }

    fn concerns(&self, event: &Event) -> bool {
        matches!(event, Event::JobStateChanged { job_id, .. } | Event::JobProgress { job_id, .. }
            if *job_id == self.job_id)
    }

    /// Reads the state of the job, if the caller may see it.
    async fn look(&mut self) -> Result<(), HttpError> {
        let request = JobStatusRequest { job_id: self.job_id };
        let job: JobStatusResponse =
            ask::<JobStatus>(&self.state, &self.credential, request).await?;
        self.has_ended = job.status.is_terminal();
        let name = if self.has_ended { "end" } else { "job" };
        self.waiting.push_back(named(name, &job));
        Ok(())
    }
}
