//! What is remembered of recent calls, so that each can be explained: no input, no result.

use std::collections::{HashMap, VecDeque};

use ringback_proto::Certainty;
use ringback_proto::ids::{CallId, JobId, RequestId};
use ringback_proto::principal::{Level, PrincipalId};

use crate::deadline::Deadline;
use crate::time::Now;

/// A call as it is remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// Its id.
    pub call: CallId,
    /// The id its caller gave it.
    pub request_id: Option<RequestId>,
    /// The job it made, or repeated.
    pub job: Option<JobId>,
    /// The tool.
    pub tool: String,
    /// The edge it came in through.
    pub edge: &'static str,
    /// Who called.
    pub principal: PrincipalId,
    /// The level the caller had, and the one the tool needs.
    pub levels: (Level, Level),
    /// When it was admitted.
    pub admitted: Now,
    /// How long it could take.
    pub deadline: Deadline,
    /// Whether it repeated an earlier call.
    pub repeat: bool,
    /// How it was answered, once it was.
    pub answered: Option<Answered>,
    /// What happened to it on a line, if its tool is on one.
    pub line: Option<OnLine>,
}

/// What happened to a call on a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnLine {
    /// The line.
    pub line: String,
    /// When it went out, the first few times.
    pub delivered: Vec<Now>,
    /// Answers that came when none was awaited any more.
    pub n_late_answers: u32,
}

impl OnLine {
    /// Deliveries that are remembered.
    const DELIVERIES_MAX: usize = 8;

    /// It has just been put on a line.
    #[must_use]
    pub const fn new(line: String) -> Self {
        Self { line, delivered: Vec::new(), n_late_answers: 0 }
    }

    /// It went out.
    pub fn delivered(&mut self, now: Now) {
        if self.delivered.len() < Self::DELIVERIES_MAX {
            self.delivered.push(now);
        }
    }
}

/// How a call was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// When.
    pub at: Now,
    /// `success`, `job_started` or the code of its error.
    pub outcome: &'static str,
    /// Whether the tool ran, if it failed.
    pub certainty: Option<Certainty>,
}

/// The latest calls.
#[derive(Debug)]
pub struct TraceRing {
    kept: VecDeque<Trace>,
    /// How many were ever forgotten: the number of the first that is kept.
    n_forgotten: u64,
    numbers: HashMap<CallId, u64>,
    kept_max: usize,
}

impl TraceRing {
    /// A ring that remembers so many calls.
    #[must_use]
    pub fn new(kept_max: usize) -> Self {
        Self { kept: VecDeque::new(), n_forgotten: 0, numbers: HashMap::new(), kept_max }
    }

    /// A call was admitted.
    pub fn begin(&mut self, trace: Trace) {
        if self.kept.len() == self.kept_max
            && let Some(oldest) = self.kept.pop_front()
        {
            self.numbers.remove(&oldest.call);
            self.n_forgotten += 1;
        }
        self.numbers.insert(trace.call, self.n_forgotten + self.kept.len() as u64);
        self.kept.push_back(trace);
    }

    /// Something more is known of a call, if it is still remembered.
    pub fn amend(&mut self, call: CallId, amend: impl FnOnce(&mut Trace)) {
        let number = self.numbers.get(&call).copied();
        let index = number.and_then(|number| usize::try_from(number - self.n_forgotten).ok());
        if let Some(trace) = index.and_then(|index| self.kept.get_mut(index)) {
            amend(trace);
        }
    }

    /// The latest call that `is_wanted` picks.
    pub fn find(&self, is_wanted: impl Fn(&Trace) -> bool) -> Option<&Trace> {
        self.kept.iter().rev().find(|trace| is_wanted(trace))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(number: u8) -> Trace {
        let now = Now { mono: 0, unix: 0 };
        Trace {
            call: CallId::from_random([number; 16]),
            request_id: None,
            job: None,
            tool: number.to_string(),
            edge: "hoot",
            principal: PrincipalId::Local,
            levels: (Level::Admin, Level::Read),
            admitted: now,
            deadline: Deadline::smallest(now, None, None, 1),
            repeat: false,
            answered: None,
            line: None,
        }
    }

    #[test]
    fn the_latest_calls_can_be_amended_and_found_and_older_ones_are_forgotten() {
        let mut ring = TraceRing::new(3);
        for number in 0..10 {
            ring.begin(trace(number));
            ring.amend(trace(number).call, |trace| trace.repeat = true);
        }
        for number in 0..10 {
            ring.amend(trace(number).call, |trace| trace.tool.push('!'));
            let found = ring.find(|kept| kept.call == trace(number).call);
            assert_eq!(found.is_some(), number >= 7, "{number}");
            assert!(found.is_none_or(|kept| kept.repeat && kept.tool == format!("{number}!")));
        }
    }
}
