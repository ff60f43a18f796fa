//! Decides whether a caller gets the result or the job id, from its options and the tool's timing.

use std::time::Duration;

use ringback_proto::envelope::CallOptions;
use ringback_proto::timing::ToolTiming;

/// What an edge does when the caller sets no options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EdgeHabit {
    /// Answers with the job id immediately (HOOT01).
    JobAtOnce,
    /// Waits as long as the tool's timing class (MCP, HTTP, the command line).
    WaitAsClass,
}

/// How a job's caller is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyMode {
    /// With the job id, once the job is durable.
    No,
    /// With the outcome if it is ready in time, otherwise with the job id.
    For(Duration),
    /// With chunks as they come, then the outcome.
    Stream,
    /// With an acknowledgement once the command is executed, or with its error.
    Command,
}

/// Decides how the caller of a tool that creates a job is answered.
#[must_use]
pub fn waiting(timing: ToolTiming, options: &CallOptions, habit: EdgeHabit) -> ReplyMode {
    if options.stream {
        return ReplyMode::Stream;
    }
    // It is short, and an id without an outcome would hide its failure.
    if timing == ToolTiming::FireAndForget {
        return ReplyMode::Command;
    }
    let wait = match (options.wait_ms, options.timing_hint) {
        (Some(ms), _) => Duration::from_millis(ms).min(timing.wait_max()),
        (None, Some(hint)) => hint.edge_wait().min(timing.wait_max()),
        (None, None) => match habit {
            EdgeHabit::JobAtOnce => Duration::ZERO,
            EdgeHabit::WaitAsClass => timing.edge_wait(),
        },
    };
    if wait.is_zero() { ReplyMode::No } else { ReplyMode::For(wait) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(timing: ToolTiming, options: CallOptions, habit: EdgeHabit, expected: ReplyMode) {
        assert_eq!(waiting(timing, &options, habit), expected, "{timing:?} {options:?} {habit:?}");
    }

    #[test]
    fn a_hoot_peer_gets_the_job_at_once_unless_it_asks_and_other_edges_wait_as_the_class_says() {
        use ToolTiming::{AsyncLong, AsyncMedium, AsyncShort, FireAndForget, Sync};
        let secs = |secs| ReplyMode::For(Duration::from_secs(secs));
        let plain = CallOptions::default();
        for timing in [AsyncShort, AsyncMedium, AsyncLong] {
            check(timing, plain, EdgeHabit::JobAtOnce, ReplyMode::No);
        }
        check(AsyncShort, plain, EdgeHabit::WaitAsClass, secs(30));
        check(AsyncMedium, plain, EdgeHabit::WaitAsClass, secs(120));
        check(AsyncLong, plain, EdgeHabit::WaitAsClass, ReplyMode::No);
        let now = CallOptions { wait_ms: Some(0), ..plain };
        for options in [plain, now] {
            check(FireAndForget, options, EdgeHabit::JobAtOnce, ReplyMode::Command);
            check(FireAndForget, options, EdgeHabit::WaitAsClass, ReplyMode::Command);
        }

        let forever = CallOptions { wait_ms: Some(u64::MAX), ..plain };
        check(AsyncShort, forever, EdgeHabit::JobAtOnce, secs(30));
        check(AsyncLong, forever, EdgeHabit::JobAtOnce, secs(120));
        check(AsyncShort, now, EdgeHabit::WaitAsClass, ReplyMode::No);

        let hint = |hint| CallOptions { timing_hint: Some(hint), ..plain };
        check(AsyncShort, hint(AsyncLong), EdgeHabit::WaitAsClass, ReplyMode::No);
        check(AsyncMedium, hint(AsyncShort), EdgeHabit::JobAtOnce, secs(30));
        check(AsyncShort, hint(Sync), EdgeHabit::JobAtOnce, ReplyMode::No);

        let stream = CallOptions { stream: true, wait_ms: Some(5), ..plain };
        check(AsyncShort, stream, EdgeHabit::JobAtOnce, ReplyMode::Stream);
    }
}
