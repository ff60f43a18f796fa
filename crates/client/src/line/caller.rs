//! The calling side of client tools, over the same HTTP: lists and calls them.

use std::collections::BTreeMap;
use std::time::Duration;

use hyper::Method;
use ringback_proto::secret::Secret;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::error::LineError;
use super::http::{Http, HttpRequest};
use super::party::json;
use super::read_json;

/// Calls client tools over HTTP, where input and result are passed on byte for byte.
#[derive(Debug)]
pub struct LineCaller {
    pub(super) http: Http,
}

/// The answer of a client.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ClientAnswer {
    /// A heading.
    pub title: String,
    /// The result.
    pub output: String,
}

#[derive(Serialize)]
struct ExecuteBody<'a> {
    #[serde(rename = "toolID")]
    tool_id: &'a str,
    #[serde(rename = "requestID")]
    request_id: &'a str,
    #[serde(rename = "sessionID")]
    session_id: &'a str,
    #[serde(rename = "messageID")]
    message_id: &'a str,
    #[serde(rename = "callID")]
    call_id: &'a str,
    input: &'a RawValue,
    timeout: u64,
}

impl LineCaller {
    /// The longest call, limited by the time of a whole exchange.
    pub const TIMEOUT_MAX: Duration = Duration::from_secs(25);

    /// Makes a caller for the daemon whose HTTP listener is at `address`.
    ///
    /// # Errors
    /// If the token cannot be sent.
    pub fn new(address: impl Into<String>, token: Option<&Secret>) -> Result<Self, LineError> {
        Ok(Self { http: Http::new(address.into(), token)? })
    }

    /// Returns the full names of all client tools that this caller may see.
    ///
    /// # Errors
    /// If the daemon cannot be reached or refuses the token.
    pub async fn tools(&self) -> Result<Vec<String>, LineError> {
        let action = "list the client tools";
        let path = "/client-tools/tools".to_owned();
        let answer =
            self.http.ask(HttpRequest { action, method: Method::GET, path, body: None }).await?;
        let tools = read_json::<BTreeMap<String, serde::de::IgnoredAny>>(action, &answer)?;
        Ok(tools.into_keys().collect())
    }

    /// Calls a tool by its full name, with an id of the caller's choice, and waits for its result,
    /// for at most [`Self::TIMEOUT_MAX`].
    ///
    /// # Errors
    /// [`LineError::Refused`] with 502 if the tool failed, 503 if its client is gone, 504 if it
    /// took too long, 404 for an unknown tool.
    ///
    /// # Cancel safety
    /// A call that is dropped is cancelled at the daemon, and from there at its client.
    pub async fn execute(
        &self,
        tool_id: &str,
        request_id: &str,
        input: &RawValue,
    ) -> Result<ClientAnswer, LineError> {
        let action = "call a client tool";
        let timeout = u64::try_from(Self::TIMEOUT_MAX.as_millis()).unwrap_or(u64::MAX);
        let (session_id, message_id, call_id) = ("session", "message", "call");
        let execute =
            ExecuteBody { tool_id, request_id, session_id, message_id, call_id, input, timeout };
        let path = "/client-tools/execute".to_owned();
        let body = Some(json(&execute));
        let answer =
            self.http.ask(HttpRequest { action, method: Method::POST, path, body }).await?;
        read_json(action, &answer)
    }
}
