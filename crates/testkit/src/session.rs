//! Calls by name with JSON, as agents and their callers make them, and callers that run tools.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use ringback_broker::{CallerStream, Credential, LineCall, PartyMessage, StreamMode};
use ringback_proto::ToolRequest;
use ringback_proto::error::ToolError;
use ringback_proto::ids::{ProjectId, SessionId};
use serde_json::{Value, json};

use crate::call::result;
use crate::wait::within;
use crate::world::World;

impl World {
    /// Calls a tool; returns its result as JSON.
    ///
    /// # Errors
    /// The error of the call.
    ///
    /// # Panics
    /// If there is no such tool, or the arguments are not its own.
    pub async fn call(
        &self,
        who: &Credential,
        tool: &str,
        arguments: Value,
    ) -> Result<Value, ToolError> {
        self.call_text(who, tool, &arguments.to_string()).await
    }

    /// Calls a tool with arguments whose digits must be kept.
    ///
    /// # Errors
    /// The error of the call.
    ///
    /// # Panics
    /// If there is no such tool, or the arguments are not its own.
    pub async fn call_text(
        &self,
        who: &Credential,
        tool: &str,
        arguments: &str,
    ) -> Result<Value, ToolError> {
        let mut decoder = serde_json::Deserializer::from_str(arguments);
        let request = ToolRequest::deserialize_named(tool, &mut decoder);
        let request = request.expect("a tool of the table").expect("arguments of the tool");
        let response = result(&self.broker, who, request).await?;
        Ok(serde_json::to_value(&response).expect("a response is JSON"))
    }

    /// Creates a token; returns its secret and its credential.
    ///
    /// # Panics
    /// If it cannot be created.
    pub async fn token(&self, scope: &str) -> (String, Credential) {
        let made = json!({ "name": "t", "scope": scope });
        let made = self.call(&Credential::local(), "token_create", made).await.expect("a token");
        let secret = made["token"].as_str().expect("its secret").to_owned();
        let credential = self.broker.authenticate(&secret).expect("a valid token");
        (secret, credential)
    }

    /// Creates a project whose sessions get a key of this scope.
    ///
    /// # Panics
    /// If it cannot be created.
    pub async fn project(&self, who: &Credential, key_level: Option<&str>) -> ProjectId {
        static N_MADE: AtomicU32 = AtomicU32::new(0);
        let name = format!("p{}", N_MADE.fetch_add(1, Ordering::Relaxed));
        let made = json!({ "name": name, "key_level": key_level });
        let made = self.call(who, "project_create", made).await.expect("a project");
        made["project_id"].as_str().and_then(|id| id.parse().ok()).expect("its ID")
    }

    /// Offers other tools to a session, as `caller_id`.
    ///
    /// # Errors
    /// The error of the call.
    pub async fn declare(
        &self,
        who: &Credential,
        session: SessionId,
        caller_id: &str,
        tools: Value,
    ) -> Result<Value, ToolError> {
        let message = json!({
            "session_id": session.to_string(),
            "message": "hello",
            "caller_id": caller_id,
            "caller_tools": tools,
        });
        self.call(who, "session_message", message).await
    }

    /// Connects a caller that stays.
    ///
    /// # Panics
    /// If it may not.
    #[must_use]
    pub fn caller(&self, who: &Credential, session: SessionId) -> Caller {
        let stream = self.broker.callers().open(who, session, None, StreamMode::Lasting);
        Caller { stream: stream.expect("an open stream"), who: who.clone(), session }
    }

    /// Answers a call as its caller would; `outcome` is the text of fields such as `"result":1`.
    ///
    /// # Errors
    /// The error of the call.
    pub async fn answer(
        &self,
        caller: &Caller,
        call: &LineCall,
        outcome: &str,
    ) -> Result<Value, ToolError> {
        let (session, id) = (caller.session, &call.request_id);
        let answer = format!(r#"{{"session_id":"{session}","request_id":"{id}",{outcome}}}"#);
        self.call_text(&caller.who, "caller_tool_response", &answer).await
    }
}

/// A caller that runs tools.
#[derive(Debug)]
pub struct Caller {
    stream: CallerStream,
    /// Its identity.
    pub who: Credential,
    /// The session that uses its tools.
    pub session: SessionId,
}

impl Caller {
    /// Returns what it hears next.
    ///
    /// # Panics
    /// If that does not come, or the stream ends.
    pub async fn next(&mut self) -> PartyMessage<Arc<LineCall>> {
        within("the caller hears", self.stream.next()).await.expect("an open stream")
    }

    /// Returns the next call.
    ///
    /// # Panics
    /// If something else comes.
    pub async fn next_call(&mut self) -> Arc<LineCall> {
        match self.next().await {
            PartyMessage::Call(call) => call,
            PartyMessage::Cancel { .. } => panic!("a cancel, not a call"),
        }
    }
}
