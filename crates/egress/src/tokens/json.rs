//! Numbers at known places of a JSON document, found byte by byte. Nothing else is parsed, and
//! input that is not JSON yields nothing.

use super::{AnswerReport, Tokens};

/// Deep enough for `[{"response":{"usage":{"input_tokens":1`; below it only the depth counts.
const LEVELS: usize = 4;
/// Longer than every name and number of interest, and than the name of any model.
const TEXT_BYTES_MAX: usize = 96;

/// The position in a document.
#[derive(Debug, Default)]
pub(super) struct Json {
    levels: [Level; LEVELS],
    depth: usize,
    within: LexerState,
    text: Text,
}

/// An object or an array, and the part that is being read.
#[derive(Debug, Clone, Copy, Default)]
struct Level {
    is_object: bool,
    /// Whether the next string is a name.
    awaits_name: bool,
    name: Name,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum LexerState {
    /// Between values, names and punctuation.
    #[default]
    Nothing,
    Text,
    /// After a `\` in a string.
    Escape,
    /// A number, or `true`, `false`, `null`.
    Word,
}

/// The start of a string or a word, if it may be of interest.
#[derive(Debug)]
struct Text {
    bytes: [u8; TEXT_BYTES_MAX],
    n_bytes: usize,
    /// Whether it is complete, and without escapes.
    is_plain: bool,
}

/// Names at the known places.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Name {
    #[default]
    Other,
    /// In Anthropic's first event, around the rest.
    Message,
    /// In OpenAI's response events, around the rest.
    Response,
    Usage,
    Model,
    Count(Count),
}

/// The counts, with each provider's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Count {
    /// `prompt_tokens`, `input_tokens`, `promptTokenCount`.
    Input,
    /// `toolUsePromptTokenCount`, in addition to the prompt's.
    ToolInput,
    /// `completion_tokens`, `output_tokens`, `candidatesTokenCount`.
    Output,
    /// `thoughtsTokenCount`, in addition to the candidates'.
    Thoughts,
    /// `cache_read_input_tokens`, in addition to the input's.
    CacheRead,
    /// `cache_creation_input_tokens`, in addition to the input's.
    CacheWrite,
}

/// A place of interest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Model,
    Count {
        count: Count,
        /// Whether it is in Anthropic's first event, before any output.
        is_first: bool,
    },
}

/// The counts found. Providers repeat sums, each at least the one before: the largest counts.
#[derive(Debug, Default)]
pub(super) struct TokenCounts {
    counts: [Option<u64>; 6],
    /// Whether the output count came after the output.
    is_final: bool,
    model: Option<String>,
}

impl Default for Text {
    fn default() -> Self {
        Self { bytes: [0; TEXT_BYTES_MAX], n_bytes: 0, is_plain: true }
    }
}

impl Text {
    fn clear(&mut self) {
        (self.n_bytes, self.is_plain) = (0, true);
    }

    fn push(&mut self, byte: u8) {
        match self.bytes.get_mut(self.n_bytes) {
            Some(place) => {
                *place = byte;
                self.n_bytes += 1;
            }
            None => self.is_plain = false,
        }
    }

    fn plain(&self) -> Option<&[u8]> {
        self.is_plain.then(|| self.bytes.get(..self.n_bytes)).flatten()
    }
}

impl Name {
    fn of(text: &[u8]) -> Self {
        match text {
            b"message" => Self::Message,
            b"response" => Self::Response,
            b"usage" | b"usageMetadata" => Self::Usage,
            b"model" | b"modelVersion" => Self::Model,
            b"prompt_tokens" | b"input_tokens" | b"promptTokenCount" => Self::Count(Count::Input),
            b"toolUsePromptTokenCount" => Self::Count(Count::ToolInput),
            b"completion_tokens" | b"output_tokens" | b"candidatesTokenCount" => {
                Self::Count(Count::Output)
            }
            b"thoughtsTokenCount" => Self::Count(Count::Thoughts),
            b"cache_read_input_tokens" => Self::Count(Count::CacheRead),
            b"cache_creation_input_tokens" => Self::Count(Count::CacheWrite),
            _ => Self::Other,
        }
    }
}

impl TokenCounts {
    fn count(&mut self, count: Count, is_first: bool, number: u64) {
        self.is_final |= count == Count::Output && !is_first;
        if let Some(place) = self.counts.get_mut(count as usize) {
            *place = Some(place.unwrap_or(0).max(number));
        }
    }

    pub(super) fn said(&self) -> AnswerReport {
        let of = |count: Count| self.counts.get(count as usize).copied().flatten().unwrap_or(0);
        let tokens = Tokens {
            input: of(Count::Input).saturating_add(of(Count::ToolInput)),
            cache_read: of(Count::CacheRead),
            cache_write: of(Count::CacheWrite),
            output: of(Count::Output).saturating_add(of(Count::Thoughts)),
        };
        let is_said = self.counts.iter().any(Option::is_some);
        let (is_final, model) = (self.is_final, self.model.clone());
        AnswerReport { tokens: is_said.then_some(tokens), is_final, model }
    }
}

impl Json {
    pub(super) fn take(&mut self, byte: u8, found: &mut TokenCounts) {
        match self.within {
            LexerState::Text => match byte {
                b'"' => self.end_text(found),
                b'\\' => {
                    self.text.is_plain = false;
                    self.within = LexerState::Escape;
                }
                _ => self.text.push(byte),
            },
            LexerState::Escape => self.within = LexerState::Text,
            LexerState::Word
                if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'+') =>
            {
                self.text.push(byte);
            }
            LexerState::Word => {
                self.end_word(found);
                self.between(byte);
            }
            LexerState::Nothing => self.between(byte),
        }
    }

    fn between(&mut self, byte: u8) {
        match byte {
            b'{' | b'[' => self.open(byte == b'{'),
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            b',' => {
                if let Some(level) = self.level() {
                    level.awaits_name = level.is_object;
                }
            }
            b'"' => {
                self.text.clear();
                self.within = LexerState::Text;
            }
            byte if byte.is_ascii_alphanumeric() || byte == b'-' => {
                self.text.clear();
                self.text.push(byte);
                self.within = LexerState::Word;
            }
            _ => {}
        }
    }

    fn open(&mut self, is_object: bool) {
        if let Some(level) = self.levels.get_mut(self.depth) {
            *level = Level { is_object, awaits_name: is_object, name: Name::Other };
        }
        self.depth = self.depth.saturating_add(1);
    }

    /// The innermost object or array, if it is within the tracked levels.
    fn level(&mut self) -> Option<&mut Level> {
        self.depth.checked_sub(1).and_then(|index| self.levels.get_mut(index))
    }

    fn end_text(&mut self, found: &mut TokenCounts) {
        self.within = LexerState::Nothing;
        let name = self.text.plain().map_or(Name::Other, Name::of);
        if let Some(level) = self.level()
            && level.awaits_name
        {
            (level.awaits_name, level.name) = (false, name);
            return;
        }
        if self.place() == Some(Place::Model)
            && let Some(Ok(model)) = self.text.plain().map(str::from_utf8)
            && !model.is_empty()
        {
            found.model = Some(model.to_owned());
        }
    }

    fn end_word(&mut self, found: &mut TokenCounts) {
        self.within = LexerState::Nothing;
        let Some(Place::Count { count, is_first }) = self.place() else { return };
        let text = self.text.plain().and_then(|text| str::from_utf8(text).ok());
        if let Some(number) = text.and_then(|text| text.parse().ok()) {
            found.count(count, is_first, number);
        }
    }

    /// The current place, if it is one of interest.
    fn place(&self) -> Option<Place> {
        let levels = self.levels.get(..self.depth)?;
        // A list of answers is treated like each of them.
        let levels = match levels {
            [first, rest @ ..] if !first.is_object => rest,
            all => all,
        };
        if levels.iter().any(|level| !level.is_object) {
            return None;
        }
        let mut names = levels.iter().map(|level| level.name).peekable();
        let around = names.next_if(|name| matches!(name, Name::Message | Name::Response));
        let is_first = around == Some(Name::Message);
        match (names.next()?, names.next(), names.next()) {
            (Name::Usage, Some(Name::Count(count)), None) => Some(Place::Count { count, is_first }),
            (Name::Model, None, None) => Some(Place::Model),
            _ => None,
        }
    }
}
