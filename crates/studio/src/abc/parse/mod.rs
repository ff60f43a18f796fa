//! From text to a [`Book`], with a diagnostic for every problem.

mod cursor;
pub(super) mod field;
mod lines;
mod macros;
mod music;
mod note;

use super::diagnostic::{Diagnostic, Severity};
use super::model::{Book, KeyField};

pub(super) use lines::Reader;

/// The longest text that is read.
pub const TEXT_BYTES_MAX: usize = 1024 * 1024;

/// A parsed text and its diagnostics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parsed {
    /// The book, as far as the text could be parsed.
    pub book: Book,
    /// The problems, by place.
    pub diagnostics: Vec<Diagnostic>,
}

impl Parsed {
    /// Returns whether it has no errors; warnings do not count.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.errors().next().is_none()
    }

    /// Returns the errors, which make it invalid.
    pub fn errors(&self) -> impl Iterator<Item = &Diagnostic> {
        self.diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// Returns the warnings.
    pub fn warnings(&self) -> impl Iterator<Item = &Diagnostic> {
        self.diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Warning)
    }
}

/// The text exceeds a limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// Over [`TEXT_BYTES_MAX`].
    #[error("the text has {size} bytes, the limit is {TEXT_BYTES_MAX}: split the tunebook")]
    Text {
        /// Its size in bytes.
        size: usize,
    },
    /// Macros make it too long.
    #[error(
        "line {line} grows past the limit of {} characters when its macros are expanded: use \
         fewer macros",
        macros::CHARS_MAX
    )]
    Macros {
        /// The line.
        line: u32,
    },
}

/// Reads a text of ABC. Problems are in the diagnostics; only a limit is an error.
pub fn parse(text: &str) -> Result<Parsed, LimitError> {
    let mut reader = Reader::new(text)?;
    let mut tunes = Vec::new();
    while let Some(tune) = reader.next_tune()? {
        tunes.push(tune);
    }
    let header = reader.file_header().to_vec();
    Ok(Parsed { book: Book { header, tunes }, diagnostics: reader.finish() })
}

/// Reads a text that may follow `K:`; an error says what is wrong and how to fix it.
pub fn parse_key(text: &str) -> Result<KeyField, String> {
    field::key(text).map_err(|problem| format!("{}; {}", problem.message, problem.help))
}
