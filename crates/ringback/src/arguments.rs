//! Converts `key=value` pairs to a tool's input, by the types in its schema.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ringback_proto::ToolRequest;
use ringback_proto::any::{Any, Format};
use ringback_proto::request::ToolInfo;
use ringback_proto::tool::{TOOLS, ToolRow};
use ringback_proto::value::Value;
use serde::Deserialize;

use crate::failure::Failure;
use crate::nearest::nearest;

/// Integers from this value on need more than 64 bits.
const WHOLE_MAX: f64 = 18_446_744_073_709_551_616.0;

/// The input of a tool.
#[derive(Debug)]
pub(crate) struct ToolInput<'a> {
    tool: &'a str,
    schema: Value,
    /// Whether it accepts fields that its schema does not name.
    takes_others: bool,
}

impl<'a> ToolInput<'a> {
    /// Returns the input of a native tool: exactly the fields of its type.
    pub(crate) fn native(row: &'a ToolRow) -> Result<Self, Failure> {
        let schema = Value::deserialize((row.request_schema)().to_value())
            .map_err(|error| usage(format!("cannot read the schema of `{}`: {error}", row.name)))?;
        Ok(Self { tool: row.name, schema, takes_others: false })
    }

    /// Returns the input of a tool on a line, as its party declared it.
    pub(crate) fn on_line(tool: &'a ToolInfo) -> Self {
        let schema = tool.input_schema.clone();
        let takes_others = schema.get("additionalProperties") != Some(&Value::Bool(false));
        Self { tool: &tool.name, schema, takes_others }
    }

    /// Builds an input from a JSON object and pairs that add to it. Keeps the order.
    pub(crate) fn input(&self, json: Option<&str>, pairs: &[String]) -> Result<Value, Failure> {
        let mut input = match json.map(serde_json::from_str) {
            None => Vec::new(),
            Some(Ok(Value::Map(input))) => input,
            Some(Ok(_)) => return Err(usage("the arguments are JSON but not an object")),
            Some(Err(error)) => {
                return Err(usage(format!("the arguments are not JSON: {error}")));
            }
        };
        for (name, value) in &input {
            self.property(name)?;
            check_numbers(name, value)?;
        }
        for pair in pairs {
            let (name, text) = pair.split_once('=').ok_or_else(|| {
                usage(format!("`{pair}` is not `key=value`; pass a whole input with `--json`"))
            })?;
            let value = value(name, text, self.property(name)?)?;
            check_numbers(name, &value)?;
            let before = input.iter_mut().find(|(known, _)| known == name);
            match (before.map(|(_, before)| before), value) {
                (Some(Value::List(items)), Value::List(more)) => items.extend(more),
                (Some(_), _) => return Err(usage(format!("`{name}` is given twice"))),
                (None, value) => input.push((name.to_owned(), value)),
            }
        }
        Ok(Value::Map(input))
    }

    /// Returns the schema of a field, or fails with the known fields.
    fn property(&self, name: &str) -> Result<&Value, Failure> {
        let fields = match self.schema.get("properties") {
            Some(Value::Map(fields)) => fields.as_slice(),
            Some(_) | None => &[],
        };
        if let Some((_, property)) = fields.iter().find(|(known, _)| known == name) {
            return Ok(property);
        }
        if self.takes_others {
            return Ok(&Value::Null);
        }
        let known: Vec<&str> = fields.iter().map(|(known, _)| known.as_str()).collect();
        let hint = match (nearest(name, known.iter().copied()), known.as_slice()) {
            (Some(near), _) => format!("did you mean `{near}`?"),
            (None, []) => "it takes no input".to_owned(),
            (None, known) => format!("it takes {}", known.join(", ")),
        };
        Err(usage(format!("`{}` has no field `{name}`; {hint}", self.tool)))
    }
}

/// Returns the native tool that was probably meant.
pub(crate) fn near_native(name: &str) -> Option<&'static str> {
    nearest(name, TOOLS.iter().map(|row| row.name))
}

/// The failure for an unknown tool, with a suggestion.
pub(crate) fn unknown(name: &str, near: Option<&str>) -> Failure {
    let hint = near.map_or_else(
        || "list all tools with `ringback tools`".to_owned(),
        |near| format!("did you mean `{near}`?"),
    );
    usage(format!("unknown tool `{name}`; {hint}"))
}

/// Converts an input to a typed request.
pub(crate) fn request(row: &ToolRow, input: &Value) -> Result<ToolRequest, Failure> {
    let misfit = |error: serde_json::Error| usage(format!("bad input for `{}`: {error}", row.name));
    let input = serde_json::to_value(input).map_err(misfit)?;
    ToolRequest::deserialize_named(row.name, input)
        .ok_or_else(|| unknown(row.name, None))?
        .map_err(misfit)
}

/// Encodes the input of a tool on a line.
pub(crate) fn passed(input: &Value) -> Result<Any, Failure> {
    let bytes = rmp_serde::to_vec_named(input)
        .map_err(|error| usage(format!("cannot encode the input: {error}")))?;
    Ok(Any { format: Format::MsgPack, bytes: bytes.into() })
}

/// Refuses numbers that would be rounded.
fn check_numbers(name: &str, value: &Value) -> Result<(), Failure> {
    match value {
        Value::Float(number) if number.abs() >= WHOLE_MAX => Err(usage(format!(
            "`{name}` has a number of more than 64 bits, which would be rounded; pass it as text"
        ))),
        Value::List(values) => values.iter().try_for_each(|value| check_numbers(name, value)),
        Value::Map(entries) => entries.iter().try_for_each(|(_, value)| check_numbers(name, value)),
        Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::UInt(_)
        | Value::Float(_)
        | Value::Text(_)
        | Value::Bytes(_) => Ok(()),
    }
}

fn value(name: &str, text: &str, property: &Value) -> Result<Value, Failure> {
    let misfit = |expected: &str| usage(format!("`{name}` takes {expected}, found `{text}`"));
    let json = || serde_json::from_str::<Value>(text).ok();
    if is_bytes(property) {
        return read(text).map(|bytes| Value::Text(STANDARD.encode(bytes)));
    }
    let types = types(property);
    let takes = |kind: &str| types.contains(&kind);
    if takes("null") && text == "null" {
        return Ok(Value::Null);
    }
    if takes("string") {
        let text = String::from_utf8(read(text)?).map_err(|_| misfit("text in UTF-8"))?;
        return Ok(Value::Text(text));
    }
    if types.is_empty() {
        return match json() {
            Some(value) => Ok(value),
            None => String::from_utf8(read(text)?)
                .map(Value::Text)
                .map_err(|_| misfit("JSON, or text in UTF-8")),
        };
    }
    if takes("array") {
        return match json() {
            Some(list @ Value::List(_)) => Ok(list),
            Some(_) | None => {
                let items = property.get("items").unwrap_or(&Value::Null);
                value(name, text, items).map(|item| Value::List(vec![item]))
            }
        };
    }
    let expected = types.join(" or ");
    let value = json().ok_or_else(|| misfit(&expected))?;
    let fits = match &value {
        Value::Bool(_) => takes("boolean"),
        Value::Int(_) | Value::UInt(_) => takes("number") || takes("integer"),
        Value::Float(_) => takes("number"),
        Value::Map(_) => takes("object"),
        Value::Null | Value::Text(_) | Value::Bytes(_) | Value::List(_) => false,
    };
    if fits { Ok(value) } else { Err(misfit(&expected)) }
}

/// Returns the text, or the content of the file after `@`. `@@` escapes a leading `@`.
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

/// Returns the types a schema allows; empty if it allows all.
fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::Text(kind)) => vec![kind],
        Some(Value::List(kinds)) => kinds.iter().filter_map(text_of).collect(),
        Some(_) | None if schema.get("enum").is_some() => constants(list(schema, "enum")),
        Some(_) | None => {
            let each: Vec<_> = alternatives(schema)
                .map(|alternative| match alternative.get("const") {
                    // A named constant has no type of its own.
                    Some(constant) => constants(std::slice::from_ref(constant)),
                    None => types(alternative),
                })
                .collect();
            // One alternative that allows all outweighs the rest.
            if each.iter().any(Vec::is_empty) { Vec::new() } else { each.concat() }
        }
    }
}

/// Returns the type of constants: strings need no quotes, other types are JSON.
fn constants(values: &[Value]) -> Vec<&'static str> {
    if values.iter().all(|value| text_of(value).is_some()) { vec!["string"] } else { Vec::new() }
}

fn is_bytes(schema: &Value) -> bool {
    schema.get("contentEncoding").is_some() || alternatives(schema).any(is_bytes)
}

fn alternatives(schema: &Value) -> impl Iterator<Item = &Value> {
    ["anyOf", "oneOf"].into_iter().flat_map(|name| list(schema, name))
}

fn list<'a>(schema: &'a Value, name: &str) -> &'a [Value] {
    if let Some(Value::List(items)) = schema.get(name) { items } else { &[] }
}

fn text_of(value: &Value) -> Option<&str> {
    if let Value::Text(text) = value { Some(text) } else { None }
}

fn usage(text: impl Into<String>) -> Failure {
    Failure::Usage(text.into())
}

#[cfg(test)]
mod tests {
    use ringback_proto::ToolRequest;
    use ringback_proto::principal::Level;
    use ringback_proto::request::ToolInfo;
    use ringback_proto::timing::ToolTiming;
    use ringback_proto::tool::find;
    use serde::Deserialize;
    use serde_json::{Value, json};

    use super::{ToolInput, near_native, request, unknown};

    fn filled(name: &str, pairs: &[&str]) -> Result<Value, String> {
        let pairs: Vec<_> = pairs.iter().map(|pair| (*pair).to_owned()).collect();
        let row = find(name).ok_or_else(|| unknown(name, near_native(name)).to_string())?;
        let input = ToolInput::native(row).unwrap().input(None, &pairs);
        Ok(serde_json::to_value(input.map_err(|failure| failure.to_string())?).unwrap())
    }

    /// Returns the input of a tool with this schema, as its party will see it.
    fn on_line(schema: &Value, json: Option<&str>, pairs: &[&str]) -> Result<String, String> {
        let tool = ToolInfo {
            name: "client_a_b".to_owned(),
            description: String::new(),
            input_schema: Deserialize::deserialize(schema).unwrap(),
            timing: ToolTiming::AsyncShort,
            scope: Level::Write,
        };
        let pairs: Vec<_> = pairs.iter().map(|pair| (*pair).to_owned()).collect();
        let input = ToolInput::on_line(&tool).input(json, &pairs);
        Ok(serde_json::to_string(&input.map_err(|failure| failure.to_string())?).unwrap())
    }

    #[test]
    fn a_tool_on_a_line_types_its_fields_and_may_take_others() {
        let schema = json!({"type": "object", "properties": {
            "n": {"type": "integer"}, "text": {"type": "string"}, "mode": {"enum": ["a", "b"]},
        }});
        let cases = [
            (vec!["text=5", "n=5"], r#"{"text":"5","n":5}"#),
            (vec!["mode=a", "other=5", "more=x y"], r#"{"mode":"a","other":5,"more":"x y"}"#),
            (vec!["z=null", "a=[1, 2]"], r#"{"z":null,"a":[1,2]}"#),
        ];
        for (pairs, expected) in cases {
            assert_eq!(on_line(&schema, None, &pairs).as_deref(), Ok(expected));
        }
        assert!(on_line(&schema, None, &["n=x"]).unwrap_err().contains("takes integer"));
        let closed = json!({"properties": {"word": {}}, "additionalProperties": false});
        let refused = on_line(&closed, None, &["wrod=x"]).unwrap_err();
        assert!(refused.contains("did you mean `word`?"), "{refused}");
    }

    /// Rule: a payload keeps its order and its numbers, or is refused.
    #[test]
    fn what_is_given_as_json_keeps_its_order_and_its_numbers() {
        let open = json!({"type": "object"});
        let text =
            r#"{"z":18446744073709551615,"a":[null,-9223372036854775808,"ä"],"m":{"y":1.5}}"#;
        assert_eq!(on_line(&open, Some(text), &[]).as_deref(), Ok(text));
        for pair in ["n=18446744073709551616", "n=[{\"x\": -18446744073709551617}]"] {
            let refused = on_line(&open, None, &[pair]).unwrap_err();
            assert!(refused.contains("more than 64 bits"), "{refused}");
        }
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
        let row = find("cas_store").unwrap();
        let pairs = [format!("data=@{}", path.display()), "mime_type=a/b".to_owned()];
        let input = ToolInput::native(row).unwrap().input(None, &pairs).unwrap();
        let stored = request(row, &input).unwrap();
        let ToolRequest::CasStore(stored) = stored else { panic!("{stored:?}") };
        assert_eq!(stored.data.0, bytes);
        let text = filled("cas_store", &[&format!("mime_type=@{}", path.display())]);
        assert!(text.unwrap_err().contains("UTF-8"));
    }

    #[test]
    fn what_cannot_be_is_named_with_what_can() {
        let cases = [
            ("job_slep", vec![], "did you mean `job_sleep`?"),
            ("zebra_crossing", vec![], "list all tools with `ringback tools`"),
            ("job_sleep", vec!["miliseconds=1"], "did you mean `milliseconds`?"),
            ("ping", vec!["x=1"], "it takes no input"),
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
        let takes = ToolInput::native(find("artifact_create").unwrap()).unwrap();
        let pairs = ["creator=me".to_owned()];
        let input = takes.input(Some(r#"{"tags": ["x"]}"#), &pairs).unwrap();
        let expected = json!({"tags": ["x"], "creator": "me"});
        assert_eq!(serde_json::to_value(input).unwrap(), expected);
        for (text, expected) in
            [("[1]", "not an object"), ("{", "not JSON"), (r#"{"tag": 1}"#, "tags")]
        {
            let error = takes.input(Some(text), &[]).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
