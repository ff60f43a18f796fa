//! What a party says of the calls it carries out.

use std::sync::Arc;

use hyper::Method;
use serde::Serialize;

use super::error::LineError;
use super::http::{Ask, Http};

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum LineResult {
    /// Well.
    Success {
        /// A heading.
        title: String,
        /// The result.
        output: String,
    },
    /// Not well.
    Error {
        /// What happened.
        error: String,
    },
}

/// Speaks for a party: a cloneable handle beside the [`super::Line`] that gets the calls.
#[derive(Debug, Clone)]
pub struct LineParty {
    http: Arc<Http>,
}

#[derive(Serialize)]
struct Posted<'a> {
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

    /// Answers a call. Whether it counts: it does not when the call has ended already, or was
    /// answered by an earlier try of this.
    ///
    /// # Errors
    /// If the daemon cannot be reached or does not take the result; see [`LineError::is_final`].
    pub async fn answer(&self, request_id: &str, result: &LineResult) -> Result<bool, LineError> {
        let body = json(&Posted { request_id, result });
        self.tell("post a result", "/client-tools/result", body).await
    }

    /// Tells how far a call is, 0 to 100. Whether anybody still waits for it.
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
        let ask = Ask { action, method: Method::POST, path: path.to_owned(), body: Some(body) };
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
