//! What is wrong with a text, where, and what to do.

use std::fmt;

use super::model::Place;

/// More are not kept: whoever has so many fixes the first ones first.
const DIAGNOSTICS_MAX: usize = 200;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The text is not valid ABC.
    Error,
    /// It can be played, but perhaps not as it was meant.
    Warning,
}

/// Something wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// Where.
    pub at: Place,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: String,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, message, help, .. } = self;
        write!(f, "{}:{}: {message}; {help}", at.line, at.column)
    }
}

/// Collects diagnostics, up to a number.
#[derive(Debug, Clone, Default)]
pub(super) struct Diagnostics {
    list: Vec<Diagnostic>,
}

impl Diagnostics {
    pub(super) fn error(&mut self, at: Place, message: impl Into<String>, help: impl Into<String>) {
        self.push(Severity::Error, at, message.into(), help.into());
    }

    pub(super) fn warning(
        &mut self,
        at: Place,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.push(Severity::Warning, at, message.into(), help.into());
    }

    /// In the order of their places.
    pub(super) fn finish(mut self) -> Vec<Diagnostic> {
        self.list.sort_by_key(|diagnostic| diagnostic.at);
        self.list
    }

    fn push(&mut self, severity: Severity, at: Place, message: String, help: String) {
        // An error always fits, so that a flood of warnings cannot make a text valid.
        let is_first_error = severity == Severity::Error
            && self.list.iter().all(|known| known.severity == Severity::Warning);
        if self.list.len() < DIAGNOSTICS_MAX || is_first_error {
            self.list.push(Diagnostic { severity, at, message, help });
        }
    }
}
