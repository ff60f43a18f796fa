//! The steps of the demonstration; each checks its own outcome.

use std::time::Instant;

use bytes::Bytes;
use futures_util::StreamExt;
use ringback_client::{Outcome, StreamItem};
use ringback_proto::ids::{BlobHash, JobId};
use ringback_proto::principal::Level;
use ringback_proto::record::JobState;
use ringback_proto::request::{
    AddAnnotationRequest, ArtifactCreateRequest, ArtifactGetRequest, JobPollRequest,
    JobSleepRequest, JobStatusRequest, PingRequest, TokenCreateRequest,
};
use ringback_proto::tool::tools::{
    AddAnnotation, ArtifactCreate, ArtifactGet, JobPoll, JobSleep, JobStatus, Ping, TokenCreate,
};
use ringback_proto::{Certainty, ErrorKind, Event, StreamChunk, ToolResponse};

use super::Step;
use super::stage::Stage;
use crate::daemon::VERSION;
use crate::failure::Failure;

/// Long enough to see progress, short enough for people in a hurry.
const NAP_MS: u64 = 600;
/// Three pieces of an upload, the last one not full.
const CONTENT_BYTES: usize = 9 << 20;

pub(super) fn check(holds: bool, what: &str) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(Failure::Wrong(format!("the demonstration failed: {what}"))) }
}

pub(super) async fn call(stage: &Stage) -> Result<Step, Failure> {
    let asked = Instant::now();
    let pong = stage.client.call::<Ping>(PingRequest {}).await?;
    let micros = asked.elapsed().as_micros();
    check(pong.version == VERSION, "the daemon has another version")?;
    Ok(Step {
        title: "A call",
        command: "ringback call ping",
        why: "A typed request went over ZeroMQ to a typed tool, and its typed answer came back.",
        happened: vec![format!("version {}, answered in {micros} µs", pong.version)],
    })
}

pub(super) async fn job(stage: &Stage) -> Result<(Step, JobId), Failure> {
    let request = JobSleepRequest { milliseconds: NAP_MS };
    let Outcome::Job { job_id, .. } = stage.client.submit::<JobSleep>(request).await? else {
        return Err(Failure::Wrong("a job should have been started".to_owned()));
    };
    let mut happened = vec![format!("{job_id}, returned immediately")];
    let poll = JobPollRequest { job_ids: vec![job_id], timeout_ms: 10_000, mode: None };
    let ended = stage.client.call::<JobPoll>(poll).await?;
    check(ended.completed == [job_id], "the job did not complete")?;
    let heard = stage.hear(|event| is_end(event, job_id)).await?;
    let percents: Vec<String> =
        heard.iter().filter_map(|heard| progress_of(&heard.event, job_id)).collect();
    check(!percents.is_empty(), "the job reported no progress")?;
    happened.push(format!("progress {}", percents.join(", ")));
    let job = stage.client.call::<JobStatus>(JobStatusRequest { job_id }).await?;
    let slept = match job.result.as_deref() {
        Some(ToolResponse::Slept(slept)) => slept.milliseconds,
        Some(_) | None => 0,
    };
    check(job.status == JobState::Complete && slept == NAP_MS, "the job has no result")?;
    happened.push(format!("complete: slept {slept} ms"));
    let step = Step {
        title: "A job with progress",
        command: "ringback call job_sleep milliseconds=600 --no-wait; ringback jobs watch JOB",
        why: "Its id is on disk before you get it: a crash cannot lose it, a retry cannot run it twice.",
        happened,
    };
    Ok((step, job_id))
}

pub(super) async fn stream(stage: &Stage) -> Result<Step, Failure> {
    let request = JobSleepRequest { milliseconds: NAP_MS };
    let mut items = stage.client.stream::<JobSleep>(request)?;
    let (mut started, mut n_chunks, mut last) = (false, 0_u32, 0.0_f32);
    let mut slept = None;
    while let Some(item) = items.next().await {
        match item? {
            StreamItem::Started { .. } => started = true,
            StreamItem::Chunk(StreamChunk::Progress { percent, .. }) => {
                check(percent >= last, "progress went backwards")?;
                (n_chunks, last) = (n_chunks + 1, percent);
            }
            StreamItem::Chunk(_) => {}
            StreamItem::End(response) => slept = response,
        }
    }
    check(started && n_chunks > 0, "the stream had no chunks")?;
    check(slept.is_some_and(|slept| slept.milliseconds == NAP_MS), "the stream has no end")?;
    Ok(Step {
        title: "A stream",
        command: "ringback call job_sleep milliseconds=600 --stream",
        why: "The same tool, followed live. Press Ctrl-C in a stream and the work stops too.",
        happened: vec![format!("start, {n_chunks} chunks up to {last:.0}%, end with the answer")],
    })
}

pub(super) async fn events(stage: &Stage, job_id: JobId) -> Result<Step, Failure> {
    let heard = stage.hear(|event| is_end(event, job_id)).await?;
    let gap_free = heard.windows(2).all(|pair| pair[1].seq == pair[0].seq + 1);
    check(gap_free, "events are missing or out of order")?;
    let states: Vec<JobState> =
        heard.iter().filter_map(|heard| state_of(&heard.event, job_id)).collect();
    // A job that has to wait is pending before that.
    check(
        states.ends_with(&[JobState::Running, JobState::Complete]),
        "the job's states were not reported in order",
    )?;
    let states: Vec<&str> = states.into_iter().map(JobState::as_str).collect();
    let (first, last) = (heard.first().map_or(0, |e| e.seq), heard.last().map_or(0, |e| e.seq));
    Ok(Step {
        title: "Events",
        command: "ringback events --follow",
        why: "Any client may subscribe; the numbers have no gaps, so a slow subscriber knows what it missed.",
        happened: vec![
            format!("states of that job: {}", states.join(", ")),
            format!("received {} events, numbers {first} to {last}, none missed", heard.len()),
        ],
    })
}

pub(super) async fn content(stage: &Stage) -> Result<(Step, BlobHash), Failure> {
    let bytes: Bytes = (0..=u8::MAX).cycle().take(CONTENT_BYTES).collect();
    let stored = stage.client.upload(&*bytes, "application/octet-stream").await?;
    let hash = stored.hash.ok_or_else(|| Failure::Wrong("no hash was returned".to_owned()))?;
    check(stored.size == CONTENT_BYTES as u64, "the size changed during the upload")?;
    let mut back = Vec::with_capacity(CONTENT_BYTES);
    stage.client.download(hash, &mut back).await?;
    check(bytes == back, "the content changed in transit")?;
    let again = stage.client.upload(&*bytes, "application/octet-stream").await?;
    check(again.hash == Some(hash), "the same content has two hashes")?;
    let step = Step {
        title: "Content in and out",
        command: "ringback cas put FILE; ringback cas get HASH -o FILE",
        why: "Content is named by its hash (BLAKE3) and kept once, however often it is stored.",
        happened: vec![
            format!("{} MiB stored and retrieved, equal byte for byte", CONTENT_BYTES >> 20),
            format!("{hash}"),
        ],
    };
    Ok((step, hash))
}

pub(super) async fn artifact(stage: &Stage, hash: BlobHash) -> Result<Step, Failure> {
    let request = ArtifactCreateRequest {
        content_hash: hash,
        metadata: None,
        tags: vec!["demo".to_owned()],
        creator: Some("ringback demo".to_owned()),
        parent_id: None,
        variation_set_id: None,
    };
    let made = stage.client.call::<ArtifactCreate>(request).await?;
    let id = made.artifact_id;
    let remark = AddAnnotationRequest {
        artifact_id: id,
        message: "every byte value, over and over".to_owned(),
        source: None,
        vibe: None,
    };
    stage.client.call::<AddAnnotation>(remark).await?;
    let found = stage.client.call::<ArtifactGet>(ArtifactGetRequest { id }).await?;
    check(found.content_hash == hash && found.tags == ["demo"], "this is another artifact")?;
    check(found.annotations.len() == 1, "the annotation was lost")?;
    let created = move |event: &Event| matches!(event, Event::ArtifactCreated { artifact_id, .. } if *artifact_id == id);
    stage.hear(created).await?;
    Ok(Step {
        title: "An artifact",
        command: "ringback artifacts create HASH --tag demo; ringback artifacts annotate ID …",
        why: "Content gets a creator, tags, annotations and a history: what was made from what.",
        happened: vec![format!("{id} with one annotation, published as artifact.created")],
    })
}

pub(super) async fn refusal(stage: &Stage) -> Result<Step, Failure> {
    let request = TokenCreateRequest {
        name: "reads only".to_owned(),
        scope: Level::Read,
        projects: None,
        expires_in: Some(60),
    };
    let token = stage.client.call::<TokenCreate>(request).await?;
    let reader = stage.client_with(token.token).await?;
    reader.call::<Ping>(PingRequest {}).await?;
    let refused = reader.call::<JobSleep>(JobSleepRequest { milliseconds: 1 }).await;
    reader.close().await;
    let Err(error) = refused else {
        return Err(Failure::Wrong("a read-only token started a job".to_owned()));
    };
    check(error.kind() == ErrorKind::Forbidden, "the call was refused for another reason")?;
    check(error.certainty() == Certainty::NotStarted, "a refusal must have no effect")?;
    Ok(Step {
        title: "A refusal",
        command: "ringback token create NAME --scope read",
        why: "Every failure shows whether the tool ran, so that an agent knows if a retry is safe.",
        happened: vec![format!("{}; nothing was done", error.message())],
    })
}

fn is_end(event: &Event, job: JobId) -> bool {
    state_of(event, job).is_some_and(JobState::is_terminal)
}

fn state_of(event: &Event, job: JobId) -> Option<JobState> {
    if let Event::JobStateChanged { job_id, state, .. } = event
        && *job_id == job
    {
        Some(*state)
    } else {
        None
    }
}

fn progress_of(event: &Event, job: JobId) -> Option<String> {
    if let Event::JobProgress { job_id, percent, .. } = event
        && *job_id == job
    {
        Some(format!("{percent:.0}%"))
    } else {
        None
    }
}
