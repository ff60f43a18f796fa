//! A world with the relay edge, and peers that speak its protocol by hand.

use std::collections::VecDeque;
use std::ops::Deref;

use ringback_broker::{Config, Credential, LineCall, SessionLimits};
use ringback_edge_relay::Config as RelayConfig;
use ringback_proto::error::ToolError;
use ringback_proto::ids::{ProjectId, SessionId};
pub(crate) use ringback_testkit::Caller;
use ringback_testkit::{Root, Setup, shell_agent, within};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

pub(crate) struct World(ringback_testkit::World);

impl Deref for World {
    type Target = ringback_testkit::World;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// Prints its key, then waits forever.
const AGENT: &str =
    r#"printf '{"type":"message","text":"%s"}\n' "$OUBLIETTE_API_KEY"; exec sleep 600"#;

impl World {
    pub(crate) async fn start() -> Self {
        Self::start_with(RelayConfig::default(), |_| ()).await
    }

    pub(crate) async fn start_with(relay: RelayConfig, change: impl FnOnce(&mut Config)) -> Self {
        let setup = Setup::new().relay(relay).config(|config| {
            set_agent(config, AGENT);
            let limits = config.sessions.limits;
            config.sessions.limits = SessionLimits { live_max: 200, agents_max: 200, ..limits };
            change(config);
        });
        Self(setup.start().await)
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

    pub(crate) async fn connect(&self, session: SessionId) -> Peer {
        Peer::new(UnixStream::connect(self.socket(session)).await.unwrap())
    }

    /// A connection whose first message was read.
    pub(crate) async fn settled(&self, session: SessionId) -> Peer {
        let mut peer = self.connect(session).await;
        assert_eq!(peer.next().await["method"], "caller_tools_config");
        peer
    }

    /// Answers a call as its caller would.
    pub(crate) async fn answer(
        &self,
        caller: &Caller,
        call: &LineCall,
        result: &str,
    ) -> Result<Value, ToolError> {
        self.0.answer(caller, call, &format!(r#""result":{result}"#)).await
    }

    /// Stops everything. Its files are left for inspection.
    pub(crate) async fn stop(self) -> Root {
        self.0.stop().await
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
    config.sessions.agents.insert("scripted".to_owned(), shell_agent(script));
}
