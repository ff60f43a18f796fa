//! From `key=value` to a tool's input, by the types its schema names.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ringback_proto::ToolRequest;
use ringback_proto::tool::{TOOLS, ToolRow, find};
use serde_json::{Map, Value};

use crate::failure::Failure;
use crate::nearest::nearest;

/// The row of a tool, or a failure that names the nearest one.
pub(crate) fn tool(name: &str) -> Result<&'static ToolRow, Failure> {
    find(name).ok_or_else(|| {
        let known = TOOLS.iter().map(|row| row.name);
        let hint = nearest(name, known).map_or_else(
            || "`ringback tools` lists them".to_owned(),
            |near| format!("did you mean `{near}`?"),
        );
        Failure::Usage(format!("there is no tool `{name}`; {hint}"))
    })
}

/// Fills an input from pairs, on top of what a JSON object already says.
pub(crate) fn input(
    row: &ToolRow,
    json: Option<&str>,
    pairs: &[String],
) -> Result<Map<String, Value>, Failure> {
    let schema = (row.request_schema)().to_value();
    let mut input = match json {
        None => Map::new(),
        Some(text) => match serde_json::from_str(text) {
            Ok(Value::Object(input)) => input,
            Ok(_) => return Err(usage("the arguments are JSON, but not an object")),
            Err(error) => return Err(usage(format!("the arguments are not JSON: {error}"))),
        },
    };
    for name in input.keys() {
        property(row, &schema, name)?;
    }
    for pair in pairs {
        let (name, text) = pair.split_once('=').ok_or_else(|| {
            usage(format!("`{pair}` is not `key=value`; a whole input goes into `--json`"))
        })?;
        let property = property(row, &schema, name)?;
        let value = value(name, text, property)?;
        match (input.get_mut(name), value) {
            (Some(Value::Array(items)), Value::Array(more)) => items.extend(more),
            (Some(_), _) => return Err(usage(format!("`{name}` is given twice"))),
            (None, value) => drop(input.insert(name.to_owned(), value)),
        }
    }
    Ok(input)
}

/// The typed request that an input stands for.
pub(crate) fn request(row: &ToolRow, input: Map<String, Value>) -> Result<ToolRequest, Failure> {
    let request = ToolRequest::deserialize_named(row.name, Value::Object(input));
    request
        .ok_or_else(|| usage(format!("there is no tool `{}`", row.name)))?
        .map_err(|error| usage(format!("`{}` cannot take that: {error}", row.name)))
}

/// The schema of one field, or a failure that names those there are.
fn property<'a>(row: &ToolRow, schema: &'a Value, name: &str) -> Result<&'a Value, Failure> {
    let properties = schema.get("properties").and_then(Value::as_object);
    if let Some(property) = properties.and_then(|properties| properties.get(name)) {
        return Ok(property);
    }
    let known: Vec<&str> = properties.into_iter().flat_map(Map::keys).map(String::as_str).collect();
    let hint = match (nearest(name, known.iter().copied()), known.as_slice()) {
        (Some(near), _) => format!("did you mean `{near}`?"),
        (None, []) => "it takes nothing".to_owned(),
        (None, known) => format!("it takes {}", known.join(", ")),
    };
    Err(usage(format!("`{}` has no field `{name}`; {hint}", row.name)))
}

fn value(name: &str, text: &str, property: &Value) -> Result<Value, Failure> {
    let misfit = |expected: &str| usage(format!("`{name}` takes {expected}, found `{text}`"));
    let json = || serde_json::from_str::<Value>(text).ok();
    if is_bytes(property) {
        return read(text).map(|bytes| STANDARD.encode(bytes).into());
    }
    let types = types(property);
    let takes = |kind: &str| types.contains(&kind);
    if types.is_empty() {
        return Ok(json().unwrap_or_else(|| text.into()));
    }
    if takes("null") && text == "null" {
        return Ok(Value::Null);
    }
    if takes("string") {
        let text = String::from_utf8(read(text)?).map_err(|_| misfit("text in UTF-8"))?;
        return Ok(text.into());
    }
    if takes("array") {
        return match json() {
            Some(list @ Value::Array(_)) => Ok(list),
            Some(_) | None => value(name, text, &property["items"]).map(|item| vec![item].into()),
        };
    }
    let expected = types.join(" or ");
    let value = json().ok_or_else(|| misfit(&expected))?;
    let fits = match &value {
        Value::Bool(_) => takes("boolean"),
        Value::Number(number) => takes("number") || (takes("integer") && !number.is_f64()),
        Value::Object(_) => takes("object"),
        Value::Null | Value::String(_) | Value::Array(_) => false,
    };
    if fits { Ok(value) } else { Err(misfit(&expected)) }
}

/// The text, or what is in the file after `@`. `@@` is a text that starts with `@`.
fn read(text: &str) -> Result<Vec<u8>, Failure> {
    match text.strip_prefix('@') {
        None => Ok(text.as_bytes().to_vec()),
        Some(rest) if rest.starts_with('@') => Ok(rest.as_bytes().to_vec()),
        Some(path) => fs::read(path).map_err(|source| Failure::File {
            action: "read",
            path: Path::new(path).to_owned(),
            source,
        }),
    }
}

/// The types a schema allows; empty when it allows all.
fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        Some(_) | None if schema.get("enum").is_some() => vec!["string"],
        Some(_) | None => alternatives(schema).flat_map(types).collect(),
    }
}

fn is_bytes(schema: &Value) -> bool {
    schema.get("contentEncoding").is_some() || alternatives(schema).any(is_bytes)
}

fn alternatives(schema: &Value) -> impl Iterator<Item = &Value> {
    ["anyOf", "oneOf"]
        .into_iter()
        .filter_map(|name| schema.get(name).and_then(Value::as_array))
        .flatten()
        // A list of constants has no types of its own.
        .map(|alternative| match alternative.get("const") {
            Some(_) => &CONSTANT,
            None => alternative,
        })
}

/// What a named constant is on the wire.
static CONSTANT: std::sync::LazyLock<Value> =
    std::sync::LazyLock::new(|| serde_json::json!({ "type": "string" }));

fn usage(text: impl Into<String>) -> Failure {
    Failure::Usage(text.into())
}

#[cfg(test)]
mod tests {
    use ringback_proto::ToolRequest;
    use serde_json::{Value, json};

    use super::{input, request, tool};

    fn filled(name: &str, pairs: &[&str]) -> Result<Value, String> {
        let pairs: Vec<_> = pairs.iter().map(|pair| (*pair).to_owned()).collect();
        let row = tool(name).map_err(|failure| failure.to_string())?;
        let input = input(row, None, &pairs).map_err(|failure| failure.to_string())?;
        Ok(Value::Object(input))
    }

    #[test]
    fn values_are_read_as_their_field_s_type() {
        let cases = [
            ("job_sleep", vec!["milliseconds=5"], json!({"milliseconds": 5})),
            (
                "cas_store",
                vec!["data=hi", "mime_type=5"],
                json!({"data": "aGk=", "mime_type": "5"}),
            ),
            ("cas_store", vec!["last=true"], json!({"last": true})),
            (
                "job_list",
                vec!["status=running", "limit=3"],
                json!({"status": "running", "limit": 3}),
            ),
            ("artifact_create", vec!["tags=a", "tags=b"], json!({"tags": ["a", "b"]})),
            ("artifact_create", vec![r#"tags=["a","b"]"#], json!({"tags": ["a", "b"]})),
            ("artifact_create", vec![r#"metadata={"x": 1}"#], json!({"metadata": {"x": 1}})),
            ("artifact_create", vec!["metadata=plain"], json!({"metadata": "plain"})),
            ("artifact_create", vec!["creator=@@me"], json!({"creator": "@me"})),
            ("token_create", vec!["scope=read"], json!({"scope": "read"})),
            ("job_poll", vec!["mode=all", "job_ids=x"], json!({"mode": "all", "job_ids": ["x"]})),
        ];
        for (name, pairs, expected) in cases {
            assert_eq!(filled(name, &pairs), Ok(expected), "{name} {pairs:?}");
        }
    }

    #[test]
    fn a_file_stands_for_its_content() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("all");
        let bytes: Vec<u8> = (0..=255).collect();
        std::fs::write(&path, &bytes).unwrap();
        let row = tool("cas_store").unwrap();
        let pairs = [format!("data=@{}", path.display()), "mime_type=a/b".to_owned()];
        let stored = request(row, input(row, None, &pairs).unwrap()).unwrap();
        let ToolRequest::CasStore(stored) = stored else { panic!("{stored:?}") };
        assert_eq!(stored.data.0, bytes);
        let text = filled("cas_store", &[&format!("mime_type=@{}", path.display())]);
        assert!(text.unwrap_err().contains("UTF-8"));
    }

    #[test]
    fn what_cannot_be_is_named_with_what_can() {
        let cases = [
            ("job_slep", vec![], "did you mean `job_sleep`?"),
            ("zebra_crossing", vec![], "`ringback tools` lists them"),
            ("job_sleep", vec!["miliseconds=1"], "did you mean `milliseconds`?"),
            ("ping", vec!["x=1"], "it takes nothing"),
            ("job_sleep", vec!["milliseconds=soon"], "takes integer, found `soon`"),
            ("job_sleep", vec!["milliseconds=1.5"], "takes integer"),
            ("job_sleep", vec!["5"], "is not `key=value`"),
            ("job_sleep", vec!["milliseconds=1", "milliseconds=2"], "given twice"),
        ];
        for (name, pairs, expected) in cases {
            let error = filled(name, &pairs).unwrap_err();
            assert!(error.contains(expected), "{name} {pairs:?}: {error}");
        }
    }

    #[test]
    fn a_json_object_is_an_input_and_pairs_add_to_it() {
        let row = tool("artifact_create").unwrap();
        let pairs = ["creator=me".to_owned()];
        let input = input(row, Some(r#"{"tags": ["x"]}"#), &pairs).unwrap();
        assert_eq!(Value::Object(input), json!({"tags": ["x"], "creator": "me"}));
        for (text, expected) in
            [("[1]", "not an object"), ("{", "not JSON"), (r#"{"tag": 1}"#, "tags")]
        {
            let error = super::input(row, Some(text), &[]).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
