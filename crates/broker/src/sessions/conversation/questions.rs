//! Open questions of sessions: permission requests and limit questions without an answer yet, as
//! recorded by their events. The first answer counts.

use std::collections::HashMap;

use ringback_core::policy;
use ringback_proto::ids::SessionId;
use ringback_proto::principal::Level;
use ringback_proto::request::{PermissionAnswer, PermissionChoice, SessionEventInfo};
use ringback_proto::{Error, ErrorKind, Result};

use crate::Broker;
use crate::identity::Credential;
use crate::sessions::Conversations;
use crate::sessions::conversation::events::event;
use crate::sync::lock;

/// Event types of a question, and of its end.
pub(in crate::sessions) const ASKED: &str = "permission_request";
pub(in crate::sessions) const ANSWERED: &str = "permission_answer";
/// Maximum open questions of one session; more than any agent asks.
const OPEN_MAX: usize = 64;

/// All open questions.
#[derive(Debug, Default)]
pub(in crate::sessions) struct Questions(HashMap<SessionId, Vec<OpenQuestion>>);

#[derive(Debug)]
struct OpenQuestion {
    request_id: String,
    options: Vec<PermissionChoice>,
    /// An answer is on its way.
    is_taken: bool,
}

impl Questions {
    /// Updates the questions of a session for an event.
    fn note(&mut self, session: SessionId, event: &SessionEventInfo) {
        let Some(request_id) = &event.request_id else { return };
        if event.kind == ASKED {
            let open = self.0.entry(session).or_default();
            if open.len() < OPEN_MAX {
                let (request_id, options) = (request_id.clone(), event.options.clone());
                open.push(OpenQuestion { request_id, options, is_taken: false });
            }
        } else if event.kind == ANSWERED
            && let Some(open) = self.0.get_mut(&session)
        {
            open.retain(|open| open.request_id != *request_id);
            if open.is_empty() {
                self.0.remove(&session);
            }
        }
    }

    fn find(&mut self, session: SessionId, request_id: &str) -> Option<&mut OpenQuestion> {
        let open = self.0.get_mut(&session)?.iter_mut();
        open.filter(|open| !open.is_taken).find(|open| open.request_id == request_id)
    }

    /// Claims a question for a valid answer. Later answers are refused.
    fn take(&mut self, session: SessionId, answer: &PermissionAnswer) -> Result<()> {
        let PermissionAnswer { request_id, option } = answer;
        let Some(open) = self.find(session, request_id) else {
            let message = format!(
                "question `{request_id}` in {session} is not open: it was answered or withdrawn"
            );
            return Err(Error::new(ErrorKind::Conflict, message));
        };
        let is_offered = |id: &String| open.options.iter().any(|option| option.id == *id);
        if let Some(option) = option.as_ref().filter(|id| !is_offered(id)) {
            let names: Vec<_> = open.options.iter().map(|it| it.id.as_str()).collect();
            let message = format!(
                "`{option}` is not an answer to `{request_id}`; choose one of {}",
                names.join(", ")
            );
            return Err(Error::invalid_field("answer", message));
        }
        open.is_taken = true;
        Ok(())
    }

    /// Reopens a question whose answer could not be passed on.
    fn give_back(&mut self, session: SessionId, request_id: &str) {
        let open = self.0.get_mut(&session).into_iter().flatten();
        for open in open.filter(|open| open.request_id == request_id) {
            open.is_taken = false;
        }
    }

    fn remove_all(&mut self, session: SessionId) -> Vec<String> {
        let open = self.0.remove(&session).unwrap_or_default();
        open.into_iter().map(|open| open.request_id).collect()
    }
}

impl Conversations {
    /// Updates the questions before an event is published, so that subscribers find them current.
    pub(in crate::sessions) fn note_question(&self, session: SessionId, event: &SessionEventInfo) {
        lock(&self.questions).note(session, event);
    }

    /// Claims a question for an answer, which `pass` passes on.
    pub(in crate::sessions) fn answer_question(
        &self,
        session: SessionId,
        answer: &PermissionAnswer,
        pass: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        lock(&self.questions).take(session, answer)?;
        pass().inspect_err(|_| {
            lock(&self.questions).give_back(session, &answer.request_id);
        })
    }

    /// Withdraws all questions of a session whose agent is gone.
    pub(in crate::sessions) fn take_questions_back(&self, session: SessionId) {
        let open = lock(&self.questions).remove_all(session);
        for request_id in open {
            let (request_id, role) = (Some(request_id), Some("end".to_owned()));
            self.say(session, SessionEventInfo { request_id, role, ..event(ANSWERED) });
        }
    }
}

impl Broker {
    /// Returns whether a question of a session is open and this principal may answer it.
    #[must_use]
    pub fn may_answer(&self, who: &Credential, session: SessionId, request_id: &str) -> bool {
        let Ok(principal) = who.principal(self.0.kernel.now()) else { return false };
        let Some(view) = self.session_view(session) else { return false };
        let is_seen = policy::sight(principal).includes(view.owner, Some(view.project));
        let is_own = policy::may_answer(principal, view.owner).is_ok();
        is_seen
            && is_own
            && principal.level >= Level::Write
            && lock(&self.0.conversations.questions).find(session, request_id).is_some()
    }
}
