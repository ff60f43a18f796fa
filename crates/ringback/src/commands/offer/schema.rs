//! The input schema of a command offered as a tool, and a sample call that fits it.

use std::path::Path;

use ringback_proto::value::Value;
use serde_json::value::RawValue;

use crate::failure::Failure;

/// The default input: any object, with a name for the usual field. Agents send a tool only what its
/// schema names, and some drop everything else.
const ANY: &str = r#"{"type":"object","properties":{"text":{"type":"string","description":"Text for the command"}},"additionalProperties":true}"#;

/// Returns the schema in the file unchanged, or without a file the schema for any command.
pub(in crate::commands) fn of(path: Option<&Path>) -> Result<Box<RawValue>, Failure> {
    let any = || RawValue::from_string(ANY.to_owned()).expect("a test reads it");
    path.map_or_else(|| Ok(any()), read)
}

/// Reads any JSON; the daemon checks that it is a schema.
fn read(path: &Path) -> Result<Box<RawValue>, Failure> {
    let text = std::fs::read_to_string(path).map_err(|source| Failure::File {
        action: "read",
        path: path.to_owned(),
        source,
    })?;
    serde_json::from_str(&text)
        .map_err(|error| Failure::Usage(format!("`{}` is not JSON: {error}", path.display())))
}

/// Returns ` key=value` for each required field, or else for the first field, with values of the
/// right type.
pub(super) fn sample(schema: &RawValue) -> String {
    let schema = serde_json::from_str::<Value>(schema.get()).unwrap_or(Value::Null);
    let needed: Vec<&str> = match (schema.get("required"), schema.get("properties")) {
        (Some(Value::List(needed)), _) => needed.iter().filter_map(text).collect(),
        (_, Some(Value::Map(fields))) => {
            fields.iter().map(|(name, _)| name.as_str()).take(1).collect()
        }
        (_, _) => Vec::new(),
    };
    let pair = |name: &str| {
        let field = schema.get("properties").and_then(|fields| fields.get(name));
        let kind = field.and_then(|field| field.get("type")).and_then(text);
        match kind.unwrap_or_default() {
            "integer" | "number" => format!(" {name}=1"),
            "boolean" => format!(" {name}=true"),
            "array" => format!(" {name}='[]'"),
            "object" => format!(" {name}='{{}}'"),
            _ => format!(" {name}=hello"),
        }
    };
    needed.into_iter().map(pair).collect()
}

const fn text(value: &Value) -> Option<&str> {
    if let Value::Text(text) = value { Some(text.as_str()) } else { None }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::{of, sample};

    #[test]
    fn a_sample_has_what_the_schema_needs() {
        let sample = |schema: &str| sample(&RawValue::from_string(schema.to_owned()).unwrap());
        let schema = r#"{"properties": {"n": {"type": "integer"}, "o": {"type": "object"}, "s": {},
            "free": {}}, "required": ["n", "o", "s"]}"#;
        assert_eq!(sample(schema), " n=1 o='{}' s=hello");
        assert_eq!(sample(r#"{"properties": {"free": {"type": "number"}, "s": {}}}"#), " free=1");
        assert_eq!(sample("{}"), "");
    }

    /// Rule: without a schema, an agent still has a field for its text.
    #[test]
    fn without_a_schema_a_command_takes_a_text() {
        assert_eq!(sample(&of(None).unwrap()), " text=hello");
    }
}
