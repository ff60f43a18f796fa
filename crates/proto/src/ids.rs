//! Typed ids. Each consists of random bytes that the caller supplies, is `Copy`, and has one text
//! form: a prefix and 32 lower-case hex digits.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A text that is not an id of the expected kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not {expected}: {found:?}")]
pub struct ParseIdError {
    expected: &'static str,
    found: String,
}

impl ParseIdError {
    /// Enough of a wrong text to recognise it; untrusted peers choose its length.
    const FOUND_CHARS_MAX: usize = 80;

    fn new(expected: &'static str, found: &str) -> Self {
        Self { expected, found: found.chars().take(Self::FOUND_CHARS_MAX).collect() }
    }
}

macro_rules! prefixed_ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name([u8; 16]);

        impl $name {
            /// The prefix of the text form.
            pub const PREFIX: &'static str = $prefix;

            /// Makes an id from 16 random bytes.
            #[must_use]
            pub const fn from_random(bytes: [u8; 16]) -> Self {
                Self(bytes)
            }

            /// Returns the 16 bytes of the id.
            #[must_use]
            pub const fn as_bytes(&self) -> &[u8; 16] {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut text = [0; 32];
                f.write_str(Self::PREFIX)?;
                f.write_str(hex_encode(&self.0, &mut text))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                text.strip_prefix($prefix)
                    .and_then(|digits| hex_decode(digits.as_bytes()))
                    .map(Self)
                    .ok_or_else(|| {
                        ParseIdError::new(concat!("an id `", $prefix, "` + 32 hex digits"), text)
                    })
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(FromStrVisitor::new())
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "type": "string",
                    "pattern": concat!("^", $prefix, "[0-9a-f]{32}$"),
                })
            }
        }
    )*};
}

prefixed_ids! {
    /// A job: work that is tracked, with an outcome that can be looked up.
    JobId = "job_";
    /// An artifact: content with lineage, tags and a creator.
    ArtifactId = "art_";
    /// An annotation of an artifact.
    AnnotationId = "ann_";
    /// The public id of a token; the secret is never an id.
    TokenId = "tok_";
    /// A project, which groups sessions, jobs and artifacts.
    ProjectId = "proj_";
    /// An agent session.
    SessionId = "gogol_";
    /// A workspace of a project.
    WorkspaceId = "ws_";
    /// A stream of chunks that belongs to one call.
    StreamId = "str_";
    /// A group of artifacts that are variations of each other.
    VariationSetId = "vset_";
    /// An upload in pieces that has not been completed yet.
    UploadId = "upl_";
    /// One call, as shown by `ringback why`.
    CallId = "call_";
    /// A region of the garden's timeline.
    RegionId = "reg_";
}

/// The id a HOOT01 peer gives its request: a UUID, raw on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId([u8; 16]);

impl RequestId {
    /// Wraps the raw bytes of a UUID.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Makes a UUID of version 4 from 16 random bytes.
    #[must_use]
    pub const fn from_random(bytes: [u8; 16]) -> Self {
        Self(uuid::Builder::from_random_bytes(bytes).into_uuid().into_bytes())
    }

    /// Returns the raw bytes of the UUID.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Makes a new random id.
    #[must_use]
    pub fn random() -> Self {
        Self(*uuid::Uuid::new_v4().as_bytes())
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&uuid::Uuid::from_bytes(self.0), f)
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for RequestId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        uuid::Uuid::try_parse(text)
            .map(|uuid| Self(*uuid.as_bytes()))
            .map_err(|_| ParseIdError::new("a UUID", text))
    }
}

/// The name of a blob: the BLAKE3 hash of its content, 64 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlobHash([u8; 32]);

impl BlobHash {
    /// Wraps the 32 bytes of a BLAKE3 hash.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the 32 bytes of the hash.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for BlobHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0; 64];
        f.write_str(hex_encode(&self.0, &mut text))
    }
}

impl fmt::Debug for BlobHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for BlobHash {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        hex_decode(text.as_bytes())
            .map(Self)
            .ok_or_else(|| ParseIdError::new("a blob hash of 64 hex digits", text))
    }
}

impl Serialize for BlobHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for BlobHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(FromStrVisitor::new())
    }
}

impl JsonSchema for BlobHash {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "BlobHash".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^[0-9a-f]{64}$" })
    }
}

/// Reads any `FromStr` type from a string, regardless of `is_human_readable`, which is wrong inside
/// tagged enums.
struct FromStrVisitor<T>(std::marker::PhantomData<T>);

impl<T> FromStrVisitor<T> {
    fn new() -> Self {
        Self(std::marker::PhantomData)
    }
}

impl<T: FromStr<Err = ParseIdError>> serde::de::Visitor<'_> for FromStrVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an id as a string")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

fn hex_encode<'a>(bytes: &[u8], text: &'a mut [u8]) -> &'a str {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (pair, byte) in text.chunks_exact_mut(2).zip(bytes) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
    std::str::from_utf8(text).expect("hex digits are ASCII")
}

/// Decodes lower-case digits only: an id has exactly one text form, so that texts can be compared.
fn hex_decode<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    if text.len() != N * 2 {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = hex_digit(pair[0])? << 4 | hex_digit(pair[1])?;
    }
    Some(bytes)
}

fn hex_digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_from_its_text() {
        let id = JobId::from_random(*b"0123456789abcdef");
        assert_eq!(id.to_string(), "job_30313233343536373839616263646566");
        assert_eq!(id.to_string().parse::<JobId>().unwrap(), id);
    }

    #[test]
    fn an_id_of_another_length_prefix_or_alphabet_is_refused() {
        for text in [
            "",
            "job_",
            "job_3031323334353637383961626364656",
            "job_303132333435363738396162636465666",
            "art_30313233343536373839616263646566",
            "job_3031323334353637383961626364656G",
            "job_3031323334353637383961626364656F",
            "job_é0313233343536373839616263646566",
        ] {
            assert!(text.parse::<JobId>().is_err(), "{text:?}");
        }
        let long = "x".repeat(10_000);
        assert!(long.parse::<BlobHash>().unwrap_err().to_string().len() < 200);
    }

    #[test]
    fn ids_are_strings_in_msgpack_also_inside_tagged_enums() {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "kind")]
        enum Tagged {
            A { id: JobId, hash: BlobHash },
        }
        let value =
            Tagged::A { id: JobId::from_random([7; 16]), hash: BlobHash::from_bytes([0xfe; 32]) };
        let bytes = rmp_serde::to_vec_named(&value).unwrap();
        assert_eq!(rmp_serde::from_slice::<Tagged>(&bytes).unwrap(), value);
    }
}
