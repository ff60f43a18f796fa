//! The messages of one stream of an MCP session, kept so that a reader that lost its connection can
//! resume.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, stream};
use ringback_sync::lock;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::response;

/// A reader further behind than this has missed something: progress, or news that is sent again.
/// The answer to a request is always the last message of its stream and so never lost.
const KEPT_MAX: usize = 32;
/// How much is kept of messages that were read: as much as a connection has in flight when it
/// breaks. Every MCP session has that much, so it is little.
const READ_BYTES_MAX: usize = 4 * 1024;

/// The messages of one stream, numbered from 1.
#[derive(Debug)]
pub(super) struct StreamLog {
    /// Its index among the streams of its MCP session.
    pub(super) number: u64,
    state: Mutex<LogState>,
    bell: Notify,
}

#[derive(Debug, Default)]
struct LogState {
    kept: VecDeque<LoggedMessage>,
    /// The number of the newest message.
    last: u64,
    /// The number of the newest message that was read.
    read: u64,
    is_done: bool,
    /// Counts readers; only the newest one reads.
    reader: u64,
    has_reader: bool,
}

/// A message.
#[derive(Debug)]
struct LoggedMessage {
    number: u64,
    text: Arc<str>,
    /// The id of the call, if the message is one: it is kept while someone waits for it.
    call: Option<Arc<str>>,
}

/// A reader of a stream. Dropping it leaves the stream without one.
#[derive(Debug)]
struct Reader {
    log: Arc<StreamLog>,
    reader: u64,
    at: u64,
    /// A first event without a message, so that the client has an id to resume from.
    primes: bool,
}

impl StreamLog {
    pub(super) fn new(number: u64) -> Self {
        Self { number, state: Mutex::default(), bell: Notify::new() }
    }

    /// Adds a message. Never waits: a reader that is too slow misses the oldest.
    pub(super) fn push(&self, message: String) {
        self.lock().push(message, None);
        self.bell.notify_waiters();
    }

    /// Adds a call. It is kept until it is forgotten.
    pub(super) fn push_call(&self, message: String, request_id: Arc<str>) {
        self.lock().push(message, Some(request_id));
        self.bell.notify_waiters();
    }

    /// The kept calls.
    pub(super) fn calls(&self) -> Vec<Arc<str>> {
        self.lock().kept.iter().filter_map(|kept| kept.call.clone()).collect()
    }

    /// Whether a call is kept and has a number after this one.
    pub(super) fn has_call(&self, request_id: &str, after: u64) -> bool {
        self.lock().kept.iter().any(|kept| kept.number > after && kept.is_call(request_id))
    }

    /// Forgets a call whose answer no one waits for: a reader that comes back need not see it.
    pub(super) fn forget_call(&self, request_id: &str) {
        self.lock().kept.retain(|kept| !kept.is_call(request_id));
    }

    /// The number of the newest message that was read.
    pub(super) fn read_up_to(&self) -> u64 {
        self.lock().read
    }

    /// Adds a message unless the same one is still unread.
    pub(super) fn push_once(&self, message: &str) {
        let is_waiting = {
            let state = self.lock();
            state.read < state.last && state.kept.back().is_some_and(|last| *last.text == *message)
        };
        if !is_waiting {
            self.push(message.to_owned());
        }
    }

    /// Ends the stream.
    pub(super) fn finish(&self) {
        self.lock().is_done = true;
        self.bell.notify_waiters();
    }

    pub(super) fn is_done(&self) -> bool {
        self.lock().is_done
    }

    pub(super) fn has_reader(&self) -> bool {
        self.lock().has_reader
    }

    /// The number of bytes kept.
    pub(super) fn n_bytes(&self) -> usize {
        self.lock().kept.iter().map(|message| message.text.len()).sum()
    }

    /// Reads on after a message, or after the last one read. The previous reader ends. Also returns
    /// the reader's number: newer readers have greater numbers.
    pub(super) fn read(
        self: Arc<Self>,
        after: Option<u64>,
        primes: bool,
    ) -> (u64, impl Stream<Item = Bytes> + Send + 'static) {
        let (reader, at) = {
            let mut state = self.lock();
            state.reader += 1;
            state.has_reader = true;
            (state.reader, after.unwrap_or(state.read).min(state.last))
        };
        self.bell.notify_waiters();
        (reader, stream::unfold(Reader { log: self, reader, at, primes }, Reader::next))
    }

    /// Resolves when the stream has had no reader for `grace`.
    pub(super) async fn abandoned(&self, grace: Duration) {
        loop {
            self.until(|state| !state.has_reader).await;
            if timeout(grace, self.until(|state| state.has_reader)).await.is_err() {
                return;
            }
        }
    }

    async fn until(&self, is_so: impl Fn(&LogState) -> bool) {
        loop {
            let mut rung = pin!(self.bell.notified());
            rung.as_mut().enable();
            if is_so(&self.lock()) {
                return;
            }
            rung.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, LogState> {
        lock(&self.state)
    }
}

impl LoggedMessage {
    fn is_call(&self, request_id: &str) -> bool {
        self.call.as_deref() == Some(request_id)
    }
}

impl LogState {
    /// The next message after a number, with its own number; removed ones are skipped.
    fn after(&self, at: u64) -> Option<(u64, Arc<str>)> {
        let place = self.kept.partition_point(|kept| kept.number <= at);
        self.kept.get(place).map(|kept| (kept.number, Arc::clone(&kept.text)))
    }

    fn push(&mut self, message: String, call: Option<Arc<str>>) {
        self.last += 1;
        self.kept.push_back(LoggedMessage { number: self.last, text: message.into(), call });
        while self.keeps_too_much()
            && let Some(oldest) = self.kept.iter().position(|kept| kept.call.is_none())
        {
            self.kept.remove(oldest);
        }
    }

    /// Calls do not count: the broker limits how many wait.
    fn keeps_too_much(&self) -> bool {
        let told = || self.kept.iter().filter(|kept| kept.call.is_none());
        let read = told().take_while(|kept| kept.number <= self.read);
        told().count() > KEPT_MAX
            || read.map(|kept| kept.text.len()).sum::<usize>() > READ_BYTES_MAX
    }
}

impl Reader {
    async fn next(mut self) -> Option<(Bytes, Self)> {
        if std::mem::take(&mut self.primes) {
            return Some((response::event(Some(&self.event_id()), ""), self));
        }
        let log = Arc::clone(&self.log);
        loop {
            let mut rung = pin!(log.bell.notified());
            rung.as_mut().enable();
            let (next, is_over) = {
                let mut state = log.lock();
                let is_mine = state.reader == self.reader;
                let next = state.after(self.at).filter(|_| is_mine);
                if let Some((number, _)) = &next {
                    state.read = state.read.max(*number);
                }
                (next, state.is_done || !is_mine)
            };
            if let Some((number, message)) = next {
                self.at = number;
                return Some((response::event(Some(&self.event_id()), &message), self));
            }
            if is_over {
                return None;
            }
            rung.await;
        }
    }

    fn event_id(&self) -> String {
        format!("{}-{}", self.log.number, self.at)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut state = self.log.lock();
        if state.reader == self.reader {
            state.has_reader = false;
        }
        drop(state);
        self.log.bell.notify_waiters();
    }
}

/// The stream and the message that an event's id names.
pub(super) fn parse_event_id(id: &str) -> Option<(u64, u64)> {
    let (stream, message) = id.split_once('-')?;
    Some((stream.parse().ok()?, message.parse().ok()?))
}
