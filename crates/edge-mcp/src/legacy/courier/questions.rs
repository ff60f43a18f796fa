//! Questions to the client of an MCP session: permission requests of agent sessions. Each is a
//! request on the MCP session's stream, kept like a call until it is answered or withdrawn.

use std::sync::Arc;

use ringback_mcp_wire::outgoing::{self, ServerNotification};
use ringback_mcp_wire::{Id, Reply, elicitation};
use ringback_proto::request::SessionEventInfo;

use super::{Session, State, StreamReader};
use crate::peer::Peer;
use crate::questions::{Question, answered};

/// Open questions per client; it finds further ones among the events.
const ASKED_MAX: usize = 64;
/// Why a question is withdrawn.
const ELSEWHERE: &str = "it was answered elsewhere or withdrawn";

/// Handles the client's answer to a request of ours. Whatever it is, the question is not repeated.
pub(in crate::legacy) async fn on_reply(
    state: &State,
    session: &Session,
    peer: &Peer,
    reply: &Reply<'_>,
) {
    let (Id::Text(id), Peer::Caller(credential)) = (&reply.id, peer) else { return };
    let asked = session.courier.lock().asked.remove(id.as_ref());
    let Some(question) = asked else { return };
    session.standalone.forget_call(id);
    match reply.outcome {
        Ok(result) => question.answer(&state.broker, credential, result).await,
        Err(_) => tracing::debug!(%id, "a client cannot show a form"),
    }
}

impl StreamReader {
    /// Asks the client, if the event is a question that it may answer, and withdraws a question
    /// that was answered.
    pub(super) fn on_question(&self, event: &SessionEventInfo) {
        let Some(credential) = self.credential().filter(|_| self.session.takes_forms) else {
            return;
        };
        if let Some(id) = answered(event) {
            self.take_back(&id);
        } else if let Some(question) = Question::of(&self.state.broker, &credential, event) {
            self.ask(&question);
        }
    }

    /// Repeats the open questions to a reader that starts from scratch: one that resumes finds them
    /// in the log.
    pub(super) fn ask_again(&self, known: u64) {
        let Some(credential) = self.credential() else { return };
        let asked: Vec<_> = {
            let state = self.session.courier.lock();
            state.asked.iter().map(|(id, question)| (Arc::clone(id), question.clone())).collect()
        };
        for (id, question) in asked {
            if !question.is_open(&self.state.broker, &credential) {
                self.take_back(&id);
            } else if !self.log().has_call(&id, known) {
                self.tell(id, &question);
            }
        }
    }

    fn ask(&self, question: &Question) {
        let id = question.key();
        {
            let mut state = self.session.courier.lock();
            if state.asked.len() >= ASKED_MAX && !state.asked.contains_key(&id) {
                return;
            }
            state.asked.insert(Arc::clone(&id), question.clone());
        }
        self.tell(id, question);
    }

    fn tell(&self, id: Arc<str>, question: &Question) {
        let form = question.form(self.session.version);
        let asked = outgoing::request(&Id::Text((*id).into()), elicitation::METHOD, &form);
        self.log().forget_call(&id);
        self.log().push_call(asked, id);
    }

    fn take_back(&self, id: &str) {
        if self.session.courier.lock().asked.remove(id).is_some() {
            self.log().forget_call(id);
            let told =
                ServerNotification::Cancelled { id: &Id::Text(id.into()), reason: ELSEWHERE };
            self.log().push(outgoing::notification(&told));
        }
    }
}
