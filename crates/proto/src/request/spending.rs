//! Spending limits of sessions, and what sessions have spent on their models.

use std::fmt;

use super::{ProjectLimits, wire_struct};
use crate::money::MicroUsd;

wire_struct! {
    /// The model requests of a session and their cost. A session without a parent includes its
    /// descendants.
    #[derive(Copy, Default, Eq)]
    ModelUsage {
        /// Requests forwarded to the provider.
        requests: u64,
        /// Requests not forwarded, but answered by the daemon.
        refused: u64,
        /// Bytes of request bodies sent to the provider.
        bytes_up: u64,
        /// Bytes of response bodies received.
        bytes_down: u64,
        /// Tokens read by models, as counted by providers.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<u64>")]
        input_tokens: u64,
        /// Tokens written by models.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<u64>")]
        output_tokens: u64,
        /// Whether some tokens were estimated from bytes instead of counted by the provider.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<bool>")]
        estimated: bool,
        /// Tokens of models without a price.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<u64>")]
        unpriced_tokens: u64,
        /// The cost of models with a price, in millionths of a US dollar, if prices are configured.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_micro_usd: Option<MicroUsd>,
    }

    /// What a session may spend before it pauses for approval. Sessions that its agent starts share
    /// its limits.
    #[derive(Copy, Default, Eq)]
    SpendLimits {
        /// Tokens that its models may read and write.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_tokens: Option<u64>,
        /// How long its agents may work in total, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_time_ms: Option<u64>,
        /// The cost of its models, in millionths of a US dollar. Needs prices in the daemon's
        /// configuration.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_micro_usd: Option<MicroUsd>,
    }

    /// A session paused at a limit: its models do not answer until the request is answered.
    SessionPause {
        /// The limit: `max_tokens`, `max_time`, `max_usd`, or `prices` if a model without a price
        /// was requested.
        limit: String,
        /// The id to answer with, in `session_message`.
        request_id: String,
        /// When its agent is stopped if no answer arrives.
        until_ms: u64,
    }
}

impl SpendLimits {
    /// Returns whether nothing is limited.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.max_tokens.is_none() && self.max_time_ms.is_none() && self.max_micro_usd.is_none()
    }

    /// Fills in missing limits from another.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            max_tokens: self.max_tokens.or(other.max_tokens),
            max_time_ms: self.max_time_ms.or(other.max_time_ms),
            max_micro_usd: self.max_micro_usd.or(other.max_micro_usd),
        }
    }
}

impl ProjectLimits {
    /// Returns the spending limits of its sessions.
    #[must_use]
    pub const fn spending(&self) -> SpendLimits {
        let Self { max_tokens, max_time_ms, max_micro_usd, .. } = *self;
        SpendLimits { max_tokens, max_time_ms, max_micro_usd }
    }
}

impl ModelUsage {
    /// Returns the tokens read and written.
    #[must_use]
    pub const fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// Returns the sum of two usages.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            requests: self.requests.saturating_add(other.requests),
            refused: self.refused.saturating_add(other.refused),
            bytes_up: self.bytes_up.saturating_add(other.bytes_up),
            bytes_down: self.bytes_down.saturating_add(other.bytes_down),
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            estimated: self.estimated || other.estimated,
            unpriced_tokens: self.unpriced_tokens.saturating_add(other.unpriced_tokens),
            cost_micro_usd: match (self.cost_micro_usd, other.cost_micro_usd) {
                (Some(one), Some(other)) => Some(MicroUsd(one.0.saturating_add(other.0))),
                (cost, None) | (None, cost) => cost,
            },
        }
    }
}

/// For people: requests, tokens, cost.
impl fmt::Display for ModelUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { requests, input_tokens, output_tokens, unpriced_tokens, .. } = self;
        let about = if self.estimated { "about " } else { "" };
        write!(
            f,
            "{requests} requests, {about}{input_tokens} tokens read, {output_tokens} written"
        )?;
        if let Some(cost) = self.cost_micro_usd {
            write!(f, ", {about}{cost} USD")?;
            if *unpriced_tokens > 0 {
                write!(f, " and {unpriced_tokens} tokens without a price")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_limited_is_so_by_another() {
        let own = SpendLimits { max_tokens: Some(1), ..Default::default() };
        let usual = SpendLimits { max_tokens: Some(9), max_time_ms: Some(5), ..Default::default() };
        let both = own.or(usual);
        assert_eq!(
            (both.max_tokens, both.max_time_ms, both.max_micro_usd),
            (Some(1), Some(5), None)
        );
        assert!(SpendLimits::default().is_none() && !both.is_none());
    }
}
