//! Time as a value.

use ringback_proto::record::UnixMs;

/// Milliseconds of a monotonic clock, from an arbitrary start.
pub type MonoMs = u64;

/// The time of a step, passed in by the shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// For deadlines and windows.
    pub mono: MonoMs,
    /// For records and people.
    pub unix: UnixMs,
}
