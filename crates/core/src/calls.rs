//! Calls in progress: how many a principal may have, and when each must end.

use std::collections::{BTreeSet, HashMap};

use ringback_proto::ids::CallId;
use ringback_proto::principal::PrincipalId;
use ringback_proto::{Error, Result};

use crate::deadline::Deadline;
use crate::time::{MonoMs, Now};

/// The calls in progress that wait for something.
#[derive(Debug)]
pub struct CallTable {
    live: HashMap<CallId, LiveCall>,
    by_deadline: BTreeSet<(MonoMs, CallId)>,
    per_principal: HashMap<PrincipalId, usize>,
    per_principal_max: usize,
}

#[derive(Debug)]
struct LiveCall {
    principal: PrincipalId,
    deadline: Deadline,
}

impl CallTable {
    /// Makes a table with a limit of calls in progress for each principal.
    #[must_use]
    pub fn new(per_principal_max: usize) -> Self {
        Self {
            live: HashMap::new(),
            by_deadline: BTreeSet::new(),
            per_principal: HashMap::new(),
            per_principal_max,
        }
    }

    /// Registers a new call.
    ///
    /// # Errors
    /// `busy` when the principal has too many calls in progress.
    pub fn admit(&mut self, id: CallId, principal: PrincipalId, deadline: Deadline) -> Result<()> {
        let n_live = self.per_principal.entry(principal).or_default();
        if *n_live >= self.per_principal_max {
            return Err(Error::busy("the number of your calls in progress"));
        }
        *n_live += 1;
        self.by_deadline.insert((deadline.at, id));
        self.live.insert(id, LiveCall { principal, deadline });
        Ok(())
    }

    /// Removes a call that has ended in any way.
    pub fn ended(&mut self, id: CallId) {
        let Some(live) = self.live.remove(&id) else { return };
        self.by_deadline.remove(&(live.deadline.at, id));
        if let Some(n_live) = self.per_principal.get_mut(&live.principal) {
            *n_live -= 1;
            if *n_live == 0 {
                self.per_principal.remove(&live.principal);
            }
        }
    }

    /// Gives a call this much time from now on, if that is more than it has left, but never more
    /// than `allowed_ms_max` in total. A call that has timed out stays so.
    pub fn extend(&mut self, id: CallId, now: Now, ms: u64, allowed_ms_max: u64) {
        let Some(live) = self.live.get_mut(&id) else { return };
        let admitted_at = live.deadline.at.saturating_sub(live.deadline.allowed_ms);
        let latest = admitted_at.saturating_add(allowed_ms_max);
        let at = now.mono.saturating_add(ms).min(latest);
        if at > live.deadline.at && self.by_deadline.remove(&(live.deadline.at, id)) {
            live.deadline.at = at;
            live.deadline.allowed_ms = at - admitted_at;
            self.by_deadline.insert((at, id));
        }
    }

    /// Returns the calls whose time is up, each once. They stay until they have ended.
    pub fn expire(&mut self, now: Now) -> Vec<CallId> {
        let mut expired = Vec::new();
        while let Some((at, id)) = self.by_deadline.first().copied() {
            if at > now.mono {
                break;
            }
            self.by_deadline.pop_first();
            expired.push(id);
        }
        expired
    }

    /// Returns when to call [`Self::expire`] next.
    #[must_use]
    pub fn next_deadline(&self) -> Option<MonoMs> {
        self.by_deadline.first().map(|(at, _)| *at)
    }

    /// Returns the number of calls in progress.
    #[must_use]
    pub fn len(&self) -> usize {
        self.live.len()
    }

    /// Returns whether no call is in progress.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.live.is_empty() && self.per_principal.is_empty() && self.by_deadline.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(mono: MonoMs) -> Now {
        Now { mono, unix: 0 }
    }

    fn call(number: u8) -> CallId {
        CallId::from_random([number; 16])
    }

    fn deadline(ms: u64) -> Deadline {
        Deadline::smallest(at(0), Some(ms), None, u64::MAX)
    }

    #[test]
    fn a_principal_over_its_limit_is_told_busy_and_others_are_not() {
        let mut table = CallTable::new(2);
        let other = PrincipalId::Token(ringback_proto::ids::TokenId::from_random([1; 16]));
        table.admit(call(1), PrincipalId::Local, deadline(5)).unwrap();
        table.admit(call(2), PrincipalId::Local, deadline(5)).unwrap();
        assert!(table.admit(call(3), PrincipalId::Local, deadline(5)).is_err());
        table.admit(call(4), other, deadline(5)).unwrap();
        table.ended(call(1));
        table.admit(call(3), PrincipalId::Local, deadline(5)).unwrap();
    }

    #[test]
    fn progress_moves_a_deadline_on_but_never_past_the_limit_or_after_it_was_told() {
        let mut table = CallTable::new(10);
        table.admit(call(1), PrincipalId::Local, deadline(30)).unwrap();
        table.extend(call(1), at(20), 30, 100);
        assert_eq!(table.next_deadline(), Some(50));
        table.extend(call(1), at(20), 10, 100);
        assert_eq!(table.next_deadline(), Some(50));
        table.extend(call(1), at(45), 90, 100);
        assert_eq!(table.next_deadline(), Some(100));
        assert_eq!(table.expire(at(100)), [call(1)]);
        table.extend(call(1), at(100), 30, 1000);
        assert_eq!(table.next_deadline(), None);
    }

    #[test]
    fn each_call_expires_once_in_the_order_of_deadlines_and_nothing_is_left() {
        let mut table = CallTable::new(10);
        for (id, ms) in [(1, 30), (2, 10), (3, 20)] {
            table.admit(call(id), PrincipalId::Local, deadline(ms)).unwrap();
        }
        assert_eq!(table.next_deadline(), Some(10));
        assert_eq!(table.expire(at(9)), []);
        assert_eq!(table.expire(at(20)), [call(2), call(3)]);
        assert_eq!(table.expire(at(20)), []);
        for id in 1..=3 {
            table.ended(call(id));
            table.ended(call(id));
        }
        assert!(table.is_empty());
    }
}
