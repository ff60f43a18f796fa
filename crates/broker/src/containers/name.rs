//! Configured images: their names and sources.

use std::fmt;

use camino::Utf8PathBuf;
use ringback_sandbox::BuildNetwork;

/// Maximum length of an image name.
const NAME_CHARS_MAX: usize = 64;

/// Name of an image in the configuration: lowercase letters and digits, with single `-` between
/// them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageName(String);

/// An invalid image name.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{name}` is not a valid image name: use 1 to {NAME_CHARS_MAX} lowercase letters and digits, \
     with single `-` between them"
)]
pub struct ImageNameError {
    name: String,
}

/// The source of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageSource {
    /// The directory with its `Dockerfile`.
    pub dir: Utf8PathBuf,
    /// Network of its build.
    pub network: BuildNetwork,
}

impl ImageName {
    /// Parses a name.
    ///
    /// # Errors
    /// When the text is not a valid name.
    pub fn new(text: &str) -> Result<Self, ImageNameError> {
        let is_word = |word: &str| {
            !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        };
        if text.len() <= NAME_CHARS_MAX && text.split('-').all(is_word) {
            Ok(Self(text.to_owned()))
        } else {
            Err(ImageNameError { name: text.to_owned() })
        }
    }

    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the image's tag in the container engine.
    #[must_use]
    pub fn tag(&self) -> String {
        format!("ringback-{}:latest", self.0)
    }
}

impl fmt::Display for ImageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::borrow::Borrow<str> for ImageName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_that_every_engine_takes() {
        for good in ["a", "rust-2024", "7", "a-b-c"] {
            let tag = format!("ringback-{good}:latest");
            assert_eq!(ImageName::new(good).unwrap().tag(), tag);
        }
        let long = "a".repeat(NAME_CHARS_MAX + 1);
        for bad in ["", "-a", "a-", "a--b", "A", "a/b", "a:b", "a.b", "ä", &long] {
            assert!(ImageName::new(bad).is_err(), "{bad}");
        }
    }
}
