//! Whether the model of a session answers: an agent that never reached its model has done nothing,
//! whatever it says.

use ringback_proto::network::NetworkMode;
use ringback_proto::request::{ModelFailure, SessionModel};

use crate::sessions::{LiveSession, ModelRequest};
use crate::sync::lock;

/// What an agent sends to a model has this method; others only look around.
const METHOD: &str = "POST";

/// The model requests of a session since its last message.
#[derive(Debug, Default)]
pub(super) struct ModelProgress {
    has_succeeded: bool,
    failure: Option<ModelFailure>,
}

impl ModelProgress {
    /// Counts a request that has ended.
    pub(super) fn note(&mut self, request: &ModelRequest) {
        let ModelRequest { method, status, refusal, key, .. } = request;
        if method != METHOD {
            return;
        }
        if status.is_some_and(|status| (200..300).contains(&status)) {
            self.has_succeeded = true;
        }
        let cause = refusal.clone().unwrap_or_else(|| cause(*status).to_owned());
        // The proxy's own answers have a status too, but it is not the provider's.
        let status = status.filter(|_| refusal.is_none());
        self.failure = Some(ModelFailure { status, cause, key: key.clone() });
    }
}

impl LiveSession {
    /// Returns the model of its agent, if it has one.
    pub(super) fn session_model(&self) -> Option<SessionModel> {
        let provider = self.chosen.provider()?.to_owned();
        let progress = lock(&self.model);
        let unused = || {
            let is_closed = self.network().is_some_and(|it| it.mode < NetworkMode::Model);
            let cause = if is_closed {
                "the session's network policy is `none`, which closes the way to the model"
            } else {
                "the agent sent no request to it"
            };
            ModelFailure { status: None, cause: cause.to_owned(), key: None }
        };
        let failure =
            (!progress.has_succeeded).then(|| progress.failure.clone().unwrap_or_else(unused));
        let name = self.chosen.command.model.clone();
        Some(SessionModel { provider, name, failure })
    }
}

/// What an answer's status most often means.
const fn cause(status: Option<u16>) -> &'static str {
    match status {
        None => "the agent gave up before there was an answer",
        Some(400) => "it does not accept the request",
        Some(401 | 403) => "it refused the key",
        Some(402) => "the account has no credit",
        Some(404) => "it does not know the model or the address",
        Some(429) => "a rate limit or quota was reached",
        Some(500..=599) => "it failed",
        Some(_) => "it sent no answer of a model",
    }
}
