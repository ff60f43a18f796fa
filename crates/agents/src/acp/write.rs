//! Messages to the agent.

use std::path::Path;

use ringback_mcp_wire::{Fault, Id};
use serde::Serialize;

use super::blocks::Block;
use super::{AcpOptions, McpServer};
use crate::protocol::Effects;

#[derive(Serialize)]
struct Request<'a, P> {
    jsonrpc: &'static str,
    id: u64,
    method: &'a str,
    params: &'a P,
}

#[derive(Serialize)]
struct Notification<'a, P> {
    jsonrpc: &'static str,
    method: &'a str,
    params: &'a P,
}

#[derive(Serialize)]
struct Response<'a, R> {
    jsonrpc: &'static str,
    id: &'a Id,
    result: &'a R,
}

#[derive(Serialize)]
struct Refusal<'a> {
    jsonrpc: &'static str,
    id: &'a Id,
    error: RefusalError<'a>,
}

#[derive(Serialize)]
struct RefusalError<'a> {
    code: i32,
    message: &'a str,
}

/// The first message. It offers no files and no terminals: the agent has those of its workspace.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InitializeParams {
    protocol_version: u64,
    client_capabilities: ClientCapabilities,
    client_info: ClientInfo,
}

#[derive(Serialize)]
struct ClientCapabilities {
    fs: FileCapabilities,
    terminal: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FileCapabilities {
    read_text_file: bool,
    write_text_file: bool,
}

#[derive(Serialize)]
struct ClientInfo {
    name: &'static str,
    title: &'static str,
    version: &'static str,
}

/// Starts a conversation.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NewSessionParams<'a> {
    cwd: &'a Path,
    mcp_servers: Vec<Server<'a>>,
}

#[derive(Serialize)]
struct Server<'a> {
    name: &'a str,
    command: &'a Path,
    args: &'a [String],
    env: Vec<Variable<'a>>,
}

#[derive(Serialize)]
struct Variable<'a> {
    name: &'a str,
    value: &'a str,
}

/// Resumes a conversation.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LoadSessionParams<'a> {
    pub(super) session_id: &'a str,
    #[serde(flatten)]
    pub(super) begin: NewSessionParams<'a>,
}

/// Sends a prompt.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Prompt<'a> {
    pub(super) session_id: &'a str,
    pub(super) prompt: Vec<Block<'a>>,
}

/// A message about the conversation as a whole.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SessionParams<'a> {
    session_id: &'a str,
}

impl InitializeParams {
    pub(super) const fn new(protocol_version: u64) -> Self {
        Self {
            protocol_version,
            client_capabilities: ClientCapabilities {
                fs: FileCapabilities { read_text_file: false, write_text_file: false },
                terminal: false,
            },
            client_info: ClientInfo {
                name: "ringback",
                title: "Ringback",
                version: env!("CARGO_PKG_VERSION"),
            },
        }
    }
}

impl<'a> NewSessionParams<'a> {
    pub(super) fn new(options: &'a AcpOptions) -> Self {
        let server = |server: &'a McpServer| Server {
            name: &server.name,
            command: &server.command,
            args: &server.args,
            env: server.env.iter().map(|(name, value)| Variable { name, value }).collect(),
        };
        Self { cwd: &options.cwd, mcp_servers: options.servers.iter().map(server).collect() }
    }
}

impl<'a> SessionParams<'a> {
    pub(super) const fn new(session_id: &'a str) -> Self {
        Self { session_id }
    }
}

/// Sends a request, and returns its number.
pub(super) fn request(
    next: &mut u64,
    method: &str,
    params: &impl Serialize,
    out: &mut Effects,
) -> u64 {
    let id = *next;
    *next += 1;
    line(&Request { jsonrpc: "2.0", id, method, params }, out);
    id
}

pub(super) fn notify(method: &str, params: &impl Serialize, out: &mut Effects) {
    line(&Notification { jsonrpc: "2.0", method, params }, out);
}

pub(super) fn respond(id: &Id, result: &impl Serialize, out: &mut Effects) {
    line(&Response { jsonrpc: "2.0", id, result }, out);
}

pub(super) fn refuse(id: &Id, fault: &Fault, out: &mut Effects) {
    let error = RefusalError { code: fault.code.number(), message: &fault.message };
    line(&Refusal { jsonrpc: "2.0", id, error }, out);
}

/// A message that cannot be serialized (a path that is not UTF-8) is not sent: the agent then does
/// not answer, and that is reported.
fn line(message: &impl Serialize, out: &mut Effects) {
    if let Ok(text) = serde_json::to_string(message) {
        out.write(&text);
    }
}
