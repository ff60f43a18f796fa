//! Which calls are jobs, and how jobs are found again.
use crate::common::{call, reply, result, start};
use ringback_broker::{Broker, Credential};
use ringback_proto::ids::{BlobHash, JobId};
use ringback_proto::record::JobState;
use ringback_proto::request::*;
use ringback_proto::{Certainty, Event, ResponseEnvelope, StreamChunk, ToolRequest, ToolResponse};

async fn sleep_job(broker: &Broker, who: &Credential, milliseconds: u64) -> JobId {
    match reply(broker, call(who, JobSleepRequest { milliseconds })).await {
        ResponseEnvelope::JobStarted { job_id, .. } => job_id,
        other => panic!("not a job: {other:?}"),
    }
}

async fn list(broker: &Broker, status: Option<JobState>) -> JobListResponse {
    let request = JobListRequest { status, ..JobListRequest::default() };
    match result(broker, &Credential::local(), request).await.unwrap() {
        ToolResponse::JobList(list) => list,
        other => panic!("not a list: {other:?}"),
    }
}

async fn poll(
    broker: &Broker,
    job_ids: Vec<JobId>,
    timeout_ms: u64,
    mode: PollMode,
) -> Result<JobPollResponse, String> {
    let request = JobPollRequest { job_ids, timeout_ms, mode: Some(mode) };
    match result(broker, &Credential::local(), request).await {
        Ok(ToolResponse::JobPollResult(polled)) => Ok(polled),
        Ok(other) => panic!("not a poll: {other:?}"),
        Err(error) => Err(error.code),
    }
}

/// Rule: a read or a quick write creates no job, and answers `success` or `error` whatever the
/// caller asks for.
#[tokio::test]
async fn a_tool_without_a_job_answers_with_its_result_however_it_is_asked() {
    let fixture = start().await;
    let local = Credential::local();
    let unknown = BlobHash::from_bytes([1; 32]);
    result(&fixture.broker, &local, JobSleepRequest { milliseconds: 0 }).await.unwrap();
    let job_id = list(&fixture.broker, None).await.jobs[0].job_id;
    let requests: [ToolRequest; 10] = [
        PingRequest {}.into(),
        ListToolsRequest::default().into(),
        ConfigGetRequest::default().into(),
        CasStatsRequest {}.into(),
        CasInspectRequest { hash: unknown }.into(),
        JobStatusRequest { job_id }.into(),
        JobListRequest::default().into(),
        ArtifactListRequest::default().into(),
        EventPollRequest::default().into(),
        TokenListRequest {}.into(),
    ];
    for request in requests {
        for (wait_ms, stream) in [(None, false), (Some(0), false), (Some(10), true)] {
            let mut call = call(&local, request.clone());
            call.envelope.options.wait_ms = wait_ms;
            call.envelope.options.stream = stream;
            let reply = reply(&fixture.broker, call).await;
            assert!(matches!(reply, ResponseEnvelope::Success { .. }), "{request:?}: {reply:?}");
        }
    }
    assert_eq!(list(&fixture.broker, None).await.total, 1, "the one that was asked about");
}

#[tokio::test]
async fn failed_jobs_are_found_with_their_errors() {
    let fixture = start().await;
    let local = Credential::local();
    let done = sleep_job(&fixture.broker, &local, 0).await;
    let failed = sleep_job(&fixture.broker, &local, u64::MAX).await;
    let polled = poll(&fixture.broker, vec![done, failed], 10_000, PollMode::All).await.unwrap();
    assert_eq!((polled.completed, polled.failed), (vec![done], vec![failed]));
    let list = list(&fixture.broker, Some(JobState::Failed)).await;
    assert_eq!(list.jobs.iter().map(|job| job.job_id).collect::<Vec<_>>(), [failed]);
    assert_eq!((list.total, list.by_status.failed, list.by_status.complete), (2, 1, 1));
    let error = list.jobs[0].error.as_ref().unwrap();
    assert_eq!((error.code.as_str(), error.certainty), ("invalid_params", Certainty::NotStarted));
}

#[tokio::test]
async fn a_poll_wakes_at_the_first_or_the_last_end() {
    let fixture = start().await;
    let local = Credential::local();
    let short = sleep_job(&fixture.broker, &local, 10).await;
    let long = sleep_job(&fixture.broker, &local, 60_000).await;
    let first = poll(&fixture.broker, vec![long, short], 30_000, PollMode::Any).await.unwrap();
    assert_eq!((first.completed, first.pending), (vec![short], vec![long]));
    assert!(!first.timed_out);
    let both = poll(&fixture.broker, vec![long, short], 10, PollMode::All).await.unwrap();
    assert_eq!((both.completed, both.timed_out), (vec![short], true));
    let again = poll(&fixture.broker, vec![short, long], 30_000, PollMode::Any).await.unwrap();
    assert!(!again.timed_out, "one has ended, so there is nothing to wait for");
}

#[tokio::test]
async fn unknown_jobs_and_empty_polls_are_told_at_once() {
    let fixture = start().await;
    let local = Credential::local();
    let unknown = JobId::from_random([9; 16]);
    let polled = poll(&fixture.broker, vec![unknown], 30_000, PollMode::All).await;
    assert_eq!(polled.unwrap_err(), "not_found");
    let polled = poll(&fixture.broker, vec![], 30_000, PollMode::Any).await;
    assert_eq!(polled.unwrap_err(), "invalid_params");
    for request in [
        ToolRequest::from(JobCancelRequest { job_id: unknown }),
        JobStatusRequest { job_id: unknown }.into(),
    ] {
        let error = result(&fixture.broker, &local, request).await.unwrap_err();
        assert_eq!(error.code, "not_found");
    }
}

#[tokio::test]
async fn the_progress_of_a_stream_is_told_as_events_too() {
    let fixture = start().await;
    let local = Credential::local();
    let mut subscription = fixture.broker.subscribe();
    let mut call = call(&local, JobSleepRequest { milliseconds: 60 });
    call.envelope.options.stream = true;
    let ringback_broker::Answer::Later(mut replies, _) = fixture.broker.call(call) else {
        panic!("a stream")
    };
    let Some(ResponseEnvelope::StreamStart { stream_id, job_id: Some(job_id), .. }) =
        replies.next().await
    else {
        panic!("a start")
    };
    while replies.next().await.is_some() {}
    let (mut in_stream, mut in_job, mut states) = (0, 0, Vec::new());
    let (mut n_started, mut has_ended) = (0, false);
    while !has_ended || states.last() != Some(&JobState::Complete) {
        for published in subscription.next(10).await {
            match &published.event.event {
                Event::StreamChunk { stream_id: id, chunk: StreamChunk::Progress { .. } } => {
                    in_stream += usize::from(*id == stream_id);
                }
                Event::JobProgress { job_id: id, .. } => in_job += usize::from(*id == job_id),
                Event::JobStateChanged { state, .. } => states.push(*state),
                Event::StreamStarted { stream_id: id, tool, job_id: of } => {
                    assert_eq!((*id, tool.as_str(), *of), (stream_id, "job_sleep", Some(job_id)));
                    assert_eq!(in_stream, 0, "before its first chunk");
                    n_started += 1;
                }
                Event::StreamEnded { stream_id: id, job_id: of, data } => {
                    assert_eq!((*id, *of, *data), (stream_id, Some(job_id), 0));
                    has_ended = true;
                }
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(n_started, 1);
    assert!(in_stream > 0 && in_stream == in_job, "{in_stream} {in_job}");
    assert_eq!(states, [JobState::Running, JobState::Complete]);
}
