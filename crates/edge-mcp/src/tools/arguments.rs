//! From a client's arguments to the typed request, with corrections on the way: some clients send
//! objects as JSON in a string, or names that other servers use.

use std::borrow::Cow;

use ringback_broker::request_from_json;
use ringback_mcp_wire::{Limits, Object, RawValue};
use ringback_proto::tool::{ToolRow, find};
use ringback_proto::{Error, ToolRequest};
use serde_json::{Map, Value};

use super::native::native;

/// Alternative names of tools.
const TOOL_ALIASES: &[(&str, &str)] = &[("convert_midi_to_wav", "midi_to_wav")];

/// Alternative names of fields: one counts only where the tool has the field it stands for and not
/// one of its own name.
const FIELD_ALIASES: &[(&str, &str)] =
    &[("content_base64", "data"), ("midi_hash", "input_hash"), ("duration_ms", "milliseconds")];

/// The decoder's message is cut at this length: it quotes the caller's own text.
const MISFIT_CHARS_MAX: usize = 400;

/// The native tool that a client means.
pub(super) fn row(name: &str) -> Option<&'static ToolRow> {
    let alias = || TOOL_ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, tool)| *tool);
    find(name).or_else(|| find(alias()?))
}

/// The arguments as an object, also if they came as JSON in a string, or as null.
pub(crate) fn object(arguments: Option<&RawValue>) -> Result<Cow<'_, str>, Error> {
    let text = arguments.map_or("{}", RawValue::get);
    match text.as_bytes().first() {
        Some(b'{') => Ok(text.into()),
        Some(b'n') => Ok("{}".into()),
        Some(b'"') => inner(text)
            .filter(|inner| inner.trim_start().starts_with('{'))
            .map(Cow::Owned)
            .ok_or_else(not_an_object),
        Some(_) | None => Err(not_an_object()),
    }
}

/// Decodes the typed request.
pub(super) fn request(
    row: &'static ToolRow,
    arguments: Option<&RawValue>,
) -> Result<ToolRequest, Error> {
    let text = object(arguments)?;
    let fields = Object::parse(text.as_bytes()).map_err(|error| misfit(row, &error))?;
    let properties = &native(row).properties;
    let repaired;
    let text = if fields.fields().any(|(name, value)| is_wrong(properties, &fields, name, value)) {
        repaired = repair(properties, &fields);
        repaired.as_str()
    } else {
        &text
    };
    request_from_json(row.name, text.as_bytes())
        .ok_or_else(|| Error::not_found("tool", row.name))?
        .map_err(|error| misfit(row, &error))
}

fn is_wrong(
    properties: &Map<String, Value>,
    fields: &Object<'_>,
    name: &str,
    value: &RawValue,
) -> bool {
    field(properties, fields, name) != name
        || (value.get().starts_with('"') && takes_no_text(properties.get(name)))
}

/// The same fields, each under its proper name, and structures as JSON.
fn repair(properties: &Map<String, Value>, fields: &Object<'_>) -> String {
    let put_right = fields.fields().map(|(name, value)| {
        let name = field(properties, fields, name);
        let structure = (value.get().starts_with('"') && takes_no_text(properties.get(name)))
            .then(|| inner(value.get()))
            .flatten()
            .filter(|inner| inner.trim_start().starts_with(['{', '[']));
        let name = serde_json::to_string(name).expect("a text can be written");
        format!("{name}:{}", structure.as_deref().unwrap_or(value.get()))
    });
    format!("{{{}}}", put_right.collect::<Vec<_>>().join(","))
}

/// The name of the field that is meant.
fn field<'n>(properties: &Map<String, Value>, fields: &Object<'_>, name: &'n str) -> &'n str {
    let alias = FIELD_ALIASES.iter().find(|(alias, meant)| {
        *alias == name
            && !properties.contains_key(name)
            && properties.contains_key(*meant)
            && fields.get(meant).is_none()
    });
    alias.map_or(name, |(_, meant)| meant)
}

/// Whether a field is a structure, so that a string in its place can only be JSON.
fn takes_no_text(schema: Option<&Value>) -> bool {
    let Some(schema) = schema else { return false };
    let types: Vec<_> = match schema.get("type") {
        Some(Value::String(kind)) => vec![kind.as_str()],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        Some(_) | None => return false,
    };
    types.iter().any(|kind| matches!(*kind, "object" | "array")) && !types.contains(&"string")
}

/// The JSON inside a string, if it is JSON and within the limits.
fn inner(text: &str) -> Option<String> {
    let inner: String = serde_json::from_str(text).ok()?;
    Limits::default().check(inner.as_bytes()).ok()?;
    serde_json::from_str::<&RawValue>(&inner).is_ok().then_some(inner)
}

fn not_an_object() -> Error {
    Error::invalid("the arguments must be a JSON object")
}

fn misfit(row: &ToolRow, error: &impl std::fmt::Display) -> Error {
    let text: String = error.to_string().chars().take(MISFIT_CHARS_MAX).collect();
    Error::invalid(format!("invalid arguments for `{}`: {text}", row.name))
}

#[cfg(test)]
mod tests {
    use ringback_mcp_wire::RawValue;
    use ringback_proto::ToolRequest;

    use super::{request, row};

    fn read(tool: &str, arguments: &str) -> Result<ToolRequest, String> {
        let raw: &RawValue = serde_json::from_str(arguments).unwrap();
        request(row(tool).unwrap(), Some(raw)).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn arguments_as_json_in_a_text_are_what_they_say() {
        let plain = read("job_sleep", r#"{"milliseconds":5}"#).unwrap();
        assert_eq!(read("job_sleep", r#""{\"milliseconds\":5}""#).unwrap(), plain);
        assert_eq!(read("job_sleep", r#"{"duration_ms":5}"#).unwrap(), plain);
        assert_eq!(read("ping", "null").unwrap(), read("ping", "{}").unwrap());
        for wrong in ["[]", "5", "\"x\"", "\"[1]\"", "true"] {
            assert!(read("ping", wrong).unwrap_err().contains("a JSON object"), "{wrong}");
        }
    }

    #[test]
    fn a_list_in_a_text_is_a_list_where_no_text_is_taken() {
        let job = format!("job_{}", "a".repeat(32));
        let plain = read("job_poll", &format!(r#"{{"job_ids":["{job}"],"timeout_ms":1}}"#));
        let text = read("job_poll", &format!(r#"{{"job_ids":"[\"{job}\"]","timeout_ms":1}}"#));
        assert_eq!(plain, text);
        // A field of any type keeps its string.
        let hash = "0".repeat(64);
        let arguments = format!(r#"{{"content_hash":"{hash}","metadata":"{{\"a\":1}}"}}"#);
        let ToolRequest::ArtifactCreate(made) = read("artifact_create", &arguments).unwrap() else {
            panic!("another request")
        };
        assert_eq!(made.metadata, Some(ringback_proto::value::Value::Text(r#"{"a":1}"#.into())));
    }

    /// Rule: passed-on values are not corrected: a string that looks like JSON stays a string.
    #[test]
    fn the_result_of_a_caller_s_tool_is_kept_as_it_came() {
        let session = format!("gogol_{}", "a".repeat(32));
        for result in [
            r#"{"b":12345678901234567890123,"a":null,"n":9007199254740993}"#,
            r#""{\"a\":1}""#,
            r#""[1]""#,
            "18446744073709551616",
        ] {
            let plain = format!(
                r#"{{"session_id":"{session}","request_id":"r","result":{result},"error":null}}"#
            );
            let in_a_text = serde_json::to_string(&plain).unwrap();
            for arguments in [plain, in_a_text] {
                let read = read("caller_tool_response", &arguments).unwrap();
                let ToolRequest::CallerToolResponse(answer) = read else {
                    panic!("another request")
                };
                assert_eq!(answer.result.unwrap().0.bytes, result);
                assert_eq!(answer.error, None);
            }
        }
    }

    #[test]
    fn a_field_s_other_name_counts_only_where_its_own_is_absent() {
        let ToolRequest::CasStore(stored) =
            read("cas_store", r#"{"content_base64":"aGk=","mime_type":"a/b"}"#).unwrap()
        else {
            panic!("another request")
        };
        assert_eq!(stored.data.0, "hi");
        let both = r#"{"content_base64":"aGk=","data":"eW8=","mime_type":"a/b"}"#;
        let ToolRequest::CasStore(stored) = read("cas_store", both).unwrap() else {
            panic!("another request")
        };
        assert_eq!(stored.data.0, "yo");
    }
}
