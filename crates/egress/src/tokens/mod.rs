//! Tokens as providers count them in their answers: found while an answer passes, piece by piece,
//! without keeping any of it.

mod json;
#[cfg(test)]
mod tests;

use self::json::{Json, TokenCounts};

/// The prefix of an event's data.
const DATA: &[u8] = b"data:";

/// The tokens of one answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tokens {
    /// Read by the model, except those below.
    pub(crate) input: u64,
    /// Read by the model from the provider's cache.
    pub(crate) cache_read: u64,
    /// Read by the model and written to the provider's cache.
    pub(crate) cache_write: u64,
    /// Written by the model.
    pub(crate) output: u64,
}

/// What an answer reports about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AnswerReport {
    /// Tokens, if it reported any.
    pub(crate) tokens: Option<Tokens>,
    /// Whether they cover the whole answer.
    pub(crate) is_final: bool,
    /// The model that answered.
    pub(crate) model: Option<String>,
}

/// Scans an answer, in constant memory.
#[derive(Debug)]
pub(crate) struct Scanner {
    framing: Framing,
    json: Json,
    found: TokenCounts,
}

/// The framing of the JSON.
#[derive(Debug)]
enum Framing {
    /// Nothing: the body is one document.
    None,
    /// Lines of server-sent events.
    Events(Line),
}

/// The position in a line of an event stream.
#[derive(Debug, Clone, Copy)]
enum Line {
    /// This many bytes of `data:` were read.
    Start(usize),
    /// In the data of an event.
    Data,
    /// In another kind of line.
    Other,
}

impl Tokens {
    /// All tokens that the model read.
    pub(crate) const fn read(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }
}

impl Scanner {
    /// Creates a scanner for an answer of this content type.
    pub(crate) fn new(content_type: Option<&[u8]>) -> Self {
        let is_stream = content_type.is_some_and(|kind| {
            let kind = kind.split(|byte| *byte == b';').next().unwrap_or_default();
            kind.trim_ascii().eq_ignore_ascii_case(b"text/event-stream")
        });
        let framing = if is_stream { Framing::Events(Line::Start(0)) } else { Framing::None };
        Self { framing, json: Json::default(), found: TokenCounts::default() }
    }

    /// Scans the next piece.
    pub(crate) fn look(&mut self, piece: &[u8]) {
        match &mut self.framing {
            Framing::None => piece.iter().for_each(|byte| self.json.take(*byte, &mut self.found)),
            Framing::Events(line) => {
                for byte in piece {
                    *line = line.after(*byte, &mut self.json, &mut self.found);
                }
            }
        }
    }

    /// Returns what was found so far.
    pub(crate) fn said(&self) -> AnswerReport {
        self.found.said()
    }
}

impl Line {
    fn after(self, byte: u8, json: &mut Json, found: &mut TokenCounts) -> Self {
        if byte == b'\n' || byte == b'\r' {
            // A number may end with its line.
            json.take(b'\n', found);
            return Self::Start(0);
        }
        match self {
            Self::Start(n_bytes) if DATA.get(n_bytes) == Some(&byte) => {
                if n_bytes + 1 < DATA.len() {
                    return Self::Start(n_bytes + 1);
                }
                // Each event is its own document; one that was cut off ends here.
                *json = Json::default();
                Self::Data
            }
            Self::Start(_) | Self::Other => Self::Other,
            Self::Data => {
                json.take(byte, found);
                Self::Data
            }
        }
    }
}
