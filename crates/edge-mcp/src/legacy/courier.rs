//! Messages to an MCP session about agents: calls of the tools it offers them, and their events.
//!
//! They go to the MCP session's own stream, and are held only while it has a reader: when the
//! reader leaves, the agents' calls fail immediately instead of at their deadline. A reader that
//! takes over from another continues with what is held.

mod questions;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::future::{poll_fn, ready};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, SelectAll};
use futures_util::{Stream, StreamExt as _};
use ringback_broker::{Broker, Credential, LineCall, PartyMessage, StreamMode};
use ringback_proto::ids::SessionId;
use ringback_proto::request::SessionEventInfo;
use ringback_sync::lock;
use tokio::sync::Notify;

pub(super) use self::questions::on_reply;
use super::log::StreamLog;
use super::session::Session;
use crate::peer::Peer;
use crate::questions::Question;
use crate::reach::{self, EventReader};
use crate::state::State;
use crate::tools::{Interest, Outcome};

/// Agent sessions that one MCP session may offer tools to and follow.
const HELD_MAX: usize = 4096;
/// Calls in the log that may have ended. More than a caller usually has at the same time.
const CALLS_UNCHECKED_MAX: usize = 32;

/// Offered tools: the session, and the caller id.
type Offer = (SessionId, Arc<str>);

/// The subscriptions of one MCP session.
#[derive(Default)]
pub(super) struct Courier {
    state: Mutex<CourierState>,
    /// Rung when there is more to follow.
    bell: Notify,
}

#[derive(Default)]
struct CourierState {
    offers: HashSet<Offer>,
    /// The followed sessions, with the last event reported of each.
    heard: HashMap<SessionId, Option<u64>>,
    /// Questions to the client, by request id.
    asked: HashMap<Arc<str>, Question>,
    open: Option<OpenStream>,
}

/// What is held while the stream has a reader.
struct OpenStream {
    reader: u64,
    /// A call after this number in the log is not reported again.
    known: u64,
    news: SelectAll<BoxStream<'static, CourierEvent>>,
}

enum CourierEvent {
    Post(SessionId, PartyMessage<Arc<LineCall>>),
    Said(SessionId, Box<SessionEventInfo>),
    /// The session is over: no more calls of these tools.
    OfferEnds(Offer),
    /// No more events of this session; whether there were any.
    HearingEnds(SessionId, bool),
}

/// A reader of the stream. Dropping it means that the reader has left.
#[derive(Debug)]
pub(super) struct StreamReader {
    state: Arc<State>,
    session: Arc<Session>,
    reader: u64,
}

/// Records what an ended call subscribes to from now on.
pub(super) fn learn(
    state: &State,
    session: &Session,
    interest: Option<&Interest>,
    outcome: &Outcome,
) {
    let Some(interest) = interest else { return };
    if let (Interest::Answers(request_id), Outcome::Native(_)) = (interest, outcome) {
        session.standalone.forget_call(request_id);
    }
    let Some(subject) = interest.subject(&state.broker, outcome) else { return };
    let Peer::Caller(credential) = &session.peer else { return };
    let courier = &session.courier;
    if let Some(caller_id) = subject.caller_id {
        courier.offers(&state.broker, credential, (subject.root, caller_id));
    }
    courier.hears(&state.broker, credential, subject.session, subject.since);
    courier.bell.notify_waiters();
}

impl Courier {
    fn offers(&self, broker: &Broker, credential: &Credential, offer: Offer) {
        let mut state = self.lock();
        if state.offers.len() >= HELD_MAX {
            state.offers.retain(|(root, _)| is_live(broker, *root));
        }
        if state.offers.len() >= HELD_MAX && !state.offers.contains(&offer) {
            tracing::warn!(session = %offer.0, "cannot pass calls on: too many offers");
            return;
        }
        if state.offers.insert(offer.clone())
            && let Some(open) = &mut state.open
        {
            open.news.extend(calls(broker, credential, offer));
        }
    }

    fn hears(&self, broker: &Broker, credential: &Credential, id: SessionId, since: Option<u64>) {
        let mut state = self.lock();
        if state.heard.len() >= HELD_MAX {
            state.heard.retain(|id, _| is_live(broker, *id));
        }
        if state.heard.contains_key(&id) || state.heard.len() >= HELD_MAX {
            return;
        }
        state.heard.insert(id, since);
        if let Some(open) = &mut state.open {
            open.news.push(events(broker, credential, id, since));
        }
    }

    /// Attaches a reader. What the previous one holds is released only now, so that no caller is
    /// gone in between; unanswered calls are sent again.
    fn attend(&self, broker: &Broker, credential: Option<&Credential>, reader: u64, known: u64) {
        let mut state = self.lock();
        if state.open.as_ref().is_some_and(|open| open.reader > reader) {
            return;
        }
        let mut news = SelectAll::new();
        if let Some(credential) = credential {
            let offers = state.offers.iter().cloned();
            news.extend(offers.filter_map(|offer| calls(broker, credential, offer)));
            let heard = state.heard.iter();
            news.extend(heard.map(|(id, since)| events(broker, credential, *id, *since)));
        }
        let before = state.open.replace(OpenStream { reader, known, news });
        drop(state);
        drop(before);
    }

    fn leave(&self, reader: u64) {
        let mut state = self.lock();
        let left = state.open.take_if(|open| open.reader == reader);
        drop(state);
        drop(left);
    }

    fn poll(&self, reader: u64, context: &mut Context<'_>) -> Poll<CourierEvent> {
        let mut state = self.lock();
        let Some(open) = state.open.as_mut().filter(|open| open.reader == reader) else {
            return Poll::Pending;
        };
        match open.news.poll_next_unpin(context) {
            Poll::Ready(Some(news)) => Poll::Ready(news),
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }

    /// The number in the log after which a call is known.
    fn known(&self) -> u64 {
        self.lock().open.as_ref().map_or(0, |open| open.known)
    }

    fn lock(&self) -> MutexGuard<'_, CourierState> {
        lock(&self.state)
    }
}

impl fmt::Debug for Courier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        let reader = state.open.as_ref().map(|open| open.reader);
        f.debug_struct("Courier")
            .field("n_offers", &state.offers.len())
            .field("n_heard", &state.heard.len())
            .field("reader", &reader)
            .finish_non_exhaustive()
    }
}

impl StreamReader {
    pub(super) fn new(state: Arc<State>, session: Arc<Session>, reader: u64, known: u64) -> Self {
        let attending = Self { state, session, reader };
        attending.forget_calls();
        let credential = attending.credential();
        let Self { state, session, .. } = &attending;
        session.courier.attend(&state.broker, credential.as_ref(), reader, known);
        attending.ask_again(known);
        attending
    }

    /// The events of the log, with the messages that arrive while it is read. They go through the
    /// log, one at a time and only when all earlier ones were read, so that a slow reader loses
    /// none.
    pub(super) fn along(
        self,
        events: impl Stream<Item = Bytes> + Send + 'static,
    ) -> impl Stream<Item = Bytes> + Send + 'static {
        stream::unfold((Box::pin(events), self), async |(mut events, attending)| {
            loop {
                tokio::select! {
                    biased;
                    event = events.next() => return event.map(|event| (event, (events, attending))),
                    () = attending.step() => {}
                }
            }
        })
    }

    /// Puts the next message into the log.
    ///
    /// # Cancel safety
    /// Dropping it loses nothing: what was taken is in the log.
    async fn step(&self) {
        let courier = &self.session.courier;
        let mut rung = pin!(courier.bell.notified());
        rung.as_mut().enable();
        tokio::select! {
            biased;
            news = poll_fn(|context| courier.poll(self.reader, context)) => self.on_news(news),
            () = rung => {}
        }
    }

    fn on_news(&self, news: CourierEvent) {
        match news {
            CourierEvent::Post(root, post) => self.on_post(root, &post),
            CourierEvent::Said(id, event) => self.on_said(id, &event),
            CourierEvent::OfferEnds(offer) => self.on_offer_ends(offer),
            CourierEvent::HearingEnds(id, was_heard) => self.on_hearing_ends(id, was_heard),
        }
    }

    fn on_post(&self, root: SessionId, post: &PartyMessage<Arc<LineCall>>) {
        let log = self.log();
        match post {
            PartyMessage::Call(call) => {
                let id = &call.request_id;
                if log.has_call(id, self.session.courier.known()) {
                    return;
                }
                if log.calls().len() >= CALLS_UNCHECKED_MAX {
                    self.forget_calls();
                }
                log.forget_call(id);
                log.push_call(reach::post(&self.state.broker, root, post), Arc::clone(id));
            }
            PartyMessage::Cancel { call, custom_id, .. } => {
                log.forget_call(custom_id.as_deref().unwrap_or(&call.to_string()));
                log.push(reach::post(&self.state.broker, root, post));
            }
        }
    }

    fn on_said(&self, id: SessionId, event: &SessionEventInfo) {
        self.session.courier.lock().heard.insert(id, Some(event.index));
        if self.session.level() <= reach::LEVEL {
            self.log().push(reach::said(event));
        }
        self.on_question(event);
    }

    /// The session is over, unless it was resumed just now.
    fn on_offer_ends(&self, offer: Offer) {
        let is_live = is_live(&self.state.broker, offer.0);
        let again = is_live.then(|| self.credential()).flatten();
        let mut state = self.session.courier.lock();
        match (again, &mut state.open) {
            (Some(credential), Some(open)) => {
                open.news.extend(calls(&self.state.broker, &credential, offer));
            }
            (None, _) | (_, None) => drop(state.offers.remove(&offer)),
        }
    }

    fn on_hearing_ends(&self, id: SessionId, was_heard: bool) {
        let is_live = was_heard && is_live(&self.state.broker, id);
        let again = is_live.then(|| self.credential()).flatten();
        let mut state = self.session.courier.lock();
        let since = state.heard.get(&id).copied().flatten();
        match (again, &mut state.open) {
            (Some(credential), Some(open)) => {
                open.news.push(events(&self.state.broker, &credential, id, since));
            }
            (None, _) | (_, None) => drop(state.heard.remove(&id)),
        }
    }

    /// Removes calls that no agent waits for any more: a client that comes back must not run them.
    fn forget_calls(&self) {
        let Some(credential) = self.credential() else { return };
        for id in self.log().calls() {
            if self.session.courier.lock().asked.contains_key(&id) {
                continue;
            }
            if self.state.broker.lines().waiting_request(&credential, &id).is_none() {
                self.log().forget_call(&id);
            }
        }
    }

    fn credential(&self) -> Option<Credential> {
        match &self.session.peer {
            Peer::Caller(credential) => Some(credential.clone()),
            Peer::Agent(_) => None,
        }
    }

    fn log(&self) -> &StreamLog {
        &self.session.standalone
    }
}

impl Drop for StreamReader {
    fn drop(&mut self) {
        self.session.courier.leave(self.reader);
    }
}

fn is_live(broker: &Broker, id: SessionId) -> bool {
    broker.session_view(id).is_some_and(|view| view.status.is_live())
}

/// The calls of offered tools. The holder of the stream holds them.
fn calls(
    broker: &Broker,
    credential: &Credential,
    offer: Offer,
) -> Option<BoxStream<'static, CourierEvent>> {
    let (root, caller_id) = &offer;
    let only = Some(vec![Arc::clone(caller_id)]);
    let opened = broker.callers().open(credential, *root, only, StreamMode::Lasting);
    let held = opened
        .inspect_err(|error| tracing::warn!(session = %root, %error, "cannot pass calls on"))
        .ok()?;
    let root = *root;
    let posts = stream::unfold(held, async |mut held| Some((held.next().await?, held)));
    let posts = posts.map(move |post| CourierEvent::Post(root, post));
    Some(posts.chain(stream::once(ready(CourierEvent::OfferEnds(offer)))).boxed())
}

/// The events of a session after an index.
fn events(
    broker: &Broker,
    credential: &Credential,
    id: SessionId,
    since: Option<u64>,
) -> BoxStream<'static, CourierEvent> {
    let hearing = EventReader::new(broker.clone(), credential.clone(), id, since);
    // The events, and finally the end of the stream.
    stream::unfold(Some((hearing, false)), move |place| async move {
        let (mut hearing, was_heard) = place?;
        match hearing.next().await {
            Some(event) => Some((CourierEvent::Said(id, Box::new(event)), Some((hearing, true)))),
            None => Some((CourierEvent::HearingEnds(id, was_heard), None)),
        }
    })
    .boxed()
}
