//! Payloads that are only passed on: bytes in a known encoding, re-encoded only if the two ends use
//! different ones.

use bytes::Bytes;

use crate::msgpack;
use crate::value::Value;

/// How much of a decoder's message is passed on: it quotes text from untrusted peers.
const SAID_CHARS_MAX: usize = 300;

/// The encoding of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// MsgPack.
    MsgPack,
    /// JSON text.
    Json,
}

/// A payload as received. Cloning shares the bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Any {
    /// How the bytes are encoded.
    pub format: Format,
    /// One complete value.
    pub bytes: Bytes,
}

/// The reason why a payload cannot be translated to another encoding.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TranslateError {
    /// An integer that only JSON can hold.
    #[error("an integer of more than 64 bits cannot be written as MsgPack")]
    LargeInteger,
    /// A number that JSON cannot represent.
    #[error("a number that is not finite cannot be written as JSON")]
    NotFinite,
    /// Malformed, or with content that the other encoding cannot represent.
    #[error("the payload cannot be translated: {0}")]
    Unreadable(String),
}

impl Any {
    /// Returns the payload in the wanted encoding; the same bytes if it already is.
    ///
    /// # Errors
    /// When the other encoding cannot represent it: numbers are never rounded.
    pub fn translate(self, wanted: Format) -> Result<Self, TranslateError> {
        if self.format == wanted {
            return Ok(self);
        }
        let value = self.value()?;
        let bytes = match wanted {
            Format::MsgPack => {
                rmp_serde::to_vec_named(&value).map_err(|error| unreadable(&error))?
            }
            Format::Json => {
                check_finite(&value)?;
                serde_json::to_vec(&value).map_err(|error| unreadable(&error))?
            }
        };
        Ok(Self { format: wanted, bytes: bytes.into() })
    }

    /// Decodes the payload.
    ///
    /// # Errors
    /// When it is malformed, or has an integer of more than 64 bits.
    pub fn value(&self) -> Result<Value, TranslateError> {
        match self.format {
            Format::Json => {
                check_integers(&self.bytes)?;
                serde_json::from_slice(&self.bytes).map_err(|error| unreadable(&error))
            }
            Format::MsgPack => {
                msgpack::check(&self.bytes).map_err(|error| unreadable(&error))?;
                rmp_serde::from_slice(&self.bytes).map_err(|error| unreadable(&error))
            }
        }
    }
}

fn unreadable(error: &dyn std::error::Error) -> TranslateError {
    TranslateError::Unreadable(error.to_string().chars().take(SAID_CHARS_MAX).collect())
}

/// Refuses numbers that JSON would write as null.
pub(crate) fn check_finite(value: &Value) -> Result<(), TranslateError> {
    match value {
        Value::Float(number) if !number.is_finite() => Err(TranslateError::NotFinite),
        Value::List(values) => values.iter().try_for_each(check_finite),
        Value::Map(entries) => entries.iter().try_for_each(|(_, value)| check_finite(value)),
        Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::UInt(_)
        | Value::Float(_)
        | Value::Text(_)
        | Value::Bytes(_) => Ok(()),
    }
}

/// Refuses integers beyond 64 bits, which MsgPack would have to round.
fn check_integers(json: &[u8]) -> Result<(), TranslateError> {
    let mut rest = json;
    while let Some(at) = rest.iter().position(|byte| matches!(byte, b'"' | b'-' | b'0'..=b'9')) {
        rest = &rest[at..];
        let len = if rest[0] == b'"' { text_len(rest) } else { number_len(rest) };
        let (token, after) = rest.split_at(len.min(rest.len()));
        let is_integer = token[0] != b'"' && !token.iter().any(|b| matches!(b, b'.' | b'e' | b'E'));
        if is_integer {
            let text = std::str::from_utf8(token).unwrap_or_default();
            if text.parse::<i64>().is_err() && text.parse::<u64>().is_err() {
                return Err(TranslateError::LargeInteger);
            }
        }
        rest = after;
    }
    Ok(())
}

fn text_len(json: &[u8]) -> usize {
    let mut escaped = false;
    let end = json.iter().skip(1).position(|byte| {
        let ends = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        ends
    });
    end.map_or(json.len(), |end| end + 2)
}

fn number_len(json: &[u8]) -> usize {
    let is_part = |byte: &u8| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9');
    json.iter().position(|byte| !is_part(byte)).unwrap_or(json.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Any {
        Any { format: Format::Json, bytes: Bytes::copy_from_slice(text.as_bytes()) }
    }

    /// Rule: integers above 2^53, null, unknown fields and key order survive both ways.
    #[test]
    fn what_both_encodings_can_say_comes_back_as_it_was() {
        let text = r#"{"z":18446744073709551615,"a":-9223372036854775808,"n":null,"s":"9\"9\\","f":1.5,"e":[]}"#;
        let there = json(text).translate(Format::MsgPack).unwrap();
        let back = there.clone().translate(Format::Json).unwrap();
        assert_eq!(back.bytes, text);
        let same = there.clone().translate(Format::MsgPack).unwrap();
        assert_eq!(same.bytes.as_ptr(), there.bytes.as_ptr());
    }

    /// Rule: a number that cannot be kept is refused, not rounded.
    #[test]
    fn what_the_other_encoding_cannot_say_is_refused() {
        for text in ["123456789012345678901", r#"{"a":[1,-9223372036854775809]}"#] {
            let refused = json(text).translate(Format::MsgPack);
            assert_eq!(refused, Err(TranslateError::LargeInteger), "{text}");
        }
        json(r#"["123456789012345678901", 12345678901234567890.0]"#)
            .translate(Format::MsgPack)
            .unwrap();
        assert!(json("1e400").translate(Format::MsgPack).is_err());
        let nan = rmp_serde::to_vec(&[f64::NAN]).unwrap();
        let nan = Any { format: Format::MsgPack, bytes: nan.into() };
        assert_eq!(nan.translate(Format::Json), Err(TranslateError::NotFinite));
        let number_key = Any { format: Format::MsgPack, bytes: Bytes::from_static(&[0x81, 1, 2]) };
        assert!(number_key.translate(Format::Json).is_err());
    }
}
