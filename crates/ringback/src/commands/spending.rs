//! What an agent may spend, as options of commands that start one, and what it has spent.

use clap::Args;
use ringback_proto::money::MicroUsd;
use ringback_proto::request::{SessionResponse, SpendLimits};

use crate::commands::token::Lifetime;
use crate::screen::span;

const MS_PER_SECOND: u64 = 1000;

/// What a session may spend before you are asked.
#[derive(Debug, Clone, Default, Args)]
pub struct SpendArgs {
    /// Tokens its models may take before you are asked: `more` allows as much again
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_tokens: Option<u64>,
    /// How long its agents may be at work before you are asked, such as 90s, 15m or 2h
    #[arg(long, value_name = "TIME")]
    pub max_time: Option<Lifetime>,
    /// What its models may cost before you are asked, in dollars such as 2.50; needs prices in the daemon's
    /// configuration
    #[arg(long, value_name = "USD")]
    pub max_usd: Option<MicroUsd>,
}

impl SpendArgs {
    /// The limits, if there are any.
    pub(crate) fn limits(&self) -> Option<SpendLimits> {
        let limits = SpendLimits {
            max_tokens: self.max_tokens,
            max_time_ms: self.max_time.map(|time| time.0.saturating_mul(MS_PER_SECOND)),
            max_micro_usd: self.max_usd,
        };
        (!limits.is_none()).then_some(limits)
    }
}

/// Requests, tokens and cost, if a session has a model that it asked.
pub(crate) fn used(session: &SessionResponse) -> Option<String> {
    session.model_usage.as_ref().map(ToString::to_string)
}

/// What a session may spend, in words.
pub(crate) fn limited(limits: &SpendLimits) -> String {
    let tokens = limits.max_tokens.map(|max| format!("{max} tokens"));
    let time = limits.max_time_ms.map(|max| format!("{} at work", span(max)));
    let cost = limits.max_micro_usd.map(|max| format!("{max} USD"));
    [tokens, time, cost].into_iter().flatten().collect::<Vec<_>>().join(", ")
}
