//! Events: numbered without gaps, published after they are durable, in the order of a job's life.

use std::collections::{BTreeMap, BTreeSet};

use ringback_proto::ids::JobId;
use ringback_proto::record::JobState;

use super::Violation;
use crate::history::{Announcement, Durable, EventContent, History, HistoryEvent};

const NUMBERS: &str = "event numbers have no gaps";

pub(super) fn check(history: &History, violations: &mut Vec<Violation>) {
    numbers(history, violations);
    states(history, violations);
    all_are_told(history, violations);
}

/// Checks from the first event that a subscriber gets in a life.
fn numbers(history: &History, violations: &mut Vec<Violation>) {
    let mut last: BTreeMap<(u32, String), u64> = BTreeMap::new();
    for (entry, event, announced) in history.announced() {
        let Announcement { seq, topic, topic_seq, owner, owner_topic_seq, .. } = announced;
        let counts = [
            (String::new(), *seq),
            ((*topic).to_owned(), *topic_seq),
            (format!("{topic} of {owner}"), *owner_topic_seq),
        ];
        for (name, number) in counts {
            let before = last.insert((event.life, name.clone()), number);
            if before.is_some_and(|before| before + 1 != number) {
                let seen = format!("{number} came after {before:?} in `{name}`");
                violations.push(Violation { rule: NUMBERS, entry, seen });
            }
        }
    }
}

/// Checks that a published job state is durable, new, and not followed by an earlier one.
fn states(history: &History, violations: &mut Vec<Violation>) {
    let mut durable: BTreeSet<(JobId, u8)> = BTreeSet::new();
    let mut told: BTreeMap<(u32, JobId), JobState> = BTreeMap::new();
    for (entry, event) in history.entries.iter().enumerate() {
        match &event.what {
            HistoryEvent::Durable(change) => durable.extend(change_of(change).map(coded)),
            HistoryEvent::Announced(Announcement {
                news: EventContent::State(job, state), ..
            }) => {
                if !durable.contains(&coded((*job, *state))) {
                    let seen = format!("{job} was announced as {state:?}");
                    let rule = "an event comes after its change is durable";
                    violations.push(Violation { rule, entry, seen });
                }
                let before = told.insert((event.life, *job), *state);
                if before.is_some_and(|before| code(before) >= code(*state) || before.is_terminal())
                {
                    let seen = format!("{job} was announced as {state:?} after {before:?}");
                    violations.push(Violation { rule: "a job only goes forward", entry, seen });
                }
            }
            HistoryEvent::Announced(Announcement { news: EventContent::Progress(job), .. }) => {
                let state = told.get(&(event.life, *job));
                if state.is_some_and(|state| *state != JobState::Running) {
                    let seen = format!("{job} worked when it was {state:?}");
                    violations.push(Violation { rule: "a job works while it runs", entry, seen });
                }
            }
            HistoryEvent::Started
            | HistoryEvent::FailedToStart
            | HistoryEvent::Called(_)
            | HistoryEvent::Replied(..)
            | HistoryEvent::Cancelled(_)
            | HistoryEvent::Left(_)
            | HistoryEvent::Took(_)
            | HistoryEvent::Announced(Announcement { news: EventContent::Other, .. })
            | HistoryEvent::DiskFull
            | HistoryEvent::Crashed
            | HistoryEvent::Stopped => {}
        }
    }
}

/// Checks that every change is published in the last life, which ends in order.
fn all_are_told(history: &History, violations: &mut Vec<Violation>) {
    let last_life = history.entries.last().map_or(0, |entry| entry.life);
    let is_start = |what: &HistoryEvent| matches!(what, HistoryEvent::Started);
    let Some(start) =
        history.entries.iter().position(|entry| entry.life == last_life && is_start(&entry.what))
    else {
        return;
    };
    let told: BTreeSet<_> = history
        .announced()
        .filter(|(_, event, _)| event.life == last_life)
        .filter_map(|(_, _, announced)| match announced.news {
            EventContent::State(job, state) => Some(coded((job, state))),
            EventContent::Progress(_) | EventContent::Other => None,
        })
        .collect();
    for (entry, _, change) in history.durable().filter(|(entry, _, _)| *entry > start) {
        if let Some((job, state)) = change_of(change)
            && !told.contains(&coded((job, state)))
        {
            let seen = format!("no event announced that {job} is {state:?}");
            violations.push(Violation { rule: "every change is announced", entry, seen });
        }
    }
}

fn change_of(change: &Durable) -> Option<(JobId, JobState)> {
    match change {
        Durable::Created { job, state, .. } | Durable::Ended(job, state) => Some((*job, *state)),
        Durable::Began(job) => Some((*job, JobState::Running)),
        Durable::Purged(_) | Durable::Made(_) | Durable::Revoked(_) => None,
    }
}

/// States have no order of their own.
fn coded((job, state): (JobId, JobState)) -> (JobId, u8) {
    (job, code(state))
}

const fn code(state: JobState) -> u8 {
    match state {
        JobState::Pending => 0,
        JobState::Running => 1,
        JobState::Complete => 2,
        JobState::Failed => 3,
        JobState::Cancelled => 4,
    }
}
