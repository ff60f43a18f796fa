//! Tokens, as providers count them in their answers: found while an answer passes, piece by piece,
//! without keeping any of it.

mod json;
#[cfg(test)]
mod tests;

use self::json::{Found, Json};

/// In front of what an event of a stream carries.
const DATA: &[u8] = b"data:";

/// Tokens of one answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tokens {
    /// Read by the model, but for those below.
    pub(crate) input: u64,
    /// Read by the model from what its provider kept.
    pub(crate) cache_read: u64,
    /// Read by the model and kept by its provider.
    pub(crate) cache_write: u64,
    /// Written by the model.
    pub(crate) output: u64,
}

/// What an answer said of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Said {
    /// Tokens, if it said any number of them.
    pub(crate) tokens: Option<Tokens>,
    /// Whether they are those of the whole answer.
    pub(crate) is_final: bool,
    /// The model that answered.
    pub(crate) model: Option<String>,
}

/// Looks through an answer. What it holds does not grow with the answer.
#[derive(Debug)]
pub(crate) struct Scanner {
    framing: Framing,
    json: Json,
    found: Found,
}

/// What is around the JSON.
#[derive(Debug)]
enum Framing {
    /// Nothing: the body is one document.
    None,
    /// Lines of events.
    Events(Line),
}

/// Where in a line of an event stream.
#[derive(Debug, Clone, Copy)]
enum Line {
    /// So many bytes of it are those of `data:`.
    Start(usize),
    /// In what an event carries.
    Data,
    /// In a line of another kind.
    Other,
}

impl Tokens {
    /// All that the model read.
    pub(crate) const fn read(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }
}

impl Scanner {
    /// For an answer of this content type.
    pub(crate) fn new(content_type: Option<&[u8]>) -> Self {
        let is_stream = content_type.is_some_and(|kind| {
            let kind = kind.split(|byte| *byte == b';').next().unwrap_or_default();
            kind.trim_ascii().eq_ignore_ascii_case(b"text/event-stream")
        });
        let framing = if is_stream { Framing::Events(Line::Start(0)) } else { Framing::None };
        Self { framing, json: Json::default(), found: Found::default() }
    }

    /// Looks at the next piece.
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

    /// What was found so far.
    pub(crate) fn said(&self) -> Said {
        self.found.said()
    }
}

impl Line {
    fn after(self, byte: u8, json: &mut Json, found: &mut Found) -> Self {
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
                // Each event is a document of its own; one that was cut off ends here.
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
