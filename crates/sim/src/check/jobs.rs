//! Jobs: durable before they are reported, only forward, never lost.

use std::collections::{BTreeMap, BTreeSet};

use ringback_proto::ids::JobId;
use ringback_proto::record::{JobState, UnixMs};
use ringback_proto::{Certainty, ErrorKind};

use super::Violation;
use crate::history::{CallNo, CallRecord, Durable, History, HistoryEvent, Marker, Op, Reply};

const FORWARD: &str = "a job only goes forward";
const DURABLE_FIRST: &str = "nothing is said before it is durable";
const LOST: &str = "nothing acknowledged is lost";
/// How long after its deadline a call waits until the end of its job is durable.
const STORED_GRACE_MS: u64 = 2000;

/// What is on disk at some point of the history.
#[derive(Default)]
struct Disk {
    jobs: BTreeMap<JobId, JobState>,
    by_marker: BTreeMap<Marker, JobId>,
    made: BTreeSet<Marker>,
    purged: BTreeSet<JobId>,
}

pub(super) fn check(history: &History, violations: &mut Vec<Violation>) {
    let mut disk = Disk::default();
    let mut asked: BTreeMap<CallNo, JobCall<'_>> = BTreeMap::new();
    for (entry, event) in history.entries.iter().enumerate() {
        let broken = match &event.what {
            HistoryEvent::Durable(durable) => disk.take(durable).map(|seen| (FORWARD, seen)),
            HistoryEvent::Called(called) => {
                let before = disk.seen_by(&called.op);
                asked.insert(called.call, JobCall { called, before, at: event.at });
                None
            }
            HistoryEvent::Replied(call, reply) => {
                asked.get(call).and_then(|asked| disk.allows(asked, event.at, reply))
            }
            HistoryEvent::Started
            | HistoryEvent::FailedToStart
            | HistoryEvent::Cancelled(_)
            | HistoryEvent::Left(_)
            | HistoryEvent::Took(_)
            | HistoryEvent::Announced(_)
            | HistoryEvent::DiskFull
            | HistoryEvent::Crashed
            | HistoryEvent::Stopped => None,
        };
        violations.extend(broken.map(|(rule, seen)| Violation { rule, entry, seen }));
    }
    disk.is_truth(history, violations);
}

/// A call, and what could be known when it was made.
struct JobCall<'a> {
    called: &'a CallRecord,
    before: BTreeMap<JobId, JobState>,
    at: UnixMs,
}

impl JobCall<'_> {
    /// Returns whether the store had all the time that a caller waits for it.
    fn is_overdue(&self, now: UnixMs) -> bool {
        let deadline_ms = self.called.deadline_ms.unwrap_or(u64::MAX);
        now >= self.at.saturating_add(deadline_ms).saturating_add(STORED_GRACE_MS)
    }
}

impl Disk {
    /// Applies a change, and reports if it goes back.
    fn take(&mut self, durable: &Durable) -> Option<String> {
        match durable {
            Durable::Created { job, marker, state, .. } => {
                self.by_marker.insert(*marker, *job);
                let before = self.jobs.insert(*job, *state);
                before.map(|before| format!("{job} was created when it was {before:?}"))
            }
            Durable::Began(job) => {
                let before = self.jobs.insert(*job, JobState::Running);
                (before != Some(JobState::Pending))
                    .then(|| format!("{job} started to run when it was {before:?}"))
            }
            Durable::Ended(job, state) => {
                let before = self.jobs.insert(*job, *state);
                let was_live = before.is_some_and(|before| !before.is_terminal());
                (!was_live || !state.is_terminal())
                    .then(|| format!("{job} ended as {state:?} when it was {before:?}"))
            }
            Durable::Purged(job) => {
                self.purged.insert(*job);
                let before = self.jobs.remove(job);
                let has_ended = before.is_some_and(JobState::is_terminal);
                (!has_ended).then(|| format!("{job} was dropped when it was {before:?}"))
            }
            Durable::Made(marker) => {
                self.made.insert(*marker);
                None
            }
            Durable::Revoked(_) => None,
        }
    }

    /// Returns the states of the jobs that a query is about.
    fn seen_by(&self, op: &Op) -> BTreeMap<JobId, JobState> {
        match op {
            Op::Status(job) | Op::Cancel(job) => {
                self.jobs.get(job).map(|state| (*job, *state)).into_iter().collect()
            }
            Op::Poll(jobs) => {
                jobs.iter().filter_map(|job| Some((*job, *self.jobs.get(job)?))).collect()
            }
            Op::List => self.jobs.clone(),
            Op::Sleep(_)
            | Op::Store
            | Op::CreateArtifact(_)
            | Op::CreateToken(_)
            | Op::Revoke(_)
            | Op::Events
            | Op::Ping
            | Op::OnLine(..) => BTreeMap::new(),
        }
    }

    /// Checks that a reply reports only what is durable, and nothing that is already past.
    fn allows(
        &self,
        asked: &JobCall<'_>,
        at: UnixMs,
        reply: &Reply,
    ) -> Option<(&'static str, String)> {
        let JobCall { called, before, .. } = asked;
        let unsaid = |seen: String| Some((DURABLE_FIRST, seen));
        match reply {
            Reply::JobStarted(job) | Reply::StreamStart(job) => {
                let is_known = self.jobs.contains_key(job) || self.purged.contains(job);
                if is_known { None } else { unsaid(format!("{job} was reported")) }
            }
            Reply::Slept(marker) | Reply::StreamEnd(marker) => match self.ended(*marker) {
                Some(JobState::Complete) => None,
                state => {
                    unsaid(format!("the result of {marker} was reported when it was {state:?}"))
                }
            },
            Reply::Made(marker) if !self.made.contains(marker) => {
                unsaid(format!("{marker} was reported as made"))
            }
            Reply::Failed(
                kind @ (ErrorKind::Cancelled | ErrorKind::Timeout),
                Certainty::MayHaveRun | Certainty::Ran,
            ) if called.op.makes_job() => {
                let state = called.op.marker().and_then(|marker| self.ended(marker));
                match state {
                    Some(JobState::Failed | JobState::Cancelled) => None,
                    // It only says that nothing was known in time.
                    _ if *kind == ErrorKind::Timeout && asked.is_overdue(at) => None,
                    state => unsaid(format!("{kind:?} was reported when the job was {state:?}")),
                }
            }
            Reply::Jobs(jobs) => self.allows_states(called, before, jobs),
            Reply::Polled(ended, _) => {
                let early = ended.iter().find(|job| !self.has_ended(job));
                early.and_then(|job| unsaid(format!("{job} was reported to have ended")))
            }
            Reply::LineStream
            | Reply::Passed(_)
            | Reply::Chunk
            | Reply::Made(_)
            | Reply::Done
            | Reply::Failed(..) => None,
        }
    }

    /// Checks that a query returns what was durable at some time between its call and its reply.
    fn allows_states(
        &self,
        called: &CallRecord,
        before: &BTreeMap<JobId, JobState>,
        jobs: &[(JobId, JobState)],
    ) -> Option<(&'static str, String)> {
        for (job, seen) in jobs {
            let now = self.jobs.get(job);
            let is_durable = match now {
                Some(now) => rank(*seen) < rank(*now) || seen == now,
                None => self.purged.contains(job),
            };
            if !is_durable {
                return Some((
                    DURABLE_FIRST,
                    format!("{job} was seen {seen:?} when it was {now:?}"),
                ));
            }
            if before.get(job).is_some_and(|before| rank(*seen) < rank(*before)) {
                return Some((FORWARD, format!("{job} was seen {seen:?} when it was past that")));
            }
            if matches!(called.op, Op::Cancel(_)) && !seen.is_terminal() {
                return Some(("a cancelled job has stopped", format!("{job} is {seen:?}")));
            }
        }
        let listed: BTreeSet<_> = jobs.iter().map(|(job, _)| job).collect();
        let is_full = called.op == Op::List && called.who == 0 && jobs.len() < 500;
        let missing = before
            .keys()
            .find(|job| is_full && !listed.contains(job) && !self.purged.contains(job));
        missing.map(|job| (LOST, format!("{job} is not in the list")))
    }

    fn ended(&self, marker: Marker) -> Option<JobState> {
        let job = self.by_marker.get(&marker)?;
        self.jobs.get(job).copied()
    }

    fn has_ended(&self, job: &JobId) -> bool {
        self.purged.contains(job) || self.jobs.get(job).is_some_and(|state| state.is_terminal())
    }

    /// Checks that a reopened store contains what was durable, and that all jobs have ended.
    fn is_truth(&self, history: &History, violations: &mut Vec<Violation>) {
        let entry = history.entries.len();
        let mut broken = |rule, seen| violations.push(Violation { rule, entry, seen });
        let truth: BTreeMap<_, _> = history.truth.jobs.iter().copied().collect();
        for (job, state) in &self.jobs {
            let found = truth.get(job);
            if found != Some(state) {
                broken(LOST, format!("{job} was {state:?} and is {found:?} in the end"));
            }
            if !state.is_terminal() {
                broken("every job ends", format!("{job} is {state:?} in the end"));
            }
        }
        for job in truth.keys().filter(|job| !self.jobs.contains_key(job)) {
            broken("no job comes from nowhere", format!("{job} is there in the end"));
        }
        let made: BTreeSet<_> = history.truth.made.iter().copied().collect();
        for marker in self.made.symmetric_difference(&made) {
            broken(LOST, format!("{marker} is on one side only: made, and there in the end"));
        }
    }
}

const fn rank(state: JobState) -> u8 {
    match state {
        JobState::Pending => 0,
        JobState::Running => 1,
        JobState::Complete | JobState::Failed | JobState::Cancelled => 2,
    }
}
