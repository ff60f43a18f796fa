//! A world with both edges for agents, and callers.

use std::ops::Deref;

use ringback_broker::{Credential, SessionLimits};
use ringback_proto::error::ToolError;
use ringback_proto::ids::{ProjectId, SessionId};
use ringback_testkit::{Caller, Setup, shell_agent};
use serde_json::{Value, json};

use crate::agent::{Agent, Door};

pub(crate) struct World {
    pub(crate) who: Credential,
    kit: ringback_testkit::World,
}

impl Deref for World {
    type Target = ringback_testkit::World;

    fn deref(&self) -> &Self::Target {
        &self.kit
    }
}

/// A session of an agent, and its URL with its token.
pub(crate) struct OpenedSession {
    pub(crate) id: SessionId,
    pub(crate) url: String,
    pub(crate) token: String,
}

impl World {
    pub(crate) async fn start() -> Self {
        let setup = Setup::new()
            .relay(ringback_edge_relay::Config::default())
            .mcp(ringback_edge_mcp::Config::default())
            .session_urls()
            .config(|config| {
                let agent = shell_agent("exec sleep 600");
                config.sessions.agents.insert("scripted".to_owned(), agent);
                let limits = config.sessions.limits;
                config.sessions.limits = SessionLimits { live_max: 200, agents_max: 200, ..limits };
            });
        Self { who: Credential::local(), kit: setup.start().await }
    }

    /// Calls a tool and returns its result as JSON.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Result<Value, ToolError> {
        self.kit.call(&self.who, tool, arguments).await
    }

    /// Creates a project whose sessions get a key with this scope.
    pub(crate) async fn project(&self, key_level: Option<&str>) -> ProjectId {
        self.kit.project(&self.who, key_level).await
    }

    /// Opens a session for a remote agent, with these tools of the caller `ant`.
    pub(crate) async fn open(&self, tools: &str) -> OpenedSession {
        let project = self.project(None).await;
        self.open_in(project, tools).await
    }

    pub(crate) async fn open_in(&self, project: ProjectId, tools: &str) -> OpenedSession {
        let open =
            format!(r#"{{"project_id":"{project}","caller_id":"ant","caller_tools":{tools}}}"#);
        let opened = self.call_text(&self.who, "session_open", &open).await.unwrap();
        opened_of(&opened)
    }

    /// Offers other tools as `caller_id`.
    pub(crate) async fn declare(&self, session: SessionId, caller_id: &str, tools: Value) {
        self.kit.declare(&self.who, session, caller_id, tools).await.unwrap();
    }

    /// Starts an agent in a session.
    pub(crate) async fn agent(&self, door: Door, session: &OpenedSession) -> Agent {
        Agent::start(door, &self.socket(session.id), session, None).await
    }

    /// Connects a caller that stays.
    pub(crate) fn caller(&self, session: SessionId) -> Caller {
        self.kit.caller(&self.who, session)
    }

    pub(crate) async fn end(&self, session: SessionId) {
        let end = json!({ "session_id": session.to_string() });
        self.call("session_end", end).await.unwrap();
    }

    /// Stops everything.
    pub(crate) async fn stop(self) {
        drop(self.kit.stop().await);
    }
}

pub(crate) fn opened_of(answer: &Value) -> OpenedSession {
    let text = |name: &str| answer[name].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
    OpenedSession {
        id: text("session_id").parse().unwrap(),
        url: text("url"),
        token: text("token"),
    }
}
