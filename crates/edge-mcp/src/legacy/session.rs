//! One MCP session: its client, its streams and its calls.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use ringback_mcp_wire::{Id, LogLevel, Version};
use ringback_sync::lock;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::courier::Courier;
use super::log::StreamLog;
use crate::config::SessionLimits;
use crate::peer::Peer;
use crate::tools::Canceller;

/// Bytes that finished streams of an MCP session may keep for readers that come back.
const FINISHED_BYTES_MAX: usize = 64 * 1024;
/// The number of such streams.
const FINISHED_MAX: usize = 8;
/// Concurrent calls of one MCP session; the broker has its own limit per principal.
const CALLS_MAX: usize = 256;

/// An MCP session. It belongs to its opener and grants no rights.
#[derive(Debug)]
pub(crate) struct Session {
    id: String,
    /// Its opener.
    pub(super) peer: Peer,
    pub(super) version: Version,
    /// Whether its client supports forms, so that it can be asked.
    pub(super) takes_forms: bool,
    state: Mutex<SessionState>,
    /// The stream for messages outside of any request.
    pub(super) standalone: Arc<StreamLog>,
    /// The messages about agents on that stream.
    pub(super) courier: Courier,
    pub(super) ended: CancellationToken,
}

/// What is known of a client when it opens an MCP session.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClientProfile {
    /// The fingerprint of its tool list.
    pub(super) tools: u64,
    /// Whether it supports forms.
    pub(super) takes_forms: bool,
}

#[derive(Debug)]
struct SessionState {
    seen: Instant,
    is_initialized: bool,
    level: LogLevel,
    /// The fingerprint of the tool list that its client knows.
    tools: u64,
    calls: HashMap<Id, Canceller>,
    streams: VecDeque<Arc<StreamLog>>,
    n_streams: u64,
}

/// A running call of an MCP session; dropping it unregisters the call.
#[derive(Debug)]
pub(super) struct CallRegistration {
    session: Arc<Session>,
    id: Id,
}

impl Session {
    pub(super) fn new(id: String, peer: Peer, version: Version, opened: ClientProfile) -> Self {
        let state = SessionState {
            seen: Instant::now(),
            is_initialized: false,
            level: LogLevel::Info,
            tools: opened.tools,
            calls: HashMap::new(),
            streams: VecDeque::new(),
            n_streams: 0,
        };
        Self {
            id,
            peer,
            version,
            takes_forms: opened.takes_forms,
            state: Mutex::new(state),
            standalone: Arc::new(StreamLog::new(0)),
            courier: Courier::default(),
            ended: CancellationToken::new(),
        }
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn touch(&self) {
        self.lock().seen = Instant::now();
    }

    pub(super) fn seen(&self) -> Instant {
        self.lock().seen
    }

    pub(super) fn set_initialized(&self) {
        self.lock().is_initialized = true;
    }

    pub(super) fn set_level(&self, level: LogLevel) {
        self.lock().level = level;
    }

    pub(super) fn level(&self) -> LogLevel {
        self.lock().level
    }

    /// Records the current tool list; returns whether it has changed.
    pub(super) fn sees(&self, tools: u64) -> bool {
        std::mem::replace(&mut self.lock().tools, tools) != tools
    }

    /// Whether its client understands the priming event of a stream, which older clients take for a
    /// message.
    pub(super) fn primes(&self) -> bool {
        self.version >= Version::V2025_11_25
    }

    /// Whether it has no reader and no running call.
    pub(super) fn is_quiet(&self) -> bool {
        self.lock().calls.is_empty() && !self.standalone.has_reader()
    }

    /// Whether it has expired.
    pub(super) fn is_expired(&self, now: Instant, limits: &SessionLimits) -> bool {
        let (seen, is_initialized) = {
            let state = self.lock();
            (state.seen, state.is_initialized)
        };
        let limit = if is_initialized { limits.idle } else { limits.handshake };
        self.peer.is_gone() || self.is_quiet() && now.duration_since(seen) >= limit
    }

    /// Registers a running call; `None` if its id is in use, or there are too many.
    pub(super) fn register(
        self: &Arc<Self>,
        id: &Id,
        canceller: Canceller,
    ) -> Option<CallRegistration> {
        let mut state = self.lock();
        if state.calls.len() >= CALLS_MAX || state.calls.contains_key(id) {
            return None;
        }
        state.calls.insert(id.clone(), canceller);
        Some(CallRegistration { session: Arc::clone(self), id: id.clone() })
    }

    /// Cancels a call: the client does not want an answer any more.
    pub(super) fn cancel(&self, id: &Id) {
        let canceller = self.lock().calls.get(id).cloned();
        if let Some(canceller) = canceller {
            canceller.cancel();
        }
    }

    /// Opens a stream for the answer to a request.
    pub(super) fn open_stream(&self) -> Arc<StreamLog> {
        let mut state = self.lock();
        state.n_streams += 1;
        let log = Arc::new(StreamLog::new(state.n_streams));
        state.streams.push_back(Arc::clone(&log));
        forget_oldest(&mut state.streams);
        log
    }

    /// Returns a stream by its number.
    pub(super) fn stream(&self, number: u64) -> Option<Arc<StreamLog>> {
        if number == 0 {
            return Some(Arc::clone(&self.standalone));
        }
        self.lock().streams.iter().find(|log| log.number == number).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, SessionState> {
        lock(&self.state)
    }
}

/// Removes the oldest finished streams until the rest is within the limits.
fn forget_oldest(streams: &mut VecDeque<Arc<StreamLog>>) {
    loop {
        let finished: Vec<_> = streams.iter().filter(|log| log.is_done()).collect();
        let n_bytes: usize = finished.iter().map(|log| log.n_bytes()).sum();
        if finished.len() <= FINISHED_MAX && n_bytes <= FINISHED_BYTES_MAX {
            return;
        }
        let Some(number) = finished.first().map(|log| log.number) else { return };
        streams.retain(|log| log.number != number);
    }
}

impl Drop for CallRegistration {
    fn drop(&mut self) {
        let mut state = self.session.lock();
        state.calls.remove(&self.id);
        state.seen = Instant::now();
        forget_oldest(&mut state.streams);
    }
}
