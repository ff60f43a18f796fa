//! The schema of an offered tool: read from a file, and shown as a call that fits it.

use std::path::Path;

use ringback_proto::value::Value;
use serde_json::value::RawValue;

use crate::failure::Failure;

/// What is in the file, as it is. The daemon says whether it is a schema.
pub(in crate::commands) fn read(path: &Path) -> Result<Box<RawValue>, Failure> {
    let text = std::fs::read_to_string(path).map_err(|source| Failure::File {
        action: "read",
        path: path.to_owned(),
        source,
    })?;
    serde_json::from_str(&text)
        .map_err(|error| Failure::Usage(format!("`{}` is not JSON: {error}", path.display())))
}

/// ` key=value` for each field that a schema needs, with values of the right type.
pub(super) fn sample(schema: Option<&RawValue>) -> String {
    let schema = schema.and_then(|schema| serde_json::from_str::<Value>(schema.get()).ok());
    let Some(schema) = schema else { return " text=hello".to_owned() };
    let Some(Value::List(needed)) = schema.get("required") else { return String::new() };
    let pairs = needed.iter().filter_map(|name| {
        let Value::Text(name) = name else { return None };
        let field = schema.get("properties").and_then(|fields| fields.get(name));
        let kind = field.and_then(|field| field.get("type"));
        let kind = if let Some(Value::Text(kind)) = kind { kind.as_str() } else { "" };
        Some(match kind {
            "integer" | "number" => format!(" {name}=1"),
            "boolean" => format!(" {name}=true"),
            "array" => format!(" {name}='[]'"),
            "object" => format!(" {name}='{{}}'"),
            _ => format!(" {name}=hello"),
        })
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::sample;

    #[test]
    fn a_sample_has_what_the_schema_needs() {
        let schema = r#"{"properties": {"n": {"type": "integer"}, "o": {"type": "object"}, "s": {},
            "free": {}}, "required": ["n", "o", "s"]}"#;
        let schema = RawValue::from_string(schema.to_owned()).unwrap();
        assert_eq!(sample(Some(&schema)), " n=1 o='{}' s=hello");
        assert_eq!(sample(None), " text=hello");
    }
}
