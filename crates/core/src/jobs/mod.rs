//! The life of a job: pending, running, ended. Every change is durable before it is reported, and a
//! job has at most one change on its way to the disk.

use std::collections::{BTreeSet, HashMap, VecDeque};

use bytes::Bytes;
use ringback_proto::error::ToolError;
use ringback_proto::ids::{BlobHash, JobId, ProjectId};
use ringback_proto::principal::PrincipalId;
use ringback_proto::record::{JobEnd, JobRecord, JobState, Record, UnixMs};
use ringback_proto::timing::ToolTiming;
use ringback_proto::tool::ToolRow;
use ringback_proto::{Certainty, Error, ErrorKind, Result};

use crate::deadline::Deadline;
use crate::effects::Effects;
use crate::time::{MonoMs, Now};

#[cfg(test)]
mod tests;

/// A transport command is of no interest a minute later.
const TTL_TRANSPORT_MS: u64 = 60 * 1000;
/// Long enough for an agent to come back and ask for the cause.
const TTL_FAILED_MS: u64 = 30 * 60 * 1000;
/// A day, for results.
const TTL_COMPLETE_MS: u64 = 24 * 60 * 60 * 1000;
/// Commands under way: each ends within seconds, so this many at a time is a flood.
const COMMANDS_MAX: usize = 1024;
/// Commands of one principal under way, so that one flood leaves room for others.
const COMMANDS_PER_PRINCIPAL_MAX: usize = 256;

/// Limits on the number of jobs.
#[derive(Debug, Clone, Copy)]
pub struct JobLimits {
    /// Running at the same time.
    pub running_max: usize,
    /// Pending and running.
    pub live_max: usize,
    /// Pending and running of one principal.
    pub live_per_principal_max: usize,
}

/// Why a job must stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// It was cancelled.
    Cancelled,
    /// Its time is up.
    Deadline {
        /// The time it had.
        allowed_ms: u64,
    },
    /// The daemon is stopping.
    Shutdown,
}

/// How the work of a job ended, as reported by the work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkEnd {
    /// With a result, as MsgPack, or as a blob when it is large.
    Complete(WorkResult),
    /// With an error.
    Failed(Box<ToolError>),
    /// It stopped as requested.
    Stopped,
}

/// The location of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkResult {
    /// In the record.
    Inline(Bytes),
    /// In the content store.
    Blob(BlobHash),
}

/// What may be sent and done once the records of a step are durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Release {
    /// Report that the job's records are durable: call [`JobTable::settled`].
    Settled(JobId),
    /// Publish the state of the job.
    Announce {
        /// The id of the job.
        job: JobId,
        /// The tool it runs.
        tool: String,
        /// Its owner.
        owner: PrincipalId,
        /// The project it belongs to.
        project: Option<ProjectId>,
        /// Its state.
        state: JobState,
    },
    /// Start the work.
    Start(JobId),
    /// Stop the work, then report how it ended.
    Stop(JobId, StopReason),
    /// Wake those who wait for the end of the job.
    Ended(JobId),
}

/// The jobs that have not ended.
#[derive(Debug)]
pub struct JobTable {
    live: HashMap<JobId, LiveJob>,
    /// Pending jobs in the order in which they will start.
    queue: VecDeque<JobId>,
    by_deadline: BTreeSet<(MonoMs, JobId)>,
    per_principal: HashMap<(PrincipalId, Place), usize>,
    /// Jobs that occupy a running slot, from the decision to run until the end.
    n_running: usize,
    /// Commands, which run without a slot.
    n_commands: usize,
    limits: JobLimits,
}

/// Where a job runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    /// In a slot, once one is free.
    Slot,
    /// Beside the slots, immediately: a command that someone else executes.
    Command,
}

/// What decides where a job runs, and how long it is kept after its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobClass {
    /// The timing of its tool.
    pub timing: ToolTiming,
    /// Whether a service does its work. It needs no slot then: a region for what the running jobs
    /// make could otherwise not be placed while they run.
    pub is_elsewhere: bool,
}

impl From<ToolTiming> for JobClass {
    fn from(timing: ToolTiming) -> Self {
        Self { timing, is_elsewhere: false }
    }
}

impl From<&ToolRow> for JobClass {
    fn from(row: &ToolRow) -> Self {
        Self { timing: row.timing, is_elsewhere: row.service.is_some() }
    }
}

impl Place {
    const fn of(class: JobClass) -> Self {
        match class.timing {
            ToolTiming::FireAndForget => Self::Command,
            ToolTiming::AsyncShort if class.is_elsewhere => Self::Command,
            ToolTiming::Sync
            | ToolTiming::AsyncShort
            | ToolTiming::AsyncMedium
            | ToolTiming::AsyncLong => Self::Slot,
        }
    }
}

/// Returns whether a job that was stored before a restart runs after it: one that had not started.
/// Work that an agent started with its session key ends with its session, and a command is for the
/// moment at which it was given.
#[must_use]
pub fn resumes(record: &JobRecord, class: impl Into<JobClass>) -> bool {
    record.state == JobState::Pending
        && record.session.is_none()
        && Place::of(class.into()) == Place::Slot
}

#[derive(Debug)]
struct LiveJob {
    tool: String,
    owner: PrincipalId,
    project: Option<ProjectId>,
    class: JobClass,
    phase: Phase,
    stop: Option<StopReason>,
    deadline: Option<Deadline>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The record is on its way to the disk.
    Creating { runs: bool },
    /// Waiting for its turn.
    Pending,
    /// About to run; the record of that is on its way to the disk.
    Starting,
    /// The work is running.
    Running,
    /// The record of its end is on its way to the disk.
    Ending(JobState),
}

impl LiveJob {
    fn announce(&self, job: JobId, state: JobState) -> Release {
        Release::Announce {
            job,
            tool: self.tool.clone(),
            owner: self.owner,
            project: self.project,
            state,
        }
    }
}

impl JobTable {
    /// Makes an empty table.
    #[must_use]
    pub fn new(limits: JobLimits) -> Self {
        Self {
            live: HashMap::new(),
            queue: VecDeque::new(),
            by_deadline: BTreeSet::new(),
            per_principal: HashMap::new(),
            n_running: 0,
            n_commands: 0,
            limits,
        }
    }

    /// Adds a job and decides its state: it runs if there is a free slot, otherwise it is pending. A
    /// command needs no slot.
    ///
    /// # Errors
    /// `busy` when there are too many; nothing was started.
    pub fn submit(
        &mut self,
        mut record: JobRecord,
        class: impl Into<JobClass>,
        deadline: Option<Deadline>,
        now: Now,
    ) -> Result<Effects<Release>> {
        let class = class.into();
        let place = Place::of(class);
        self.check_room(record.owner, place)?;
        let runs = match place {
            Place::Slot => self.n_running < self.limits.running_max && self.queue.is_empty(),
            Place::Command => true,
        };
        record.state = if runs { JobState::Running } else { JobState::Pending };
        record.created_at = now.unix;
        record.started_at = runs.then_some(now.unix);
        self.occupy(place, runs);
        self.insert(&record, class, Phase::Creating { runs }, deadline);
        let id = record.id;
        Ok(Effects {
            write: vec![Record::JobCreated(Box::new(record))],
            release: vec![Release::Settled(id)],
        })
    }

    fn check_room(&self, owner: PrincipalId, place: Place) -> Result<()> {
        let n_own = self.per_principal.get(&(owner, place)).copied().unwrap_or(0);
        let (n_live, live_max, own_max) = match place {
            Place::Slot => {
                let JobLimits { live_max, live_per_principal_max, .. } = self.limits;
                (self.live.len() - self.n_commands, live_max, live_per_principal_max)
            }
            Place::Command => (self.n_commands, COMMANDS_MAX, COMMANDS_PER_PRINCIPAL_MAX),
        };
        let full = match place {
            Place::Slot if n_live >= live_max => "the job queue",
            Place::Slot => "your job queue",
            Place::Command => "the number of commands under way",
        };
        let has_room = n_live < live_max && n_own < own_max;
        if has_room { Ok(()) } else { Err(Error::busy(full)) }
    }

    /// Takes the slot of a job that is to run, unless it needs none.
    fn occupy(&mut self, place: Place, runs: bool) {
        self.n_running += usize::from(runs && place == Place::Slot);
    }

    /// Frees the slot of a job that had one.
    fn vacate(&mut self, place: Place, ran: bool) {
        self.n_running -= usize::from(ran && place == Place::Slot);
    }

    /// Restores jobs after a restart: pending jobs keep waiting, running ones were interrupted.
    pub fn restore(&mut self, records: Vec<(JobRecord, JobClass)>, now: Now) -> Effects<Release> {
        let mut effects = Effects::default();
        for (record, class) in records {
            match record.state {
                JobState::Pending if resumes(&record, class) => {
                    self.insert(&record, class, Phase::Pending, None);
                    self.queue.push_back(record.id);
                }
                JobState::Pending | JobState::Running => {
                    self.insert(&record, class, Phase::Running, None);
                    self.occupy(Place::of(class), true);
                    let end = WorkEnd::Failed(Box::new(interrupted("the daemon stopped")));
                    self.end(record.id, end, now, &mut effects);
                }
                JobState::Complete | JobState::Failed | JobState::Cancelled => {}
            }
        }
        self.promote(now, &mut effects);
        effects
    }

    /// Notes that the records about this job are durable.
    pub fn settled(&mut self, job: JobId, now: Now) -> Effects<Release> {
        let mut effects = Effects::default();
        let Some(live) = self.live.get_mut(&job) else { return effects };
        match live.phase {
            Phase::Creating { runs: true } | Phase::Starting => {
                live.phase = Phase::Running;
                effects.release.push(live.announce(job, JobState::Running));
                match live.stop {
                    None => effects.release.push(Release::Start(job)),
                    Some(_) => self.end(job, WorkEnd::Stopped, now, &mut effects),
                }
            }
            Phase::Creating { runs: false } => {
                live.phase = Phase::Pending;
                effects.release.push(live.announce(job, JobState::Pending));
                match live.stop {
                    None => self.queue.push_back(job),
                    Some(_) => self.end(job, WorkEnd::Stopped, now, &mut effects),
                }
                self.promote(now, &mut effects);
            }
            Phase::Ending(state) => {
                effects.release.push(live.announce(job, state));
                effects.release.push(Release::Ended(job));
                self.remove(job);
            }
            Phase::Pending | Phase::Running => {}
        }
        effects
    }

    /// Forgets a job whose records could not be written, and frees its slot. After a restart, the
    /// state on disk decides.
    pub fn abandoned(&mut self, job: JobId, now: Now) -> Effects<Release> {
        let mut effects = Effects::default();
        if let Some(live) = self.live.get(&job) {
            let held_a_place = match live.phase {
                Phase::Creating { runs } => runs,
                Phase::Starting | Phase::Running => true,
                Phase::Pending | Phase::Ending(_) => false,
            };
            let place = Place::of(live.class);
            self.vacate(place, held_a_place);
            self.remove(job);
            self.promote(now, &mut effects);
        }
        effects
    }

    /// Notes that the work has ended.
    pub fn finished(&mut self, job: JobId, end: WorkEnd, now: Now) -> Effects<Release> {
        let mut effects = Effects::default();
        if self.live.get(&job).is_some_and(|live| live.phase == Phase::Running) {
            self.end(job, end, now, &mut effects);
        }
        effects
    }

    /// Requests that the job stop. `None` if it is not live: it has ended, or never existed.
    pub fn stop(&mut self, job: JobId, reason: StopReason, now: Now) -> Option<Effects<Release>> {
        let mut effects = Effects::default();
        let live = self.live.get_mut(&job)?;
        if live.stop.is_some() {
            return Some(effects);
        }
        live.stop = Some(reason);
        match live.phase {
            Phase::Pending => {
                self.queue.retain(|queued| *queued != job);
                self.end(job, WorkEnd::Stopped, now, &mut effects);
            }
            Phase::Running => effects.release.push(Release::Stop(job, reason)),
            // Handled once the record on its way has settled.
            Phase::Creating { .. } | Phase::Starting | Phase::Ending(_) => {}
        }
        Some(effects)
    }

    /// Stops the jobs whose time is up.
    pub fn expire(&mut self, now: Now) -> Effects<Release> {
        let mut effects = Effects::default();
        while let Some((at, job)) = self.by_deadline.first().copied() {
            if at > now.mono {
                break;
            }
            self.by_deadline.pop_first();
            let deadline = self.live.get(&job).and_then(|live| live.deadline);
            let allowed_ms = deadline.map_or(0, |deadline| deadline.allowed_ms);
            if let Some(stopped) = self.stop(job, StopReason::Deadline { allowed_ms }, now) {
                effects.write.extend(stopped.write);
                effects.release.extend(stopped.release);
            }
        }
        effects
    }

    /// Stops starting jobs: pending ones stay so for the next run of the daemon. Returns the jobs
    /// past that.
    pub fn close(&mut self) -> Vec<JobId> {
        self.limits.running_max = 0;
        let waits = |phase| matches!(phase, Phase::Pending | Phase::Creating { runs: false });
        let past = self.live.iter().filter(|(_, live)| !waits(live.phase));
        let mut jobs: Vec<_> = past.map(|(job, _)| *job).collect();
        // A deterministic order.
        jobs.sort_unstable();
        jobs
    }

    /// Returns when to call [`Self::expire`] next.
    #[must_use]
    pub fn next_deadline(&self) -> Option<MonoMs> {
        self.by_deadline.first().map(|(at, _)| *at)
    }

    /// Returns the number of jobs that run, and of commands.
    #[must_use]
    pub const fn n_running(&self) -> usize {
        self.n_running + self.n_commands
    }

    /// Returns the number of jobs that have not ended.
    #[must_use]
    pub fn n_live(&self) -> usize {
        self.live.len()
    }

    /// Returns whether no trace of any job is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.live.is_empty()
            && self.queue.is_empty()
            && self.by_deadline.is_empty()
            && self.per_principal.is_empty()
            && self.n_running == 0
            && self.n_commands == 0
    }

    /// Gives free slots to pending jobs, first come, first served.
    fn promote(&mut self, now: Now, effects: &mut Effects<Release>) {
        while self.n_running < self.limits.running_max {
            let Some(job) = self.queue.pop_front() else { return };
            let live = self.live.get_mut(&job).expect("a queued job is live");
            live.phase = Phase::Starting;
            self.n_running += 1;
            effects.write.push(Record::JobStarted { id: job, at: now.unix });
            effects.release.push(Release::Settled(job));
        }
    }

    /// Decides the final state and frees the slot. The work's own report wins: a job that completed
    /// despite a request to stop is complete.
    fn end(&mut self, job: JobId, end: WorkEnd, now: Now, effects: &mut Effects<Release>) {
        let live = self.live.get_mut(&job).expect("only live jobs end");
        let ran = live.phase == Phase::Running;
        let end = job_end(&live.tool, live.class.timing, live.stop, end, ran, now.unix);
        live.phase = Phase::Ending(end.state);
        if let Some(deadline) = live.deadline.take() {
            self.by_deadline.remove(&(deadline.at, job));
        }
        let place = Place::of(live.class);
        self.vacate(place, ran);
        effects.write.push(Record::JobEnded { id: job, end: Box::new(end) });
        effects.release.push(Release::Settled(job));
        self.promote(now, effects);
    }

    fn insert(
        &mut self,
        record: &JobRecord,
        class: JobClass,
        phase: Phase,
        deadline: Option<Deadline>,
    ) {
        if let Some(deadline) = deadline {
            self.by_deadline.insert((deadline.at, record.id));
        }
        let place = Place::of(class);
        *self.per_principal.entry((record.owner, place)).or_default() += 1;
        self.n_commands += usize::from(place == Place::Command);
        let live = LiveJob {
            tool: record.tool.clone(),
            owner: record.owner,
            project: record.project,
            class,
            phase,
            stop: None,
            deadline,
        };
        self.live.insert(record.id, live);
    }

    fn remove(&mut self, job: JobId) {
        let Some(live) = self.live.remove(&job) else { return };
        if let Some(deadline) = live.deadline {
            self.by_deadline.remove(&(deadline.at, job));
        }
        let place = Place::of(live.class);
        self.n_commands -= usize::from(place == Place::Command);
        let key = (live.owner, place);
        if let Some(n_own) = self.per_principal.get_mut(&key) {
            *n_own -= 1;
            if *n_own == 0 {
                self.per_principal.remove(&key);
            }
        }
    }
}

fn job_end(
    tool: &str,
    timing: ToolTiming,
    stop: Option<StopReason>,
    end: WorkEnd,
    ran: bool,
    at: UnixMs,
) -> JobEnd {
    let (state, result, error) = match end {
        WorkEnd::Complete(result) => (JobState::Complete, Some(result), None),
        WorkEnd::Failed(error) => (JobState::Failed, None, Some(*error)),
        WorkEnd::Stopped => {
            let certainty = if ran { Certainty::MayHaveRun } else { Certainty::NotStarted };
            let (state, error) = stopped(tool, stop, certainty);
            (state, None, Some(error))
        }
    };
    let ttl_ms = match (state, timing) {
        (JobState::Complete, ToolTiming::FireAndForget) => TTL_TRANSPORT_MS,
        (JobState::Complete, _) => TTL_COMPLETE_MS,
        (JobState::Failed | JobState::Cancelled | JobState::Pending | JobState::Running, _) => {
            TTL_FAILED_MS
        }
    };
    let (result, result_blob) = match result {
        Some(WorkResult::Inline(bytes)) => (Some(bytes), None),
        Some(WorkResult::Blob(hash)) => (None, Some(hash)),
        None => (None, None),
    };
    JobEnd {
        state,
        result,
        result_blob,
        error: error.map(|error| error.encode()),
        completed_at: at,
        expires_at: at.saturating_add(ttl_ms),
    }
}

fn stopped(tool: &str, stop: Option<StopReason>, certainty: Certainty) -> (JobState, ToolError) {
    match stop {
        Some(StopReason::Deadline { allowed_ms }) => {
            let error = Error::timeout(&format!("`{tool}`"), allowed_ms).with_certainty(certainty);
            (JobState::Failed, error.into())
        }
        Some(StopReason::Shutdown) => (JobState::Failed, interrupted("the daemon is stopping")),
        Some(StopReason::Cancelled) | None => {
            let error = Error::cancelled("on request").with_certainty(certainty);
            (JobState::Cancelled, error.into())
        }
    }
}

/// Makes the error of a job interrupted by a stop of the daemon.
fn interrupted(why: &str) -> ToolError {
    let message = format!("interrupted: {why} while the job was running; call the tool again");
    let mut error =
        ToolError::from(Error::new(ErrorKind::Gone, message).with_certainty(Certainty::MayHaveRun));
    error.context.reason = Some("interrupted".to_owned());
    error
}
