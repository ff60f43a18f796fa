//! A caller's view of its sessions: one stream of the calls on all its lines of a session.

use std::sync::Arc;
use std::time::Duration;

use ringback_core::lines::{AttendanceNo, Attendee, Delivery, PartyMessage, StreamMode};
use ringback_proto::Result;
use ringback_proto::ids::SessionId;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{Callers, LineCall, Lines};
use crate::identity::Credential;
use crate::sync::lock;

/// The most calls that one poll returns; the next poll returns the others.
const POLL_CALLS_MAX: usize = 64;
/// A poll with this many bytes of arguments returns no further call.
const POLL_BYTES_MAX: usize = 8 << 20;
/// A call that an earlier poll returned comes again after this time, in case that answer was lost.
/// Not immediately: a caller that is still busy with it would poll in a tight loop.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// An open stream of a caller; dropping it closes it.
#[derive(Debug)]
pub struct CallerStream {
    lines: Arc<Lines>,
    credential: Credential,
    number: AttendanceNo,
    bell: Arc<Notify>,
}

impl Callers {
    /// Opens a stream of the calls for this principal's callers in a session: those named, or all,
    /// including those declared later. A call that an earlier stream delivered and that is not
    /// answered comes again under its id.
    ///
    /// # Errors
    /// `unauthenticated` once the token is no longer valid, `busy` with too many streams open.
    pub fn open(
        &self,
        credential: &Credential,
        session: SessionId,
        caller_ids: Option<Vec<Arc<str>>>,
        holding: StreamMode,
    ) -> Result<CallerStream> {
        let now = self.0.kernel.now();
        let principal = credential.principal(now)?;
        let bell = Arc::new(Notify::new());
        let attend = Attendee { session, caller_ids, holding, bell: Arc::clone(&bell) };
        let mut effects = Vec::new();
        let number = lock(&self.0.table).callers().attend(principal.id, attend, &mut effects);
        self.0.carry_out(effects);
        let (lines, credential) = (Arc::clone(&self.0), credential.clone());
        Ok(CallerStream { lines, credential, number: number?, bell })
    }

    /// Returns the calls that wait for this principal's callers in a session: immediately if there
    /// are new ones, else as soon as one comes, or none after `wait`. Unanswered calls that an
    /// earlier poll or another stream delivered come again, a little later.
    ///
    /// # Errors
    /// As [`Self::open`].
    ///
    /// # Cancel safety
    /// Dropping it loses nothing: calls it has taken come again.
    pub async fn poll(
        &self,
        credential: &Credential,
        session: SessionId,
        caller_ids: Option<Vec<Arc<str>>>,
        wait: Duration,
    ) -> Result<Vec<Arc<LineCall>>> {
        let only = caller_ids.clone();
        let mut stream = self.open(credential, session, caller_ids, StreamMode::Polling)?;
        let mut polled = PollBatch::default();
        let started = Instant::now();
        loop {
            while !polled.is_full()
                && let Some(delivery) = stream.take()
            {
                polled.add(delivery);
            }
            if !polled.fresh.is_empty() {
                break;
            }
            let now = Instant::now();
            if now >= started + wait.min(AGAIN_AFTER) {
                // A poll is a view of the one queue: it also shows calls that another stream has.
                polled.add_waiting(self.pending(credential, session)?, only.as_deref());
                if !polled.again.is_empty() || now >= started + wait {
                    break;
                }
            }
            tokio::select! {
                biased;
                delivery = stream.hear() => match delivery {
                    Some(delivery) => polled.add(delivery),
                    None => break,
                },
                () = tokio::time::sleep_until((now + AGAIN_AFTER).min(started + wait)) => {}
            }
        }
        Ok(polled.calls(|call| stream.is_pending(call)))
    }
}

impl CallerStream {
    /// Returns the next message to the caller. A call that it returns counts as delivered. `None`
    /// when the session or the caller's token has ended, or the broker stops.
    ///
    /// # Cancel safety
    /// Dropping it loses nothing: nothing is taken before it returns.
    pub async fn next(&mut self) -> Option<PartyMessage<Arc<LineCall>>> {
        self.hear().await.map(|delivery| delivery.post)
    }

    async fn hear(&mut self) -> Option<Delivery<Arc<LineCall>>> {
        loop {
            if let Some(delivery) = self.take() {
                return Some(delivery);
            }
            if !lock(&self.lines.table).callers().is_attending(self.number) {
                return None;
            }
            tokio::select! {
                biased;
                () = self.lines.kernel.stopping.cancelled() => return None,
                () = self.credential.ended() => return None,
                () = self.bell.notified() => {}
            }
        }
    }

    /// Returns what is available now.
    fn take(&self) -> Option<Delivery<Arc<LineCall>>> {
        let now = self.lines.kernel.now();
        if !self.credential.is_valid(now) {
            return None;
        }
        let delivery = lock(&self.lines.table).callers().next(self.number)?;
        if let PartyMessage::Call(call) = &delivery.post {
            self.lines.kernel.auditor.delivered(now, call.id);
        }
        Some(delivery)
    }

    fn is_pending(&self, call: &LineCall) -> bool {
        let owner = self.credential.id();
        lock(&self.lines.table).waiting(owner, &call.request_id).is_ok()
    }
}

impl Drop for CallerStream {
    fn drop(&mut self) {
        let mut effects = Vec::new();
        lock(&self.lines.table).callers().leave(self.lines.kernel.now(), self.number, &mut effects);
        self.lines.carry_out(effects);
        self.lines.kernel.alarm.ring();
    }
}

/// The calls that a poll has gathered.
#[derive(Debug, Default)]
struct PollBatch {
    fresh: Vec<Arc<LineCall>>,
    /// Calls that were delivered before.
    again: Vec<Arc<LineCall>>,
    n_bytes: usize,
}

impl PollBatch {
    fn is_full(&self) -> bool {
        self.fresh.len() >= POLL_CALLS_MAX || self.n_bytes >= POLL_BYTES_MAX
    }

    fn add(&mut self, delivery: Delivery<Arc<LineCall>>) {
        match delivery.post {
            PartyMessage::Call(call) if delivery.is_again => self.again.push(call),
            PartyMessage::Call(call) => {
                self.n_bytes += call.arguments.bytes.len();
                self.fresh.push(call);
            }
            // It has ended, and is left out like all that have.
            PartyMessage::Cancel { .. } => {}
        }
    }

    /// Returns the calls that wait for an answer, wherever they were delivered.
    fn add_waiting(&mut self, waiting: Vec<Arc<LineCall>>, only: Option<&[Arc<str>]>) {
        for call in waiting {
            let is_meant =
                only.is_none_or(|only| only.iter().any(|wanted| call.caller_id() == Some(wanted)));
            if is_meant && !self.again.iter().any(|known| known.id == call.id) {
                self.again.push(call);
            }
        }
    }

    /// Returns the calls that still wait for an answer: the new ones, then as many others as fit.
    fn calls(self, is_pending: impl Fn(&LineCall) -> bool) -> Vec<Arc<LineCall>> {
        let Self { fresh, again, mut n_bytes } = self;
        let mut calls = fresh;
        for call in again {
            if calls.len() >= POLL_CALLS_MAX || n_bytes >= POLL_BYTES_MAX {
                break;
            }
            n_bytes += call.arguments.bytes.len();
            calls.push(call);
        }
        calls.retain(|call| is_pending(call));
        calls
    }
}
