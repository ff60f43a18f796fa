//! Bytes on the wire: `bin` in MsgPack, base64 text in human-readable formats.

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A payload of bytes. Cloning shares it.
///
/// Text is read as base64 only in a human-readable format. In MsgPack a string is refused: bytes
/// that happen to look like base64 would otherwise be decoded to other bytes.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Data(pub Bytes);

impl fmt::Debug for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Data({} bytes)", self.0.len())
    }
}

impl From<Vec<u8>> for Data {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl Serialize for Data {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.serialize_str(&STANDARD.encode(&self.0))
        } else {
            serializer.serialize_bytes(&self.0)
        }
    }
}

impl<'de> Deserialize<'de> for Data {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            deserializer.deserialize_any(DataVisitor { text: true })
        } else {
            deserializer.deserialize_bytes(DataVisitor { text: false })
        }
    }
}

impl JsonSchema for Data {
    fn schema_name() -> Cow<'static, str> {
        "Data".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "contentEncoding": "base64" })
    }
}

struct DataVisitor {
    text: bool,
}

impl de::Visitor<'_> for DataVisitor {
    type Value = Data;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.text { "base64 text" } else { "bytes (MsgPack `bin`)" })
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Data, E> {
        Ok(Data(Bytes::copy_from_slice(bytes)))
    }

    fn visit_byte_buf<E: de::Error>(self, bytes: Vec<u8>) -> Result<Data, E> {
        Ok(Data(bytes.into()))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Data, E> {
        if !self.text {
            return Err(E::invalid_type(de::Unexpected::Str("…"), &self));
        }
        STANDARD.decode(text).map(Data::from).map_err(|error| E::custom(format!("base64: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(tag = "type")]
    enum Tagged {
        Content { data: Data },
    }

    #[test]
    fn all_256_byte_values_survive_msgpack_and_json_also_inside_tagged_enums() {
        let data = Data::from((0..=255).collect::<Vec<u8>>());
        let bytes = rmp_serde::to_vec_named(&data).unwrap();
        assert_eq!(bytes.len(), 256 + 3, "`bin16`, not an array of integers");
        assert_eq!(rmp_serde::from_slice::<Data>(&bytes).unwrap(), data);

        let tagged = Tagged::Content { data };
        let bytes = rmp_serde::to_vec_named(&tagged).unwrap();
        assert_eq!(rmp_serde::from_slice::<Tagged>(&bytes).unwrap(), tagged);
        let json = serde_json::to_string(&tagged).unwrap();
        assert_eq!(serde_json::from_str::<Tagged>(&json).unwrap(), tagged);
    }

    #[test]
    fn msgpack_text_is_never_taken_for_bytes() {
        let text = rmp_serde::to_vec("aGVsbG8=").unwrap();
        assert!(rmp_serde::from_slice::<Data>(&text).is_err());
        assert_eq!(serde_json::from_str::<Data>("\"aGVsbG8=\"").unwrap().0, "hello");
    }
}
