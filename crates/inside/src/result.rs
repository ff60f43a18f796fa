//! The outcome of a call, as MCP: the one place that turns the relay's errors into the agent's.

use ringback_mcp_wire::outgoing::{self, CallResult, Stamp};
use ringback_mcp_wire::relay::{ERROR_META, RelayedResult, RelayedValue};
use ringback_mcp_wire::{Code, Era, Fault, Id, Object, RawValue};
use serde::Serialize;
use serde_json::value::to_raw_value;

use crate::relay::RelayError;

/// A failure detected by this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The daemon cannot be reached.
    Away,
    /// The daemon went away before it answered.
    Lost,
    /// Too many calls are running.
    Busy,
    /// The request does not fit in a line.
    RequestTooLarge,
    /// The answer did not fit in a line.
    AnswerTooLarge,
}

impl Failure {
    const fn message(self) -> &'static str {
        match self {
            Self::Away => "the daemon cannot be reached",
            Self::Lost => "the daemon went away before it answered",
            Self::Busy => "too many calls are running",
            Self::RequestTooLarge => "the arguments are too large",
            Self::AnswerTooLarge => "the answer is too large",
        }
    }

    const fn data(self) -> Data<'static> {
        let (kind, retryable, certainty) = match self {
            Self::Away => ("gone", true, "not_started"),
            Self::Lost => ("gone", true, "may_have_run"),
            Self::Busy => ("busy", true, "not_started"),
            Self::RequestTooLarge => ("too_large", false, "not_started"),
            Self::AnswerTooLarge => ("too_large", false, "ran"),
        };
        Data { kind, retryable, certainty }
    }
}

/// The fields for programs that this program reads.
#[derive(Debug, Clone, Copy, Serialize)]
struct Data<'a> {
    kind: &'a str,
    retryable: bool,
    certainty: &'a str,
}

/// The answer to a call with a value: a tool result stays as it is; any other value is returned as
/// text and as structured content. Before 2026-07-28 structured content is an object or absent.
pub(crate) fn value(id: &Id, value: &RawValue, stamp: Stamp<'_>) -> String {
    match RelayedValue::of(value) {
        RelayedValue::Result(mut result) => {
            let structured = result.get("structuredContent");
            let is_object = structured.is_none_or(|raw| raw.get().starts_with('{'));
            if stamp.era() == Era::Legacy && !is_object {
                result = result.without("structuredContent");
            }
            outgoing::result(id, &RelayedResult { result, stamp })
        }
        RelayedValue::Value { text, structured } => {
            let structured = Some(structured);
            let result = CallResult { text: &text, structured, is_error: false, meta: None };
            outgoing::answer(id, &result, stamp)
        }
    }
}

/// The answer to a call that the daemon, or the owner of the tool, refused or failed.
pub(crate) fn error(id: &Id, error: &RelayError<'_>, stamp: Stamp<'_>) -> String {
    let fields = error.data.and_then(|raw| Object::of(raw).ok()).unwrap_or_default();
    let kind = fields.text("kind").unwrap_or_default();
    let fault = |code| {
        let data = error.data.map(ToOwned::to_owned);
        outgoing::error(Some(id), &Fault { code, message: error.message.to_string(), data })
    };
    match (kind.as_ref(), error.code) {
        // Something that a tool does not find is a failure of the tool: here the tool itself is
        // missing.
        ("not_found", _) => fault(Code::InvalidParams),
        ("internal", _) => fault(Code::Internal),
        // JSON-RPC's own codes say enough.
        ("", -32602) => fault(Code::InvalidParams),
        ("", -32603) => fault(Code::Internal),
        (_, _) => {
            let certainty = fields.text("certainty").unwrap_or_default();
            let retryable = fields.get("retryable").is_some_and(|raw| raw.get() == "true");
            let data = Data { kind: &kind, retryable, certainty: &certainty };
            failed(id, &told(&error.message, data), error.data, stamp)
        }
    }
}

/// The answer to a call that failed here.
pub(crate) fn failure(id: &Id, failure: Failure, stamp: Stamp<'_>) -> String {
    let data = failure.data();
    let raw = to_raw_value(&data).expect("plain data can be written");
    failed(id, &told(failure.message(), data), Some(&raw), stamp)
}

fn failed(id: &Id, text: &str, data: Option<&RawValue>, stamp: Stamp<'_>) -> String {
    let meta = data.map(|data| (ERROR_META, data));
    outgoing::answer(id, &CallResult { text, structured: None, is_error: true, meta }, stamp)
}

/// The message for the model, with whether a retry is safe.
fn told(message: &str, data: Data<'_>) -> String {
    let ran = match data.certainty {
        "not_started" => "nothing was done",
        "may_have_run" => "it may have been done",
        "ran" => "it was done, and failed",
        _ => return message.to_owned(),
    };
    let again = if data.retryable { "; try again later" } else { "" };
    format!("{message} ({}: {ran}{again})", data.kind)
}

#[cfg(test)]
mod tests {
    use ringback_mcp_wire::outgoing::Implementation;

    use super::*;

    fn valued(text: &str, stamp: Stamp<'_>) -> String {
        value(&Id::from(1), serde_json::from_str(text).unwrap(), stamp)
    }

    fn server() -> Implementation {
        Implementation { name: "r".to_owned(), title: "R".to_owned(), version: "1".to_owned() }
    }

    /// Rule: null is null, and no integer changes.
    #[test]
    fn values_reach_the_agent_as_they_are() {
        let modern = valued("null", Stamp::Modern(&server()));
        assert!(modern.contains(r#""content":[{"type":"text","text":"null"}]"#), "{modern}");
        assert!(modern.contains(r#""structuredContent":null"#), "{modern}");
        for number in ["9007199254740993", "12345678901234567890"] {
            let legacy = valued(&format!(r#"{{"n":{number}}}"#), Stamp::Legacy);
            assert!(legacy.contains(&format!(r#""structuredContent":{{"n":{number}}}"#)));
            let bare = valued(number, Stamp::Legacy);
            assert!(bare.contains(&format!(r#""text":"{number}""#)), "{bare}");
            assert!(!bare.contains("structuredContent"), "objects only before 2026: {bare}");
        }
        assert!(valued(r#""a \"b\"""#, Stamp::Legacy).contains(r#""text":"a \"b\"""#));
    }

    /// Rule: a value that happens to have a field `error` is a success.
    #[test]
    fn a_success_is_not_taken_for_an_error() {
        assert!(!valued(r#"{"error":"x"}"#, Stamp::Legacy).contains("isError"));
    }

    /// Rule: an MCP result passes unchanged.
    #[test]
    fn a_result_stays_a_result() {
        let text = r#"{"content":[{"type":"image","data":"AA=="}],"isError":true,"x":1e400}"#;
        assert!(valued(text, Stamp::Legacy).ends_with(&format!("\"result\":{text}}}")));
        let listed = r#"{"content":[],"structuredContent":[1]}"#;
        assert!(valued(listed, Stamp::Legacy).ends_with(r#""result":{"content":[]}}"#));
        assert!(valued(listed, Stamp::Modern(&server())).contains(r#""structuredContent":[1]"#));
    }

    fn refused(data: &str) -> String {
        let data = serde_json::from_str(data).unwrap();
        let refusal = RelayError { code: -32000, message: "no".into(), data: Some(data) };
        error(&Id::from(1), &refusal, Stamp::Legacy)
    }

    /// Rule: errors are errors, with their data.
    #[test]
    fn every_kind_of_error_has_its_face() {
        for kind in [
            "invalid",
            "unauthenticated",
            "forbidden",
            "conflict",
            "too_large",
            "rate_limited",
            "busy",
            "gone",
            "tool_failed",
            "timeout",
            "cancelled",
        ] {
            let data = format!(
                r#"{{"kind":"{kind}","retryable":false,"certainty":"ran","missing":["write"]}}"#
            );
            let line = refused(&data);
            assert!(line.contains(r#""isError":true"#), "{line}");
            assert!(line.contains(&format!(r#"no ({kind}: it was done, and failed)"#)), "{line}");
            assert!(line.contains(&format!(r#""ringback/error":{data}"#)), "{line}");
        }
        assert!(refused(r#"{"kind":"not_found"}"#).contains(r#""code":-32602"#));
        assert!(refused(r#"{"kind":"internal"}"#).contains(r#""code":-32603"#));
        assert!(refused("{}").contains(r#""text":"no""#), "an error without data is one");
    }
}
