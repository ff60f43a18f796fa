//! Images of the configuration: their names, and where they come from.

use std::fmt;

use camino::Utf8PathBuf;
use ringback_sandbox::BuildNetwork;

/// Characters of an image's name.
const NAME_CHARS_MAX: usize = 64;

/// The name of an image in the configuration: small letters and digits, with single `-` between them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageName(String);

/// A text that is no name of an image.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{name}` is not a valid image name: use 1 to {NAME_CHARS_MAX} lowercase letters and digits, with \
     single `-` between them"
)]
pub struct ImageNameError {
    name: String,
}

/// Where an image comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageSource {
    /// The directory with its `Dockerfile`.
    pub dir: Utf8PathBuf,
    /// What its build reaches.
    pub network: BuildNetwork,
}

impl ImageName {
    /// A name, if the text is one.
    ///
    /// # Errors
    /// When it is none.
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

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What the engine knows the image by.
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
