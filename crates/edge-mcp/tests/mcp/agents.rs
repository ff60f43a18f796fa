//! Agents and their callers, played by hand: a test makes an agent's calls at the broker's own
//! entry point, and answers them over HTTP.

use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use ringback_broker::{Answer, Edge};
use ringback_proto::any::{Any, Format};
use ringback_proto::envelope::CallOptions;
use ringback_proto::{Error, ResponseEnvelope, ToolResponse};
use ringback_testkit::within;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::{Client, OpenAnswer, World};

/// A running call of an agent.
pub(crate) struct AgentCall(JoinSet<Option<ResponseEnvelope>>);

/// An agent's call of a tool, whose name is the caller's, `_` and its own.
pub(crate) fn agent_calls(world: &World, session: &Value, tool: &str, input: &str) -> AgentCall {
    let (caller_id, tool) = tool.split_once('_').unwrap();
    let bytes = Bytes::copy_from_slice(input.as_bytes());
    let answer = world.broker.call_from_session(
        session.as_str().unwrap().parse().unwrap(),
        Some(caller_id),
        tool.to_owned(),
        Any { format: Format::Json, bytes },
        CallOptions::default(),
        Edge::Relay,
    );
    let mut waiting = JoinSet::new();
    waiting.spawn(async move {
        match answer {
            Answer::Now(reply) => Some(reply),
            Answer::Later(mut replies, _control) => replies.next().await,
        }
    });
    AgentCall(waiting)
}

impl AgentCall {
    /// Its end: the bytes of its result, or the error.
    pub(crate) async fn end(mut self) -> Result<Bytes, Error> {
        match within("the end of an agent's call", self.0.join_next()).await {
            Some(Ok(Some(ResponseEnvelope::Success {
                response: ToolResponse::Passed(passed),
            }))) => Ok(passed.bytes),
            Some(Ok(Some(ResponseEnvelope::Error(error)))) => Err(error.into()),
            other => panic!("another end: {other:?}"),
        }
    }
}

/// Why an agent's call fails.
pub(crate) async fn agent_is_refused(world: &World, session: &Value, tool: &str) -> Error {
    agent_calls(world, session, tool, "{}").end().await.unwrap_err()
}

/// A client with an MCP session.
pub(crate) async fn legacy(world: &World) -> Client {
    let mut client = world.client();
    client.initialize("2025-11-25").await;
    client
}

/// The structured answer of a native tool.
pub(crate) fn structured(answer: &Value) -> &Value {
    let result = &answer["result"];
    assert!(result["isError"] != true && result.is_object(), "{answer}");
    &result["structuredContent"]
}

/// A project.
pub(crate) async fn project(client: &Client) -> Value {
    static N_MADE: AtomicU32 = AtomicU32::new(0);
    let name = format!("p{}", N_MADE.fetch_add(1, Ordering::Relaxed));
    let made = client.call(900, "project_create", json!({"name": name})).await;
    structured(&made)["project_id"].clone()
}

/// Starts an agent and offers it tools as `caller_id`; returns its session.
pub(crate) async fn start(client: &Client, caller_id: &str, tools: Value) -> Value {
    let project = project(client).await;
    let context = json!({"caller_id": caller_id, "caller_tools": tools});
    let message = json!({"project_id": project, "message": "work", "context": context});
    let told = client.call(901, "session_message", message).await;
    structured(&told)["session_id"].clone()
}

/// Answers a call with a result, given as on the wire.
pub(crate) async fn respond(client: &Client, session: &Value, id: &Value, fields: &str) -> Value {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":902,"method":"tools/call","params":{{"name":"caller_tool_response","arguments":{{"session_id":{session},"request_id":{id},{fields}}}}}}}"#
    );
    client.send("POST /mcp", &[], &body).await.last().await
}

/// The kind of an error that a tool answered with.
pub(crate) fn error_code(answer: &Value) -> &str {
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    answer["result"]["_meta"]["ringback/error"]["code"].as_str().unwrap()
}

/// The stream of an MCP session.
pub(crate) async fn news(client: &Client, last_event: Option<&str>) -> OpenAnswer {
    let header = last_event.map(|id| format!("last-event-id: {id}"));
    let headers: Vec<_> = header.iter().map(String::as_str).collect();
    let stream = client.send("GET /mcp", &headers, "").await;
    assert_eq!(stream.status, 200);
    stream
}

/// The next notification by this logger: its id, the text of its event, and its data.
pub(crate) async fn next_by(stream: &mut OpenAnswer, logger: &str) -> (String, String, Value) {
    loop {
        let (id, text) = stream.event().await.expect("the stream goes on");
        if text.is_empty() {
            continue;
        }
        let message: Value = serde_json::from_str(&text).unwrap();
        if message["params"]["logger"] == logger {
            assert_eq!(message["method"], "notifications/message");
            assert_eq!(message["params"]["level"], "info");
            let data = message["params"]["data"].clone();
            return (id, text, data);
        }
    }
}

/// The next call on a stream.
pub(crate) async fn next_call(stream: &mut OpenAnswer) -> (String, String, Value) {
    let next = next_by(stream, "oubliette.caller_tool").await;
    assert_eq!(next.2["type"], "caller_tool_request", "{}", next.1);
    next
}
