//! Calls, jobs and streams through the broker's entry point.

use std::time::Duration;

use crate::common::{call, reply, request_id, result, start, start_with};
use ringback_broker::{Answer, Broker, Credential};
use ringback_proto::chunk::StreamChunk;
use ringback_proto::envelope::CallOptions;
use ringback_proto::ids::JobId;
use ringback_proto::principal::Level;
use ringback_proto::record::JobState;
use ringback_proto::request::*;
use ringback_proto::{Certainty, ErrorKind, ResponseEnvelope, ToolRequest, ToolResponse};

async fn sleep_job(broker: &Broker, who: &Credential, milliseconds: u64) -> JobId {
    match reply(broker, call(who, JobSleepRequest { milliseconds })).await {
        ResponseEnvelope::JobStarted { job_id, .. } => job_id,
        other => panic!("not a job: {other:?}"),
    }
}

async fn status(broker: &Broker, who: &Credential, job_id: JobId) -> JobStatusResponse {
    match result(broker, who, JobStatusRequest { job_id }).await.unwrap() {
        ToolResponse::JobStatus(status) => status,
        other => panic!("not a status: {other:?}"),
    }
}

#[tokio::test]
async fn a_sync_tool_answers_at_once() {
    let fixture = start().await;
    let local = Credential::local();
    assert!(matches!(
        fixture.broker.call(call(&local, PingRequest {})),
        Answer::Now(ResponseEnvelope::Success { response: ToolResponse::Pong(_) })
    ));
}

/// Rule: a broker that was started without music tools says so, now or as the end of a job.
#[tokio::test]
async fn a_broker_without_music_tools_says_so() {
    let fixture = start().await;
    let local = Credential::local();
    let now = AbcValidateRequest { abc: "X:1".to_owned() };
    let later = SoundfontInspectRequest { soundfont_hash: None, include_drum_map: false };
    let job = OrpheusGenerateRequest::default();
    let calls: [(&str, ToolRequest); 3] = [
        ("abc_validate", now.into()),
        ("soundfont_inspect", later.into()),
        ("orpheus_generate", job.into()),
    ];
    for (name, request) in calls {
        let error = result(&fixture.broker, &local, request).await.unwrap_err();
        assert_eq!(error.code, ErrorKind::NotFound.as_str(), "{error:?}");
        assert!(error.message.contains(name), "{error:?}");
        assert_eq!(error.certainty, Certainty::NotStarted, "{error:?}");
    }
}

#[tokio::test]
async fn a_job_is_known_when_its_id_is_told_and_its_result_can_be_looked_up() {
    let fixture = start().await;
    let local = Credential::local();
    let job = sleep_job(&fixture.broker, &local, 1).await;
    let poll = JobPollRequest { job_ids: vec![job], timeout_ms: 10_000, mode: None };
    let polled = result(&fixture.broker, &local, poll).await.unwrap();
    let ToolResponse::JobPollResult(polled) = polled else { panic!("{polled:?}") };
    assert_eq!((polled.completed, polled.timed_out), (vec![job], false));
    let status = status(&fixture.broker, &local, job).await;
    assert_eq!(status.status, JobState::Complete);
    let slept = ToolResponse::Slept(SleptResponse { milliseconds: 1 });
    assert_eq!(status.result.as_deref(), Some(&slept));
}

#[tokio::test]
async fn a_wait_gives_the_result_or_the_job_id_and_never_ends_the_work() {
    let fixture = start().await;
    let local = Credential::local();
    let mut short = call(&local, JobSleepRequest { milliseconds: 200 });
    short.envelope.options.wait_ms = Some(1);
    let ResponseEnvelope::JobStarted { job_id, .. } = reply(&fixture.broker, short).await else {
        panic!("the wait was shorter than the work")
    };
    let poll = JobPollRequest { job_ids: vec![job_id], timeout_ms: 10_000, mode: None };
    result(&fixture.broker, &local, poll).await.unwrap();
    assert_eq!(status(&fixture.broker, &local, job_id).await.status, JobState::Complete);
}

#[tokio::test]
async fn a_stream_tells_its_start_its_progress_and_its_end() {
    let fixture = start().await;
    let local = Credential::local();
    let mut call = call(&local, JobSleepRequest { milliseconds: 200 });
    call.envelope.options.stream = true;
    let Answer::Later(mut replies, _) = fixture.broker.call(call) else { panic!("a stream") };
    let Some(ResponseEnvelope::StreamStart { job_id: Some(_), stream_id, .. }) =
        replies.next().await
    else {
        panic!("a start")
    };
    let mut percents = Vec::new();
    loop {
        match replies.next().await.unwrap() {
            ResponseEnvelope::StreamChunk {
                stream_id: id,
                chunk: StreamChunk::Progress { percent, .. },
            } => {
                assert_eq!(id, stream_id);
                percents.push(percent);
            }
            ResponseEnvelope::StreamEnd { final_response, .. } => {
                assert!(matches!(final_response, Some(ToolResponse::Slept(_))));
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(percents.is_sorted() && percents.last() == Some(&100.0), "{percents:?}");
    assert!(replies.next().await.is_none());
}

/// Rule: `job_cancel` reports `cancelled` only when the work has stopped.
#[tokio::test]
async fn a_cancelled_job_has_stopped() {
    let fixture = start().await;
    let local = Credential::local();
    let job_id = sleep_job(&fixture.broker, &local, 60_000).await;
    let cancelled = result(&fixture.broker, &local, JobCancelRequest { job_id }).await.unwrap();
    let expected = JobCancelledResponse { job_id, status: JobState::Cancelled };
    assert_eq!(cancelled, ToolResponse::JobCancelled(expected));
    let again = result(&fixture.broker, &local, JobCancelRequest { job_id }).await.unwrap();
    assert_eq!(again, cancelled);
    // Its place is free: the shutdown finds no work to interrupt.
    fixture.broker.stop(Duration::from_secs(5)).await;
}

/// Rule: a retry with the same request id never runs the tool twice; the same id with another body
/// is a conflict.
#[tokio::test]
async fn a_repeat_is_the_same_call_also_after_a_restart() {
    let fixture = start().await;
    let local = Credential::local();
    let again = |milliseconds| {
        let mut call = call(&local, JobSleepRequest { milliseconds });
        call.request_id = Some(request_id(1));
        call
    };
    let first = reply(&fixture.broker, again(1)).await;
    let ResponseEnvelope::JobStarted { job_id, .. } = first else { panic!("{first:?}") };
    assert_eq!(reply(&fixture.broker, again(1)).await, first);
    let ResponseEnvelope::Error(error) = reply(&fixture.broker, again(2)).await else {
        panic!("a conflict")
    };
    assert_eq!((error.code.as_str(), error.certainty), ("conflict", Certainty::NotStarted));

    let fixture = fixture.restart(Duration::from_secs(5)).await;
    assert_eq!(reply(&fixture.broker, again(1)).await, first);
    let mut waited = again(1);
    waited.envelope.options.wait_ms = Some(1000);
    assert!(matches!(reply(&fixture.broker, waited).await, ResponseEnvelope::Success { .. }));
    let list = result(&fixture.broker, &local, JobListRequest::default()).await.unwrap();
    let ToolResponse::JobList(list) = list else { panic!("{list:?}") };
    assert_eq!((list.total, list.jobs[0].job_id), (1, job_id));
}

#[tokio::test]
async fn a_repeated_write_answers_the_same_and_writes_once() {
    let fixture = start().await;
    let local = Credential::local();
    let create = || {
        let request = TokenCreateRequest {
            name: "a".to_owned(),
            scope: Level::Read,
            projects: None,
            expires_in: None,
        };
        let mut call = call(&local, request);
        call.request_id = Some(request_id(2));
        call
    };
    let first = reply(&fixture.broker, create()).await;
    assert!(matches!(first, ResponseEnvelope::Success { .. }));
    assert_eq!(reply(&fixture.broker, create()).await, first);
    let list = result(&fixture.broker, &local, TokenListRequest {}).await.unwrap();
    let ToolResponse::TokenList(list) = list else { panic!("{list:?}") };
    assert_eq!(list.tokens.len(), 1);
}

/// Rule: a full queue answers `busy` and does not grow.
#[tokio::test]
async fn too_many_jobs_are_busy_and_pending_ones_run_later() {
    let fixture = start().await;
    let local = Credential::local();
    let mut jobs = Vec::new();
    for _ in 0..8 {
        jobs.push(sleep_job(&fixture.broker, &local, 100).await);
    }
    let ninth = reply(&fixture.broker, call(&local, JobSleepRequest { milliseconds: 1 })).await;
    let ResponseEnvelope::Error(error) = ninth else { panic!("{ninth:?}") };
    assert_eq!((error.code.as_str(), error.retryable), ("busy", true));
    assert_eq!(error.certainty, Certainty::NotStarted);
    let poll =
        JobPollRequest { job_ids: jobs.clone(), timeout_ms: 20_000, mode: Some(PollMode::All) };
    let polled = result(&fixture.broker, &local, poll).await.unwrap();
    let ToolResponse::JobPollResult(polled) = polled else { panic!("{polled:?}") };
    assert_eq!(polled.completed, jobs);
}

#[tokio::test]
async fn a_caller_with_too_many_calls_is_busy() {
    let fixture = start_with(|config| config.calls_per_principal_max = 2).await;
    let local = Credential::local();
    let wait = || EventPollRequest { wait_ms: Some(20_000), ..EventPollRequest::default() };
    let held: Vec<_> = (0..2).map(|_| fixture.broker.call(call(&local, wait()))).collect();
    let third = reply(&fixture.broker, call(&local, wait())).await;
    assert!(matches!(third, ResponseEnvelope::Error(error) if error.code == "busy"));
    drop(held);
    let list = result(&fixture.broker, &local, JobListRequest::default()).await;
    assert!(list.is_ok(), "calls that were dropped hold no place: {list:?}");
}

/// Rule: every failure says whether the tool ran.
#[tokio::test]
async fn a_deadline_ends_a_job_and_a_call() {
    let fixture = start().await;
    let local = Credential::local();
    let deadline = CallOptions {
        deadline_ms: std::num::NonZeroU64::new(20),
        wait_ms: Some(10_000),
        ..CallOptions::default()
    };
    let mut job = call(&local, JobSleepRequest { milliseconds: 60_000 });
    job.envelope.options = deadline;
    let nothing = EventPollRequest {
        types: Some(vec!["artifact.created".to_owned()]),
        wait_ms: Some(20_000),
        ..Default::default()
    };
    let mut poll = call(&local, nothing);
    poll.envelope.options = deadline;
    for call in [job, poll] {
        let ResponseEnvelope::Error(error) = reply(&fixture.broker, call).await else {
            panic!("a timeout")
        };
        assert_eq!((error.code.as_str(), error.context.timeout_ms), ("timeout", Some(20)));
        assert_eq!(error.certainty, Certainty::MayHaveRun);
    }
}

/// Rule: work whose job id was not handed out is cancelled when its caller leaves.
#[tokio::test]
async fn a_caller_that_leaves_before_it_knows_the_job_ends_it() {
    let fixture = start().await;
    let local = Credential::local();
    let mut subscription = fixture.broker.subscribe();
    let mut waited = call(&local, JobSleepRequest { milliseconds: 60_000 });
    waited.envelope.options.wait_ms = Some(30_000);
    let Answer::Later(mut replies, _) = fixture.broker.call(waited) else { panic!("later") };
    let mut states = Vec::new();
    let mut see = async |states: &mut Vec<JobState>, until: JobState| {
        while states.last() != Some(&until) {
            for published in subscription.next(10).await {
                if let ringback_proto::Event::JobStateChanged { state, .. } = published.event.event
                {
                    states.push(state);
                }
            }
        }
    };
    tokio::select! {
        reply = replies.next() => panic!("{reply:?}"),
        () = see(&mut states, JobState::Running) => {}
    }
    drop(replies);
    see(&mut states, JobState::Cancelled).await;
}

/// Rule: an expired or revoked token does not work for one more call, and its streams are closed.
#[tokio::test]
async fn a_revoked_token_is_refused_at_once_and_wakes_its_holders() {
    let fixture = start().await;
    let local = Credential::local();
    let request = TokenCreateRequest {
        name: "short".to_owned(),
        scope: Level::Read,
        projects: None,
        expires_in: None,
    };
    let created = result(&fixture.broker, &local, request).await.unwrap();
    let ToolResponse::TokenCreated(created) = created else { panic!("{created:?}") };
    let credential = fixture.broker.authenticate(created.token.expose()).unwrap();
    assert!(result(&fixture.broker, &credential, JobListRequest::default()).await.is_ok());
    let denied = result(&fixture.broker, &credential, JobSleepRequest { milliseconds: 0 }).await;
    let denied = denied.unwrap_err();
    assert_eq!(denied.code, "permission_denied");
    assert!(denied.context.missing.unwrap().contains("write"));

    let revoke = TokenRevokeRequest { token_id: created.token_id };
    result(&fixture.broker, &local, revoke).await.unwrap();
    credential.ended().await;
    let refused = result(&fixture.broker, &credential, PingRequest {}).await.unwrap_err();
    assert_eq!(refused.code, "unauthenticated");
    assert!(fixture.broker.authenticate(created.token.expose()).is_err());
}

#[tokio::test]
async fn a_token_sees_only_its_own_jobs_and_events() {
    let fixture = start().await;
    let local = Credential::local();
    let job_id = sleep_job(&fixture.broker, &local, 0).await;
    let request = TokenCreateRequest {
        name: "stranger".to_owned(),
        scope: Level::Write,
        projects: None,
        expires_in: None,
    };
    let created = result(&fixture.broker, &local, request).await.unwrap();
    let ToolResponse::TokenCreated(created) = created else { panic!("{created:?}") };
    let stranger = fixture.broker.authenticate(created.token.expose()).unwrap();
    for request in [
        ToolRequest::from(JobStatusRequest { job_id }),
        JobCancelRequest { job_id }.into(),
        JobPollRequest { job_ids: vec![job_id], timeout_ms: 0, mode: None }.into(),
    ] {
        let error = result(&fixture.broker, &stranger, request).await.unwrap_err();
        assert_eq!(error.code, "not_found");
    }
    let events = result(&fixture.broker, &stranger, EventPollRequest::default()).await.unwrap();
    assert!(matches!(events, ToolResponse::Events(events) if events.events.is_empty()));
    let own = sleep_job(&fixture.broker, &stranger, 0).await;
    assert_eq!(status(&fixture.broker, &local, own).await.job_id, own, "an admin sees all");
}

#[tokio::test]
async fn what_was_running_at_a_stop_is_interrupted_and_what_waited_runs_afterwards() {
    let fixture = start_with(|config| config.jobs_running_max = 1).await;
    let local = Credential::local();
    let running = sleep_job(&fixture.broker, &local, 60_000).await;
    let pending = sleep_job(&fixture.broker, &local, 1).await;
    assert_eq!(status(&fixture.broker, &local, pending).await.status, JobState::Pending);

    let fixture = fixture.restart(Duration::ZERO).await;
    let interrupted = status(&fixture.broker, &local, running).await;
    assert_eq!(interrupted.status, JobState::Failed);
    assert_eq!(interrupted.error.unwrap().context.reason.as_deref(), Some("interrupted"));
    let poll = JobPollRequest { job_ids: vec![pending], timeout_ms: 10_000, mode: None };
    result(&fixture.broker, &local, poll).await.unwrap();
    assert_eq!(status(&fixture.broker, &local, pending).await.status, JobState::Complete);
}

#[tokio::test]
async fn every_call_can_be_explained_by_any_of_its_ids() {
    let fixture = start().await;
    let local = Credential::local();
    let sleep = || {
        let mut call = call(&local, JobSleepRequest { milliseconds: 1 });
        call.request_id = Some(request_id(7));
        call.envelope.options.deadline_ms = std::num::NonZeroU64::new(5_000);
        call
    };
    let first = reply(&fixture.broker, sleep()).await;
    let ResponseEnvelope::JobStarted { job_id, .. } = first else { panic!("{first:?}") };
    let why = async |id: String| match result(&fixture.broker, &local, CallWhyRequest { id }).await
    {
        Ok(ToolResponse::CallExplained(why)) => why,
        other => panic!("{other:?}"),
    };
    let by_job = why(job_id.to_string()).await;
    assert_eq!(by_job.outcome.as_deref(), Some("job_started"));
    assert_eq!((by_job.deadline_ms, by_job.deadline_from.as_str()), (5_000, "caller"));
    assert_eq!(why(by_job.call_id.to_string()).await.call_id, by_job.call_id);
    assert_eq!(why(request_id(7).to_string()).await.call_id, by_job.call_id);

    reply(&fixture.broker, sleep()).await;
    let again = why(request_id(7).to_string()).await;
    assert!(again.repeat && again.job_id == Some(job_id), "{again:?}");
    let unknown = CallWhyRequest { id: "what".to_owned() };
    assert_eq!(result(&fixture.broker, &local, unknown).await.unwrap_err().code, "invalid_params");
}
