//! Time as a value.

use ringback_proto::record::UnixMs;

/// Milliseconds of a clock that never goes back, from any start.
pub type MonoMs = u64;

/// The moment of a step, passed in by whoever drives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// For deadlines and windows.
    pub mono: MonoMs,
    /// For records and people.
    pub unix: UnixMs,
}
