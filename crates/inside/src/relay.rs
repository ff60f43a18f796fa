//! The protocol of the session's socket: JSON-RPC, one object per line (`docs/relay.md`).

use std::borrow::Cow;

use ringback_mcp_wire::{LimitError, Limits, NotAnObject, Object, RawValue};
use serde::Serialize;

use crate::lines::LINE_BYTES_MAX;
use crate::options::Key;

/// A message between the two halves of this program: one serves the agent, the other talks HTTP to
/// a session at a URL.
pub(crate) const REMOTE_TOOLS: &str = "remote_tools";
pub(crate) const REMOTE_CALL: &str = "remote_call";

/// A message from the daemon.
#[derive(Debug)]
pub(crate) enum DaemonMessage<'a> {
    /// A caller's tools, replacing its earlier ones.
    Config {
        /// `None` when there is no caller.
        caller_id: Option<Cow<'a, str>>,
        /// Each as declared.
        tools: Vec<&'a RawValue>,
    },
    /// All tools of a session at a URL, with the names they have there.
    Remote {
        /// Each as listed there.
        tools: Vec<&'a RawValue>,
    },
    /// The daemon's own tools have changed.
    ToolsChanged,
    /// The progress of a request.
    Progress {
        /// The request.
        asked: u64,
        /// 0 to 100.
        percent: f64,
        /// What is being done.
        message: Cow<'a, str>,
    },
    /// The answer to a request.
    Reply {
        /// The request.
        asked: u64,
        /// The result, or the error.
        outcome: Result<&'a RawValue, RelayError<'a>>,
    },
    /// An error without a request.
    Complaint(RelayError<'a>),
    /// JSON that this version does not know.
    Unknown,
}

/// An error, with its fields for programs.
#[derive(Debug)]
pub(crate) struct RelayError<'a> {
    /// Its number.
    pub(crate) code: i64,
    /// What happened.
    pub(crate) message: Cow<'a, str>,
    /// `{kind, retryable, certainty, ...}` unchanged.
    pub(crate) data: Option<&'a RawValue>,
}

/// A line that does not belong to this protocol. Running calls on this connection can no longer be
/// distinguished from lost ones.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Garbage {
    /// Too deep.
    #[error("a line that cannot be read")]
    Limit(#[from] LimitError),
    /// Not JSON, or not an object.
    #[error("a line that is not a JSON object")]
    NoObject(#[from] NotAnObject),
    /// It refuses one of several calls, without saying which.
    #[error("an error about one of several calls, without its id")]
    Complaint,
    /// Too long, and without an id at its start.
    #[error("a line of more than {LINE_BYTES_MAX} bytes")]
    TooLong,
}

/// A request to the daemon.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum DaemonRequest<'a> {
    /// The tools that the key may call.
    Tools {
        /// The key.
        api_key: &'a str,
    },
    /// A call of a caller's tool.
    CallerTool {
        /// The caller's name for it.
        tool: &'a str,
        /// An object.
        arguments: &'a RawValue,
        /// Its caller.
        caller_id: &'a str,
    },
    /// A call of one of the daemon's tools.
    CallTool {
        /// The key.
        api_key: &'a str,
        /// The daemon's name for it.
        tool: &'a str,
        /// An object.
        arguments: &'a RawValue,
    },
    /// A call of a tool of a session at a URL.
    Remote {
        /// Its name there.
        tool: &'a str,
        /// An object.
        arguments: &'a RawValue,
        /// Whether to report progress.
        progress: bool,
    },
    /// A method of the socket with the agent's parameters.
    #[serde(serialize_with = "only_params")]
    Session {
        /// The method.
        method: &'static str,
        /// An object.
        params: &'a RawValue,
    },
}

impl DaemonRequest<'_> {
    const fn method(&self) -> &'static str {
        match self {
            Self::Tools { .. } => "oubliette_tools",
            Self::CallerTool { .. } => "caller_tool",
            Self::CallTool { .. } => "oubliette_call_tool",
            Self::Remote { .. } => REMOTE_CALL,
            Self::Session { method, .. } => method,
        }
    }

    /// The line of the request.
    pub(crate) fn line(&self, asked: u64) -> String {
        #[derive(Serialize)]
        struct Request<'a> {
            jsonrpc: &'static str,
            id: u64,
            method: &'static str,
            params: &'a DaemonRequest<'a>,
        }
        json(&Request { jsonrpc: "2.0", id: asked, method: self.method(), params: self })
    }
}

/// A request for the tools that a key may call.
pub(crate) fn tools(key: &Key) -> DaemonRequest<'_> {
    DaemonRequest::Tools { api_key: key.expose() }
}

/// The line that cancels a request.
pub(crate) fn cancel(asked: u64) -> String {
    #[derive(Serialize)]
    struct Cancel {
        jsonrpc: &'static str,
        method: &'static str,
        params: CancelParams,
    }
    #[derive(Serialize)]
    struct CancelParams {
        id: u64,
    }
    json(&Cancel { jsonrpc: "2.0", method: "cancel", params: CancelParams { id: asked } })
}

/// Decodes a line from the daemon.
pub(crate) fn decode(line: &[u8]) -> Result<DaemonMessage<'_>, Garbage> {
    Limits::default().check(line)?;
    let object = Object::parse(line)?;
    // Daemons of the first version send `type` and no `method`.
    match object.text("method").or_else(|| object.text("type")).as_deref() {
        None => Ok(reply(&object)),
        Some(method) => Ok(told(method, &object).unwrap_or(DaemonMessage::Unknown)),
    }
}

/// The request that a truncated line is about.
pub(crate) fn id_at_start(start: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(start);
    let (_, rest) = text.split_once("\"id\":")?;
    let rest = rest.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit())?;
    rest[..end].parse().ok()
}

fn reply<'a>(object: &Object<'a>) -> DaemonMessage<'a> {
    let asked = object.get("id").and_then(|raw| raw.get().parse().ok());
    let outcome =
        match (object.get("error").filter(|raw| raw.get() != "null"), object.get("result")) {
            (Some(error), _) => Err(error_of(error)),
            (None, Some(result)) => Ok(result),
            // Daemons of the first version omit both if the result is null.
            (None, None) => Ok(RawValue::NULL),
        };
    match (asked, outcome) {
        (Some(asked), outcome) => DaemonMessage::Reply { asked, outcome },
        (None, Err(error)) => DaemonMessage::Complaint(error),
        (None, Ok(_)) => DaemonMessage::Unknown,
    }
}

fn error_of(raw: &RawValue) -> RelayError<'_> {
    let object = Object::of(raw).unwrap_or_default();
    let code = object.get("code").and_then(|code| code.get().parse().ok()).unwrap_or_default();
    let message = object.text("message").unwrap_or(Cow::Borrowed("the daemon gave no reason"));
    RelayError { code, message, data: object.get("data") }
}

fn told<'a>(method: &str, object: &Object<'a>) -> Option<DaemonMessage<'a>> {
    let params = object.get("params").and_then(|raw| Object::of(raw).ok()).unwrap_or_default();
    match method {
        "caller_tools_config" => {
            let tools = match params.get("tools") {
                None => Vec::new(),
                Some(raw) => serde_json::from_str(raw.get()).ok()?,
            };
            Some(DaemonMessage::Config { caller_id: params.text("caller_id"), tools })
        }
        REMOTE_TOOLS => {
            let tools = serde_json::from_str(params.get("tools")?.get()).ok()?;
            Some(DaemonMessage::Remote { tools })
        }
        "oubliette_tools_changed" => Some(DaemonMessage::ToolsChanged),
        "progress" => Some(DaemonMessage::Progress {
            asked: params.get("id")?.get().parse().ok()?,
            percent: params.get("percent")?.get().parse().ok()?,
            message: params.text("message").unwrap_or_default(),
        }),
        _ => None,
    }
}

fn only_params<S: serde::Serializer>(
    _method: &&'static str,
    params: &&RawValue,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    params.serialize(serializer)
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("JSON and plain data can be written")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_has_the_shape_of_the_protocol() {
        let arguments: &RawValue = serde_json::from_str(r#"{"n": 12345678901234567890}"#).unwrap();
        let ask = DaemonRequest::CallerTool { tool: "x", arguments, caller_id: "ant" };
        assert_eq!(
            ask.line(7),
            r#"{"jsonrpc":"2.0","id":7,"method":"caller_tool","params":{"tool":"x","arguments":{"n": 12345678901234567890},"caller_id":"ant"}}"#
        );
        let ask = DaemonRequest::Session { method: "session_message", params: arguments };
        assert_eq!(
            ask.line(8),
            r#"{"jsonrpc":"2.0","id":8,"method":"session_message","params":{"n": 12345678901234567890}}"#
        );
        assert_eq!(cancel(7), r#"{"jsonrpc":"2.0","method":"cancel","params":{"id":7}}"#);
    }

    #[test]
    fn the_daemon_is_understood_with_and_without_a_method() {
        let text = r#"{"type":"caller_tools_config","params":{"caller_id":"ant","tools":[{}]}}"#;
        let Ok(DaemonMessage::Config { caller_id, tools }) = decode(text.as_bytes()) else {
            unreachable!("a config")
        };
        assert_eq!((caller_id.as_deref(), tools.len()), (Some("ant"), 1));
        let reply = decode(br#"{"id":3}"#).unwrap();
        let DaemonMessage::Reply { asked: 3, outcome: Ok(result) } = reply else {
            unreachable!("a reply")
        };
        assert_eq!(result.get(), "null");
        assert!(matches!(decode(br#"{"method":"new"}"#), Ok(DaemonMessage::Unknown)));
        assert!(decode(b"garbage").is_err());
        assert!(decode("[".repeat(10_000).as_bytes()).is_err());
    }

    #[test]
    fn the_id_is_found_at_the_start_of_a_line_that_is_too_long() {
        assert_eq!(id_at_start(br#"{"jsonrpc":"2.0","id":42,"result":"xx"#), Some(42));
        assert_eq!(id_at_start(br#"{"jsonrpc":"2.0","result":"xx"#), None);
        assert_eq!(id_at_start(b"\xff\xff"), None);
    }
}
