//! Permission requests of sessions as forms for the person behind a client, the same in both eras.
//! They are based only on session events, so that every request is passed on.

use std::sync::Arc;

use ringback_broker::{Broker, Credential};
use ringback_mcp_wire::elicitation::{Form, FormResult};
use ringback_mcp_wire::{RawValue, Version};
use ringback_proto::ids::SessionId;
use ringback_proto::request::{
    PermissionAnswer, PermissionChoice, SessionEventInfo, SessionMessageRequest,
};

use crate::tools::{self, Outcome};

/// The event of a permission request.
const ASKED: &str = "permission_request";
/// The event of its answer.
const ANSWERED: &str = "permission_answer";
/// How much of an agent's request is shown.
const SUBJECT_CHARS_MAX: usize = 500;
/// The options that refuse: once, before always.
const REJECTS: [&str; 2] = ["reject_once", "reject_always"];

/// A permission request of a session.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    session: SessionId,
    pub(crate) request_id: String,
    message: String,
    choices: Vec<PermissionChoice>,
}

impl Question {
    /// Returns the question of an event, if it is unanswered and this caller may answer it.
    pub(crate) fn of(
        broker: &Broker,
        credential: &Credential,
        event: &SessionEventInfo,
    ) -> Option<Self> {
        if event.kind != ASKED || event.options.is_empty() {
            return None;
        }
        // A question without a tool is one of the daemon, in its own words.
        let is_of_agent = event.tool_name.is_some();
        let subject = event.tool_name.as_ref().or(event.text.as_ref())?;
        // The text is the agent's own: one line, and no more than a person reads.
        let subject: String = subject
            .chars()
            .take(SUBJECT_CHARS_MAX)
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        let session = event.session_id;
        let question = Self {
            session,
            request_id: event.request_id.clone()?,
            message: if is_of_agent {
                format!("The agent of {session} asks for permission: {subject}")
            } else {
                format!("{session}: {subject}")
            },
            choices: event.options.clone(),
        };
        question.is_open(broker, credential).then_some(question)
    }

    /// Whether it is unanswered, and this caller may answer it.
    pub(crate) fn is_open(&self, broker: &Broker, credential: &Credential) -> bool {
        broker.may_answer(credential, self.session, &self.request_id)
    }

    /// The key of a request about it.
    pub(crate) fn key(&self) -> Arc<str> {
        key(self.session, &self.request_id)
    }

    pub(crate) fn form(&self, version: Version) -> Form<'_> {
        let answers = self.choices.iter().map(|it| (it.id.as_str(), it.name.as_str())).collect();
        Form { message: &self.message, answers, version }
    }

    /// Passes on the result of its form. A result without an answer leaves it open for others.
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
        // Another answer may have been first; then this one does not count, as it should.
        if let Outcome::Failed(error) = tools::again(broker, credential, request).await {
            tracing::debug!(session = %self.session, %error, "an answer was not accepted");
        }
    }

    /// The answer: `Some(None)` withdraws the question.
    fn option(&self, result: &RawValue) -> Option<Option<String>> {
        match FormResult::of(result)? {
            FormResult::Accepted(option) => {
                let is_offered = self.choices.iter().any(|choice| choice.id == option);
                is_offered.then(|| Some(option.into_owned()))
            }
            FormResult::Declined => {
                let of_kind = |kind| self.choices.iter().find(move |choice| choice.kind == kind);
                Some(REJECTS.into_iter().find_map(of_kind).map(|choice| choice.id.clone()))
            }
            FormResult::Cancelled => Some(None),
        }
    }
}

/// The key of the question whose end an event reports.
pub(crate) fn answered(event: &SessionEventInfo) -> Option<Arc<str>> {
    let request_id = event.request_id.as_ref().filter(|_| event.kind == ANSWERED)?;
    Some(key(event.session_id, request_id))
}

fn key(session: SessionId, request_id: &str) -> Arc<str> {
    format!("{session}/{request_id}").into()
}
