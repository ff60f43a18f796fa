//! What sessions ask permission for, as forms for the person behind a client: the same in both eras.
//! It hangs on the events of a session and on nothing else, so that whatever asks is passed on.

use std::sync::Arc;

use ringback_broker::{Broker, Credential};
use ringback_mcp_wire::elicitation::{Elicited, Form};
use ringback_mcp_wire::{RawValue, Version};
use ringback_proto::ids::SessionId;
use ringback_proto::request::{
    PermissionAnswer, PermissionChoice, SessionEventInfo, SessionMessageRequest,
};

use crate::tools::{self, Outcome};

/// The event of a question.
const ASKED: &str = "permission_request";
/// The event of its end.
const ANSWERED: &str = "permission_answer";
/// What is shown of what an agent says that it wants.
const SUBJECT_CHARS_MAX: usize = 500;
/// What says no, this time before for ever.
const REJECTS: [&str; 2] = ["reject_once", "reject_always"];

/// A question of a session.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    session: SessionId,
    pub(crate) request_id: String,
    message: String,
    choices: Vec<PermissionChoice>,
}

impl Question {
    /// The question of an event, if it is one that this caller may decide and nobody has.
    pub(crate) fn of(
        broker: &Broker,
        credential: &Credential,
        event: &SessionEventInfo,
    ) -> Option<Self> {
        if event.kind != ASKED || event.options.is_empty() {
            return None;
        }
        let subject = event.tool_name.as_ref().or(event.text.as_ref())?;
        // It is the agent's own word: on one line, and no more than a person reads.
        let subject: String = subject
            .chars()
            .take(SUBJECT_CHARS_MAX)
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        let session = event.session_id;
        let question = Self {
            session,
            request_id: event.request_id.clone()?,
            message: format!("The agent of {session} asks for permission: {subject}"),
            choices: event.options.clone(),
        };
        question.is_open(broker, credential).then_some(question)
    }

    /// Whether nobody has answered it, and this caller may.
    pub(crate) fn is_open(&self, broker: &Broker, credential: &Credential) -> bool {
        broker.may_answer(credential, self.session, &self.request_id)
    }

    /// What a request about it goes by.
    pub(crate) fn key(&self) -> Arc<str> {
        key(self.session, &self.request_id)
    }

    pub(crate) fn form(&self, version: Version) -> Form<'_> {
        let answers = self.choices.iter().map(|it| (it.id.as_str(), it.name.as_str())).collect();
        Form { message: &self.message, answers, version }
    }

    /// Passes on what came of its form. What is no answer leaves it open for others.
    pub(crate) async fn answer(&self, broker: &Broker, credential: &Credential, result: &RawValue) {
        let Some(option) = self.option(result) else {
            return tracing::debug!(session = %self.session, "a client returned an empty form");
        };
        let answer = PermissionAnswer { request_id: self.request_id.clone(), option };
        let request = SessionMessageRequest {
            session_id: Some(self.session),
            answer: Some(Box::new(answer)),
            ..SessionMessageRequest::default()
        };
        // Somebody else may have been first; then this answer counts for nothing, as it should.
        if let Outcome::Failed(error) = tools::again(broker, credential, request).await {
            tracing::debug!(session = %self.session, %error, "an answer was not accepted");
        }
    }

    /// The answer: `Some(None)` takes the question back.
    fn option(&self, result: &RawValue) -> Option<Option<String>> {
        match Elicited::of(result)? {
            Elicited::Accepted(option) => {
                let is_offered = self.choices.iter().any(|choice| choice.id == option);
                is_offered.then(|| Some(option.into_owned()))
            }
            Elicited::Declined => {
                let of_kind = |kind| self.choices.iter().find(move |choice| choice.kind == kind);
                Some(REJECTS.into_iter().find_map(of_kind).map(|choice| choice.id.clone()))
            }
            Elicited::Cancelled => Some(None),
        }
    }
}

/// What a question went by whose end an event tells.
pub(crate) fn answered(event: &SessionEventInfo) -> Option<Arc<str>> {
    let request_id = event.request_id.as_ref().filter(|_| event.kind == ANSWERED)?;
    Some(key(event.session_id, request_id))
}

fn key(session: SessionId, request_id: &str) -> Arc<str> {
    format!("{session}/{request_id}").into()
}
