//! Repeats: the same request id from the same principal is the same call.

use std::collections::{HashMap, VecDeque};

use ringback_proto::ids::RequestId;
use ringback_proto::principal::PrincipalId;
use ringback_proto::record::RepeatKey;
use ringback_proto::{Error, ErrorKind, Result};

use crate::time::{MonoMs, Now};

/// How long a call without a job is remembered after it started.
pub const WINDOW_MS: u64 = 10 * 60 * 1000;

type Key = (PrincipalId, RequestId);

/// Whether a call is new or a repeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Occurrence<T> {
    /// The first call with this id: run it.
    First,
    /// A repeat: its answer, or where the answer will appear.
    Again(T),
}

/// The calls of the last minutes. `T` is where the shell keeps a call's answer.
#[derive(Debug)]
pub struct RepeatTable<T> {
    entries: HashMap<Key, Entry<T>>,
    /// In order of arrival, which is also the order of forgetting.
    order: VecDeque<(MonoMs, Key)>,
    entries_max: usize,
}

#[derive(Debug)]
struct Entry<T> {
    key: RepeatKey,
    answer: T,
    began: MonoMs,
}

impl<T: Clone> RepeatTable<T> {
    /// Makes a table of limited size. When it is full, the oldest call is forgotten early: refusing
    /// new work for the sake of an unlikely repeat would be worse.
    #[must_use]
    pub fn new(entries_max: usize) -> Self {
        Self { entries: HashMap::new(), order: VecDeque::new(), entries_max }
    }

    /// Registers a call. `answer` is kept if it is the first.
    ///
    /// # Errors
    /// `conflict` when the id was used for another call.
    pub fn begin(
        &mut self,
        now: Now,
        principal: PrincipalId,
        repeat: RepeatKey,
        answer: T,
    ) -> Result<Occurrence<T>> {
        self.forget(now);
        let key = (principal, repeat.request_id);
        if let Some(entry) = self.entries.get(&key) {
            return same_body(&entry.key, &repeat)
                .map(|()| Occurrence::Again(entry.answer.clone()));
        }
        self.order.push_back((now.mono, key));
        self.entries.insert(key, Entry { key: repeat, answer, began: now.mono });
        Ok(Occurrence::First)
    }

    /// Forgets a call that was refused before it started, so that the same id may try again.
    pub fn withdraw(&mut self, principal: PrincipalId, request_id: RequestId) {
        self.entries.remove(&(principal, request_id));
    }

    /// Returns the number of remembered calls.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether no call is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Forgets calls past their window or over the limit.
    pub fn forget(&mut self, now: Now) {
        while let Some((began, key)) = self.order.front().copied() {
            let is_over = self.entries.len() >= self.entries_max;
            if !is_over && now.mono.saturating_sub(began) < WINDOW_MS {
                return;
            }
            self.order.pop_front();
            // A withdrawn id may have started again since, and then has a later position.
            if self.entries.get(&key).is_some_and(|entry| entry.began == began) {
                self.entries.remove(&key);
            }
        }
    }
}

/// Checks whether a repeat has the same body as the call it repeats.
///
/// # Errors
/// `conflict` when it does not.
pub fn same_body(first: &RepeatKey, again: &RepeatKey) -> Result<()> {
    if first.body_hash == again.body_hash {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Conflict,
        format!("request id {} was used for another call; use a new one", again.request_id),
    ))
}

#[cfg(test)]
mod tests {
    use ringback_proto::ids::BlobHash;

    use super::*;

    const LOCAL: PrincipalId = PrincipalId::Local;

    fn at(mono: MonoMs) -> Now {
        Now { mono, unix: 0 }
    }

    fn repeat(id: u8, body: u8) -> RepeatKey {
        RepeatKey {
            request_id: RequestId::from_bytes([id; 16]),
            body_hash: BlobHash::from_bytes([body; 32]),
        }
    }

    #[test]
    fn the_same_id_is_the_same_call_and_another_body_is_a_conflict() {
        let mut table = RepeatTable::new(10);
        assert_eq!(table.begin(at(0), LOCAL, repeat(1, 1), 'a').unwrap(), Occurrence::First);
        assert_eq!(table.begin(at(1), LOCAL, repeat(1, 1), 'b').unwrap(), Occurrence::Again('a'));
        let error = table.begin(at(2), LOCAL, repeat(1, 2), 'c').unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert_eq!(table.begin(at(3), LOCAL, repeat(2, 2), 'd').unwrap(), Occurrence::First);
    }

    #[test]
    fn a_call_is_forgotten_after_its_window() {
        let mut table = RepeatTable::new(10);
        assert_eq!(table.begin(at(0), LOCAL, repeat(1, 1), 'a').unwrap(), Occurrence::First);
        let last = table.begin(at(WINDOW_MS - 1), LOCAL, repeat(1, 1), 'b').unwrap();
        assert_eq!(last, Occurrence::Again('a'));
        assert_eq!(
            table.begin(at(WINDOW_MS), LOCAL, repeat(1, 9), 'c').unwrap(),
            Occurrence::First
        );
    }

    #[test]
    fn a_refused_call_may_try_again_and_keeps_its_own_window() {
        let mut table = RepeatTable::new(10);
        assert_eq!(table.begin(at(0), LOCAL, repeat(1, 1), 'a').unwrap(), Occurrence::First);
        table.withdraw(LOCAL, repeat(1, 1).request_id);
        assert_eq!(table.begin(at(50), LOCAL, repeat(1, 1), 'b').unwrap(), Occurrence::First);
        table.forget(at(WINDOW_MS));
        assert_eq!(table.len(), 1, "the second start is still within its window");
    }

    #[test]
    fn the_table_never_grows_past_its_limit() {
        let mut table = RepeatTable::new(3);
        for id in 0..100 {
            assert_eq!(table.begin(at(0), LOCAL, repeat(id, 1), id).unwrap(), Occurrence::First);
            assert!(table.len() <= 3);
        }
        table.forget(at(WINDOW_MS));
        assert!(table.is_empty());
    }
}
