//! Text that shares the bytes it arrived in.

use std::fmt;
use std::ops::Deref;

use bytes::Bytes;

use super::TEXT_BYTES_MAX;

/// UTF-8 of at most [`TEXT_BYTES_MAX`] bytes, checked once, never copied.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Text(Bytes);

/// Why bytes are not a [`Text`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// Over the limit.
    #[error("{n_bytes} bytes, more than {TEXT_BYTES_MAX}")]
    TooLong {
        /// Its length.
        n_bytes: usize,
    },
    /// Not UTF-8.
    #[error("not UTF-8")]
    NotUtf8,
}

impl Text {
    /// The empty text.
    pub const EMPTY: Self = Self(Bytes::new());

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("checked when it was made")
    }

    /// Returns the bytes, still shared.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.0
    }
}

impl TryFrom<Bytes> for Text {
    type Error = TextError;

    fn try_from(bytes: Bytes) -> Result<Self, TextError> {
        if bytes.len() > TEXT_BYTES_MAX {
            return Err(TextError::TooLong { n_bytes: bytes.len() });
        }
        match std::str::from_utf8(&bytes) {
            Ok(_) => Ok(Self(bytes)),
            Err(_) => Err(TextError::NotUtf8),
        }
    }
}

impl TryFrom<&str> for Text {
    type Error = TextError;

    fn try_from(text: &str) -> Result<Self, TextError> {
        Self::try_from(Bytes::copy_from_slice(text.as_bytes()))
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}
