//! Diagnostics: what is wrong with a text, where, and how to fix it.

use std::fmt;

use super::model::Place;

/// The most diagnostics that are kept: with more, the first ones are fixed first.
const DIAGNOSTICS_MAX: usize = 200;

/// The severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The text is not valid ABC.
    Error,
    /// It can be played, but perhaps not as intended.
    Warning,
}

/// A problem in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Its severity.
    pub severity: Severity,
    /// Its place.
    pub at: Place,
    /// What is wrong.
    pub message: String,
    /// How to fix it.
    pub help: String,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, message, help, .. } = self;
        write!(f, "{}:{}: {message}; {help}", at.line, at.column)
    }
}

/// Collects diagnostics, up to a limit.
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

    /// Returns them by place.
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
