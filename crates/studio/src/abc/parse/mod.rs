//! From text to a [`Book`], with a diagnostic for everything that is wrong.

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

/// What was written, and what was wrong with it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parsed {
    /// What was written; as much of it as could be understood.
    pub book: Book,
    /// What was wrong, in the order of its places.
    pub diagnostics: Vec<Diagnostic>,
}

impl Parsed {
    /// Whether there is no error; warnings do not count.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.errors().next().is_none()
    }

    /// What makes it invalid.
    pub fn errors(&self) -> impl Iterator<Item = &Diagnostic> {
        self.diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// What is doubtful.
    pub fn warnings(&self) -> impl Iterator<Item = &Diagnostic> {
        self.diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Warning)
    }
}

/// The text passes a limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// Over [`TEXT_BYTES_MAX`].
    #[error("the text has {size} bytes, the limit is {TEXT_BYTES_MAX}: split the tunebook")]
    Text {
        /// How many bytes it has.
        size: usize,
    },
    /// Macros make it too long.
    #[error(
        "line {line} grows past the limit of {} characters when its macros are written out: use fewer macros",
        macros::CHARS_MAX
    )]
    Macros {
        /// The line.
        line: u32,
    },
}

/// Reads a text of ABC. Whatever is wrong is in the diagnostics; only a limit is an error.
pub fn parse(text: &str) -> Result<Parsed, LimitError> {
    let mut reader = Reader::new(text)?;
    let mut tunes = Vec::new();
    while let Some(tune) = reader.next_tune()? {
        tunes.push(tune);
    }
    let header = reader.file_header().to_vec();
    Ok(Parsed { book: Book { header, tunes }, diagnostics: reader.finish() })
}

/// Reads what may stand after `K:`; an error says what is wrong and what to do.
pub fn parse_key(text: &str) -> Result<KeyField, String> {
    field::key(text).map_err(|problem| format!("{}; {}", problem.message, problem.help))
}
