//! The rows of the tool table as MCP lists them, built once.

use std::borrow::Cow;
use std::sync::LazyLock;

use ringback_mcp_wire::{RawValue, names};
use ringback_proto::principal::Level;
use ringback_proto::timing::ToolTiming;
use ringback_proto::tool::{TOOLS, ToolRow};
use serde::Serialize;
use serde_json::value::to_raw_value;
use serde_json::{Map, Value, json};

/// Tools that end or remove something, by the last word of their name.
const DESTRUCTIVE: &[&str] = &["cancel", "revoke", "delete", "stop", "end", "cleanup"];

/// A native tool, prepared.
#[derive(Debug)]
pub(super) struct NativeTool {
    /// The entry in `tools/list`.
    pub(super) listed: Box<RawValue>,
    /// The schemas of its fields.
    pub(super) properties: Map<String, Value>,
}

/// One tool in `tools/list`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolListing<'a, Schema> {
    pub(crate) name: &'a str,
    pub(crate) description: Cow<'a, str>,
    pub(crate) input_schema: Schema,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output_schema: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) annotations: Option<Annotations>,
    #[serde(rename = "_meta")]
    pub(crate) meta: ToolMeta,
}

/// Hints about a tool that a client may show its user.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "the protocol defines them this way")]
pub(crate) struct Annotations {
    read_only_hint: bool,
    destructive_hint: bool,
    idempotent_hint: bool,
    open_world_hint: bool,
}

/// Metadata for our own clients.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct ToolMeta {
    #[serde(rename = "ringback/timing")]
    pub(crate) timing: ToolTiming,
    #[serde(rename = "ringback/scope")]
    pub(crate) scope: Level,
}

static NATIVE: LazyLock<Vec<NativeTool>> =
    LazyLock::new(|| TOOLS.iter().map(|row| prepare(row)).collect());

/// The same under the names they have in an agent session.
static IN_SESSION: LazyLock<Vec<Box<RawValue>>> = LazyLock::new(|| {
    let named = |row: &ToolRow| listed(row, &format!("{}_{}", names::NATIVE, row.name));
    TOOLS.iter().map(|row| named(row)).collect()
});

/// A row as listed in an agent session.
pub(crate) fn in_session(row: &ToolRow) -> &'static RawValue {
    &IN_SESSION[row.kind as usize]
}

/// A row, prepared.
pub(super) fn native(row: &ToolRow) -> &'static NativeTool {
    &NATIVE[row.kind as usize]
}

fn prepare(row: &ToolRow) -> NativeTool {
    let input_schema = without_widths((row.request_schema)().to_value());
    let properties = match input_schema.get("properties") {
        Some(Value::Object(properties)) => properties.clone(),
        Some(_) | None => Map::new(),
    };
    NativeTool { listed: listed(row, row.name), properties }
}

fn listed(row: &ToolRow, name: &str) -> Box<RawValue> {
    let listed = ToolListing {
        name,
        description: row.described(),
        input_schema: without_widths((row.request_schema)().to_value()),
        output_schema: Some(output_schema(row)),
        annotations: Some(annotations(row)),
        meta: ToolMeta { timing: row.timing, scope: row.level },
    };
    to_raw_value(&listed).expect("a row can be written as JSON")
}

/// A schema without the widths of its numbers, such as `uint64`: no dialect of JSON Schema defines
/// them, and the validator that most agents embed warns about each of them.
fn without_widths(mut schema: Value) -> Value {
    match &mut schema {
        Value::Object(fields) => {
            // A property of this name has a schema, not a string.
            let is_number = fields.get("type").is_some_and(is_number);
            fields.retain(|key, value| !(is_number && key == "format" && value.is_string()));
            for part in fields.values_mut() {
                *part = without_widths(part.take());
            }
        }
        Value::Array(parts) => {
            for part in parts {
                *part = without_widths(part.take());
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    schema
}

/// Whether a schema's `type` is a number, or a number or null.
fn is_number(kind: &Value) -> bool {
    match kind {
        Value::String(kind) => matches!(kind.as_str(), "integer" | "number"),
        Value::Array(kinds) => kinds.iter().any(is_number),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    }
}

/// The schema of the answer; for a tool that starts a job, also of the answer with the job's id.
fn output_schema(row: &ToolRow) -> Value {
    let mut response = without_widths((row.response_schema)().to_value());
    if !row.makes_job {
        return response;
    }
    if let Value::Object(fields) = &mut response {
        fields.remove("$schema");
    }
    let job = json!({
        "type": "object",
        "properties": {
            "job_id": { "type": "string" },
            "status": { "type": "string", "const": "started" },
            "tool": { "type": "string" },
            "expected_timing": { "type": "string" },
        },
        "required": ["job_id", "status"],
    });
    json!({ "type": "object", "anyOf": [response, job] })
}

fn annotations(row: &ToolRow) -> Annotations {
    let reads = row.level == Level::Read;
    let verb = row.name.rsplit('_').next().unwrap_or_default();
    let destroys = !reads && DESTRUCTIVE.contains(&verb);
    Annotations {
        read_only_hint: reads,
        destructive_hint: destroys,
        idempotent_hint: reads || destroys,
        open_world_hint: false,
    }
}

#[cfg(test)]
mod tests {
    use ringback_proto::tool::{TOOLS, find};
    use serde_json::Value;

    use super::native;

    fn shown(name: &str) -> Value {
        serde_json::from_str(native(find(name).unwrap()).listed.get()).unwrap()
    }

    /// REQ: seed 003 "MCP edge": schemas from types, 2020-12, without `default` and network `$ref`.
    #[test]
    fn every_tool_has_schemas_that_every_client_takes_and_a_short_name() {
        for row in TOOLS {
            let tool = shown(row.name);
            assert_eq!(tool["inputSchema"]["type"], "object", "{}", row.name);
            assert_eq!(tool["outputSchema"]["type"], "object", "{}", row.name);
            assert!(row.name.len() <= 64 && ringback_mcp_wire::names::is_plain(row.name));
            let text = tool.to_string();
            assert!(!text.contains("\"default\"") && !text.contains("\"$ref\""), "{text}");
            assert!(!text.contains("\"format\":\""), "{text}");
        }
    }

    #[test]
    fn a_tool_that_makes_a_job_says_so_in_its_schema_and_to_the_model() {
        let sleep = shown("job_sleep");
        assert_eq!(sleep["outputSchema"]["anyOf"].as_array().unwrap().len(), 2);
        assert!(sleep["description"].as_str().unwrap().contains("longer than 30 s"));
        assert!(!shown("job_status")["description"].as_str().unwrap().contains("job_poll"));
    }

    #[test]
    fn what_reads_and_what_destroys_is_told_apart() {
        assert_eq!(shown("ping")["annotations"]["readOnlyHint"], true);
        assert_eq!(shown("job_cancel")["annotations"]["destructiveHint"], true);
        assert_eq!(shown("cas_store")["annotations"]["destructiveHint"], false);
    }
}
