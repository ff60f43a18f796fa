//! A result from elsewhere, passed on as an MCP result without changing its meaning.

use std::borrow::Cow;

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::meta::keys;
use crate::object::Object;
use crate::outgoing::{Implementation, Stamp};

/// Returns a value that is already an MCP result: an object whose `content` is a list of objects
/// that each have a `type`. `None` for any other value.
#[must_use]
pub fn as_result(value: &RawValue) -> Option<Object<'_>> {
    let object = Object::of(value).ok()?;
    let content: Vec<Object<'_>> = serde_json::from_str(object.get("content")?.get()).ok()?;
    content.iter().all(|block| block.text("type").is_some()).then_some(object)
}

/// The key, in the `_meta` of a failed result, of the error for programs.
pub const ERROR_META: &str = "ringback/error";

/// Somebody's value as the result of an MCP tool.
#[derive(Debug)]
pub enum RelayedValue<'a> {
    /// It is a result already, and stays as it is.
    Result(Object<'a>),
    /// Any other value: as text, and as structured content.
    Value {
        /// The value for readers of text: a string without its quotes, else its JSON.
        text: Cow<'a, str>,
        /// The value itself.
        structured: &'a RawValue,
    },
}

impl<'a> RelayedValue<'a> {
    /// How a value is shown.
    #[must_use]
    pub fn of(value: &'a RawValue) -> Self {
        if let Some(result) = as_result(value) {
            return Self::Result(result);
        }
        let text: Option<Cow<'a, str>> = serde_json::from_str(value.get()).ok();
        let text = text.unwrap_or_else(|| value.get().into());
        Self::Value { text, structured: value }
    }
}

/// A result to pass on: every field unchanged, with the stamp of the era.
#[derive(Debug)]
pub struct RelayedResult<'a> {
    /// The fields.
    pub result: Object<'a>,
    /// The stamp of the era.
    pub stamp: Stamp<'a>,
}

impl Serialize for RelayedResult<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let Stamp::Modern(server) = self.stamp else {
            // Older clients refuse unknown fields.
            for (name, value) in self.result.fields().filter(|(name, _)| *name != "resultType") {
                map.serialize_entry(name, value)?;
            }
            return map.end();
        };
        if self.result.get("resultType").is_none() {
            map.serialize_entry("resultType", "complete")?;
        }
        for (name, value) in self.result.fields().filter(|(name, _)| *name != "_meta") {
            map.serialize_entry(name, value)?;
        }
        let meta = self.result.get("_meta").and_then(|raw| Object::of(raw).ok());
        map.serialize_entry("_meta", &Meta { fields: meta.unwrap_or_default(), server })?;
        map.end()
    }
}

struct Meta<'a> {
    fields: Object<'a>,
    server: &'a Implementation,
}

impl Serialize for Meta<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in self.fields.fields().filter(|(name, _)| *name != keys::SERVER_INFO) {
            map.serialize_entry(name, value)?;
        }
        map.serialize_entry(keys::SERVER_INFO, self.server)?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule: no field of a relayed payload is lost, unknown content types and big numbers included.
    #[test]
    fn every_field_of_a_relayed_result_stays() {
        let text = concat!(
            r#"{"zeta":12345678901234567890,"content":[{"type":"hologram","b":1e2,"a":null}],"#,
            r#""_meta":{"x":[1,2],"traceparent":"00"},"structuredContent":null}"#
        );
        let raw: &RawValue = serde_json::from_str(text).unwrap();
        let legacy = RelayedResult { result: as_result(raw).unwrap(), stamp: Stamp::Legacy };
        assert_eq!(serde_json::to_string(&legacy).unwrap(), text);
        let server =
            Implementation { name: "r".to_owned(), title: "R".to_owned(), version: "1".to_owned() };
        let modern =
            RelayedResult { result: as_result(raw).unwrap(), stamp: Stamp::Modern(&server) };
        let written = serde_json::to_string(&modern).unwrap();
        for part in [
            r#""zeta":12345678901234567890"#,
            r#"{"type":"hologram","b":1e2,"a":null}"#,
            r#""structuredContent":null"#,
            r#""_meta":{"x":[1,2],"traceparent":"00","io.modelcontextprotocol/serverInfo""#,
            r#""resultType":"complete""#,
        ] {
            assert!(written.contains(part), "{part} in {written}");
        }
    }

    #[test]
    fn what_has_no_content_blocks_is_not_a_result() {
        for text in
            ["1", "null", "{}", r#"{"content":"x"}"#, r#"{"content":[1]}"#, r#"{"content":[{}]}"#]
        {
            let raw: &RawValue = serde_json::from_str(text).unwrap();
            assert!(as_result(raw).is_none(), "{text}");
        }
    }
}
