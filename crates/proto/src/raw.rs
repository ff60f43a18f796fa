//! A field of any shape that keeps its bytes, for data exchanged between callers and agents.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
use serde_json::value::RawValue;

use crate::any::{Any, Format, check_finite};
use crate::value::Value;

/// A payload of any shape as a field. Read from JSON, it keeps its text and is written to JSON as
/// the same text: large integers, key order and nulls survive. Read from MsgPack, it keeps MsgPack.
#[derive(Clone)]
pub struct Raw(pub Any);

impl Raw {
    /// Makes the payload null.
    #[must_use]
    pub const fn null() -> Self {
        Self(Any { format: Format::Json, bytes: Bytes::from_static(b"null") })
    }
}

impl From<Any> for Raw {
    fn from(payload: Any) -> Self {
        Self(payload)
    }
}

impl From<Raw> for Any {
    fn from(raw: Raw) -> Self {
        raw.0
    }
}

/// Shows nothing of the payload: it may be large, and does not belong in logs.
impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Raw({:?}, {} bytes)", self.0.format, self.0.bytes.len())
    }
}

/// Payloads are equal if their values are, in any encoding.
impl PartialEq for Raw {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
            || matches!((self.0.value(), other.0.value()), (Ok(own), Ok(others)) if own == others)
    }
}

impl Serialize for Raw {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let is_json = serializer.is_human_readable();
        if is_json && self.0.format == Format::Json {
            return serde_json::from_slice::<&RawValue>(&self.0.bytes)
                .map_err(ser::Error::custom)?
                .serialize(serializer);
        }
        let value = self.0.value().map_err(ser::Error::custom)?;
        if is_json {
            check_finite(&value).map_err(ser::Error::custom)?;
        }
        value.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(raw_value_name(), RawVisitor)
    }
}

impl JsonSchema for Raw {
    fn schema_name() -> Cow<'static, str> {
        "Raw".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({})
    }
}

struct RawVisitor;

impl<'de> de::Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    /// Called by serde_json for the name of `RawValue`, which alone knows its content.
    fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Raw, A::Error> {
        let text: Box<RawValue> = Deserialize::deserialize(MapAccessDeserializer::new(map))?;
        let bytes = Box::<str>::from(text).into_boxed_bytes().into_vec().into();
        Ok(Raw(Any { format: Format::Json, bytes }))
    }

    /// Called by any other format.
    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<Raw, D::Error> {
        let value = Value::deserialize(inner)?;
        let bytes = rmp_serde::to_vec_named(&value).map_err(de::Error::custom)?;
        Ok(Raw(Any { format: Format::MsgPack, bytes: bytes.into() }))
    }
}

/// The name with which `RawValue` requests the text from its deserializer. It is private to
/// serde_json, so it is read from `RawValue` itself.
fn raw_value_name() -> &'static str {
    match <&RawValue>::deserialize(NameProbe) {
        Err(RequestedName(Some(name))) => name,
        Ok(_) | Err(RequestedName(None)) => "",
    }
}

/// A deserializer without content that captures the requested name.
struct NameProbe;

#[derive(Debug, thiserror::Error)]
#[error("asked for {0:?}")]
struct RequestedName(Option<&'static str>);

impl de::Error for RequestedName {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self(None)
    }
}

impl<'de> Deserializer<'de> for NameProbe {
    type Error = RequestedName;

    fn deserialize_any<V: de::Visitor<'de>>(self, _: V) -> Result<V::Value, RequestedName> {
        Err(RequestedName(None))
    }

    fn deserialize_newtype_struct<V: de::Visitor<'de>>(
        self,
        name: &'static str,
        _: V,
    ) -> Result<V::Value, RequestedName> {
        Err(RequestedName(Some(name)))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Call {
        tool: String,
        arguments: Raw,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        more: Option<Raw>,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(tag = "type")]
    enum Tagged {
        Call(Call),
    }

    const AWKWARD: &str = r#"{"z": 12345678901234567890123, "a":[null,1.0,-0 , "\u0041"],"a":{}}"#;

    /// Rule: a payload keeps its bytes from JSON to JSON.
    #[test]
    fn json_comes_out_as_the_text_that_went_in() {
        for payload in [AWKWARD, "null", "[]", "\"x\"", "9007199254740993", "1e400"] {
            let text = format!(r#"{{"tool":"t","arguments":{payload},"more":{payload}}}"#);
            let call: Call = serde_json::from_str(&text).unwrap();
            assert_eq!(call.arguments.0.format, Format::Json);
            assert_eq!(call.arguments.0.bytes, payload);
            assert_eq!(call.more.is_none(), payload == "null");
            let expected = if payload == "null" {
                format!(r#"{{"tool":"t","arguments":{payload}}}"#)
            } else {
                text
            };
            assert_eq!(serde_json::to_string(&call).unwrap(), expected);
            let from_reader: Call = serde_json::from_reader(expected.as_bytes()).unwrap();
            assert_eq!(from_reader, call);
        }
    }

    #[test]
    fn json_inside_a_tagged_enum_goes_out_as_the_same_text_and_is_read_by_value() {
        let raw: Raw = serde_json::from_str(AWKWARD).unwrap();
        let call = Tagged::Call(Call { tool: "t".into(), arguments: raw, more: None });
        let text = serde_json::to_string(&call).unwrap();
        assert!(text.contains(AWKWARD), "{text}");

        let plain = r#"{"type":"Call","tool":"t","arguments":{"z":18446744073709551615,"a":null}}"#;
        let Tagged::Call(call) = serde_json::from_str(plain).unwrap();
        assert_eq!(call.arguments.0.format, Format::MsgPack);
        assert_eq!(serde_json::to_string(&Tagged::Call(call)).unwrap(), plain);
    }

    #[test]
    fn payloads_are_equal_when_they_say_the_same_in_another_encoding() {
        let json: Raw =
            serde_json::from_str(r#"{"b": 18446744073709551615, "a": [null]}"#).unwrap();
        let packed = rmp_serde::to_vec_named(&json).unwrap();
        let back: Raw = rmp_serde::from_slice(&packed).unwrap();
        assert_eq!(back.0.format, Format::MsgPack);
        assert_eq!(back.0.bytes, packed);
        assert_eq!(back, json);
        assert_ne!(back, Raw::null());
        assert_eq!(
            serde_json::to_string(&back).unwrap(),
            r#"{"b":18446744073709551615,"a":[null]}"#
        );
    }

    /// Rule: a number that cannot be kept is refused, not rounded.
    #[test]
    fn a_number_that_the_other_encoding_cannot_hold_is_an_error() {
        let large: Raw = serde_json::from_str(AWKWARD).unwrap();
        let refused = rmp_serde::to_vec_named(&large).unwrap_err();
        assert!(refused.to_string().contains("64 bits"), "{refused}");
        assert_eq!(large, large.clone());

        let nan = rmp_serde::to_vec(&[f64::INFINITY]).unwrap();
        let nan: Raw = rmp_serde::from_slice(&nan).unwrap();
        let refused = serde_json::to_string(&nan).unwrap_err();
        assert!(refused.to_string().contains("finite"), "{refused}");
    }
}
