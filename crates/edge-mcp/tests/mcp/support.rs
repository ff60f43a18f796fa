//! A world with the MCP edge, and a client that speaks MCP by hand.

use std::ops::Deref;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use ringback_broker::{
    AgentCommand, AgentProtocol, Config, Credential, LineName, LineOffer, ToolOffer,
};
use ringback_edge_mcp::{Config as McpConfig, Door};
use ringback_testkit::{IDLER, Setup, shell_agent, wait_for, within};
use serde_json::{Value, json};

pub(crate) const MODERN: &str = "2026-07-28";

pub(crate) struct World(pub(crate) ringback_testkit::World);

impl Deref for World {
    type Target = ringback_testkit::World;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl World {
    pub(crate) async fn start() -> Self {
        Self::start_with(McpConfig::default()).await
    }

    pub(crate) async fn start_with(config: McpConfig) -> Self {
        Self::start_on(config, |_| ()).await
    }

    /// Starts with a broker of another configuration.
    pub(crate) async fn start_on(mcp: McpConfig, change: impl FnOnce(&mut Config)) -> Self {
        Self(Setup::new().mcp(mcp).config(small).config(change).start().await)
    }

    /// Offers a tool on a line, or removes it again: either way the list changes.
    pub(crate) fn change_tools(&self) {
        let who = &Credential::local();
        let line = LineName::Client("toggle".into());
        if self.broker.lines().withdraw(who, &line, None).is_ok_and(|gone| !gone.is_empty()) {
            return;
        }
        let tools = vec![ToolOffer { name: "it".to_owned(), ..ToolOffer::default() }];
        self.broker.lines().offer(who, LineOffer { line, grace_ms: None, tools }).unwrap();
    }

    pub(crate) fn client(&self) -> Client {
        self.client_as(self.admin_token().expose())
    }

    pub(crate) fn client_as(&self, token: &str) -> Client {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        Client {
            http: HttpClient::builder(TokioExecutor::new()).build(connector),
            address: self.address().to_string(),
            token: Some(token.to_owned()),
            session: None,
            version: None,
        }
    }

    /// Waits until the broker has no running jobs.
    pub(crate) async fn until_quiet(&self) {
        wait_for("nothing is running", async || self.broker.under_way().n_jobs == 0).await;
    }
}

/// An agent of the Agent Client Protocol that asks for permission, and reports the answer.
const ASKER: &str = r#"
say() { echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"one","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'"$1"'"}}}}'; }
end() { echo '{"jsonrpc":"2.0","id":'$turn',"result":{"stopReason":"end_turn"}}'; }
while read -r line; do
  id=${line#*\"id\":}; id=${id%%,*}
  case "$line" in
    *'"method":"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":1}}';;
    *'"method":"session/new"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"sessionId":"one"}}';;
    *'"method":"session/prompt"'*) turn=$id; echo '{"jsonrpc":"2.0","id":"q","method":"session/request_permission","params":{"sessionId":"one","toolCall":{"toolCallId":"c","title":"rm -rf"},"options":[{"optionId":"yes","name":"Yes, once","kind":"allow_once"},{"optionId":"no","name":"No","kind":"reject_once"}]}}';;
    *'"optionId"'*) option=${line#*\"optionId\":\"}; say "answered ${option%%\"*}"; end;;
    *'"cancelled"'*) say "answered nothing"; end;;
  esac
done"#;

/// Limits that are soon reached, an agent that is idle, and one that asks.
fn small(config: &mut Config) {
    config.calls_per_principal_max = 64;
    (config.jobs_running_max, config.jobs_live_max) = (16, 32);
    config.jobs_per_principal_max = 32;
    config.events_kept_max = 100;
    let asker = AgentCommand { protocol: AgentProtocol::Acp, ..shell_agent(ASKER) };
    let agents = [("idler".to_owned(), shell_agent(IDLER)), ("asker".to_owned(), asker)];
    config.sessions.agents.extend(agents);
    config.sessions.agent_default = "idler".to_owned();
}

/// One client, with its token and optionally its MCP session.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) http: HttpClient<HttpConnector, Full<Bytes>>,
    pub(crate) address: String,
    pub(crate) token: Option<String>,
    pub(crate) session: Option<String>,
    pub(crate) version: Option<String>,
}

/// An answer whose body is not read yet.
pub(crate) struct OpenAnswer {
    pub(crate) status: StatusCode,
    response: Response<Incoming>,
    text: String,
}

impl Client {
    /// Sends a request; each of `headers` is `name: value` and replaces what would be sent.
    pub(crate) async fn send(&self, line: &str, headers: &[&str], body: &str) -> OpenAnswer {
        let (method, path) = line.split_once(' ').unwrap();
        let mut fields = vec![
            ("content-type".to_owned(), "application/json".to_owned()),
            ("accept".to_owned(), "application/json, text/event-stream".to_owned()),
        ];
        let own = [
            ("authorization", self.token.as_ref().map(|token| format!("Bearer {token}"))),
            ("mcp-session-id", self.session.clone()),
            ("mcp-protocol-version", self.version.clone()),
        ];
        fields.extend(own.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        for header in headers {
            let (name, value) = header.split_once(':').unwrap();
            fields.retain(|(field, _)| field != name);
            if !value.is_empty() {
                fields.push((name.to_owned(), value.trim_start().to_owned()));
            }
        }
        let mut request =
            Request::builder().method(method).uri(format!("http://{}{path}", self.address));
        for (name, value) in fields {
            request = request.header(name, value);
        }
        let request = request.body(Full::from(body.to_owned())).unwrap();
        let response = within("an answer", self.http.request(request)).await.unwrap();
        OpenAnswer { status: response.status(), response, text: String::new() }
    }

    pub(crate) async fn post(&self, message: &Value) -> OpenAnswer {
        self.send("POST /mcp", &[], &message.to_string()).await
    }

    /// Does the handshake.
    pub(crate) async fn initialize(&mut self, version: &str) -> Value {
        self.initialize_with(version, json!({})).await
    }

    /// Does the handshake with these capabilities.
    pub(crate) async fn initialize_with(&mut self, version: &str, capabilities: Value) -> Value {
        let answered = self
            .post(&json!({
                "jsonrpc": "2.0", "id": 0, "method": "initialize",
                "params": {"protocolVersion": version, "capabilities": capabilities,
                           "clientInfo": {"name": "t", "version": "1"}},
            }))
            .await;
        assert_eq!(answered.status, 200);
        self.session = answered.header("mcp-session-id");
        let result = answered.json().await["result"].clone();
        self.version = Some(result["protocolVersion"].as_str().unwrap().to_owned());
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(self.post(&initialized).await.status, 202);
        result
    }

    /// A request in the MCP session.
    pub(crate) async fn ask(&self, id: u64, method: &str, params: Value) -> OpenAnswer {
        self.post(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await
    }

    /// A call in the MCP session, until its result.
    pub(crate) async fn call(&self, id: u64, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        self.ask(id, "tools/call", params).await.last().await
    }

    /// A modern request, with the headers it needs.
    pub(crate) async fn modern(&self, id: Value, method: &str, params: Value) -> OpenAnswer {
        let (headers, body) = modern(&id, method, params);
        let headers: Vec<_> = headers.iter().map(String::as_str).collect();
        self.send("POST /mcp", &headers, &body.to_string()).await
    }
}

/// The headers and the body of a modern request.
pub(crate) fn modern(id: &Value, method: &str, mut params: Value) -> (Vec<String>, Value) {
    let mut headers =
        vec![format!("mcp-protocol-version: {MODERN}"), format!("mcp-method: {method}")];
    if let Some(name) = params["name"].as_str() {
        headers.push(format!("mcp-name: {name}"));
    }
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(MODERN);
    let capabilities = &mut params["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    if capabilities.is_null() {
        *capabilities = json!({});
    }
    (headers, json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
}

impl OpenAnswer {
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        self.response.headers().get(name).map(|value| value.to_str().unwrap().to_owned())
    }

    pub(crate) fn is_stream(&self) -> bool {
        self.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"))
    }

    pub(crate) async fn text(self) -> String {
        let body = within("a body", self.response.into_body().collect()).await.unwrap();
        String::from_utf8(body.to_bytes().to_vec()).unwrap()
    }

    pub(crate) async fn json(self) -> Value {
        let text = self.text().await;
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("no JSON: {text}"))
    }

    /// The next event: its id and its data. `None` at the end.
    pub(crate) async fn event(&mut self) -> Option<(String, String)> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let field = |name: &str| {
                    let found = event.lines().find_map(|line| line.strip_prefix(name));
                    found.map(|value| value.trim_start().to_owned())
                };
                let parsed = (field("id:").unwrap_or_default(), field("data:"));
                self.text = rest.to_owned();
                match parsed {
                    (id, Some(data)) => return Some((id, data)),
                    (_, None) => continue,
                }
            }
            let frame = within("an event", self.response.body_mut().frame()).await?;
            let Ok(frame) = frame else { return None };
            let Ok(data) = frame.into_data() else { continue };
            self.text.push_str(std::str::from_utf8(&data).unwrap());
        }
    }

    /// The next message of a stream.
    pub(crate) async fn message(&mut self) -> Option<Value> {
        loop {
            let (_, data) = self.event().await?;
            if !data.is_empty() {
                return Some(serde_json::from_str(&data).unwrap());
            }
        }
    }

    /// The answer, whether it came as JSON or at the end of a stream.
    pub(crate) async fn last(mut self) -> Value {
        if !self.is_stream() {
            return self.json().await;
        }
        let mut last = Value::Null;
        while let Some(message) = self.message().await {
            last = message;
        }
        last
    }
}

pub(crate) fn open() -> McpConfig {
    McpConfig { door: Door::Open, ..McpConfig::default() }
}
