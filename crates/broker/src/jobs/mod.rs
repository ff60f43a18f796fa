//! The shell of the job table: commits the records of each step, then runs its effects.

mod live;
mod submission;

use std::collections::{HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, Weak};

use futures_util::FutureExt as _;
use ringback_core::deadline::Deadline;
use ringback_core::jobs::{
    JobClass, JobLimits, JobTable, Release, StopReason, WorkEnd, WorkResult, resumes,
};
use ringback_core::policy::Provenance;
use ringback_core::{Effects, Now};
use ringback_proto::error::ToolError;
use ringback_proto::ids::JobId;
use ringback_proto::principal::PrincipalId;
use ringback_proto::record::{JobRecord, JobState, Record, RepeatKey};
use ringback_proto::{Certainty, Error, Event, Result, StreamChunk, ToolRequest, ToolResponse};
use ringback_store::{CommitError, QueueFull};
use tracing::{Instrument as _, Span};

pub(crate) use self::live::{Interest, LiveJob};
use crate::call::Calls;
use crate::failure;
use crate::garden::SentCommand;
use crate::handler::{self, Context};
use crate::identity::{Credential, Identity};
use crate::kernel::Kernel;
use crate::rooms::Rooms;
use crate::stream::Stream;
use crate::sync::lock;

/// Larger results are blobs, so that rows stay small.
const RESULT_INLINE_MAX: usize = 64 * 1024;

/// Six bytes of milliseconds last for 8,900 years.
const TIME_BYTES: usize = 6;

/// The jobs in progress.
#[derive(Debug)]
pub(crate) struct Jobs {
    pub(crate) kernel: Arc<Kernel>,
    identity: Arc<Identity>,
    calls: Arc<Calls>,
    table: Mutex<JobTable>,
    live: Mutex<HashMap<JobId, Arc<LiveJob>>>,
    /// Jobs run tools, and tools may use every room: the only reference that points back.
    rooms: Weak<Rooms>,
}

/// The result of a submission.
#[derive(Debug)]
pub(crate) enum SubmitOutcome {
    /// A new job; it is durable.
    New(Interest),
    /// The job of an earlier call with the same request id.
    Repeated(JobId),
}

/// The reason why there is no new job.
enum SubmitFailure {
    Repeated(JobId),
    Failed(Error),
}

/// A job to start.
#[derive(Debug)]
pub(crate) struct Submission {
    pub(crate) request: ToolRequest,
    pub(crate) owner: PrincipalId,
    pub(crate) provenance: Provenance,
    /// The session key, if an agent started it.
    pub(crate) held: Option<Credential>,
    pub(crate) repeat: Option<RepeatKey>,
    pub(crate) deadline: Option<Deadline>,
    pub(crate) stream: Option<Arc<Stream>>,
    /// The command of the job, if it was sent already.
    pub(crate) sent: Option<SentCommand>,
    pub(crate) trace: Span,
}

impl Jobs {
    pub(crate) fn new(
        kernel: Arc<Kernel>,
        identity: Arc<Identity>,
        calls: Arc<Calls>,
        rooms: Weak<Rooms>,
    ) -> Self {
        let limits = JobLimits {
            running_max: kernel.config.jobs_running_max,
            live_max: kernel.config.jobs_live_max,
            live_per_principal_max: kernel.config.jobs_per_principal_max,
        };
        let table = Mutex::new(JobTable::new(limits));
        Self { kernel, identity, calls, table, live: Mutex::default(), rooms }
    }

    pub(crate) fn live(&self, id: JobId) -> Option<Arc<LiveJob>> {
        lock(&self.live).get(&id).cloned()
    }

    pub(crate) fn next_deadline(&self) -> Option<u64> {
        lock(&self.table).next_deadline()
    }

    /// Returns how many jobs there are. The two tables have the same count; the larger one would
    /// show a leak.
    pub(crate) fn len(&self) -> usize {
        let n_table = {
            let table = lock(&self.table);
            if table.is_empty() { 0 } else { table.n_live().max(1) }
        };
        n_table.max(lock(&self.live).len())
    }

    /// Returns how many jobs run.
    pub(crate) fn n_running(&self) -> usize {
        lock(&self.table).n_running()
    }
}

impl Jobs {
    /// Starts a job, unless the same request has started one already. It is durable when this
    /// returns.
    pub(crate) async fn submit(self: &Arc<Self>, submission: Submission) -> Result<SubmitOutcome> {
        let Submission { request, owner, provenance, held, .. } = submission;
        let Submission { repeat, deadline, stream, sent, trace, .. } = submission;
        let id = new_id(self.kernel.now(), self.kernel.entropy.bytes());
        let record = JobRecord {
            id,
            tool: request.row().name.to_owned(),
            owner,
            project: provenance.project,
            session: provenance.session,
            repeat,
            request: encode_request(&request)?,
            state: JobState::Pending,
            result: None,
            result_blob: None,
            error: None,
            created_at: 0,
            started_at: None,
            completed_at: None,
            expires_at: None,
        };
        let new = LiveJob::new(id, request, owner);
        let live = Arc::new(LiveJob { provenance, trace, held, sent, ..new });
        if let Some(stream) = stream {
            live.attach(stream);
        }
        let row = live.row;
        let interest = Interest::new(self, Arc::clone(&live));
        let effects = lock(&self.table).submit(record, row, deadline, self.kernel.now())?;
        lock(&self.live).insert(id, live);
        if let Some(deadline) = deadline {
            self.kernel.alarm.add(deadline.at);
        }
        match self.create(effects).await {
            Ok(()) => Ok(SubmitOutcome::New(interest)),
            Err(SubmitFailure::Repeated(existing)) => Ok(SubmitOutcome::Repeated(existing)),
            Err(SubmitFailure::Failed(error)) => Err(error),
        }
    }

    /// Makes a new job durable, or refuses it. Later steps never fail its caller, who would take an
    /// existing job for a refused one.
    async fn create(self: &Arc<Self>, effects: Effects<Release>) -> Result<(), SubmitFailure> {
        let Effects { write, release } = effects;
        let mut steps = VecDeque::new();
        let created = match self.kernel.store.commit_async(write).await {
            Ok(Ok(_)) => {
                self.release(release, &mut steps);
                Ok(())
            }
            Ok(Err(CommitError::Repeated { existing })) => {
                self.withdraw(&release, &mut steps);
                Err(SubmitFailure::Repeated(existing))
            }
            Ok(Err(error)) => Err(self.refuse(&release, failure::commit(error), &mut steps)),
            Err(QueueFull) => {
                Err(self.refuse(&release, Error::busy("the store's queue"), &mut steps))
            }
        };
        while let Some(step) = steps.pop_front_if(|step| step.write.is_empty()) {
            self.release(step.release, &mut steps);
        }
        if !steps.is_empty() {
            let rest = Arc::clone(self).drive_steps(steps);
            drop(self.kernel.tasks.spawn(async move {
                if let Err(error) = rest.await {
                    tracing::error!(%error, "cannot store the steps after a new job");
                }
            }));
        }
        created
    }

    fn refuse(&self, release: &[Release], error: Error, steps: &mut Steps) -> SubmitFailure {
        self.abandon(release, &error, steps);
        SubmitFailure::Failed(error)
    }

    /// Drops this job, since the same request has made one before. Its reader continues with that
    /// one.
    fn withdraw(&self, release: &[Release], steps: &mut Steps) {
        for job in settled(release) {
            steps.push_back(lock(&self.table).abandoned(job, self.kernel.now()));
            let live = lock(&self.live).remove(&job);
            if let Some(live) = live {
                lock(&live.streams).clear();
                live.end(
                    &self.kernel,
                    Err(Error::internal("repeat", "an earlier call made this job")),
                );
            }
        }
    }

    /// Restores jobs after a restart: pending ones continue, running ones were interrupted.
    pub(crate) async fn restore(self: &Arc<Self>, records: Vec<JobRecord>) -> Result<()> {
        let mut known = Vec::new();
        for record in records {
            let Some(request) = decode_request(&record.request) else {
                tracing::error!(job = %record.id, tool = record.tool, "cannot read a stored job");
                continue;
            };
            let class = JobClass::from(request.row());
            if resumes(&record, class) {
                let (project, session) = (record.project, record.session);
                let provenance = Provenance { project, session };
                let new = LiveJob::new(record.id, request, record.owner);
                let live = LiveJob { provenance, ..new };
                // An earlier run returned its id, or may have.
                lock(&live.callers).is_known = true;
                lock(&self.live).insert(record.id, Arc::new(live));
            }
            known.push((record, class));
        }
        let effects = lock(&self.table).restore(known, self.kernel.now());
        let driving =
            self.kernel.tasks.spawn(Arc::clone(self).drive_steps(VecDeque::from([effects])));
        tokio::select! {
            biased;
            driven = driving => driven.unwrap_or_else(|error| Err(failure::internal(error))),
            // Freeing disk space needs a daemon that answers.
            () = self.kernel.disk_full.notified() => {
                tracing::error!("the disk is full: jobs of the last run wait for space");
                Ok(())
            }
        }
    }

    /// Stops a job. Returns `false` if it is not live.
    pub(crate) async fn stop_job(self: &Arc<Self>, id: JobId, reason: StopReason) -> Result<bool> {
        let effects = lock(&self.table).stop(id, reason, self.kernel.now());
        match effects {
            None => Ok(false),
            Some(effects) => self.drive(effects).await.map(|()| true),
        }
    }

    /// Stops the jobs whose time is up. Their records are written in a separate task, so that no
    /// other deadline waits for the store.
    pub(crate) fn expire_jobs(self: &Arc<Self>, now: Now) {
        let effects = lock(&self.table).expire(now);
        if effects.write.is_empty() && effects.release.is_empty() {
            return;
        }
        let driven = Arc::clone(self).drive_steps(VecDeque::from([effects]));
        drop(self.kernel.tasks.spawn(async move {
            if let Err(error) = driven.await {
                tracing::error!(%error, "cannot store the end of an expired job");
            }
        }));
    }

    /// Lets no more pending jobs start until the restart. Returns those that have started.
    pub(crate) fn close_jobs(&self) -> Vec<JobId> {
        lock(&self.table).close()
    }

    /// Passes a chunk to the followers of the job, and to everyone who listens.
    pub(crate) async fn send_chunk(&self, job: &LiveJob, chunk: StreamChunk) {
        if let StreamChunk::Progress { percent, message } = &chunk {
            let event =
                Event::JobProgress { job_id: job.id, percent: *percent, message: message.clone() };
            self.kernel.publish(event, job.owner, job.provenance.project);
        }
        let streams = lock(&job.streams).clone();
        job.broadcast.send(&self.kernel, job.source(), &chunk, !streams.is_empty());
        for stream in streams {
            stream.send(chunk.clone()).await;
        }
    }

    /// Commits the records of a step, then runs its effects, until nothing is left.
    async fn drive(self: &Arc<Self>, effects: Effects<Release>) -> Result<()> {
        Arc::clone(self).drive_steps(VecDeque::from([effects])).await
    }

    /// A step that cannot be written fails alone: the others concern other jobs.
    async fn drive_steps(self: Arc<Self>, mut steps: Steps) -> Result<()> {
        let mut driven = Ok(());
        while let Some(Effects { write, release }) = steps.pop_front() {
            match self.write_jobs(&write).await {
                Ok(()) => self.release(release, &mut steps),
                Err(error) => {
                    self.abandon(&release, &error, &mut steps);
                    driven = Err(error);
                }
            }
        }
        driven
    }

    /// Runs the effects of a step; further steps are added to the list.
    fn release(self: &Arc<Self>, release: Vec<Release>, steps: &mut Steps) {
        for release in release {
            match release {
                Release::Settled(job) => {
                    steps.push_back(lock(&self.table).settled(job, self.kernel.now()));
                }
                Release::Announce { job, tool, owner, project, state } => {
                    let event = Event::JobStateChanged { job_id: job, tool, state };
                    self.kernel.publish(event, owner, project);
                }
                Release::Start(job) => self.start(job),
                Release::Stop(job, _) => {
                    if let Some(live) = self.live(job) {
                        live.stop.cancel();
                    }
                }
                Release::Ended(job) => self.ended(job),
            }
        }
    }

    async fn write_jobs(&self, write: &[Record]) -> Result<()> {
        if write.is_empty() {
            return Ok(());
        }
        self.kernel.commit_for_sure(write).await?;
        for record in write {
            if let Record::JobEnded { id, end } = record
                && end.state != JobState::Complete
                && let Some(live) = self.live(*id)
            {
                let error = end.error.as_deref().and_then(ToolError::decode).map(Error::from);
                let error = error.unwrap_or_else(|| Error::cancelled("on request"));
                live.end(&self.kernel, Err(error));
            }
        }
        Ok(())
    }

    /// Fails the jobs of a step that the store refused; their waiters get the error.
    fn abandon(&self, release: &[Release], error: &Error, steps: &mut Steps) {
        for job in settled(release) {
            steps.push_back(lock(&self.table).abandoned(job, self.kernel.now()));
            let live = lock(&self.live).remove(&job);
            if let Some(live) = live {
                live.end(&self.kernel, Err(error.clone().with_certainty(Certainty::MayHaveRun)));
            }
        }
    }

    fn ended(&self, job: JobId) {
        let Some(live) = lock(&self.live).remove(&job) else { return };
        if let Some(result) = lock(&live.result).take() {
            live.end(&self.kernel, Ok(result));
        }
    }

    fn start(self: &Arc<Self>, job: JobId) {
        if let Some(live) = self.live(job) {
            let trace = live.trace.clone();
            drop(self.kernel.tasks.spawn(Arc::clone(self).run(live).instrument(trace)));
        }
    }

    /// Stops a job without waiting for it.
    pub(crate) fn stop_soon(self: &Arc<Self>, job: JobId) {
        let jobs = Arc::clone(self);
        drop(self.kernel.tasks.spawn(async move {
            if let Err(error) = jobs.stop_job(job, StopReason::Cancelled).await {
                tracing::error!(%job, %error, "cannot stop a job");
            }
        }));
    }

    /// Runs the work of a job, from its start to its durable end.
    async fn run(self: Arc<Self>, live: Arc<LiveJob>) {
        let end = self.work(&live).await;
        let effects = lock(&self.table).finished(live.id, end, self.kernel.now());
        if let Err(error) = self.drive(effects).await {
            tracing::error!(job = %live.id, error = %error, "cannot store the end of a job");
        }
    }

    async fn work(self: &Arc<Self>, live: &Arc<LiveJob>) -> WorkEnd {
        let Some(request) = lock(&live.request).take() else { return WorkEnd::Stopped };
        let principal = match &live.held {
            Some(key) => key.principal(self.kernel.now()).cloned(),
            None => self.identity.tokens.principal(live.owner, self.kernel.now()),
        };
        let principal = match principal {
            Ok(principal) => principal,
            Err(error) => return failed(error),
        };
        // Without rooms the daemon is gone, and with it any reader of the result.
        let Some(rooms) = self.rooms.upgrade() else { return WorkEnd::Stopped };
        let ctx = Context {
            rooms,
            principal,
            tool: live.row.name,
            job: Some(Arc::clone(live)),
            edge: None,
            stop: live.stop.clone(),
        };
        let work = AssertUnwindSafe(handler::work(ctx, request)).catch_unwind();
        let end = tokio::select! {
            biased;
            returned = work => returned.map(Some),
            () = live.stop.cancelled() => Ok(None),
        };
        // A job is stopped when no part of it runs any more, threads included.
        live.blocking.close();
        live.blocking.wait().await;
        match end {
            Ok(None) => WorkEnd::Stopped,
            Ok(Some(Ok(response))) => self.keep_result(live, response).await,
            Ok(Some(Err(error))) => failed(error),
            Err(_) => {
                let message = format!("`{}` panicked", live.row.name);
                failed(failure::internal(std::io::Error::other(message)))
            }
        }
    }

    async fn keep_result(self: &Arc<Self>, live: &LiveJob, response: ToolResponse) -> WorkEnd {
        let bytes = rmp_serde::to_vec_named(&response).expect("a response can be encoded");
        let result = if bytes.len() <= RESULT_INLINE_MAX {
            WorkResult::Inline(bytes.into())
        } else {
            let blobs = self.kernel.blobs.clone();
            let put = move || blobs.put(&bytes, "application/msgpack").map_err(failure::write_blob);
            match self.kernel.blocking(put).await {
                Ok(stored) => WorkResult::Blob(stored.hash),
                Err(error) => return failed(error.with_certainty(Certainty::Ran)),
            }
        };
        *lock(&live.result) = Some(response);
        WorkEnd::Complete(result)
    }
}

/// Returns an id that starts with its time, so that jobs of one commit are adjacent in the store's
/// index. The 80 bits after it are enough to make it unguessable.
fn new_id(now: Now, random: [u8; 16]) -> JobId {
    let mut bytes = random;
    bytes[..TIME_BYTES].copy_from_slice(&now.unix.to_be_bytes()[8 - TIME_BYTES..]);
    JobId::from_random(bytes)
}

/// Steps whose records and effects are pending.
type Steps = VecDeque<Effects<Release>>;

/// Returns the jobs that a step concerns.
fn settled(release: &[Release]) -> impl Iterator<Item = JobId> {
    release.iter().filter_map(|release| match release {
        Release::Settled(job) => Some(*job),
        Release::Announce { .. } | Release::Start(_) | Release::Stop(..) | Release::Ended(_) => {
            None
        }
    })
}

/// Failed work has run unless its error says otherwise, as the refusal of an input does.
fn failed(error: Error) -> WorkEnd {
    WorkEnd::Failed(Box::new(ToolError::from(error)))
}

fn encode_request(request: &ToolRequest) -> Result<bytes::Bytes> {
    let encoded = rmp_serde::to_vec_named(request).map_err(|error| {
        Error::invalid(format!("the input cannot be stored with a job: {error}"))
    })?;
    Ok(encoded.into())
}

fn decode_request(bytes: &bytes::Bytes) -> Option<ToolRequest> {
    use ringback_proto::{RequestEnvelope, ToolCall};
    match RequestEnvelope::decode(bytes).ok()?.request {
        ToolCall::Native(request) => Some(request),
        ToolCall::Named { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use camino::Utf8PathBuf;
    use ringback_proto::request::{ConfigValueResponse, PingRequest};
    use ringback_proto::value::Value;

    use super::*;
    use crate::{Broker, Clock, Config, ConfigView, Entropy};

    #[derive(Debug)]
    struct NoConfig;

    impl ConfigView for NoConfig {
        fn get(&self, _: Option<&str>, _: Option<&str>) -> Option<Value> {
            None
        }
    }

    #[tokio::test]
    async fn a_large_result_is_a_blob_and_reads_back_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let config = Config {
            data_dir: Utf8PathBuf::from_path_buf(dir.path().to_owned()).unwrap(),
            file_roots: Vec::new(),
            version: String::new(),
            view: Arc::new(NoConfig),
            calls_per_principal_max: 1,
            jobs_running_max: 1,
            jobs_live_max: 1,
            jobs_per_principal_max: 1,
            events_kept_max: 1,
            uploads_open_max: 1,
            upload_bytes_max: 1,
            call_ms_max: 1,
            lines: crate::lines::LineSettings::default(),
            studio: Arc::new(crate::studio::NoStudio),
            garden: Arc::new(crate::garden::NoGardenProcess),
            sessions: crate::SessionSettings::in_dir(Utf8PathBuf::from("/nowhere")),
            containers: crate::ContainerSettings::default(),
        };
        let broker = Broker::start(config, Clock::system(), Entropy::system()).await.unwrap();
        let live = LiveJob::new(
            JobId::from_random([1; 16]),
            ToolRequest::Ping(PingRequest {}),
            PrincipalId::Local,
        );
        for (len, is_blob) in [(10, false), (RESULT_INLINE_MAX, true)] {
            let value = Value::Text("x".repeat(len));
            let response =
                ToolResponse::from(ConfigValueResponse { section: None, key: None, value });
            let end = broker.0.jobs.keep_result(&live, response.clone()).await;
            let WorkEnd::Complete(result) = end else { panic!("{end:?}") };
            let (result, result_blob) = match result {
                WorkResult::Inline(bytes) => (Some(bytes), None),
                WorkResult::Blob(hash) => (None, Some(hash)),
            };
            assert_eq!(result_blob.is_some(), is_blob);
            let record = JobRecord {
                id: live.id,
                tool: String::new(),
                owner: PrincipalId::Local,
                project: None,
                session: None,
                repeat: None,
                request: bytes::Bytes::new(),
                state: JobState::Complete,
                result,
                result_blob,
                error: None,
                created_at: 0,
                started_at: None,
                completed_at: None,
                expires_at: None,
            };
            assert_eq!(broker.0.jobs.stored_result(&record).await.unwrap(), response);
        }
    }
}
