//! The input schema of a tool, as clients require it.

use serde_json::value::RawValue;

use crate::object::Object;

/// Accepts anything; the schema of a tool without one.
const ANY_OBJECT: &str = r#"{"type":"object"}"#;

/// A schema that is not of type `object`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the input schema of a tool must be a JSON Schema of type `object`")]
pub struct NotOfAnObject;

/// The schema that a tool is offered with: as declared, with the type `object` added where it is
/// missing.
///
/// # Errors
/// When it is the schema of another type, or not a schema.
///
/// # Panics
/// Never: an object with an added type is an object.
pub fn input_schema(declared: Option<&RawValue>) -> Result<Box<RawValue>, NotOfAnObject> {
    let whole = |text: String| RawValue::from_string(text).expect("an object with one more field");
    let Some(declared) = declared.filter(|raw| raw.get() != "null") else {
        return Ok(whole(ANY_OBJECT.to_owned()));
    };
    let schema = Object::of(declared).map_err(|_| NotOfAnObject)?;
    match (schema.get("type"), declared.get().strip_prefix('{')) {
        (Some(_), _) if schema.text("type").as_deref() == Some("object") => Ok(declared.to_owned()),
        (None, Some(rest)) => {
            let comma = if schema.is_empty() { "" } else { "," };
            Ok(whole(format!("{{\"type\":\"object\"{comma}{rest}")))
        }
        (Some(_), _) | (None, None) => Err(NotOfAnObject),
    }
}

#[cfg(test)]
mod tests {
    use super::{NotOfAnObject, RawValue, input_schema};

    fn offered(text: &str) -> Result<String, NotOfAnObject> {
        let raw: &RawValue = serde_json::from_str(text).unwrap();
        input_schema(Some(raw)).map(|schema| schema.get().to_owned())
    }

    /// REQ: seed 001 "Tools include input schema": it reaches the agent unchanged.
    #[test]
    fn a_schema_stays_as_it_is_and_gets_a_type_where_it_has_none() {
        let whole = r#"{ "properties":{"n":{"maximum":12345678901234567890}}, "type":"object" }"#;
        assert_eq!(offered(whole).unwrap(), whole);
        assert_eq!(offered("{}").unwrap(), r#"{"type":"object"}"#);
        assert_eq!(offered(r#"{"a":1}"#).unwrap(), r#"{"type":"object","a":1}"#);
        assert_eq!(input_schema(None).unwrap().get(), r#"{"type":"object"}"#);
    }

    #[test]
    fn a_schema_of_something_else_is_refused() {
        for text in [r#"{"type":"string"}"#, r#"{"type":["object"]}"#, "[]", "true"] {
            assert_eq!(offered(text), Err(NotOfAnObject), "{text}");
        }
    }
}
