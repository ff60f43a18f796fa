//! Events of sessions: written to the ring and the journal, read by subscribers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use ringback_core::sessions::RingEvent;
use ringback_proto::ids::SessionId;
use ringback_proto::record::SessionState;
use ringback_proto::request::{
    PermissionChoice, SessionEventInfo, SessionEventsRequest, SessionEventsResponse,
};
use ringback_proto::{Error, Event, Result};
use ringback_store::journal::Journal;
use tokio::sync::Notify;

use crate::failure;
use crate::kernel::Kernel;
use crate::sessions::Register;
use crate::sessions::conversation::agent_events::CONVERSATION;
use crate::sessions::conversation::questions::{ASKED, Questions};
use crate::sessions::conversation::redaction::Concealed;
use crate::sync::lock;

/// Events per read when searching the journal.
const JOURNAL_PAGE: usize = 1000;
/// The longest text of one event; longer ones are cut and marked.
const TEXT_BYTES_MAX: usize = 256 << 10;
/// How much of the arguments or the result of a call is shown: what fits on a screen.
pub(in crate::sessions) const PAYLOAD_BYTES_MAX: usize = 4 << 10;
/// How much of a question's arguments is shown: a person decides on all of it.
pub(in crate::sessions) const QUESTION_BYTES_MAX: usize = 64 << 10;
/// The longest name or id.
const NAME_BYTES_MAX: usize = 4 << 10;
/// Maximum options of one question; more than any agent offers.
const OPTIONS_MAX: usize = 32;
/// Events an ended session keeps in memory if its journal could not be written.
const LAST_WORDS_BYTES: usize = 64 << 10;

/// Events that one request gets by default.
const EVENTS_DEFAULT: u32 = 100;

/// Events that one request gets at most.
const EVENTS_MAX: u32 = 1000;

/// The longest wait for an event.
const WAIT_MS_MAX: u64 = 30_000;

/// Returns an empty event of this type.
pub(crate) fn event(kind: &str) -> SessionEventInfo {
    SessionEventInfo {
        index: 0,
        session_id: SessionId::from_random([0; 16]),
        at_ms: 0,
        kind: kind.to_owned(),
        text: None,
        tool_name: None,
        role: None,
        request_id: None,
        arguments: None,
        result: None,
        status: None,
        options: Vec::new(),
        usage: None,
    }
}

/// Cuts a text to the maximum length in an event.
pub(in crate::sessions) fn bounded(mut text: String) -> String {
    cut(&mut text, TEXT_BYTES_MAX);
    text
}

fn cut(text: &mut String, bytes_max: usize) {
    if text.len() > bytes_max {
        let mut end = bytes_max;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push_str(" [cut]");
        text.shrink_to_fit();
    }
}

/// Cuts every field that an agent controls.
fn bound(event: &mut SessionEventInfo) {
    let SessionEventInfo {
        kind,
        text,
        tool_name,
        role,
        request_id,
        arguments,
        result,
        options,
        ..
    } = event;
    let payload_max = if kind == ASKED { QUESTION_BYTES_MAX } else { PAYLOAD_BYTES_MAX };
    arguments.iter_mut().chain(result).for_each(|payload| cut(payload, payload_max));
    text.iter_mut().for_each(|text| cut(text, TEXT_BYTES_MAX));
    let names = tool_name.iter_mut().chain(role).chain(request_id);
    names.for_each(|name| cut(name, NAME_BYTES_MAX));
    options.truncate(OPTIONS_MAX);
    for PermissionChoice { id, name, kind } in options {
        [id, name, kind].into_iter().for_each(|text| cut(text, NAME_BYTES_MAX));
    }
}

/// Returns the approximate memory use of an event.
fn weight(event: &SessionEventInfo) -> usize {
    let SessionEventInfo {
        kind,
        text,
        tool_name,
        role,
        request_id,
        arguments,
        result,
        options,
        ..
    } = event;
    let optional = [text, tool_name, role, request_id, arguments, result];
    let texts = optional.into_iter().flatten().map(String::capacity).sum::<usize>();
    let choice = |it: &PermissionChoice| it.id.len() + it.name.len() + it.kind.len();
    let choices = options.iter().map(choice).sum::<usize>();
    size_of::<SessionEventInfo>() + kind.len() + texts + choices
}

/// Events and open questions of sessions: in memory, in the journal, and for subscribers.
#[derive(Debug)]
pub(crate) struct Conversations {
    pub(in crate::sessions) kernel: Arc<Kernel>,
    pub(in crate::sessions) register: Arc<Register>,
    pub(in crate::sessions) journal: Arc<Journal>,
    pub(in crate::sessions) questions: Mutex<Questions>,
    pub(in crate::sessions) bells: Bells,
    pub(in crate::sessions) concealed: Mutex<Concealed>,
}

/// Wake-ups for subscribers. Sessions share them, so a subscriber may check needlessly but misses
/// nothing.
#[derive(Debug)]
pub(in crate::sessions) struct Bells([Notify; 64]);

impl Bells {
    pub(in crate::sessions) fn of(&self, session: SessionId) -> &Notify {
        let [.., last] = session.as_bytes();
        &self.0[usize::from(*last) % self.0.len()]
    }
}

impl Conversations {
    pub(crate) fn new(kernel: Arc<Kernel>, register: Arc<Register>, journal: Journal) -> Self {
        let bells = Bells(std::array::from_fn(|_| Notify::new()));
        let (journal, questions) = (Arc::new(journal), Mutex::default());
        Self { kernel, register, journal, questions, bells, concealed: Mutex::default() }
    }

    /// Records an event of a session.
    pub(crate) fn say(&self, session: SessionId, mut event: SessionEventInfo) {
        event.session_id = session;
        event.at_ms = self.kernel.now().unix;
        bound(&mut event);
        self.note_question(session, &event);
        let n_bytes = weight(&event);
        let event = Arc::new(event);
        let heard = {
            let mut table = lock(&self.register.table);
            let heard = table.say(session, &event, n_bytes);
            // Written under the lock to keep the ring's order in the journal; it is an append to
            // the page cache, not a sync.
            for (ring, index) in &heard {
                self.journal(*ring, *index, &event);
            }
            heard
        };
        for (ring, _) in heard {
            self.bells.of(ring).notify_waiters();
        }
    }

    /// Writes an event to the journal, without what its call was given and returned: payloads do
    /// not last longer than the session's events in memory.
    pub(in crate::sessions) fn journal(
        &self,
        ring: SessionId,
        index: u64,
        event: &SessionEventInfo,
    ) {
        let (arguments, result) = (None, None);
        let numbered = SessionEventInfo { index, arguments, result, ..event.clone() };
        let written = rmp_serde::to_vec_named(&numbered)
            .map_err(|error| error.to_string())
            .and_then(|bytes| {
                let written = self.journal.append_at(ring, index, Bytes::from(bytes));
                written.map_err(|error| failure::chain(&error))
            });
        if let Err(error) = written {
            tracing::error!(session = %ring, index, error, "cannot write an event to the journal");
        }
    }

    /// Drops the events of an ended session from memory: they are in its journal. If that could not
    /// be written, the last ones stay.
    pub(in crate::sessions) fn release_events(&self, session: SessionId) {
        let mut table = lock(&self.register.table);
        let written = self.journal.last_index(session).ok().flatten();
        let is_written = written >= table.last_index(session);
        table.release(session, if is_written { 0 } else { LAST_WORDS_BYTES });
        drop(table);
        lock(&self.concealed).forget(session);
    }

    /// Returns the next index in the journal of a session of an earlier run.
    pub(in crate::sessions) fn next_journaled(&self, session: SessionId) -> Result<u64> {
        let last = self.journal.last_index(session).map_err(unreadable)?;
        Ok(last.map_or(0, |last| last + 1))
    }

    /// Deletes the journal of a session.
    pub(crate) async fn forget_journal(&self, session: SessionId) -> Result<()> {
        let journal = Arc::clone(&self.journal);
        self.kernel.blocking(move || journal.remove(session).map_err(unreadable)).await
    }

    /// Publishes a state change of a session, in its events and as a daemon event.
    pub(in crate::sessions) fn say_state(
        &self,
        session: SessionId,
        state: SessionState,
        text: Option<String>,
    ) {
        self.say(session, SessionEventInfo { status: Some(state), text, ..event("status") });
        let place = lock(&self.register.table).find(session);
        if let Some((place, _)) = place {
            let (session_id, project_id) = (session, place.project);
            self.kernel.publish(
                Event::SessionStateChanged { session_id, project_id, status: state },
                place.owner,
                Some(place.project),
            );
        }
    }

    /// Returns the events of a session after an index: from memory, or from the journal if they are
    /// of an earlier run or no longer kept.
    pub(in crate::sessions) async fn said(
        &self,
        session: SessionId,
        since: Option<u64>,
        limit: usize,
        with_children: bool,
    ) -> Result<SessionEventsResponse> {
        let page = {
            let table = lock(&self.register.table);
            table.find(session).and_then(|(_, state)| {
                table.said(session, since, limit, with_children).map(|page| (page, state))
            })
        };
        if let Some((page, status)) = page {
            return Ok(SessionEventsResponse {
                session_id: session,
                events: page.events.iter().map(numbered).collect(),
                last_index: signed(page.last_index),
                status,
                dropped_events: page.n_dropped,
                oldest_index: page.oldest_index,
            });
        }
        let state = lock(&self.register.table).find(session).map(|(_, state)| state);
        let state = match state {
            // Its end may not be stored yet, for lack of disk space.
            Some(state) => state,
            None => {
                let record = self.kernel.read(move |store| store.session(session)).await?;
                record.ok_or_else(|| Error::not_found("session", session))?.state
            }
        };
        let JournalPage { events, last_index, oldest_index } =
            self.journaled(session, since, limit).await?;
        let from = since.map_or(0, |since| since.saturating_add(1));
        let own = events.into_iter().filter(|event| with_children || event.session_id == session);
        Ok(SessionEventsResponse {
            session_id: session,
            events: own.collect(),
            last_index: signed(last_index.or(since)),
            status: state,
            dropped_events: oldest_index.saturating_sub(from),
            oldest_index,
        })
    }

    /// Returns the agent's own id of the last conversation in a session.
    pub(in crate::sessions) async fn conversation_of(&self, session: SessionId) -> Option<String> {
        let mut since = None;
        let mut found = None;
        // If the journal cannot be read, the agent starts a new conversation.
        while let Ok(page) = self.journaled(session, since, JOURNAL_PAGE).await {
            let JournalPage { events, last_index: Some(last), .. } = page else { break };
            since = Some(last);
            let is_one = |event: &SessionEventInfo| {
                event.session_id == session && event.kind == CONVERSATION
            };
            found = events.into_iter().rev().find(is_one).and_then(|it| it.text).or(found);
        }
        found
    }

    async fn journaled(
        &self,
        session: SessionId,
        since: Option<u64>,
        limit: usize,
    ) -> Result<JournalPage> {
        let journal = Arc::clone(&self.journal);
        let from = since.map_or(0, |since| since.saturating_add(1));
        self.kernel
            .blocking(move || {
                let oldest = journal.kept(session).map_err(unreadable)?;
                let kept = journal.read(session, from, limit).map_err(unreadable)?;
                let last_index = kept.last().map(|(index, _)| *index);
                // Skip events that cannot be decoded.
                let read =
                    kept.into_iter().filter_map(|(_, bytes)| rmp_serde::from_slice(&bytes).ok());
                let oldest_index = oldest.map_or(0, |kept| kept.first);
                Ok(JournalPage { events: read.collect(), last_index, oldest_index })
            })
            .await
    }

    /// Returns events of a session; waits for one if requested.
    pub(crate) async fn events_of(
        &self,
        request: SessionEventsRequest,
    ) -> Result<SessionEventsResponse> {
        let session = request.session_id;
        let since = match request.since_index {
            None | Some(-1) => None,
            Some(index) => Some(u64::try_from(index).map_err(|_| {
                Error::invalid_field("since_index", "`since_index` must be -1 or an index")
            })?),
        };
        let limit = request.max_events.unwrap_or(EVENTS_DEFAULT).clamp(1, EVENTS_MAX) as usize;
        let wait = Duration::from_millis(request.wait_ms.unwrap_or(0).min(WAIT_MS_MAX));
        let deadline = tokio::time::Instant::now() + wait;
        loop {
            let rung = self.bells.of(session).notified();
            let is_live = self.register.live(session).is_some();
            let page = self.said(session, since, limit, request.include_children).await?;
            if !page.events.is_empty() || !is_live {
                return Ok(page);
            }
            tokio::select! {
                biased;
                () = tokio::time::sleep_until(deadline) => return Ok(page),
                () = self.kernel.stopping.cancelled() => return Ok(page),
                () = rung => {}
            }
        }
    }
}

/// A page of a journal.
struct JournalPage {
    events: Vec<SessionEventInfo>,
    /// Index of the last event read.
    last_index: Option<u64>,
    oldest_index: u64,
}

fn unreadable(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::internal("journal", "cannot use a session's journal").with_source(error)
}

fn numbered(said: &RingEvent<SessionEventInfo>) -> SessionEventInfo {
    SessionEventInfo { index: said.index, ..SessionEventInfo::clone(&said.event) }
}

fn signed(index: Option<u64>) -> i64 {
    index.map_or(-1, |index| i64::try_from(index).unwrap_or(i64::MAX))
}
