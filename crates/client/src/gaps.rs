//! Detects missed events. Pure: it is passed what arrives.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use ringback_proto::event::Heads;

/// Events of one topic that did not arrive. `event_poll` still has them for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// The topic.
    pub topic: String,
    /// The missed `topic_seq` numbers.
    pub missed: RangeInclusive<u64>,
}

/// The last number of each topic in an epoch. A new topic has no past: events before the
/// subscription are not a gap.
#[derive(Debug, Default)]
pub(crate) struct Gaps {
    epoch: Option<u64>,
    last: BTreeMap<String, u64>,
}

impl Gaps {
    /// Records an event and returns the numbers missing before it.
    pub(crate) fn event(&mut self, epoch: u64, topic: &str, topic_seq: u64) -> Option<Gap> {
        self.enter(epoch);
        self.advance(topic, topic_seq, topic_seq.saturating_sub(1))
    }

    /// Records the daemon's last numbers and returns what is missing up to them, among the topics
    /// that `wanted` accepts.
    pub(crate) fn heads(&mut self, heads: &Heads, wanted: impl Fn(&str) -> bool) -> Vec<Gap> {
        self.enter(heads.epoch);
        heads
            .topics
            .iter()
            .filter(|(topic, _)| wanted(topic))
            .filter_map(|(topic, last)| self.advance(topic, *last, *last))
            .collect()
    }

    /// Starts a new epoch: a restarted daemon counts from 1 again, and we should have received
    /// everything since then.
    fn enter(&mut self, epoch: u64) {
        if self.epoch.replace(epoch).is_some_and(|before| before != epoch) {
            self.last.values_mut().for_each(|last| *last = 0);
        }
    }

    /// Moves a topic to `now`; everything after its last number up to `expected` is missing.
    fn advance(&mut self, topic: &str, now: u64, expected: u64) -> Option<Gap> {
        let Some(last) = self.last.get_mut(topic) else {
            self.last.insert(topic.to_owned(), now);
            return None;
        };
        let missed = *last + 1..=expected;
        *last = now.max(*last);
        (!missed.is_empty()).then(|| Gap { topic: topic.to_owned(), missed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heads(epoch: u64, topics: &[(&str, u64)]) -> Heads {
        let topics = topics.iter().map(|(topic, last)| ((*topic).to_owned(), *last)).collect();
        Heads { epoch, seq: 0, at_ms: 0, topics }
    }

    fn gap(topic: &str, missed: RangeInclusive<u64>) -> Gap {
        Gap { topic: topic.to_owned(), missed }
    }

    #[test]
    fn a_jump_in_a_topic_is_a_gap_and_its_first_event_is_none() {
        let mut gaps = Gaps::default();
        assert_eq!(gaps.event(1, "a", 7), None);
        assert_eq!(gaps.event(1, "b", 3), None);
        assert_eq!(gaps.event(1, "a", 8), None);
        assert_eq!(gaps.event(1, "a", 11), Some(gap("a", 9..=10)));
        assert_eq!(gaps.event(1, "a", 12), None);
    }

    /// Rule: a subscriber notices a missed event even if none follows it.
    #[test]
    fn the_heads_tell_of_a_missed_last_event_once() {
        let mut gaps = Gaps::default();
        let all = |_: &str| true;
        assert_eq!(gaps.heads(&heads(1, &[("a", 5)]), all), []);
        assert_eq!(gaps.event(1, "a", 6), None);
        assert_eq!(gaps.heads(&heads(1, &[("a", 8)]), all), [gap("a", 7..=8)]);
        assert_eq!(gaps.heads(&heads(1, &[("a", 8)]), all), []);
        assert_eq!(gaps.event(1, "a", 9), None);
    }

    #[test]
    fn topics_that_are_not_subscribed_to_have_no_gaps() {
        let mut gaps = Gaps::default();
        let only_a = |topic: &str| topic == "a";
        assert_eq!(gaps.heads(&heads(1, &[("a", 1), ("b", 1)]), only_a), []);
        assert_eq!(gaps.heads(&heads(1, &[("a", 1), ("b", 9)]), only_a), []);
    }

    #[test]
    fn after_a_restart_everything_from_the_first_event_on_counts() {
        let mut gaps = Gaps::default();
        assert_eq!(gaps.event(1, "a", 40), None);
        assert_eq!(gaps.event(2, "a", 3), Some(gap("a", 1..=2)));
        assert_eq!(gaps.event(2, "a", 4), None);
    }

    #[test]
    fn heads_that_are_older_than_the_last_event_change_nothing() {
        let mut gaps = Gaps::default();
        assert_eq!(gaps.event(1, "a", 5), None);
        assert_eq!(gaps.heads(&heads(1, &[("a", 4)]), |_| true), []);
        assert_eq!(gaps.event(1, "a", 6), None);
    }
}
