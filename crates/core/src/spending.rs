//! The spending of a session and its descendants: its limits, what was spent, and the pause at a
//! limit, which lasts until it is answered and during which nothing more is spent.

use ringback_proto::money::MicroUsd;
use ringback_proto::record::SpendingRecord;
use ringback_proto::request::{ModelUsage, SpendLimits};

use crate::time::{MonoMs, Now};

/// The answer that raises the limit by the same amount again.
pub const MORE: &str = "more";
/// The answer that ends the work.
pub const END: &str = "end";

/// A limit that can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Tokens.
    Tokens,
    /// Working time.
    Time,
    /// Money.
    Usd,
    /// A session limited in money requested a model without a price.
    Prices,
}

/// The request for approval when a limit is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The limit.
    pub limit: Limit,
    /// The id to answer with.
    pub request_id: String,
    /// When the request expires without an answer.
    pub until: MonoMs,
    /// The same as Unix time, for people.
    pub until_unix: u64,
}

/// Whether work may continue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Yes.
    Goes,
    /// Not before an answer; the request is to be made now.
    Asks(Question),
    /// Not before an answer; the request was made before.
    Waits,
    /// No: more was not approved.
    Refused,
}

/// The meaning of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitAnswer {
    /// The work continues.
    More,
    /// The work ends.
    End,
    /// Not one of the offered answers.
    Unknown,
}

/// The account of a session and its descendants.
#[derive(Debug)]
pub struct Ledger {
    spent: SpendingRecord,
    /// The amount each limit is raised by.
    steps: SpendLimits,
    /// Whether models without a price are allowed.
    may_be_unpriced: bool,
    standing: LedgerState,
}

#[derive(Debug)]
enum LedgerState {
    Open,
    Asked(Question),
    Closed,
}

impl Limit {
    /// Returns its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tokens => "max_tokens",
            Self::Time => "max_time",
            Self::Usd => "max_usd",
            Self::Prices => "prices",
        }
    }
}

impl Ledger {
    /// Makes an account that continues from earlier spending.
    #[must_use]
    pub const fn new(spent: SpendingRecord) -> Self {
        Self { steps: spent.limits, spent, may_be_unpriced: false, standing: LedgerState::Open }
    }

    /// Returns the limits and the amounts spent.
    #[must_use]
    pub const fn record(&self) -> SpendingRecord {
        self.spent
    }

    /// Returns the open request, if any.
    #[must_use]
    pub const fn question(&self) -> Option<&Question> {
        match &self.standing {
            LedgerState::Asked(question) => Some(question),
            LedgerState::Open | LedgerState::Closed => None,
        }
    }

    /// Adds model usage.
    pub fn spend(&mut self, usage: ModelUsage) {
        self.spent.usage = self.spent.usage.plus(usage);
    }

    /// Adds working time of agents. Time during an open request does not count.
    pub const fn work(&mut self, ms: u64) {
        if self.question().is_none() {
            self.spent.working_ms = self.spent.working_ms.saturating_add(ms);
        }
    }

    /// Returns the first limit that is reached.
    #[must_use]
    pub fn reached(&self) -> Option<Limit> {
        let SpendingRecord { limits, usage, working_ms } = &self.spent;
        let is_reached = |max: Option<u64>, spent: u64| max.is_some_and(|max| spent >= max);
        let cost = usage.cost_micro_usd.unwrap_or_default();
        if is_reached(limits.max_tokens, usage.tokens()) {
            Some(Limit::Tokens)
        } else if is_reached(limits.max_time_ms, *working_ms) {
            Some(Limit::Time)
        } else if limits.max_micro_usd.is_some_and(|max| cost >= max) {
            Some(Limit::Usd)
        } else if limits.max_micro_usd.is_some()
            && usage.unpriced_tokens > 0
            && !self.may_be_unpriced
        {
            Some(Limit::Prices)
        } else {
            None
        }
    }

    /// Checks whether work may continue. If approval is needed, the request gets this id and waits
    /// this long for an answer.
    pub fn check(&mut self, now: Now, wait_ms: u64, request_id: String) -> Verdict {
        match &self.standing {
            LedgerState::Closed => return Verdict::Refused,
            LedgerState::Asked(_) => return Verdict::Waits,
            LedgerState::Open => {}
        }
        let Some(limit) = self.reached() else { return Verdict::Goes };
        let (until, until_unix) =
            (now.mono.saturating_add(wait_ms), now.unix.saturating_add(wait_ms));
        let question = Question { limit, request_id, until, until_unix };
        self.standing = LedgerState::Asked(question.clone());
        Verdict::Asks(question)
    }

    /// Handles an answer. `None` if no request with this id is open.
    pub fn answer(&mut self, request_id: &str, option: Option<&str>) -> Option<LimitAnswer> {
        let question = self.question().filter(|question| question.request_id == request_id)?;
        let limit = question.limit;
        Some(match option {
            Some(MORE) => {
                self.raise(limit);
                self.standing = LedgerState::Open;
                LimitAnswer::More
            }
            Some(END) | None => {
                self.standing = LedgerState::Closed;
                LimitAnswer::End
            }
            Some(_) => LimitAnswer::Unknown,
        })
    }

    /// Returns whether the request expired; then nothing more is spent.
    pub fn expire(&mut self, now: Now) -> bool {
        let is_late = self.question().is_some_and(|question| question.until <= now.mono);
        if is_late {
            self.standing = LedgerState::Closed;
        }
        is_late
    }

    /// Allows a new request for approval, because the caller wants something new.
    pub fn reopen(&mut self) {
        if matches!(self.standing, LedgerState::Closed) {
            self.standing = LedgerState::Open;
        }
    }

    /// Stops all spending, whatever is requested.
    pub fn close(&mut self) {
        self.standing = LedgerState::Closed;
    }

    /// Raises a limit by its initial amount; from the amount spent if that is higher.
    fn raise(&mut self, limit: Limit) {
        let SpendingRecord { limits, usage, working_ms } = &mut self.spent;
        let raised = |max: Option<u64>, step: Option<u64>, spent: u64| {
            let (max, step) = (max?, step?);
            let more = max.saturating_add(step);
            Some(if more > spent { more } else { spent.saturating_add(step) })
        };
        match limit {
            Limit::Tokens => {
                limits.max_tokens =
                    raised(limits.max_tokens, self.steps.max_tokens, usage.tokens());
            }
            Limit::Time => {
                limits.max_time_ms =
                    raised(limits.max_time_ms, self.steps.max_time_ms, *working_ms);
            }
            Limit::Usd => {
                let cost = usage.cost_micro_usd.unwrap_or_default();
                let (max, step) = (limits.max_micro_usd, self.steps.max_micro_usd);
                let more = raised(max.map(|max| max.0), step.map(|step| step.0), cost.0);
                limits.max_micro_usd = more.map(MicroUsd);
            }
            Limit::Prices => self.may_be_unpriced = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(mono: u64) -> Now {
        Now { mono, unix: mono + 1000 }
    }

    fn ledger(limits: SpendLimits) -> Ledger {
        Ledger::new(SpendingRecord { limits, ..SpendingRecord::default() })
    }

    fn tokens(max: u64) -> Ledger {
        ledger(SpendLimits { max_tokens: Some(max), ..SpendLimits::default() })
    }

    fn spent(tokens: u64) -> ModelUsage {
        ModelUsage {
            input_tokens: tokens / 2,
            output_tokens: tokens.div_ceil(2),
            ..Default::default()
        }
    }

    #[track_caller]
    fn asked(ledger: &mut Ledger, now: u64, id: &str) -> Limit {
        match ledger.check(at(now), 50, id.to_owned()) {
            Verdict::Asks(question) => question.limit,
            other @ (Verdict::Goes | Verdict::Waits | Verdict::Refused) => panic!("{other:?}"),
        }
    }

    /// REQ: "enforces `--max-tokens` by pausing the session and asking".
    #[test]
    fn a_limit_that_is_reached_is_asked_about_once() {
        let mut ledger = tokens(100);
        ledger.spend(spent(99));
        assert_eq!(ledger.check(at(0), 50, "a".to_owned()), Verdict::Goes);
        ledger.spend(spent(1));
        assert_eq!(asked(&mut ledger, 1, "b"), Limit::Tokens);
        assert_eq!(ledger.check(at(2), 50, "c".to_owned()), Verdict::Waits);
        assert_eq!(ledger.question().unwrap().until_unix, 1051);
        assert_eq!(ledger.answer("c", Some(MORE)), None, "that was not requested");
        assert_eq!(ledger.answer("b", Some("perhaps")), Some(LimitAnswer::Unknown));
        assert_eq!(ledger.answer("b", Some(MORE)), Some(LimitAnswer::More));
        assert_eq!(ledger.record().limits.max_tokens, Some(200));
        assert_eq!(ledger.check(at(3), 50, "d".to_owned()), Verdict::Goes);
        ledger.spend(spent(500));
        asked(&mut ledger, 4, "e");
        ledger.answer("e", Some(MORE));
        assert_eq!(
            ledger.record().limits.max_tokens,
            Some(700),
            "raised by the initial amount from the amount spent"
        );
    }

    /// Rule: without an answer in time nothing more is spent, until the caller wants something new.
    #[test]
    fn a_question_that_nobody_answers_is_answered_with_no() {
        for by in ["time", "end", "taken back"] {
            let mut ledger = tokens(1);
            ledger.spend(spent(1));
            asked(&mut ledger, 0, "a");
            assert!(!ledger.expire(at(49)));
            match by {
                "time" => assert!(ledger.expire(at(50))),
                "end" => assert_eq!(ledger.answer("a", Some(END)), Some(LimitAnswer::End)),
                _ => assert_eq!(ledger.answer("a", None), Some(LimitAnswer::End)),
            }
            assert!(!ledger.expire(at(99)), "once");
            assert_eq!(ledger.check(at(99), 50, "b".to_owned()), Verdict::Refused);
            assert_eq!(ledger.answer("a", Some(MORE)), None, "too late");
            ledger.reopen();
            asked(&mut ledger, 100, "c");
            ledger.reopen();
            assert!(ledger.question().is_some(), "an open request stays open");
        }
    }

    /// Rule: only working time of agents counts; time during an open request does not.
    #[test]
    fn time_counts_only_while_nobody_is_asked() {
        let mut ledger = ledger(SpendLimits { max_time_ms: Some(10), ..SpendLimits::default() });
        ledger.work(9);
        assert_eq!(ledger.reached(), None);
        ledger.work(3);
        assert_eq!(asked(&mut ledger, 0, "a"), Limit::Time);
        ledger.work(1000);
        assert_eq!(ledger.record().working_ms, 12);
        ledger.answer("a", Some(MORE));
        assert_eq!(ledger.record().limits.max_time_ms, Some(20));
        ledger.work(8);
        assert_eq!(asked(&mut ledger, 1, "b"), Limit::Time);
    }

    /// Rule: a model without a price in a session limited in money needs approval; its cost is not
    /// guessed.
    #[test]
    fn a_model_without_a_price_is_asked_about_where_money_is_limited() {
        let max = Some(MicroUsd(50));
        let mut ledger = ledger(SpendLimits { max_micro_usd: max, ..SpendLimits::default() });
        let cost = |micros| ModelUsage { cost_micro_usd: Some(MicroUsd(micros)), ..spent(1) };
        ledger.spend(cost(49));
        assert_eq!(ledger.reached(), None);
        ledger.spend(ModelUsage { unpriced_tokens: 1, ..spent(1) });
        assert_eq!(asked(&mut ledger, 0, "a"), Limit::Prices);
        ledger.answer("a", Some(MORE));
        assert_eq!(ledger.reached(), None, "once is enough");
        ledger.spend(cost(1));
        assert_eq!(asked(&mut ledger, 0, "b"), Limit::Usd);
        ledger.answer("b", Some(MORE));
        assert_eq!(ledger.record().limits.max_micro_usd, Some(MicroUsd(100)));
        let mut free = tokens(1_000);
        free.spend(ModelUsage { unpriced_tokens: 1, ..spent(1) });
        assert_eq!(free.reached(), None);
    }

    /// Rule: an account continues from what was spent before a restart.
    #[test]
    fn what_was_spent_before_counts() {
        let mut before = tokens(100);
        before.spend(spent(100));
        let mut after = Ledger::new(before.record());
        assert_eq!(asked(&mut after, 0, "a"), Limit::Tokens);
        after.close();
        assert_eq!(after.check(at(0), 50, "b".to_owned()), Verdict::Refused);
    }
}
