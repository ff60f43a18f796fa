//! A party's answers to its calls.

use std::sync::Arc;

use hyper::Method;
use serde::Serialize;

use super::error::LineError;
use super::http::{Http, HttpRequest};

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum LineResult {
    /// Success.
    Success {
        /// A heading.
        title: String,
        /// The result.
        output: String,
    },
    /// Failure.
    Error {
        /// The error.
        error: String,
    },
}

/// Answers for a party: a cloneable handle beside the [`super::Line`] that receives the calls.
#[derive(Debug, Clone)]
pub struct LineParty {
    http: Arc<Http>,
}

#[derive(Serialize)]
struct ResultBody<'a> {
    #[serde(rename = "requestID")]
    request_id: &'a str,
    result: &'a LineResult,
}

#[derive(Serialize)]
struct Progress<'a> {
    #[serde(rename = "requestID")]
    request_id: &'a str,
    percent: f32,
    message: &'a str,
}

impl LineParty {
    pub(super) const fn new(http: Arc<Http>) -> Self {
        Self { http }
    }

    /// Answers a call. Returns whether the answer counts: not if the call has already ended, or an
    /// earlier attempt has answered it.
    ///
    /// # Errors
    /// If the daemon cannot be reached or does not accept the result; see [`LineError::is_final`].
    pub async fn answer(&self, request_id: &str, result: &LineResult) -> Result<bool, LineError> {
        let body = json(&ResultBody { request_id, result });
        self.tell("post a result", "/client-tools/result", body).await
    }

    /// Reports the progress of a call, from 0 to 100. Returns whether the call is still waiting.
    ///
    /// # Errors
    /// As for [`Self::answer`].
    pub async fn progress(
        &self,
        request_id: &str,
        percent: f32,
        message: &str,
    ) -> Result<bool, LineError> {
        let body = json(&Progress { request_id, percent, message });
        self.tell("report progress", "/client-tools/progress", body).await
    }

    async fn tell(
        &self,
        action: &'static str,
        path: &str,
        body: Vec<u8>,
    ) -> Result<bool, LineError> {
        let ask =
            HttpRequest { action, method: Method::POST, path: path.to_owned(), body: Some(body) };
        match self.http.ask(ask).await {
            Ok(_) => Ok(true),
            Err(LineError::Refused { status: 404, .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

pub(super) fn json<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).expect("texts and numbers can be written as JSON")
}
