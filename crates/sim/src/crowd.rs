//! A crowd: hundreds of sessions with their agents and callers. Records what happened, and checks
//! the promise: every call of every agent has exactly one outcome, it is true, and it comes in
//! time.

use std::collections::BTreeMap;

use ringback_broker::TableSizes;
use ringback_proto::{Certainty, ErrorKind};

use crate::Violation;

/// The number of an agent's call, which is also its input.
pub type CallInput = u64;

/// An outcome may be this late: a commit, and a turn of the timer.
const SLACK_MS: u64 = 1000;

/// Everything that happened, and what was left at the end.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Crowd {
    /// In order, each with its time.
    pub entries: Vec<(u64, CrowdEvent)>,
    /// The broker's tables after every party had left.
    pub under_way: TableSizes,
}

/// One event of the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CrowdEvent {
    /// An agent calls.
    Asked {
        /// The call.
        ask: CallInput,
        /// The place of its session.
        place: usize,
        /// Its time limit.
        within_ms: u64,
    },
    /// A caller has the call.
    Took {
        /// The call.
        ask: CallInput,
        /// The place of the caller's session.
        place: usize,
    },
    /// A caller answers.
    Answered {
        /// The call.
        ask: CallInput,
        /// The value; `None` for a failure of the tool.
        value: Option<u64>,
        /// Whether the answer was accepted.
        taken: bool,
        /// Whether it comes from the right caller.
        is_own: bool,
    },
    /// The agent cancels the call.
    Cancelled(CallInput),
    /// The agent leaves without waiting.
    Left(CallInput),
    /// The agent gets the outcome.
    Told(CallInput, Outcome),
    /// A session ends, and another takes its place.
    Ended {
        /// Its place.
        place: usize,
    },
}

/// How a call ended for its agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The caller's answer.
    Result(u64),
    /// An error.
    Failed(ErrorKind, Certainty),
}

impl Crowd {
    /// Returns the number of entries of a kind.
    pub fn count(&self, is_kind: impl Fn(&CrowdEvent) -> bool) -> usize {
        self.entries.iter().filter(|(_, seen)| is_kind(seen)).count()
    }
}

/// The story of a call.
#[derive(Debug, Default)]
struct Story {
    asked_at: u64,
    within_ms: u64,
    place: usize,
    is_taken: bool,
    /// The accepted answer.
    answer: Option<Option<u64>>,
    is_cancelled: bool,
    has_left: bool,
    outcome: Option<Outcome>,
}

/// Returns every broken promise, in the order it shows.
#[must_use]
pub fn check(crowd: &Crowd) -> Vec<Violation> {
    let mut stories: BTreeMap<CallInput, Story> = BTreeMap::new();
    let mut violations = Vec::new();
    for (entry, (at, seen)) in crowd.entries.iter().enumerate() {
        let mut broken = |rule, seen: String| violations.push(Violation { rule, entry, seen });
        match *seen {
            CrowdEvent::Asked { ask, place, within_ms } => {
                let story = Story { asked_at: *at, within_ms, place, ..Story::default() };
                stories.insert(ask, story);
            }
            CrowdEvent::Took { ask, place } => {
                let story = stories.entry(ask).or_default();
                if story.place != place {
                    broken("a call reaches its own caller alone", format!("{ask} was at {place}"));
                }
                if story.outcome.is_some() {
                    broken("nothing starts after its outcome", format!("{ask} was taken late"));
                }
                story.is_taken = true;
            }
            CrowdEvent::Answered { ask, value, taken, is_own } => {
                let story = stories.entry(ask).or_default();
                if taken && (!is_own || story.answer.is_some() || story.outcome.is_some()) {
                    let seen = format!("{ask}: own {is_own}, {:?}", story.outcome);
                    broken("only the first answer of its own caller counts", seen);
                }
                if taken {
                    story.answer = Some(value);
                }
            }
            CrowdEvent::Cancelled(ask) => stories.entry(ask).or_default().is_cancelled = true,
            CrowdEvent::Left(ask) => stories.entry(ask).or_default().has_left = true,
            CrowdEvent::Told(ask, outcome) => {
                let story = stories.entry(ask).or_default();
                if let Some(first) = story.outcome.replace(outcome) {
                    broken("one outcome", format!("{ask}: {first:?}, then {outcome:?}"));
                } else if let Some(seen) = untrue(story, outcome) {
                    broken("a true outcome", format!("{ask}: {outcome:?}, but {seen}"));
                }
                if *at > story.asked_at + story.within_ms + SLACK_MS {
                    broken("an outcome in time", format!("{ask} at {at}: {story:?}"));
                }
            }
            CrowdEvent::Ended { .. } => {}
        }
    }
    let entry = crowd.entries.len();
    for (ask, story) in stories {
        if story.outcome.is_none() && !story.has_left {
            let seen = format!("{ask}: none, {story:?}");
            violations.push(Violation { rule: "one outcome", entry, seen });
        }
    }
    if crowd.under_way != TableSizes::default() {
        let seen = format!("{:?}", crowd.under_way);
        violations.push(Violation { rule: "tables are empty in the end", entry, seen });
    }
    violations
}

/// Returns what is untrue about an outcome.
fn untrue(story: &Story, outcome: Outcome) -> Option<&'static str> {
    match (outcome, story.answer) {
        (Outcome::Result(value), Some(Some(answer))) if value == answer => None,
        (Outcome::Result(_), _) => Some("its caller did not answer that"),
        (Outcome::Failed(ErrorKind::ToolFailed, Certainty::Ran), Some(None)) => None,
        (Outcome::Failed(..), Some(_)) => Some("its caller's answer was taken"),
        (Outcome::Failed(_, Certainty::NotStarted), None) if story.is_taken => {
            Some("its caller has it")
        }
        (Outcome::Failed(_, Certainty::Ran), None) => Some("its caller did not answer"),
        (Outcome::Failed(ErrorKind::Cancelled, _), None) if !story.is_cancelled => {
            Some("it was not cancelled")
        }
        (Outcome::Failed(_, Certainty::NotStarted | Certainty::MayHaveRun), None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED: CrowdEvent = CrowdEvent::Asked { ask: 1, place: 0, within_ms: 100 };
    const TOOK: CrowdEvent = CrowdEvent::Took { ask: 1, place: 0 };

    fn broken(entries: &[(u64, CrowdEvent)]) -> Vec<&'static str> {
        let crowd = Crowd { entries: entries.to_vec(), ..Crowd::default() };
        check(&crowd).iter().map(|violation| violation.rule).collect()
    }

    fn failed(kind: ErrorKind, certainty: Certainty) -> CrowdEvent {
        CrowdEvent::Told(1, Outcome::Failed(kind, certainty))
    }

    fn answered(taken: bool, is_own: bool) -> CrowdEvent {
        CrowdEvent::Answered { ask: 1, value: Some(1), taken, is_own }
    }

    #[test]
    fn a_call_that_is_answered_breaks_nothing() {
        let told = CrowdEvent::Told(1, Outcome::Result(1));
        assert!(broken(&[(0, ASKED), (1, TOOK), (2, answered(true, true)), (3, told)]).is_empty());
        let gone = failed(ErrorKind::Gone, Certainty::NotStarted);
        assert!(broken(&[(0, ASKED), (1, gone)]).is_empty());
    }

    #[test]
    fn every_lie_is_found() {
        let told = CrowdEvent::Told(1, Outcome::Result(1));
        assert_eq!(broken(&[(0, ASKED), (1, told.clone())]), ["a true outcome"]);
        let gone = failed(ErrorKind::Gone, Certainty::NotStarted);
        assert_eq!(broken(&[(0, ASKED), (1, TOOK), (2, gone.clone())]), ["a true outcome"]);
        let answer = answered(true, true);
        assert_eq!(
            broken(&[(0, ASKED), (1, TOOK), (2, answer.clone()), (3, gone)]),
            ["a true outcome"]
        );
        let ran = failed(ErrorKind::ToolFailed, Certainty::Ran);
        assert_eq!(broken(&[(0, ASKED), (1, TOOK), (2, ran)]), ["a true outcome"]);
        let late = (5000, told.clone());
        assert_eq!(
            broken(&[(0, ASKED), (1, TOOK), (2, answer.clone()), late]),
            ["an outcome in time"]
        );
        assert_eq!(broken(&[(0, ASKED)]), ["one outcome"]);
        let twice = [(0, ASKED), (1, TOOK), (2, answer), (3, told.clone()), (4, told)];
        assert_eq!(broken(&twice), ["one outcome"]);
        let forged = answered(true, false);
        assert_eq!(
            broken(&[(0, ASKED), (1, TOOK), (2, forged), (3, CrowdEvent::Left(1))]),
            ["only the first answer of its own caller counts"]
        );
        let elsewhere = CrowdEvent::Took { ask: 1, place: 7 };
        assert_eq!(
            broken(&[(0, ASKED), (1, elsewhere), (2, CrowdEvent::Left(1))]),
            ["a call reaches its own caller alone"]
        );
    }
}
