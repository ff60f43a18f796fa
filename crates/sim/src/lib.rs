//! The simulator: the real core and broker on a clock, a disk and callers that one seed decides.
//! The daemon lives and crashes several times on one data directory; everything seen is a history,
//! and the checker looks in it for broken promises.
//!
//! Main types: [`run`] for one seed, [`History`], [`check::check`], [`Violation`]; [`run_crowd`] for a
//! crowd of sessions, [`crowd::Crowd`].
//!
//! Invariants:
//! * The same seed gives the same history: one thread, paused time, seeded ids, no thread pool.
//! * The checker is pure: it reads a history and nothing else.
//! * A life ends by a crash or in order, and takes every task and reply of it along.
//! * Faults stop before the last life; what is then not healed is a violation.

pub mod check;
pub mod crowd;
pub mod history;
mod world;

pub use check::Violation;
pub use history::History;

/// What one seed came to.
#[derive(Debug)]
pub struct Run {
    /// The seed.
    pub seed: u64,
    /// What happened.
    pub history: History,
    /// What must not have happened.
    pub violations: Vec<Violation>,
}

/// Simulates a crowd of sessions with their callers and agents, and checks what happened.
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
