//! A record of recent calls that explains each of them, without input and result.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use ringback_proto::Certainty;
use ringback_proto::ids::{CallId, JobId, RequestId};
use ringback_proto::principal::{Level, PrincipalId};

use crate::deadline::Deadline;
use crate::lines::LineName;
use crate::time::Now;

/// A remembered call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// Its id.
    pub call: CallId,
    /// The id its caller gave it.
    pub request_id: Option<RequestId>,
    /// The job it created, or repeated.
    pub job: Option<JobId>,
    /// The tool.
    pub tool: Arc<str>,
    /// The edge it came in on.
    pub edge: &'static str,
    /// The principal that called.
    pub principal: PrincipalId,
    /// The scope the caller had, and the one the tool needs.
    pub levels: (Level, Level),
    /// When it was admitted.
    pub admitted: Now,
    /// Its deadline.
    pub deadline: Deadline,
    /// Whether it repeated an earlier call.
    pub repeat: bool,
    /// Its answer, once it has one.
    pub answered: Option<CallAnswer>,
    /// Its progress on a line, if its tool is on one.
    pub line: Option<LineProgress>,
}

/// The progress of a call on a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineProgress {
    /// The line.
    pub line: LineName,
    /// When it was sent, the first few times.
    pub delivered: Vec<Now>,
    /// The number of answers that arrived after it had ended.
    pub n_late_answers: u32,
}

impl LineProgress {
    /// The maximum number of remembered deliveries.
    const DELIVERIES_MAX: usize = 8;

    /// Makes the progress of a call that was just put on a line.
    #[must_use]
    pub const fn new(line: LineName) -> Self {
        Self { line, delivered: Vec::new(), n_late_answers: 0 }
    }

    /// Notes a delivery.
    pub fn delivered(&mut self, now: Now) {
        if self.delivered.len() < Self::DELIVERIES_MAX {
            self.delivered.push(now);
        }
    }
}

/// The answer to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallAnswer {
    /// When it was answered.
    pub at: Now,
    /// `success`, `job_started` or an error code.
    pub outcome: &'static str,
    /// Whether the tool ran, if the call failed.
    pub certainty: Option<Certainty>,
}

/// The latest calls.
#[derive(Debug)]
pub struct TraceRing {
    kept: VecDeque<Trace>,
    /// The number of forgotten calls: the number of the first kept one.
    n_forgotten: u64,
    numbers: HashMap<CallId, u64>,
    kept_max: usize,
}

impl TraceRing {
    /// Makes a ring of limited size.
    #[must_use]
    pub fn new(kept_max: usize) -> Self {
        Self { kept: VecDeque::new(), n_forgotten: 0, numbers: HashMap::new(), kept_max }
    }

    /// Adds a call that was admitted.
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

    /// Updates a call, if it is still remembered.
    pub fn amend(&mut self, call: CallId, amend: impl FnOnce(&mut Trace)) {
        let number = self.numbers.get(&call).copied();
        let index = number.and_then(|number| usize::try_from(number - self.n_forgotten).ok());
        if let Some(trace) = index.and_then(|index| self.kept.get_mut(index)) {
            amend(trace);
        }
    }

    /// Returns the latest call that `is_wanted` picks.
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
            tool: number.to_string().into(),
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
            ring.amend(trace(number).call, |trace| trace.edge = "mcp");
            let found = ring.find(|kept| kept.call == trace(number).call);
            assert_eq!(found.is_some(), number >= 7, "{number}");
            assert!(found.is_none_or(|kept| kept.repeat && kept.edge == "mcp"));
        }
    }
}
