//! Timing classes: how long a caller should expect a tool to take.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The timing class of a tool: what a caller gets, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolTiming {
    /// The result, immediately: computed from memory, never waits.
    Sync,
    /// The result if it is ready within 30 s, otherwise the job id.
    AsyncShort,
    /// The result if it is ready within 120 s, otherwise the job id.
    AsyncMedium,
    /// The job id, immediately.
    AsyncLong,
    /// An acknowledgement with the job id, once the command is accepted.
    FireAndForget,
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

    /// Returns the name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::AsyncShort => "async_short",
            Self::AsyncMedium => "async_medium",
            Self::AsyncLong => "async_long",
            Self::FireAndForget => "fire_and_forget",
        }
    }
}
