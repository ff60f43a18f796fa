//! The bare side of `tools/call`: an axum handler that decodes the request and encodes the answer,
//! each with types. It has no token, version, tool or limit.

use std::time::Instant;

use axum::extract::State;
use axum::routing::post;
use axum::serve::ListenerExt;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;

/// Runs this program as the bare handler.
pub(crate) const ROLE: &str = "--role-bare-mcp";

#[derive(Deserialize)]
struct Call {
    id: u64,
    method: String,
    params: Params,
}

#[derive(Deserialize)]
struct Params {
    name: String,
    arguments: Arguments,
    #[serde(rename = "_meta")]
    meta: Meta,
}

#[derive(Deserialize)]
struct Arguments {}

#[derive(Deserialize)]
struct Meta {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    protocol_version: String,
    #[serde(rename = "io.modelcontextprotocol/clientInfo")]
    client_info: Info,
}

#[derive(Deserialize)]
struct Info {
    name: String,
    version: String,
}

#[derive(Serialize)]
struct Answer {
    jsonrpc: &'static str,
    id: u64,
    result: CallResult,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallResult {
    result_type: &'static str,
    content: [Text; 1],
    structured_content: Pong,
    #[serde(rename = "_meta")]
    meta: Stamp,
}

#[derive(Serialize)]
struct Text {
    r#type: &'static str,
    text: String,
}

#[derive(Serialize)]
struct Pong {
    r#type: &'static str,
    uptime_ms: u128,
    version: &'static str,
}

#[derive(Serialize)]
struct Stamp {
    #[serde(rename = "io.modelcontextprotocol/serverInfo")]
    server_info: ServerInfo,
}

#[derive(Serialize)]
struct ServerInfo {
    name: &'static str,
    title: &'static str,
    version: &'static str,
}

pub(crate) async fn run() -> anyhow::Result<()> {
    let routes = Router::new().route("/mcp", post(call)).with_state(Instant::now());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    crate::bare::say(&format!("http://{}", listener.local_addr()?))?;
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    Ok(axum::serve(listener, routes).await?)
}

async fn call(State(started): State<Instant>, Json(call): Json<Call>) -> Json<Answer> {
    let Call { id, method, params: Params { name, arguments: Arguments {}, meta } } = call;
    // The decoded values are unused here, but must not be optimized away.
    std::hint::black_box((method, name, meta.protocol_version));
    std::hint::black_box((meta.client_info.name, meta.client_info.version));
    let version = env!("CARGO_PKG_VERSION");
    let pong = Pong { r#type: "pong", uptime_ms: started.elapsed().as_millis(), version };
    let text = serde_json::to_string(&pong).expect("plain data can be serialized");
    let server_info = ServerInfo { name: "ringback", title: "Ringback", version };
    let result = CallResult {
        result_type: "complete",
        content: [Text { r#type: "text", text }],
        structured_content: pong,
        meta: Stamp { server_info },
    };
    Json(Answer { jsonrpc: "2.0", id, result })
}
