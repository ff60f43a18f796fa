//! The usage of a request, and the number of requests.

use std::sync::atomic::{AtomicU64, Ordering};

use hyper::{Method, StatusCode};
use ringback_proto::request::ModelUsage;

use crate::Prices;
use crate::tokens::{AnswerReport, Tokens};

/// Bytes per token, for an estimate: about right for English text, too high for the rest.
const BYTES_PER_TOKEN: u64 = 4;

/// The number of requests a session has made since its proxy was opened.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    n_requests: AtomicU64,
}

/// What is known of an ended request.
#[derive(Debug)]
pub(crate) struct EndedRequest<'a> {
    pub(crate) method: &'a Method,
    pub(crate) path: &'a str,
    pub(crate) status: Option<StatusCode>,
    pub(crate) is_whole: bool,
    pub(crate) is_sent: bool,
    pub(crate) bytes_up: u64,
    pub(crate) bytes_down: u64,
    pub(crate) said: AnswerReport,
}

impl Counters {
    /// Takes one of at most `max` requests.
    pub(crate) fn take_request(&self, max: Option<u64>) -> bool {
        let max = max.unwrap_or(u64::MAX);
        let taken = self.n_requests.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n_taken| {
            (n_taken < max).then(|| n_taken + 1)
        });
        taken.is_ok()
    }
}

impl EndedRequest<'_> {
    /// Returns its usage, and the model that answered.
    pub(crate) fn usage(self, prices: &Prices) -> (ModelUsage, Option<String>) {
        let (tokens, estimated) = self.tokens();
        let model = self.said.model.clone().or_else(|| model_of(self.path));
        let all = tokens.read().saturating_add(tokens.output);
        let price = model.as_deref().and_then(|model| prices.of(model));
        let usage = ModelUsage {
            requests: u64::from(self.is_sent),
            refused: u64::from(!self.is_sent),
            bytes_up: self.bytes_up,
            bytes_down: self.bytes_down,
            input_tokens: tokens.read(),
            output_tokens: tokens.output,
            estimated,
            unpriced_tokens: if price.is_none() { all } else { 0 },
            cost_micro_usd: price.map(|price| price.cost(&tokens)),
        };
        (usage, model)
    }

    /// Tokens, and whether they are estimated.
    fn tokens(&self) -> (Tokens, bool) {
        let estimate = Tokens {
            input: self.bytes_up / BYTES_PER_TOKEN,
            output: self.bytes_down / BYTES_PER_TOKEN,
            ..Tokens::default()
        };
        match self.said.tokens {
            Some(tokens) if self.is_whole || self.said.is_final => (tokens, false),
            // A client that hangs up early does not get its output for free.
            Some(tokens) => (Tokens { output: tokens.output.max(estimate.output), ..tokens }, true),
            None if self.may_have_tokens() => (estimate, true),
            None => (Tokens::default(), false),
        }
    }

    /// Whether a model may have read and written something without reporting it.
    fn may_have_tokens(&self) -> bool {
        let is_free = self.path.ends_with("/count_tokens") || self.path.ends_with(":countTokens");
        let may_be_good = self.status.is_none_or(|status| status.is_success());
        self.is_sent && self.method == Method::POST && may_be_good && !is_free
    }
}

/// The model that a path names, as in Gemini's: `/v1beta/models/NAME:generateContent`.
fn model_of(path: &str) -> Option<String> {
    let (_, behind) = path.split_once("/models/")?;
    let name = behind.split([':', '/']).next()?;
    (!name.is_empty() && behind.contains(':')).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use ringback_proto::money::MicroUsd;

    use super::*;
    use crate::Price;

    fn measured(said: AnswerReport) -> EndedRequest<'static> {
        EndedRequest {
            method: &Method::POST,
            path: "/v1/chat/completions",
            status: Some(StatusCode::OK),
            is_whole: true,
            is_sent: true,
            bytes_up: 40,
            bytes_down: 400,
            said,
        }
    }

    fn said(output: u64, is_final: bool) -> AnswerReport {
        let tokens = Some(Tokens { input: 7, output, cache_read: 2, cache_write: 1 });
        AnswerReport { tokens, is_final, model: Some("m-1".to_owned()) }
    }

    fn counted(measured: EndedRequest<'_>) -> (u64, u64, bool) {
        let (usage, _) = measured.usage(&Prices::default());
        assert_eq!(usage.unpriced_tokens, usage.tokens());
        (usage.input_tokens, usage.output_tokens, usage.estimated)
    }

    /// Rule: the provider's count counts; without one, tokens are estimated and marked.
    #[test]
    fn tokens_that_nobody_counts_are_estimated_and_marked() {
        let none = AnswerReport::default;
        assert_eq!(counted(measured(said(5, true))), (10, 5, false));
        assert_eq!(counted(measured(none())), (10, 100, true));
        let cut = |said| EndedRequest { is_whole: false, ..measured(said) };
        assert_eq!(counted(cut(said(1, false))), (10, 100, true), "who hangs up pays");
        assert_eq!(counted(cut(said(5, true))), (10, 5, false), "it was said before");
        let given_up = EndedRequest { status: None, bytes_down: 0, ..measured(none()) };
        assert_eq!(counted(given_up), (10, 0, true));
        let refused = EndedRequest { is_sent: false, ..measured(none()) };
        assert_eq!(counted(refused), (0, 0, false));
        let bad = EndedRequest { status: Some(StatusCode::BAD_REQUEST), ..measured(none()) };
        assert_eq!(counted(bad), (0, 0, false));
        let list = EndedRequest { method: &Method::GET, path: "/v1/models", ..measured(none()) };
        assert_eq!(counted(list), (0, 0, false));
        let count = EndedRequest { path: "/v1/messages/count_tokens", ..measured(none()) };
        assert_eq!(counted(count), (0, 0, false));
    }

    #[test]
    fn a_model_with_a_price_costs_and_another_is_without_one() {
        let (input, output) = (MicroUsd(1_000_000), MicroUsd(2_000_000));
        let price = Price { input, output, cache_read: None, cache_write: None };
        let prices = Prices([("m-*".to_owned(), price)].into());
        let (usage, model) = measured(said(5, true)).usage(&prices);
        assert_eq!((usage.cost_micro_usd, usage.unpriced_tokens), (Some(MicroUsd(20)), 0));
        assert_eq!(model.as_deref(), Some("m-1"));
        let other = AnswerReport { model: None, ..said(5, true) };
        let (usage, model) = measured(other).usage(&prices);
        assert_eq!((usage.cost_micro_usd, usage.unpriced_tokens, model), (None, 15, None));
    }

    #[test]
    fn a_path_may_name_the_model() {
        let name = |path| model_of(path);
        assert_eq!(
            name("/v1beta/models/gemini-3:streamGenerateContent").as_deref(),
            Some("gemini-3")
        );
        for path in ["/v1/models/gpt-5", "/v1/models", "/v1/chat", "/models/:x"] {
            assert_eq!(name(path), None, "{path}");
        }
    }
}
