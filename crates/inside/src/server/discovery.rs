//! Discovery of the daemon's tools that the key may call.

use std::time::{Duration, Instant};

use ringback_mcp_wire::{Object, RawValue};

use super::{Link, Server};
use crate::relay::{self, RelayError};

/// A daemon that has not answered by then will not.
const ANSWER_WAIT: Duration = Duration::from_secs(10);
/// How long to wait before a retry, at first and at most.
const RETRY_MIN: Duration = Duration::from_millis(500);
const RETRY_MAX: Duration = Duration::from_secs(30);
/// The code for an invalid or expired key.
const CODE_UNAUTHENTICATED: i64 = -32001;

/// The state of the discovery.
#[derive(Debug)]
pub(super) struct Discovery {
    place: Place,
    /// Since the last success.
    n_failed: u32,
    has_outcome: bool,
}

#[derive(Debug, Clone, Copy)]
enum Place {
    /// There is no key.
    NoKey,
    /// To be sent, now or later.
    Due(Option<Instant>),
    /// Sent.
    Asked {
        asked: u64,
        until: Instant,
        /// The answer is already out of date.
        is_stale: bool,
    },
    /// Answered.
    Known,
}

impl Discovery {
    pub(super) const fn new(has_key: bool) -> Self {
        let place = if has_key { Place::Due(None) } else { Place::NoKey };
        Self { place, n_failed: 0, has_outcome: !has_key }
    }

    /// Whether there was an outcome, successful or not.
    pub(super) const fn has_outcome(&self) -> bool {
        self.has_outcome
    }

    pub(super) const fn deadline(&self) -> Option<Instant> {
        match self.place {
            Place::Due(at) => at,
            Place::Asked { until, .. } => Some(until),
            Place::NoKey | Place::Known => None,
        }
    }

    /// The connection has changed or ended.
    pub(super) const fn restart(&mut self) {
        match self.place {
            Place::NoKey => {}
            Place::Due(_) | Place::Asked { .. } | Place::Known => self.place = Place::Due(None),
        }
    }

    /// The daemon's tools have changed.
    pub(super) const fn on_changed(&mut self) {
        match &mut self.place {
            Place::NoKey | Place::Due(_) => {}
            Place::Asked { is_stale, .. } => *is_stale = true,
            Place::Known => self.place = Place::Due(None),
        }
    }

    /// Whether a reply is the expected one.
    pub(super) fn is_asked(&self, reply_to: u64) -> bool {
        matches!(self.place, Place::Asked { asked, .. } if asked == reply_to)
    }

    fn on_success(&mut self) {
        let is_stale = matches!(self.place, Place::Asked { is_stale: true, .. });
        self.place = if is_stale { Place::Due(None) } else { Place::Known };
        self.n_failed = 0;
        self.has_outcome = true;
    }

    fn on_failure(&mut self, now: Instant) {
        let wait = RETRY_MIN.saturating_mul(1 << self.n_failed.min(10)).min(RETRY_MAX);
        self.place = Place::Due(Some(now + wait));
        self.n_failed += 1;
        self.has_outcome = true;
    }
}

impl Server {
    /// Sends the request when it is due, and gives up an unanswered one.
    pub(super) fn discover(&mut self, now: Instant) {
        if self.link == Link::Down {
            return;
        }
        match self.discovery.place {
            Place::Asked { until, .. } if now >= until => {
                self.on_undiscovered("the daemon does not answer", now);
            }
            Place::Due(at) if at.is_none_or(|at| now >= at) => {
                let Some(key) = &self.key else { return };
                self.n_asked += 1;
                let asked = self.n_asked;
                self.to_daemon.push(&relay::tools(key).line(asked));
                let until = now + ANSWER_WAIT;
                self.discovery.place = Place::Asked { asked, until, is_stale: false };
            }
            Place::NoKey | Place::Due(_) | Place::Asked { .. } | Place::Known => {}
        }
    }

    /// Handles the answer.
    pub(super) fn on_discovery(
        &mut self,
        outcome: &Result<&RawValue, RelayError<'_>>,
        now: Instant,
    ) {
        match outcome {
            Ok(result) => match tools_of(result) {
                Some(tools) => {
                    self.discovery.on_success();
                    if let Err(reason) = self.catalog.set_native(&tools) {
                        self.warn(format!("not offering all tools of the daemon: {reason}"));
                    }
                }
                None => self.on_undiscovered("the daemon's answer cannot be read", now),
            },
            Err(error) => {
                if error.code == CODE_UNAUTHENTICATED {
                    // Tools that the key may no longer call are no longer offered.
                    drop(self.catalog.set_native(&[]));
                }
                let message = error.message.clone();
                self.on_undiscovered(&message, now);
            }
        }
    }

    fn on_undiscovered(&mut self, reason: &str, now: Instant) {
        // Once: repeating it would hide other lines.
        if self.discovery.n_failed == 0 {
            let reason = self.without_key(reason);
            self.warn(format!("not offering the daemon's own tools yet: {reason}"));
        }
        self.discovery.on_failure(now);
    }

    /// A text from the daemon, bounded in length and without the key.
    pub(super) fn without_key(&self, text: &str) -> String {
        const SHOWN_MAX: usize = 200;
        let text = match &self.key {
            Some(key) => text.replace(key.expose(), "(the key)"),
            None => text.to_owned(),
        };
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(SHOWN_MAX).collect()
    }
}

fn tools_of(result: &RawValue) -> Option<Vec<&RawValue>> {
    let result = Object::of(result).ok()?;
    serde_json::from_str(result.get("tools")?.get()).ok()
}
