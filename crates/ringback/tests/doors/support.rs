//! A broker with both edges for agents, and callers.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use ringback_broker::{
    AgentCommand, Answer, Broker, Call, CallerStream, Clock, Config, ConfigView, Credential, Edge,
    Entropy, Holding, LineCall, LineSettings, RelayDoor, SessionLimits, SessionSettings, ToParty,
};
use ringback_edge_mcp::McpEdge;
use ringback_edge_relay::RelayEdge;
use ringback_proto::envelope::{CallOptions, RequestEnvelope, ToolCall};
use ringback_proto::error::ToolError;
use ringback_proto::ids::{ProjectId, SessionId};
use ringback_proto::value::Value as AnyValue;
use ringback_proto::{ResponseEnvelope, ToolRequest};
use ringback_service::{HttpConfig, HttpListener};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::agent::{Agent, Door};

/// Longer than anything here takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

#[derive(Debug)]
struct NoConfig;

impl ConfigView for NoConfig {
    fn get(&self, _: Option<&str>, _: Option<&str>) -> Option<AnyValue> {
        None
    }
}

/// The relay, and the sockets it opened.
#[derive(Debug)]
struct Noted {
    relay: Arc<RelayEdge>,
    dirs: Mutex<HashMap<SessionId, Utf8PathBuf>>,
}

impl RelayDoor for Noted {
    fn open(
        &self,
        broker: Broker,
        session: SessionId,
        dir: &Utf8Path,
    ) -> io::Result<Box<dyn std::any::Any + Send + Sync>> {
        self.dirs.lock().unwrap().insert(session, dir.to_owned());
        self.relay.open(broker, session, dir)
    }
}

pub(crate) struct World {
    pub(crate) broker: Broker,
    pub(crate) who: Credential,
    pub(crate) address: String,
    relay: Arc<RelayEdge>,
    noted: Arc<Noted>,
    stop: CancellationToken,
    serving: JoinSet<()>,
    _dir: tempfile::TempDir,
}

/// A session of an agent, and its URL with its token.
pub(crate) struct Opened {
    pub(crate) id: SessionId,
    pub(crate) url: String,
    pub(crate) token: String,
}

impl World {
    pub(crate) async fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut config = broker_config(Utf8Path::from_path(dir.path()).unwrap());
        let relay = Arc::new(RelayEdge::new(ringback_edge_relay::Config::default()));
        let noted = Arc::new(Noted { relay: Arc::clone(&relay), dirs: Mutex::default() });
        config.sessions.doors.relay = Some(Arc::<Noted>::clone(&noted));
        let listen = "127.0.0.1:0".parse().unwrap();
        let http = HttpConfig { listen, max_connections: 1024, ..HttpConfig::default() };
        let listener = HttpListener::bind(http).await.unwrap();
        let address = format!("http://{}", listener.local_addr());
        config.sessions.doors.url = Some(address.clone());
        let broker = Broker::start(config, Clock::system(), Entropy::system()).await.unwrap();
        let mcp = McpEdge::new(ringback_edge_mcp::Config::default(), broker.clone());
        let (stop, mut serving) = (CancellationToken::new(), JoinSet::new());
        serving.spawn(mcp.clone().serve(stop.clone()));
        serving.spawn(listener.serve(mcp.router(), stop.clone()));
        let who = Credential::local();
        Self { broker, who, address, relay, noted, stop, serving, _dir: dir }
    }

    /// Calls a tool and returns its result as JSON.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Result<Value, ToolError> {
        self.call_as(&self.who, tool, &arguments.to_string()).await
    }

    /// Calls a tool with arguments whose digits must be kept.
    pub(crate) async fn call_as(
        &self,
        credential: &Credential,
        tool: &str,
        arguments: &str,
    ) -> Result<Value, ToolError> {
        let mut decoder = serde_json::Deserializer::from_str(arguments);
        let request = ToolRequest::deserialize_named(tool, &mut decoder).unwrap().unwrap();
        let options = CallOptions { wait_ms: Some(30_000), ..CallOptions::default() };
        let envelope = RequestEnvelope { request: ToolCall::Native(request), options };
        let call = Call { credential, edge: Edge::Mcp, envelope, request_id: None };
        let reply = match self.broker.call(call) {
            Answer::Now(reply) => reply,
            Answer::Later(mut replies, _) => replies.next().await.unwrap(),
        };
        match reply {
            ResponseEnvelope::Success { response } => Ok(serde_json::to_value(&response).unwrap()),
            ResponseEnvelope::Error(error) => Err(error),
            other @ (ResponseEnvelope::JobStarted { .. }
            | ResponseEnvelope::Ack { .. }
            | ResponseEnvelope::StreamStart { .. }
            | ResponseEnvelope::StreamChunk { .. }
            | ResponseEnvelope::StreamEnd { .. }) => {
                panic!("neither a result nor an error: {other:?}")
            }
        }
    }

    /// Creates a token; returns its secret and its credential.
    pub(crate) async fn token(&self, scope: &str) -> (String, Credential) {
        let made = self.call("token_create", json!({ "name": "t", "scope": scope })).await.unwrap();
        let secret = made["token"].as_str().unwrap().to_owned();
        let credential = self.broker.authenticate(&secret).unwrap();
        (secret, credential)
    }

    /// Creates a project whose sessions get a key with this scope.
    pub(crate) async fn project(&self, key_level: Option<&str>) -> ProjectId {
        static N_MADE: AtomicU32 = AtomicU32::new(0);
        let name = format!("p{}", N_MADE.fetch_add(1, Ordering::Relaxed));
        let made = json!({ "name": name, "key_level": key_level });
        let made = self.call("project_create", made).await.unwrap();
        made["project_id"].as_str().unwrap().parse().unwrap()
    }

    /// Opens a session for a remote agent, with these tools of the caller `ant`.
    pub(crate) async fn open(&self, tools: &str) -> Opened {
        let project = self.project(None).await;
        self.open_in(project, tools).await
    }

    pub(crate) async fn open_in(&self, project: ProjectId, tools: &str) -> Opened {
        let open =
            format!(r#"{{"project_id":"{project}","caller_id":"ant","caller_tools":{tools}}}"#);
        let opened = self.call_as(&self.who, "session_open", &open).await.unwrap();
        opened_of(&opened)
    }

    /// Offers other tools as `caller_id`.
    pub(crate) async fn declare(&self, session: SessionId, caller_id: &str, tools: Value) {
        let message = json!({
            "session_id": session.to_string(), "message": "look again",
            "caller_id": caller_id, "caller_tools": tools,
        });
        self.call("session_message", message).await.unwrap();
    }

    pub(crate) fn socket(&self, session: SessionId) -> Utf8PathBuf {
        self.noted.dirs.lock().unwrap()[&session].join("relay.sock")
    }

    /// Starts an agent in a session.
    pub(crate) async fn agent(&self, door: Door, session: &Opened) -> Agent {
        Agent::start(door, &self.socket(session.id), session, None).await
    }

    /// Connects a caller that stays.
    pub(crate) fn caller(&self, session: SessionId) -> Caller {
        let stream =
            self.broker.callers().open(&self.who, session, None, Holding::Lasting).unwrap();
        Caller { stream, session }
    }

    /// Answers a call as its caller would.
    pub(crate) async fn answer(
        &self,
        caller: &Caller,
        call: &LineCall,
        outcome: &str,
    ) -> Result<Value, ToolError> {
        let (session, id) = (caller.session, &call.request_id);
        let answer = format!(r#"{{"session_id":"{session}","request_id":"{id}",{outcome}}}"#);
        self.call_as(&self.who, "caller_tool_response", &answer).await
    }

    pub(crate) async fn end(&self, session: SessionId) {
        let end = json!({ "session_id": session.to_string() });
        self.call("session_end", end).await.unwrap();
    }

    /// Stops everything.
    pub(crate) async fn stop(mut self) {
        self.stop.cancel();
        within("the HTTP edge stops", async { while self.serving.join_next().await.is_some() {} })
            .await;
        within("the broker stops", self.broker.stop(Duration::from_millis(50))).await;
        within("the relay stops", self.relay.stop()).await;
    }
}

pub(crate) fn opened_of(answer: &Value) -> Opened {
    let text = |name: &str| answer[name].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
    Opened { id: text("session_id").parse().unwrap(), url: text("url"), token: text("token") }
}

/// A caller that runs tools.
pub(crate) struct Caller {
    stream: CallerStream,
    session: SessionId,
}

impl Caller {
    pub(crate) async fn next(&mut self) -> ToParty<Arc<LineCall>> {
        within("the caller hears", self.stream.next()).await.unwrap()
    }

    pub(crate) async fn next_call(&mut self) -> Arc<LineCall> {
        match self.next().await {
            ToParty::Call(call) => call,
            ToParty::Cancel { .. } => panic!("a cancel, not a call"),
        }
    }
}

/// Awaits a future that must not hang.
pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, future).await.unwrap_or_else(|_| panic!("timed out: {what}"))
}

fn broker_config(root: &Utf8Path) -> Config {
    let command = ["/bin/sh", "-c", "exec sleep 600"].map(str::to_owned).to_vec();
    let agent = AgentCommand { command, ..AgentCommand::default() };
    let mut sessions = SessionSettings::in_dir(root.join("run"));
    sessions.agents.insert("scripted".to_owned(), agent);
    sessions.limits = SessionLimits { live_max: 200, agents_max: 200, ..sessions.limits };
    sessions.end_grace = Duration::from_millis(100);
    Config {
        data_dir: root.join("data"),
        file_roots: Vec::new(),
        version: "test".to_owned(),
        view: Arc::new(NoConfig),
        calls_per_principal_max: 1000,
        jobs_running_max: 64,
        jobs_live_max: 200,
        jobs_per_principal_max: 200,
        events_kept_max: 100,
        uploads_open_max: 4,
        upload_bytes_max: 1 << 20,
        call_ms_max: 3_600_000,
        studio: Arc::new(ringback_broker::studio::NoStudio),
        containers: ringback_broker::ContainerSettings::default(),
        lines: LineSettings::default(),
        sessions,
    }
}
