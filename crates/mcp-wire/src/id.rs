//! Ids of requests and progress tokens: a number or a string, echoed unchanged.

use serde::de::{Error as _, Unexpected};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// An id that a peer chose. Numbers keep their digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Id {
    /// A number, as its digits.
    Number(Box<str>),
    /// A string.
    Text(Box<str>),
}

impl Id {
    /// Reads an id; `None` if it is neither a number nor a string.
    #[must_use]
    pub fn from_raw(raw: &RawValue) -> Option<Self> {
        match raw.get().as_bytes().first()? {
            b'"' => serde_json::from_str(raw.get()).ok().map(Self::Text),
            b'-' | b'0'..=b'9' => Some(Self::Number(raw.get().into())),
            _ => None,
        }
    }
}

impl From<u64> for Id {
    fn from(number: u64) -> Self {
        Self::Number(number.to_string().into())
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(digits) => {
                let raw: &RawValue =
                    serde_json::from_str(digits).map_err(serde::ser::Error::custom)?;
                raw.serialize(serializer)
            }
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        Self::from_raw(raw).ok_or_else(|| {
            D::Error::invalid_type(Unexpected::Other("another type"), &"a number or a string")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Id;

    #[test]
    fn an_id_comes_back_as_it_was() {
        for text in ["0", "-7", "12345678901234567890123", "\"\"", "\"a \\\" b\"", "1.5"] {
            let id: Id = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&id).unwrap(), text);
        }
        for text in ["null", "true", "[1]", "{}"] {
            assert!(serde_json::from_str::<Id>(text).is_err(), "{text}");
        }
    }
}
