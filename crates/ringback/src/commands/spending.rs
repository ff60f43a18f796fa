//! Spending options of commands that start an agent, and the spending so far.

use clap::Args;
use ringback_proto::money::MicroUsd;
use ringback_proto::request::{SessionResponse, SpendLimits};

use crate::commands::token::Lifetime;
use crate::screen::span;

const MS_PER_SECOND: u64 = 1000;

/// The spending limits of a session.
#[derive(Debug, Clone, Default, Args)]
pub struct SpendArgs {
    /// Model tokens after which you are asked; `more` allows the same amount again
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_tokens: Option<u64>,
    /// Working time after which you are asked, such as 90s, 15m or 2h
    #[arg(long, value_name = "TIME")]
    pub max_time: Option<Lifetime>,
    /// Model cost after which you are asked, in dollars such as 2.50; needs prices in the daemon's
    /// configuration
    #[arg(long, value_name = "USD")]
    pub max_usd: Option<MicroUsd>,
}

impl SpendArgs {
    /// Returns the limits, if any were given.
    pub(crate) fn limits(&self) -> Option<SpendLimits> {
        let limits = SpendLimits {
            max_tokens: self.max_tokens,
            max_time_ms: self.max_time.map(|time| time.0.saturating_mul(MS_PER_SECOND)),
            max_micro_usd: self.max_usd,
        };
        (!limits.is_none()).then_some(limits)
    }
}

/// Formats the requests, tokens, cost and time of a session that used a model.
pub(crate) fn totals(session: &SessionResponse) -> Option<String> {
    let used = session.model_usage.as_ref()?;
    Some(format!("model: {used}, {}", span(session.working_ms)))
}

/// Formats spending limits for people.
pub(crate) fn limited(limits: &SpendLimits) -> String {
    let tokens = limits.max_tokens.map(|max| format!("{max} tokens"));
    let time = limits.max_time_ms.map(|max| format!("{} of working time", span(max)));
    let cost = limits.max_micro_usd.map(|max| format!("{max} USD"));
    [tokens, time, cost].into_iter().flatten().collect::<Vec<_>>().join(", ")
}
