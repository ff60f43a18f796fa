//! Requests of a client, by method and era.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::fault::Fault;
use crate::message::Request;
use crate::meta::LogLevel;
use crate::object::Object;
use crate::version::Era;

/// A request as a server of tools understands it.
#[derive(Debug)]
pub enum ClientRequest<'a> {
    /// The handshake.
    Initialize(Initialize<'a>),
    /// A ping.
    Ping,
    /// The lowest level of wanted log messages.
    SetLevel(LogLevel),
    /// A query for the server's identity and capabilities.
    Discover,
    /// A page of tools.
    ListTools {
        /// The end of the previous page.
        cursor: Option<String>,
    },
    /// A call.
    CallTool(CallTool<'a>),
    /// A subscription to changes, while the stream is open.
    Listen(ListenFilter),
}

/// The handshake.
#[derive(Debug)]
pub struct Initialize<'a> {
    /// The version the client wants.
    pub protocol_version: Cow<'a, str>,
    /// The capabilities of the client; empty if absent.
    pub capabilities: Object<'a>,
}

/// A call of a tool.
#[derive(Debug)]
pub struct CallTool<'a> {
    /// The name of the tool.
    pub name: Cow<'a, str>,
    /// The arguments, unchanged.
    pub arguments: Option<&'a RawValue>,
    /// The state, if an earlier call was answered with a question.
    pub state: Option<Cow<'a, str>>,
    /// The answers to questions, by key.
    pub responses: Object<'a>,
}

/// The changes that a subscription is for. Others that a client may name do not happen here, and
/// the acknowledgement leaves them out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListenFilter {
    /// Changes of the tool list.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub tools_list_changed: bool,
}

impl<'a> ClientRequest<'a> {
    /// Reads a request.
    ///
    /// # Errors
    /// When the era has no such method, or its parameters are invalid.
    pub fn of(request: &Request<'a>, era: Era) -> Result<Self, Fault> {
        let params = &request.params;
        match (request.method.as_ref(), era) {
            ("initialize", Era::Legacy) => Ok(Self::Initialize(initialize(params)?)),
            ("ping", Era::Legacy) => Ok(Self::Ping),
            ("logging/setLevel", Era::Legacy) => params
                .get("level")
                .and_then(LogLevel::from_raw)
                .map(Self::SetLevel)
                .ok_or_else(|| Fault::invalid_params("`level` must be the name of a log level")),
            ("server/discover", Era::Modern) => Ok(Self::Discover),
            ("subscriptions/listen", Era::Modern) => listen(params).map(Self::Listen),
            ("tools/list", _) => Ok(Self::ListTools { cursor: cursor(params)? }),
            ("tools/call", _) => Ok(Self::CallTool(call_tool(params)?)),
            (method, _) => Err(Fault::method_not_found(method)),
        }
    }
}

fn initialize<'a>(params: &Object<'a>) -> Result<Initialize<'a>, Fault> {
    let protocol_version = params
        .text("protocolVersion")
        .ok_or_else(|| Fault::invalid_params("`protocolVersion` must be a string"))?;
    let capabilities = params.get("capabilities").and_then(|raw| Object::of(raw).ok());
    Ok(Initialize { protocol_version, capabilities: capabilities.unwrap_or_default() })
}

fn call_tool<'a>(params: &Object<'a>) -> Result<CallTool<'a>, Fault> {
    let name = params
        .text("name")
        .ok_or_else(|| Fault::invalid_params("`name` must be the name of a tool"))?;
    let responses = params.get("inputResponses").and_then(|raw| Object::of(raw).ok());
    Ok(CallTool {
        name,
        arguments: params.get("arguments"),
        state: params.text("requestState"),
        responses: responses.unwrap_or_default(),
    })
}

fn cursor(params: &Object<'_>) -> Result<Option<String>, Fault> {
    match params.get("cursor") {
        None => Ok(None),
        Some(raw) => serde_json::from_str(raw.get()).map_err(|_| {
            Fault::invalid_params("`cursor` must be the `nextCursor` of an earlier page")
        }),
    }
}

fn listen(params: &Object<'_>) -> Result<ListenFilter, Fault> {
    let raw = params.get("notifications").ok_or_else(|| {
        Fault::invalid_params("`notifications` must list the changes to announce")
    })?;
    serde_json::from_str(raw.get())
        .map_err(|_| Fault::invalid_params("`notifications` must map changes to true or false"))
}
