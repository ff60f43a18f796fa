//! The simulator: the real core and broker with a clock, a disk and callers that one seed
//! determines. The daemon lives and crashes several times on one data directory; everything
//! observed is a history, which the checker searches for broken promises.
//!
//! Main types: [`run`] for one seed, [`History`], [`check::check`], [`Violation`]; [`run_crowd`]
//! for a crowd of sessions, [`crowd::Crowd`].
//!
//! Invariants:
//! * The same seed produces the same history: one thread, paused time, seeded IDs, no thread pool.
//! * The checker is pure: it reads a history and nothing else.
//! * A life ends with a crash or in order, together with all of its tasks and replies.
//! * Faults stop before the last life; whatever does not recover by then is a violation.

pub mod check;
pub mod crowd;
pub mod history;
mod world;

pub use check::Violation;
pub use history::History;

/// The result of one seed.
#[derive(Debug)]
pub struct Run {
    /// The seed.
    pub seed: u64,
    /// What happened.
    pub history: History,
    /// The broken promises.
    pub violations: Vec<Violation>,
}

/// Simulates a crowd of sessions with their callers and agents, and checks the result.
#[must_use]
pub fn run_crowd(seed: u64, n_sessions: usize) -> (crowd::Crowd, Vec<Violation>) {
    let seen = world::simulate_crowd(seed, n_sessions);
    let violations = crowd::check(&seen);
    (seen, violations)
}

/// Simulates one seed and checks its history.
#[must_use]
pub fn run(seed: u64) -> Run {
    let history = world::simulate(seed);
    let violations = check::check(&history);
    Run { seed, history, violations }
}
