//! Timing classes: how long a caller should expect a tool to take.

use std::time::Duration;

use crate::wire_enum::wire_enum;

wire_enum! {
    /// The timing class of a tool: what a caller gets, and when.
    ToolTiming {
        /// The result, immediately: computed from memory, never waits.
        Sync = "sync",
        /// The result if it is ready within 30 s, otherwise the job id.
        AsyncShort = "async_short",
        /// The result if it is ready within 120 s, otherwise the job id.
        AsyncMedium = "async_medium",
        /// The job id, immediately.
        AsyncLong = "async_long",
        /// An acknowledgement with the job id, once the command is accepted.
        FireAndForget = "fire_and_forget",
    }
}

impl ToolTiming {
    /// Returns how long an edge waits for the result before it answers with the job id.
    #[must_use]
    pub const fn edge_wait(self) -> Duration {
        match self {
            Self::AsyncShort => Duration::from_secs(30),
            Self::AsyncMedium => Duration::from_secs(120),
            Self::Sync | Self::AsyncLong | Self::FireAndForget => Duration::ZERO,
        }
    }

    /// Returns the longest wait a caller may request for a tool of this class.
    #[must_use]
    pub const fn wait_max(self) -> Duration {
        match self {
            Self::AsyncShort => Duration::from_secs(30),
            Self::AsyncMedium | Self::AsyncLong | Self::FireAndForget => Duration::from_secs(120),
            Self::Sync => Duration::ZERO,
        }
    }
}
