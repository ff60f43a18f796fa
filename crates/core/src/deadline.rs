//! The time limit of a call: the smallest of those of its caller, its tool and its principal.

use crate::time::{MonoMs, Now};

/// The origin of a deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeadlineSource {
    /// The caller requested it.
    Caller,
    /// The tool's own limit.
    Tool,
    /// The limit for all calls.
    Daemon,
}

impl DeadlineSource {
    /// Returns its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::Tool => "tool",
            Self::Daemon => "daemon",
        }
    }
}

/// The deadline of a call, and its origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline {
    /// When the time is up.
    pub at: MonoMs,
    /// The time the call had when it was admitted.
    pub allowed_ms: u64,
    /// The origin of the limit.
    pub bound: DeadlineSource,
}

impl Deadline {
    /// Picks the smallest of the three. The daemon's limit always exists: no wait is unbounded.
    #[must_use]
    pub fn smallest(
        now: Now,
        caller_ms: Option<u64>,
        tool_ms: Option<u64>,
        daemon_ms: u64,
    ) -> Self {
        let (allowed_ms, bound) =
            [(caller_ms, DeadlineSource::Caller), (tool_ms, DeadlineSource::Tool)]
                .into_iter()
                .filter_map(|(ms, bound)| ms.map(|ms| (ms, bound)))
                .chain([(daemon_ms, DeadlineSource::Daemon)])
                .min_by_key(|(ms, _)| *ms)
                .expect("the daemon's limit is always there");
        Self { at: now.mono.saturating_add(allowed_ms), allowed_ms, bound }
    }

    /// Returns the remaining time, which is passed on to the next hop.
    #[must_use]
    pub const fn remaining_ms(&self, now: Now) -> u64 {
        self.at.saturating_sub(now.mono)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_limit_wins_and_only_the_remainder_goes_on() {
        let now = Now { mono: 1_000, unix: 0 };
        let cases = [
            ((Some(50), Some(60), 70), (50, DeadlineSource::Caller)),
            ((Some(90), Some(60), 70), (60, DeadlineSource::Tool)),
            ((None, None, 70), (70, DeadlineSource::Daemon)),
            ((Some(u64::MAX), None, 70), (70, DeadlineSource::Daemon)),
        ];
        for ((caller, tool, daemon), (allowed, bound)) in cases {
            let deadline = Deadline::smallest(now, caller, tool, daemon);
            assert_eq!((deadline.allowed_ms, deadline.bound), (allowed, bound));
            let later = Now { mono: 1_000 + 30, unix: 0 };
            assert_eq!(deadline.remaining_ms(later), allowed - 30);
            let too_late = Now { mono: 9_999, unix: 0 };
            assert_eq!(deadline.remaining_ms(too_late), 0);
        }
    }
}
