//! One session: what it was opened for, its streams and its calls.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ringback_mcp_wire::{Id, LogLevel, Version};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::courier::Courier;
use super::log::StreamLog;
use crate::config::SessionLimits;
use crate::peer::Peer;
use crate::tools::Canceller;

/// What finished streams of a session may keep for readers that come back.
const FINISHED_BYTES_MAX: usize = 64 * 1024;
/// How many of them.
const FINISHED_MAX: usize = 8;
/// Calls of one session under way at once; the broker has its own limit per principal.
const CALLS_MAX: usize = 256;

/// A session. It belongs to whoever opened it and gives nobody any right.
#[derive(Debug)]
pub(crate) struct Session {
    id: String,
    /// Who opened it.
    pub(super) peer: Peer,
    pub(super) version: Version,
    /// Whether its client shows forms, and may be asked.
    pub(super) takes_forms: bool,
    state: Mutex<SessionState>,
    /// What is told outside of any request.
    pub(super) standalone: Arc<StreamLog>,
    /// What it is told there of agents.
    pub(super) courier: Courier,
    pub(super) ended: CancellationToken,
}

/// What is known of a client when it opens a session.
#[derive(Debug, Clone, Copy)]
pub(super) struct Opened {
    /// The fingerprint of the list of tools that it sees.
    pub(super) tools: u64,
    /// Whether it shows forms.
    pub(super) takes_forms: bool,
}

#[derive(Debug)]
struct SessionState {
    seen: Instant,
    is_initialized: bool,
    level: LogLevel,
    /// The fingerprint of the list of tools that its client knows of.
    tools: u64,
    calls: HashMap<Id, Canceller>,
    streams: VecDeque<Arc<StreamLog>>,
    n_streams: u64,
}

/// A call of a session under way; dropped, it is not any more.
#[derive(Debug)]
pub(super) struct Registered {
    session: Arc<Session>,
    id: Id,
}

impl Session {
    pub(super) fn new(id: String, peer: Peer, version: Version, opened: Opened) -> Self {
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

    /// Notes the list of tools there is now; whether it is another one than before.
    pub(super) fn sees(&self, tools: u64) -> bool {
        std::mem::replace(&mut self.lock().tools, tools) != tools
    }

    /// Whether it knows the first event of a stream, which older clients take for a message.
    pub(super) fn primes(&self) -> bool {
        self.version >= Version::V2025_11_25
    }

    /// Whether nobody reads and nothing runs.
    pub(super) fn is_quiet(&self) -> bool {
        self.lock().calls.is_empty() && !self.standalone.has_reader()
    }

    /// Whether its time is up.
    pub(super) fn is_expired(&self, now: Instant, limits: &SessionLimits) -> bool {
        let (seen, is_initialized) = {
            let state = self.lock();
            (state.seen, state.is_initialized)
        };
        let limit = if is_initialized { limits.idle } else { limits.handshake };
        self.peer.is_gone() || self.is_quiet() && now.duration_since(seen) >= limit
    }

    /// Notes a call under way; `None` if its id is in use, or there are too many.
    pub(super) fn register(self: &Arc<Self>, id: &Id, canceller: Canceller) -> Option<Registered> {
        let mut state = self.lock();
        if state.calls.len() >= CALLS_MAX || state.calls.contains_key(id) {
            return None;
        }
        state.calls.insert(id.clone(), canceller);
        Some(Registered { session: Arc::clone(self), id: id.clone() })
    }

    /// The client does not want an answer any more.
    pub(super) fn cancel(&self, id: &Id) {
        let canceller = self.lock().calls.get(id).cloned();
        if let Some(canceller) = canceller {
            canceller.cancel();
        }
    }

    /// A new stream for the answer to a request.
    pub(super) fn open_stream(&self) -> Arc<StreamLog> {
        let mut state = self.lock();
        state.n_streams += 1;
        let log = Arc::new(StreamLog::new(state.n_streams));
        state.streams.push_back(Arc::clone(&log));
        forget_oldest(&mut state.streams);
        log
    }

    /// A stream by its number.
    pub(super) fn stream(&self, number: u64) -> Option<Arc<StreamLog>> {
        if number == 0 {
            return Some(Arc::clone(&self.standalone));
        }
        self.lock().streams.iter().find(|log| log.number == number).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets the oldest finished streams go until what is left is within bounds.
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

impl Drop for Registered {
    fn drop(&mut self) {
        let mut state = self.session.lock();
        state.calls.remove(&self.id);
        state.seen = Instant::now();
        forget_oldest(&mut state.streams);
    }
}
