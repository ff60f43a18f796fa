//! A call that stays with a session: the session's events and the calls for its caller arrive on
//! the call's own stream, and the answer when the agent is done. The caller is available as long as
//! the stream is open.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use ringback_broker::{CallerStream, Credential, LineCall, PartyMessage, StreamMode};
use ringback_mcp_wire::outgoing::{self, InputRequired};
use ringback_mcp_wire::{Id, Version};
use ringback_proto::request::{SessionEventInfo, SessionEventsRequest};

use super::parked_calls::{ParkedCall, SubscriptionRequest};
use crate::questions::Question;
use crate::reach::{self, EventReader};
use crate::response;
use crate::state::State;
use crate::tools::{self, Interest, Outcome, RunningCall, Step};

/// A running call and its state.
struct Call {
    state: Arc<State>,
    credential: Credential,
    client: Client,
    place: Place,
}

/// The client of a call.
#[derive(Debug)]
pub(super) struct Client {
    /// The request.
    pub(super) id: Id,
    /// The tool that it called.
    pub(super) tool: String,
    /// Whether it supports forms, so that it can be asked.
    pub(super) takes_forms: bool,
}

enum Place {
    /// The tool has not answered yet.
    Called(Box<RunningCall>),
    /// It has, and the session continues.
    Stays(Box<SessionSubscription>),
    Ended,
}

/// A client that stays with a session.
struct SessionSubscription {
    to: SubscriptionRequest,
    /// `None` once the session is over.
    calls: Option<CallerStream>,
    hearing: EventReader,
    /// Whether the agent was idle according to the last event.
    rests: bool,
    /// The next question to the client.
    question: Option<Question>,
}

enum NextItem {
    Post(PartyMessage<Arc<LineCall>>),
    Said(Box<SessionEventInfo>),
    Over,
}

/// The call as events. Closing the stream leaves the session and cancels the call.
pub(super) fn events(
    state: Arc<State>,
    credential: Credential,
    client: Client,
    follow: RunningCall,
) -> impl Stream<Item = Bytes> + Send + 'static {
    let call = Call { state, credential, client, place: Place::Called(Box::new(follow)) };
    stream::unfold(call, Call::next)
}

/// A call that continues after a question. Without an answer the question is repeated.
pub(super) fn resumed(
    state: Arc<State>,
    credential: Credential,
    client: Client,
    stay: SubscriptionRequest,
    question: Option<Question>,
) -> impl Stream<Item = Bytes> + Send + 'static {
    let mut call = Call { state, credential, client, place: Place::Ended };
    let first = call.stay(stay, question);
    let first = stream::iter(first.map(|told| response::event(None, &told)));
    first.chain(stream::unfold(call, Call::next))
}

impl Call {
    async fn next(mut self) -> Option<(Bytes, Self)> {
        loop {
            let told = match &mut self.place {
                Place::Called(follow) => match follow.next().await {
                    Step::Told(told) => Some(told),
                    Step::Done(outcome) => {
                        let interest = follow.interest().cloned();
                        self.stay_or_answer(interest, outcome)
                    }
                },
                Place::Stays(stay) => match stay.question.take() {
                    Some(question) => self.ask(question),
                    None => self.on_next().await,
                },
                Place::Ended => return None,
            };
            if let Some(told) = told {
                return Some((response::event(None, &told), self));
            }
        }
    }

    async fn on_next(&mut self) -> Option<String> {
        let Place::Stays(stay) = &mut self.place else { return None };
        match stay.next(&self.state).await {
            NextItem::Post(post) => {
                Some(reach::post(&self.state.broker, stay.to.subject.root, &post))
            }
            NextItem::Said(event) => {
                if self.client.takes_forms {
                    stay.question = Question::of(&self.state.broker, &self.credential, &event);
                }
                Some(reach::said(&event))
            }
            NextItem::Over => self.leave().await,
        }
    }

    /// Answers with a question, unless it was answered in the meantime: the caller repeats the call
    /// with the answer. Until then it has left.
    fn ask(&mut self, question: Question) -> Option<String> {
        if !question.is_open(&self.state.broker, &self.credential) {
            return None;
        }
        let Place::Stays(stay) = std::mem::replace(&mut self.place, Place::Ended) else {
            return None;
        };
        let SessionSubscription { to, calls, hearing, rests, .. } = *stay;
        let (caller, tool) = (self.credential.id(), self.client.tool.clone());
        let asked = question.clone();
        match self.state.parked.keep(ParkedCall { caller, tool, question, stay: to }) {
            Ok(name) => {
                let form = asked.form(Version::V2026_07_28);
                let required = InputRequired { key: &asked.request_id, form, state: &name };
                Some(outgoing::answer(&self.client.id, &required, self.state.stamp()))
            }
            Err(parked) => {
                let (to, question) = (parked.stay, None);
                self.place = Place::Stays(Box::new(SessionSubscription {
                    to,
                    calls,
                    hearing,
                    rests,
                    question,
                }));
                None
            }
        }
    }

    /// Stays with the session of a call; a failed call is answered immediately.
    fn stay_or_answer(&mut self, interest: Option<Interest>, outcome: Outcome) -> Option<String> {
        let subject = interest.as_ref().and_then(|it| it.subject(&self.state.broker, &outcome));
        let Some(subject) = subject else { return self.answer(&outcome) };
        let again = match interest {
            Some(Interest::Hears(request)) => {
                Some(SessionEventsRequest { wait_ms: None, follow: false, ..*request })
            }
            Some(Interest::Says { .. } | Interest::Answers(_)) | None => None,
        };
        self.stay(SubscriptionRequest { outcome, again, subject }, None)
    }

    /// Stays with a session; if that fails, the call is answered immediately.
    fn stay(&mut self, to: SubscriptionRequest, question: Option<Question>) -> Option<String> {
        let subject = &to.subject;
        let only = subject.caller_id.clone().map(|caller_id| vec![caller_id]);
        let (broker, credential) = (&self.state.broker, &self.credential);
        let calls = match broker.callers().open(credential, subject.root, only, StreamMode::Lasting)
        {
            Ok(calls) => Some(calls),
            Err(error) => {
                tracing::warn!(session = %subject.root, %error, "cannot pass calls on");
                return self.answer(&to.outcome);
            }
        };
        let (broker, credential) = (broker.clone(), credential.clone());
        let hearing = EventReader::new(broker, credential, subject.session, subject.since);
        let rests = subject.rests;
        self.place =
            Place::Stays(Box::new(SessionSubscription { to, calls, hearing, rests, question }));
        None
    }

    /// The answer, after all events.
    async fn leave(&mut self) -> Option<String> {
        let Place::Stays(stay) = std::mem::replace(&mut self.place, Place::Ended) else {
            return None;
        };
        let SessionSubscription { to, calls, .. } = *stay;
        drop(calls);
        let SubscriptionRequest { outcome, again, .. } = to;
        let outcome = match again {
            Some(request) => tools::again(&self.state.broker, &self.credential, request).await,
            None => outcome,
        };
        self.answer(&outcome)
    }

    fn answer(&mut self, outcome: &Outcome) -> Option<String> {
        self.place = Place::Ended;
        outcome.encode(&self.client.id, self.state.stamp())
    }
}

impl SessionSubscription {
    /// Returns what comes next. A call goes before an event: an agent is waiting for it.
    ///
    /// # Cancel safety
    /// Dropping it loses nothing.
    async fn next(&mut self, state: &State) -> NextItem {
        loop {
            let is_done = self.rests && self.is_at_rest(state);
            tokio::select! {
                biased;
                () = state.stopping.cancelled() => return NextItem::Over,
                post = next_post(&mut self.calls) => match post {
                    Some(post) => return NextItem::Post(post),
                    None => self.calls = None,
                },
                event = self.hearing.next() => return match event {
                    Some(event) => self.on_event(event),
                    None => NextItem::Over,
                },
                // Only when there is nothing else to send.
                () = std::future::ready(()), if is_done => return NextItem::Over,
            }
        }
    }

    fn on_event(&mut self, event: SessionEventInfo) -> NextItem {
        let subject = &mut self.to.subject;
        subject.since = Some(event.index);
        if let Some(status) = event.status.filter(|_| event.session_id == subject.session) {
            self.rests = tools::rests(status);
            subject.rests = self.rests;
        }
        NextItem::Said(Box::new(event))
    }

    /// Whether the session is idle now, and not only was at some time.
    fn is_at_rest(&self, state: &State) -> bool {
        let view = state.broker.session_view(self.to.subject.session);
        view.is_some_and(|view| tools::rests(view.status))
    }
}

async fn next_post(calls: &mut Option<CallerStream>) -> Option<PartyMessage<Arc<LineCall>>> {
    match calls {
        Some(calls) => calls.next().await,
        None => std::future::pending().await,
    }
}
