//! Tables are empty once all calls are over.

use ringback_broker::TableSizes;

use super::Violation;
use crate::history::History;

pub(super) fn check(history: &History, violations: &mut Vec<Violation>) {
    let entry = history.entries.len();
    let left = history.truth.under_way;
    if left != TableSizes::default() {
        let seen = format!("{left:?}");
        violations.push(Violation { rule: "tables are empty in the end", entry, seen });
    }
}
