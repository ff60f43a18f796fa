//! Calls: one outcome each, in time, and nothing happens after a refusal.

use std::collections::{BTreeMap, BTreeSet};

use ringback_proto::record::UnixMs;
use ringback_proto::{Certainty, ErrorKind};

use super::Violation;
use crate::history::{CallRecord, CallerIndex, Durable, History, HistoryEvent, Marker, Op, Reply};

/// A tool without a job never takes longer.
const PLAIN_MS_MAX: u64 = 60_000;
/// No call takes longer.
const LINE_MS_MAX: u64 = 120_000;
/// The time of a few commits and disk reads.
const SLACK_MS: u64 = 100;

/// The course of a call.
struct Course<'a> {
    called: &'a CallRecord,
    at: UnixMs,
    life: u32,
    has_started: bool,
    last: Option<&'a Reply>,
    has_left: bool,
    is_cancelled: bool,
}

pub(super) fn check(history: &History, violations: &mut Vec<Violation>) {
    let courses = one_outcome(history, violations);
    let end = history.entries.len();
    let last_life = history.entries.last().map_or(0, |entry| entry.life);
    for (call, course) in &courses {
        if course.last.is_none() && !course.has_left && course.life == last_life {
            let seen = format!("call {call} was never answered: {:?}", course.called);
            violations.push(Violation { rule: "every call ends", entry: end, seen });
        }
    }
    no_effect_after_a_refusal(history, &courses, violations);
    no_success_with_a_dead_token(history, violations);
}

/// Checks for exactly one last reply, in time, and nothing after it.
fn one_outcome<'a>(
    history: &'a History,
    violations: &mut Vec<Violation>,
) -> BTreeMap<usize, Course<'a>> {
    let mut courses = BTreeMap::new();
    for (entry, event) in history.entries.iter().enumerate() {
        match &event.what {
            HistoryEvent::Called(called) => {
                let (at, life) = (event.at, event.life);
                let course = Course {
                    called,
                    at,
                    life,
                    has_started: false,
                    last: None,
                    has_left: false,
                    is_cancelled: false,
                };
                courses.insert(called.call, course);
            }
            HistoryEvent::Left(call) => {
                if let Some(course) = courses.get_mut(call) {
                    course.has_left = true;
                }
            }
            HistoryEvent::Cancelled(call) => {
                if let Some(course) = courses.get_mut(call) {
                    course.is_cancelled = true;
                }
            }
            HistoryEvent::Replied(call, reply) => {
                let Some(course) = courses.get_mut(call) else { continue };
                if let Some(seen) = misplaced(course, reply, event.at, event.life) {
                    let seen = format!("call {call} {seen}: {:?}", course.called);
                    violations.push(Violation { rule: "one outcome per call", entry, seen });
                }
                course.has_started |= matches!(reply, Reply::StreamStart(_) | Reply::LineStream);
                if reply.is_last() {
                    course.last = Some(reply);
                }
            }
            HistoryEvent::Started
            | HistoryEvent::FailedToStart
            | HistoryEvent::Took(_)
            | HistoryEvent::Durable(_)
            | HistoryEvent::Announced(_)
            | HistoryEvent::DiskFull
            | HistoryEvent::Crashed
            | HistoryEvent::Stopped => {}
        }
    }
    courses
}

fn misplaced(course: &Course<'_>, reply: &Reply, at: UnixMs, life: u32) -> Option<String> {
    if let Some(last) = course.last {
        return Some(format!("was answered {reply:?} after {last:?}"));
    }
    if course.has_left {
        return Some(format!("was answered {reply:?} after its caller had left"));
    }
    if life != course.life {
        return Some("was answered in another life of the daemon".to_owned());
    }
    let is_of_stream = matches!(reply, Reply::Chunk | Reply::StreamEnd(_));
    if is_of_stream && !course.has_started {
        return Some(format!("was answered {reply:?} before its stream began"));
    }
    let took_ms = at - course.at;
    let late = allowed_ms(course).filter(|allowed_ms| took_ms > allowed_ms + SLACK_MS);
    late.map(|allowed_ms| format!("took {took_ms} ms of {allowed_ms} ms"))
}

/// Returns how long a call may take, if it has a limit of its own.
fn allowed_ms(course: &Course<'_>) -> Option<u64> {
    let called = course.called;
    if matches!(called.op, Op::OnLine(..)) {
        // Progress may extend the time of such a call, up to the limit of all calls.
        return Some(called.deadline_ms.unwrap_or(LINE_MS_MAX).max(LINE_MS_MAX));
    }
    if !called.op.makes_job() {
        return Some(called.deadline_ms.unwrap_or(PLAIN_MS_MAX).min(PLAIN_MS_MAX));
    }
    // A cancelled job is answered when it has stopped, which a full disk may delay.
    (!called.stream && !course.is_cancelled).then(|| called.wait_ms.unwrap_or(0))
}

/// Checks that a call that was reported as not started left no trace.
fn no_effect_after_a_refusal(
    history: &History,
    courses: &BTreeMap<usize, Course<'_>>,
    violations: &mut Vec<Violation>,
) {
    let mut open: BTreeSet<Marker> = BTreeSet::new();
    for course in courses.values() {
        let is_refused = matches!(course.last, Some(Reply::Failed(_, Certainty::NotStarted)));
        if !is_refused {
            open.extend(course.called.op.marker());
        }
    }
    for (entry, event) in history.entries.iter().enumerate() {
        if let HistoryEvent::Took(marker) = &event.what
            && !open.contains(marker)
        {
            let seen = format!("every call with {marker} was refused, but a party got it");
            violations.push(Violation { rule: "no effect after a refusal", entry, seen });
        }
    }
    for (entry, _, durable) in history.durable() {
        let marker = match durable {
            // A job that refused its input, or its owner, was still created.
            Durable::Created { job, marker, .. } if !has_failed(history, *job) => *marker,
            Durable::Made(marker) => *marker,
            Durable::Created { .. }
            | Durable::Began(_)
            | Durable::Ended(..)
            | Durable::Purged(_)
            | Durable::Revoked(_) => continue,
        };
        if !open.contains(&marker) {
            let seen = format!("every call of {marker} was refused, but there is {durable:?}");
            violations.push(Violation { rule: "no effect after a refusal", entry, seen });
        }
    }
}

fn has_failed(history: &History, job: ringback_proto::ids::JobId) -> bool {
    use ringback_proto::record::JobState::{Cancelled, Failed};
    history.durable().any(|(_, _, durable)| {
        matches!(durable, Durable::Ended(ended, Failed | Cancelled) if *ended == job)
    })
}

/// Checks that the holder of a token does nothing more once a revocation is acknowledged, or the
/// token has expired.
fn no_success_with_a_dead_token(history: &History, violations: &mut Vec<Violation>) {
    let mut asked: BTreeMap<usize, &CallRecord> = BTreeMap::new();
    let mut revoked: BTreeSet<CallerIndex> = BTreeSet::new();
    let mut doomed: BTreeSet<usize> = BTreeSet::new();
    for (entry, event) in history.entries.iter().enumerate() {
        match &event.what {
            HistoryEvent::Called(called) => {
                let expiry = history.truth.expiries.iter().find(|(who, _)| *who == called.who);
                let has_expired = expiry.is_some_and(|(_, at)| event.at >= *at);
                if has_expired || revoked.contains(&called.who) {
                    doomed.insert(called.call);
                }
                asked.insert(called.call, called);
            }
            HistoryEvent::Replied(call, reply) => {
                if let (Some(Op::Revoke(who)), Reply::Done) =
                    (asked.get(call).map(|called| &called.op), reply)
                {
                    revoked.insert(*who);
                }
                let is_refused = matches!(reply, Reply::Failed(ErrorKind::Unauthenticated, _));
                if doomed.contains(call) && !is_refused {
                    let seen = format!("call {call} was answered {reply:?}");
                    violations.push(Violation { rule: "a dead token is dead", entry, seen });
                }
            }
            HistoryEvent::Started
            | HistoryEvent::FailedToStart
            | HistoryEvent::Cancelled(_)
            | HistoryEvent::Left(_)
            | HistoryEvent::Took(_)
            | HistoryEvent::Durable(_)
            | HistoryEvent::Announced(_)
            | HistoryEvent::DiskFull
            | HistoryEvent::Crashed
            | HistoryEvent::Stopped => {}
        }
    }
    for who in revoked.iter().filter(|who| !history.truth.revoked.contains(who)) {
        let seen = format!("the revocation of caller {who}'s token is lost");
        let entry = history.entries.len();
        violations.push(Violation { rule: "a dead token is dead", entry, seen });
    }
}
