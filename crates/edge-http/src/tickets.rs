//! Tickets: each opens one stream, once, within a minute. They appear in URLs, where a token must
//! not, so a ticket found in a proxy's log is worth little.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use ringback_broker::{Credential, Now};
use ringback_proto::secret::Secret;
use ringback_proto::{Error, ErrorKind, Result};
use ringback_sync::lock;

/// A page opens its stream right after it gets the ticket.
pub(crate) const TICKET_MS: u64 = 60_000;

/// Far more than the pages that open a stream in one minute; at most about 100 KiB.
const TICKETS_MAX: usize = 1024;

/// So that no single principal uses up the table.
const TICKETS_PER_PRINCIPAL_MAX: usize = 128;

/// Lets people distinguish a ticket from a token.
const PREFIX: &str = "tkt_";

/// The issued and unused tickets, by hash.
#[derive(Debug, Default)]
pub(crate) struct Tickets(Mutex<HashMap<[u8; 32], Ticket>>);

#[derive(Debug)]
struct Ticket {
    credential: Credential,
    good_until: u64,
}

impl Tickets {
    /// Issues a ticket to a caller.
    pub(crate) fn issue(&self, credential: Credential, now: Now) -> Result<Secret> {
        let random: [u8; 32] = rand::random();
        let text = format!("{PREFIX}{}", blake3::Hash::from_bytes(random).to_hex());
        let mut tickets = self.lock();
        tickets.retain(|_, ticket| ticket.good_until > now.mono);
        let id = credential.id();
        let n_own = tickets.values().filter(|ticket| ticket.credential.id() == id).count();
        if n_own >= TICKETS_PER_PRINCIPAL_MAX {
            let message = format!("{n_own} of your tickets are unused; use one or wait");
            return Err(Error::new(ErrorKind::RateLimited, message));
        }
        if tickets.len() >= TICKETS_MAX {
            return Err(Error::busy("the ticket table"));
        }
        let good_until = now.mono.saturating_add(TICKET_MS);
        tickets.insert(hash(&text), Ticket { credential, good_until });
        Ok(Secret::new(text))
    }

    /// Returns the owner of a ticket. The ticket is used up, whatever becomes of the request.
    pub(crate) fn redeem(&self, text: &str, now: Now) -> Option<Credential> {
        let ticket = self.lock().remove(&hash(text))?;
        (ticket.good_until > now.mono).then_some(ticket.credential)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<[u8; 32], Ticket>> {
        lock(&self.0)
    }
}

/// The table is searched by hash, so its timing reveals nothing about a ticket.
fn hash(text: &str) -> [u8; 32] {
    *blake3::hash(text.as_bytes()).as_bytes()
}

#[cfg(test)]
mod tests {
    use ringback_broker::{Credential, Now};
    use ringback_proto::ErrorKind;

    use super::{TICKET_MS, TICKETS_PER_PRINCIPAL_MAX, Tickets};

    fn at(mono: u64) -> Now {
        Now { mono, unix: 0 }
    }

    /// Rule: a ticket opens one stream, within a minute.
    #[test]
    fn a_ticket_is_good_once_and_for_a_minute() {
        let tickets = Tickets::default();
        let issue = |mono| tickets.issue(Credential::local(), at(mono)).unwrap();
        let (first, second) = (issue(0), issue(0));
        assert_ne!(first.expose(), second.expose());
        assert!(tickets.redeem(first.expose(), at(TICKET_MS - 1)).is_some());
        assert!(tickets.redeem(first.expose(), at(TICKET_MS - 1)).is_none());
        assert!(tickets.redeem(second.expose(), at(TICKET_MS)).is_none());
        assert!(tickets.redeem("tkt_x", at(0)).is_none());
    }

    #[test]
    fn a_principal_has_so_many_and_old_ones_make_room() {
        let tickets = Tickets::default();
        let issue = |mono| tickets.issue(Credential::local(), at(mono));
        for _ in 0..TICKETS_PER_PRINCIPAL_MAX {
            issue(0).unwrap();
        }
        assert_eq!(issue(1).unwrap_err().kind(), ErrorKind::RateLimited);
        issue(TICKET_MS).unwrap();
    }
}
