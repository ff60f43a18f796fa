//! Checks a history for broken promises.

mod calls;
mod events;
mod jobs;
mod lines;
mod repeats;
mod tables;
#[cfg(test)]
mod tests;

use crate::history::History;

/// A broken promise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The promise.
    pub rule: &'static str,
    /// The entry of the history where it shows; the number of entries if it shows at the end.
    pub entry: usize,
    /// What was observed.
    pub seen: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (entry {}): {}", self.rule, self.entry, self.seen)
    }
}

/// Returns every broken promise, in the order it shows.
#[must_use]
pub fn check(history: &History) -> Vec<Violation> {
    let mut violations = Vec::new();
    calls::check(history, &mut violations);
    repeats::check(history, &mut violations);
    jobs::check(history, &mut violations);
    events::check(history, &mut violations);
    lines::check(history, &mut violations);
    tables::check(history, &mut violations);
    violations.sort_by_key(|violation| violation.entry);
    violations
}
