//! Calls that were answered with a question and wait to be repeated with the answer. Each has a
//! name that cannot be guessed, valid once, for a limited time, for its own caller.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use ringback_proto::principal::PrincipalId;
use ringback_proto::request::SessionEventsRequest;
use ringback_sync::lock;
use tokio::time::Instant;
use uuid::Uuid;

use crate::questions::Question;
use crate::tools::{Outcome, Subject};

/// How long a person may take. The question itself waits longer, for others.
const KEPT: Duration = Duration::from_secs(3600);
/// Waiting calls per caller; the oldest makes room.
const PER_CALLER_MAX: usize = 64;
/// Waiting calls in total. A call beyond that is not answered with a question, and continues.
const MAX: usize = 4096;

/// A waiting call.
#[derive(Debug)]
pub(crate) struct ParkedCall {
    pub(super) caller: PrincipalId,
    pub(super) tool: String,
    pub(super) question: Question,
    pub(super) stay: SubscriptionRequest,
}

/// What a call needs to stay with a session.
#[derive(Debug)]
pub(super) struct SubscriptionRequest {
    pub(super) outcome: Outcome,
    /// The request to repeat at the end, for the final state.
    pub(super) again: Option<SessionEventsRequest>,
    pub(super) subject: Subject,
}

/// All waiting calls.
#[derive(Debug, Default)]
pub(crate) struct ParkedCalls(Mutex<HashMap<String, (Instant, ParkedCall)>>);

impl ParkedCalls {
    /// Keeps a call and returns its name; returns the call if there is no room.
    pub(super) fn keep(&self, parked: ParkedCall) -> Result<String, Box<ParkedCall>> {
        let now = Instant::now();
        let mut all = self.lock();
        all.retain(|_, (until, _)| *until > now);
        let own = || all.iter().filter(|(_, (_, kept))| kept.caller == parked.caller);
        if own().count() >= PER_CALLER_MAX {
            let oldest = own().min_by_key(|(_, (until, _))| *until).map(|(name, _)| name.clone());
            oldest.and_then(|oldest| all.remove(&oldest));
        }
        if all.len() >= MAX {
            return Err(Box::new(parked));
        }
        let name = Uuid::new_v4().simple().to_string();
        all.insert(name.clone(), (now + KEPT, parked));
        Ok(name)
    }

    /// Takes a call that its own caller repeats.
    pub(super) fn take(&self, name: &str, caller: PrincipalId, tool: &str) -> Option<ParkedCall> {
        let mut all = self.lock();
        let (until, parked) = all.get(name)?;
        let is_own = parked.caller == caller && parked.tool == tool && *until > Instant::now();
        is_own.then_some(())?;
        all.remove(name).map(|(_, parked)| parked)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, (Instant, ParkedCall)>> {
        lock(&self.0)
    }
}
