//! Calls on lines: the answer is the party's own, and a party gets a call once unless it may be
//! delivered again.

use std::collections::BTreeMap;

use ringback_proto::record::UnixMs;

use super::Violation;
use super::repeats::SURELY_REMEMBERED_MS;
use crate::history::{History, HistoryEvent, Marker, Op, Reply};

const RULE: &str = "a call on a line has one answer, its party's";

pub(super) fn check(history: &History, violations: &mut Vec<Violation>) {
    let tools: BTreeMap<Marker, bool> = history
        .calls()
        .filter_map(|(_, _, called)| match called.op {
            Op::OnLine(tool, marker) => Some((marker, tool.is_delivered_again())),
            Op::Sleep(_)
            | Op::Store
            | Op::CreateArtifact(_)
            | Op::CreateToken(_)
            | Op::Revoke(_)
            | Op::Cancel(_)
            | Op::Status(_)
            | Op::Poll(_)
            | Op::List
            | Op::Events
            | Op::Ping => None,
        })
        .collect();
    let calls: BTreeMap<_, _> =
        history.calls().map(|(_, _, called)| (called.call, called.op.marker())).collect();
    let mut taken: BTreeMap<(u32, Marker), UnixMs> = BTreeMap::new();
    for (entry, event) in history.entries.iter().enumerate() {
        match &event.what {
            HistoryEvent::Took(marker) => {
                let before = taken.insert((event.life, *marker), event.at);
                let is_again = before.is_some_and(|at| event.at - at < SURELY_REMEMBERED_MS);
                if is_again && tools.get(marker) != Some(&true) {
                    let seen = format!("the call with {marker} was delivered twice");
                    violations.push(Violation { rule: RULE, entry, seen });
                }
            }
            HistoryEvent::Replied(call, Reply::Passed(answer)) => {
                let asked = calls.get(call).copied().flatten();
                if asked != Some(*answer) || !taken.contains_key(&(event.life, *answer)) {
                    let seen = format!("call {call} of {asked:?} was answered with {answer}");
                    violations.push(Violation { rule: RULE, entry, seen });
                }
            }
            HistoryEvent::Started
            | HistoryEvent::FailedToStart
            | HistoryEvent::Called(_)
            | HistoryEvent::Replied(..)
            | HistoryEvent::Cancelled(_)
            | HistoryEvent::Left(_)
            | HistoryEvent::Durable(_)
            | HistoryEvent::Announced(_)
            | HistoryEvent::DiskFull
            | HistoryEvent::Crashed
            | HistoryEvent::Stopped => {}
        }
    }
}
