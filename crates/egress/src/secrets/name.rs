//! The name of a secret.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// Longer than the name of any provider.
const CHARS_MAX: usize = 64;

/// The name of a secret. It is also a file name, so it has neither slashes nor capitals nor a
/// leading dot.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct SecretName(String);

/// Text that is not a valid name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a secret's name must have 1 to 64 characters of a-z, 0-9, `-` and `_`, and start with a letter or digit"
)]
pub struct SecretNameError;

impl SecretName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SecretName {
    type Err = SecretNameError;

    fn from_str(text: &str) -> Result<Self, SecretNameError> {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let is_inner = |byte: u8| is_plain(byte) || matches!(byte, b'-' | b'_');
        let is_name = text.len() <= CHARS_MAX
            && text.bytes().next().is_some_and(is_plain)
            && text.bytes().all(is_inner);
        if is_name { Ok(Self(text.to_owned())) } else { Err(SecretNameError) }
    }
}

impl fmt::Display for SecretName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
