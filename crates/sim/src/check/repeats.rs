//! Repeats: one ID is one call, however often it is sent.

use std::collections::BTreeMap;

use ringback_proto::ids::{JobId, RequestId};
use ringback_proto::principal::PrincipalId;
use ringback_proto::record::UnixMs;

use super::Violation;
use crate::history::{CallRecord, CallerIndex, Durable, History, Marker, Op, Reply};

/// Calls without a job are remembered for ten minutes after their start, and take a minute at most.
pub(super) const SURELY_REMEMBERED_MS: u64 = 9 * 60 * 1000;

const RULE: &str = "repeats never run twice";

pub(super) fn check(history: &History, violations: &mut Vec<Violation>) {
    one_job_per_id(history, violations);
    one_effect_per_request(history, violations);
    one_answer_per_id(history, violations);
}

fn one_job_per_id(history: &History, violations: &mut Vec<Violation>) {
    let mut jobs: BTreeMap<(PrincipalKey, RequestId), JobId> = BTreeMap::new();
    for (entry, _, durable) in history.durable() {
        match durable {
            Durable::Created { job, owner, request_id: Some(request_id), .. } => {
                if let Some(first) = jobs.insert((key(*owner), *request_id), *job) {
                    let seen = format!("request {request_id} made {first} and {job}");
                    violations.push(Violation { rule: RULE, entry, seen });
                }
            }
            // Its ID may be reused.
            Durable::Purged(purged) => jobs.retain(|_, job| job != purged),
            Durable::Created { .. }
            | Durable::Began(_)
            | Durable::Ended(..)
            | Durable::Made(_)
            | Durable::Revoked(_) => {}
        }
    }
}

/// Checks that a request has one effect. A marker is in a single request, so two effects of it are
/// two runs. Jobs are remembered as long as their rows; other calls for a while, and not across a
/// restart.
fn one_effect_per_request(history: &History, violations: &mut Vec<Violation>) {
    let mut made: BTreeMap<Marker, (u32, UnixMs)> = BTreeMap::new();
    for (entry, event, durable) in history.durable() {
        let Durable::Made(marker) = durable else { continue };
        let is_again =
            |(life, at): (u32, UnixMs)| life == event.life && event.at - at < SURELY_REMEMBERED_MS;
        if made.insert(*marker, (event.life, event.at)).is_some_and(is_again) {
            let seen = format!("request {marker} had its effect twice");
            violations.push(Violation { rule: RULE, entry, seen });
        }
    }
}

struct FirstCall<'a> {
    op: &'a Op,
    job: Option<JobId>,
    life: u32,
    at: UnixMs,
}

/// Checks that a repeat returns the same job, and that another body is a conflict.
fn one_answer_per_id(history: &History, violations: &mut Vec<Violation>) {
    let calls: BTreeMap<_, (UnixMs, &CallRecord)> =
        history.calls().map(|(_, event, called)| (called.call, (event.at, called))).collect();
    let mut firsts: BTreeMap<(CallerIndex, RequestId), FirstCall<'_>> = BTreeMap::new();
    for (entry, event, (call, reply)) in history.replies() {
        let Some((at, called)) = calls.get(&call) else { continue };
        let Some(request_id) = called.request_id.filter(|_| called.op.marker().is_some()) else {
            continue;
        };
        if matches!(reply, Reply::Failed(..) | Reply::LineStream | Reply::Chunk) {
            continue;
        }
        let job = reply.job();
        let first = firsts.entry((called.who, request_id)).or_insert(FirstCall {
            op: &called.op,
            job,
            life: event.life,
            at: *at,
        });
        let is_purged = first.job.is_some_and(|job| {
            history.durable().any(|(when, _, durable)| {
                when < entry && matches!(durable, Durable::Purged(purged) if *purged == job)
            })
        });
        if is_purged {
            *first = FirstCall { op: &called.op, job, life: event.life, at: *at };
        }
        let is_remembered = first.op.makes_job()
            || (first.life == event.life && at.abs_diff(first.at) < SURELY_REMEMBERED_MS);
        if *first.op != called.op && is_remembered {
            let seen = format!("{request_id} stands for {:?} and {:?}", first.op, called.op);
            violations.push(Violation { rule: RULE, entry, seen });
        }
        match (first.job, job) {
            (Some(first), Some(again)) if first != again => {
                let seen = format!("{request_id} was answered with {first} and {again}");
                violations.push(Violation { rule: RULE, entry, seen });
            }
            (None, Some(job)) => first.job = Some(job),
            (Some(_), _) | (None, None) => {}
        }
        if !is_remembered {
            (first.op, first.life, first.at) = (&called.op, event.life, *at);
        }
    }
}

/// Principals have no order; their names do.
type PrincipalKey = String;

fn key(principal: PrincipalId) -> PrincipalKey {
    principal.to_string()
}
