//! A broker with the edge, peers that speak the protocol by hand, and callers.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use ringback_broker::{
    AgentCommand, Answer, Broker, Call, CallerStream, Clock, Config, ConfigView, Credential, Edge,
    Entropy, Holding, LineCall, LineSettings, RelayDoor, SessionLimits, SessionSettings, ToParty,
};
use ringback_edge_relay::{Config as RelayConfig, RelayEdge};
use ringback_proto::envelope::{CallOptions, RequestEnvelope, ToolCall};
use ringback_proto::error::ToolError;
use ringback_proto::ids::{ProjectId, SessionId};
use ringback_proto::value::Value as AnyValue;
use ringback_proto::{ResponseEnvelope, ToolRequest};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

/// Longer than anything here takes on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

#[derive(Debug)]
struct NoConfig;

impl ConfigView for NoConfig {
    fn get(&self, _: Option<&str>, _: Option<&str>) -> Option<AnyValue> {
        None
    }
}

/// The edge, and the directories of the sockets it opened.
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
    pub(crate) relay: Arc<RelayEdge>,
    noted: Arc<Noted>,
    dir: tempfile::TempDir,
}

/// Prints its key, then waits forever.
const AGENT: &str =
    r#"printf '{"type":"message","text":"%s"}\n' "$OUBLIETTE_API_KEY"; exec sleep 600"#;

impl World {
    pub(crate) async fn start() -> Self {
        Self::start_with(RelayConfig::default(), |_| ()).await
    }

    pub(crate) async fn start_with(relay: RelayConfig, change: impl FnOnce(&mut Config)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut config = broker_config(Utf8Path::from_path(dir.path()).unwrap());
        change(&mut config);
        let relay = Arc::new(RelayEdge::new(relay));
        let dirs = Mutex::default();
        let noted = Arc::new(Noted { relay: Arc::clone(&relay), dirs });
        config.sessions.doors.relay = Some(Arc::<Noted>::clone(&noted));
        let broker = Broker::start(config, Clock::system(), Entropy::system()).await.unwrap();
        Self { broker, relay, noted, dir }
    }

    /// Calls a tool; returns its result as JSON.
    pub(crate) async fn call(
        &self,
        who: &Credential,
        tool: &str,
        arguments: Value,
    ) -> Result<Value, ToolError> {
        self.call_text(who, tool, &arguments.to_string()).await
    }

    /// Calls a tool with arguments whose digits matter.
    pub(crate) async fn call_text(
        &self,
        who: &Credential,
        tool: &str,
        arguments: &str,
    ) -> Result<Value, ToolError> {
        let mut decoder = serde_json::Deserializer::from_str(arguments);
        let request = ToolRequest::deserialize_named(tool, &mut decoder).unwrap().unwrap();
        let options = CallOptions { wait_ms: Some(30_000), ..CallOptions::default() };
        let envelope = RequestEnvelope { request: ToolCall::Native(request), options };
        let call = Call { credential: who, edge: Edge::Mcp, envelope, request_id: None };
        let reply = match self.broker.call(call) {
            Answer::Now(reply) => reply,
            Answer::Later(mut replies, _) => replies.next().await.unwrap(),
        };
        match reply {
            ResponseEnvelope::Success { response } => Ok(serde_json::to_value(&response).unwrap()),
            ResponseEnvelope::Error(error) => Err(error),
            other => panic!("neither a result nor an error: {other:?}"),
        }
    }

    /// Creates a token; returns its secret and its credential.
    pub(crate) async fn token(&self, scope: &str) -> (String, Credential) {
        let made = json!({ "name": "t", "scope": scope });
        let made = self.call(&Credential::local(), "token_create", made).await.unwrap();
        let secret = made["token"].as_str().unwrap().to_owned();
        let credential = self.broker.authenticate(&secret).unwrap();
        (secret, credential)
    }

    /// Creates a project whose sessions get a key of this scope.
    pub(crate) async fn project(&self, who: &Credential, key_level: Option<&str>) -> ProjectId {
        static N_MADE: AtomicU32 = AtomicU32::new(0);
        let name = format!("p{}", N_MADE.fetch_add(1, Ordering::Relaxed));
        let made = json!({ "name": name, "key_level": key_level });
        let made = self.call(who, "project_create", made).await.unwrap();
        made["project_id"].as_str().unwrap().parse().unwrap()
    }

    /// Creates a session in a new project, with these tools of the caller `ant`.
    pub(crate) async fn session(&self, who: &Credential, tools: Value) -> SessionId {
        let project = self.project(who, None).await;
        self.session_in(who, project, tools).await
    }

    pub(crate) async fn session_in(
        &self,
        who: &Credential,
        project: ProjectId,
        tools: Value,
    ) -> SessionId {
        let spawn = json!({
            "project_id": project.to_string(),
            "create_workspace": true,
            "context": { "caller_id": "ant", "caller_tools": tools },
        });
        let spawned = self.call(who, "session_spawn", spawn).await.unwrap();
        spawned["session_id"].as_str().unwrap().parse().unwrap()
    }

    /// Offers other tools as `caller_id`.
    pub(crate) async fn declare(
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

    /// The key that a session's agent prints.
    pub(crate) async fn key_of(&self, who: &Credential, session: SessionId) -> String {
        let id = session.to_string();
        let hello = json!({ "session_id": id, "message": "hello" });
        self.call(who, "session_message", hello).await.unwrap();
        let mut since = -1;
        loop {
            let ask = json!({ "session_id": id, "since_index": since, "wait_ms": 30_000 });
            let said = self.call(who, "session_events", ask).await.unwrap();
            since = said["last_index"].as_i64().unwrap();
            let events = said["events"].as_array().unwrap();
            let words = events.iter().find(|event| event["role"] == "assistant");
            if let Some(words) = words {
                return words["text"].as_str().unwrap().to_owned();
            }
        }
    }

    pub(crate) fn socket(&self, session: SessionId) -> Utf8PathBuf {
        self.noted.dirs.lock().unwrap()[&session].join("relay.sock")
    }

    pub(crate) async fn connect(&self, session: SessionId) -> Peer {
        Peer::new(UnixStream::connect(self.socket(session)).await.unwrap())
    }

    /// A connection whose first message was read.
    pub(crate) async fn settled(&self, session: SessionId) -> Peer {
        let mut peer = self.connect(session).await;
        assert_eq!(peer.next().await["method"], "caller_tools_config");
        peer
    }

    /// A caller that holds a stream.
    pub(crate) fn caller(&self, who: &Credential, session: SessionId) -> Caller {
        let stream = self.broker.callers().open(who, session, None, Holding::Lasting).unwrap();
        Caller { stream, who: who.clone(), session }
    }

    /// Answers a call as its caller would.
    pub(crate) async fn answer(
        &self,
        caller: &Caller,
        call: &LineCall,
        result: &str,
    ) -> Result<Value, ToolError> {
        let (session, id) = (caller.session, &call.request_id);
        let answer =
            format!(r#"{{"session_id":"{session}","request_id":"{id}","result":{result}}}"#);
        self.call_text(&caller.who, "caller_tool_response", &answer).await
    }

    /// Stops everything. Its files are left for inspection.
    pub(crate) async fn stop(self) -> tempfile::TempDir {
        let Self { broker, relay, noted, dir } = self;
        within("the edge stops", relay.stop()).await;
        within("the broker stops", broker.stop(Duration::from_millis(50))).await;
        drop(noted);
        dir
    }
}

/// A caller that runs tools.
pub(crate) struct Caller {
    stream: CallerStream,
    pub(crate) who: Credential,
    pub(crate) session: SessionId,
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

/// A program inside the session.
pub(crate) struct Peer {
    reader: BufReader<OwnedReadHalf>,
    pub(crate) writer: OwnedWriteHalf,
    /// Read while waiting for something else.
    read: VecDeque<String>,
}

impl Peer {
    pub(crate) fn new(stream: UnixStream) -> Self {
        let (reader, writer) = stream.into_split();
        Self { reader: BufReader::new(reader), writer, read: VecDeque::new() }
    }

    pub(crate) async fn send(&mut self, line: &str) {
        self.writer.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    pub(crate) async fn ask(&mut self, id: u64, method: &str, params: Value) {
        self.send(&json!({ "id": id, "method": method, "params": params }).to_string()).await;
    }

    /// Sends a request, and waits for the answer.
    pub(crate) async fn get(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.ask(id, method, params).await;
        self.answer(id).await
    }

    /// The next line; `None` at the end.
    pub(crate) async fn next_line(&mut self) -> Option<String> {
        if let Some(line) = self.read.pop_front() {
            return Some(line);
        }
        let mut line = String::new();
        let read = within("a line comes", self.reader.read_line(&mut line)).await;
        match read {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(line.trim_end_matches('\n').to_owned()),
        }
    }

    pub(crate) async fn next(&mut self) -> Value {
        let line = self.next_line().await.expect("the connection is open");
        serde_json::from_str(&line).unwrap()
    }

    /// The answer to a request, as on the wire. Earlier lines are kept.
    pub(crate) async fn answer_line(&mut self, id: &str) -> String {
        let start = format!(r#"{{"jsonrpc":"2.0","id":{id},"#);
        let mut others = VecDeque::new();
        loop {
            let line = self.next_line().await.expect("the connection is open");
            if line.starts_with(&start) {
                others.append(&mut self.read);
                self.read = others;
                return line;
            }
            others.push_back(line);
        }
    }

    pub(crate) async fn answer(&mut self, id: u64) -> Value {
        serde_json::from_str(&self.answer_line(&id.to_string()).await).unwrap()
    }

    /// Reads until the daemon has closed the connection.
    pub(crate) async fn closed(mut self) {
        let mut rest = Vec::new();
        // A reset is an end too.
        drop(within("the connection closes", self.reader.read_to_end(&mut rest)).await);
    }
}

/// Awaits something that must not hang.
pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, future).await.unwrap_or_else(|_| panic!("not in time: {what}"))
}

/// A tool of a caller.
pub(crate) fn tool(name: &str) -> Value {
    json!({ "name": name, "description": format!("does {name}") })
}

/// `code kind certainty` of an error.
pub(crate) fn refused(answer: &Value) -> String {
    let error = &answer["error"];
    let data = &error["data"];
    assert!(data["retryable"].is_boolean(), "{answer}");
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    format!("{} {} {}", error["code"], text(&data["kind"]), text(&data["certainty"]))
}

/// Makes sessions run this shell script.
pub(crate) fn set_agent(config: &mut Config, script: &str) {
    let command = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
    let agent = AgentCommand { command, ..AgentCommand::default() };
    config.sessions.agents.insert("scripted".to_owned(), agent);
}

fn broker_config(root: &Utf8Path) -> Config {
    let command = ["/bin/sh", "-c", AGENT].map(str::to_owned).to_vec();
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
