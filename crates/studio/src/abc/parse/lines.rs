//! Lines of text: which belong to the file header, to a tune's header and to its body.

use std::collections::HashMap;

use super::super::diagnostic::{Diagnostic, Diagnostics};
use super::super::model::{Element, Field, Item, Place, Tune};
use super::cursor::Cursor;
use super::field::{self, Problem};
use super::macros::Macros;
use super::music::Music;
use super::{LimitError, TEXT_BYTES_MAX};

/// Reads a text tune by tune.
#[derive(Debug)]
pub(in super::super) struct Reader<'t> {
    /// The remaining lines.
    text: Option<&'t str>,
    n_lines: u32,
    parser: Parser,
}

/// The state while lines are read.
#[derive(Debug, Default)]
struct Parser {
    file_header: Vec<Field>,
    diagnostics: Diagnostics,
    n_tunes: usize,
    /// The tune that is being read.
    tune: Option<Tune>,
    /// The tune that has just ended.
    ended: Option<Tune>,
    /// Buffer of a tune that is no longer needed.
    spare: Vec<Item>,
    /// Buffer for the line of music that is being read.
    chars: Vec<char>,
    /// Whether its header is still open.
    in_header: bool,
    /// Fields outside a tune since the last empty line.
    loose: Vec<Field>,
    symbols: Symbols,
    macros: Macros,
    /// The directive whose text block is being skipped.
    skip_until: Option<&'static str>,
}

/// The meaning of letters and signs.
#[derive(Debug, Default, Clone)]
pub(super) struct Symbols {
    /// By `U:`.
    pub(super) defined: HashMap<char, String>,
    /// Whether decorations are written between plus signs, as in old ABC.
    pub(super) plus: bool,
}

/// The most fields of a file header: every tune reads them.
const FILE_FIELDS_MAX: usize = 100;

/// Text blocks that are not music, and their ends.
const TEXT_BLOCKS: &[(&str, &str)] =
    &[("begintext", "%%endtext"), ("beginps", "%%endps"), ("beginsvg", "%%endsvg")];

impl<'t> Reader<'t> {
    pub(in super::super) fn new(text: &'t str) -> Result<Self, LimitError> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(LimitError::Text { size: text.len() });
        }
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        Ok(Self { text: Some(text), n_lines: 0, parser: Parser::default() })
    }

    /// Returns the next tune; `None` at the end of the text.
    pub(in super::super) fn next_tune(&mut self) -> Result<Option<Tune>, LimitError> {
        while let Some(line) = self.next_line() {
            self.parser.line(self.n_lines, line)?;
            if let Some(tune) = self.parser.ended.take() {
                return Ok(Some(tune));
            }
        }
        self.parser.end_tune();
        self.parser.flush_loose();
        Ok(self.parser.ended.take())
    }

    /// Returns the fields that apply to all tunes. They are complete once the first tune has been
    /// read.
    pub(in super::super) fn file_header(&self) -> &[Field] {
        &self.parser.file_header
    }

    /// Takes a tune back to reuse its buffer.
    pub(in super::super) fn recycle(&mut self, mut tune: Tune) {
        tune.body.clear();
        self.parser.spare = tune.body;
    }

    /// Returns the diagnostics, once all tunes are read.
    pub(in super::super) fn finish(mut self) -> Vec<Diagnostic> {
        if self.parser.n_tunes == 0 {
            self.parser.diagnostics.error(
                Place { line: 1, column: 1 },
                "this text has no tune",
                "start a tune with a line `X:1`, then `T:` with its title and `K:` with its key, then the notes",
            );
        }
        self.parser.diagnostics.finish()
    }

    /// Line endings may be those of Unix, Windows or an old Mac.
    fn next_line(&mut self) -> Option<&'t str> {
        let text = self.text?;
        self.n_lines += 1;
        let Some(end) = text.bytes().position(|byte| matches!(byte, b'\n' | b'\r')) else {
            self.text = None;
            return Some(text);
        };
        let (line, rest) = text.split_at(end);
        self.text = Some(rest.strip_prefix("\r\n").unwrap_or(&rest[1..]));
        Some(line)
    }
}

impl Parser {
    fn line(&mut self, number: u32, line: &str) -> Result<(), LimitError> {
        if let Some(end) = self.skip_until {
            if line.starts_with(end) {
                self.skip_until = None;
            }
            return Ok(());
        }
        if line.trim().is_empty() {
            self.end_tune();
            self.flush_loose();
            return Ok(());
        }
        if let Some(directive) = line.strip_prefix("%%") {
            self.directive(number, directive);
            return Ok(());
        }
        let line = strip_comment(line);
        if line.trim().is_empty() {
            return Ok(());
        }
        match field_line(line, self.tune.is_some() && !self.in_header) {
            Some((letter, text)) => self.field_line(number, letter, text),
            None if self.tune.is_some() => self.music_line(number, line)?,
            None => {} // free text between tunes
        }
        Ok(())
    }

    fn directive(&mut self, number: u32, text: &str) {
        if let Some((_, end)) = TEXT_BLOCKS.iter().find(|(start, _)| text.starts_with(start)) {
            self.skip_until = Some(end);
            return;
        }
        let field = field::directive(strip_comment(text));
        self.take_field(Place { line: number, column: 1 }, field);
    }

    fn field_line(&mut self, number: u32, letter: char, text: &str) {
        let at = Place { line: number, column: 1 };
        match letter {
            'X' => self.start_tune(at, text),
            '+' => self.continue_field(at, text),
            'm' => {
                if self.macros.define(text).is_none() {
                    let help = "write `m: ~G3 = G{A}G{F}G`";
                    self.diagnostics.error(at, "this is not a macro", help);
                }
            }
            'U' => self.define_symbol(at, text),
            'r' => {} // a remark
            'K' if self.tune.is_none() => {
                let message = "a tune without a reference number";
                self.diagnostics.warning(at, message, "start it with a line `X:1`");
                let header = std::mem::take(&mut self.loose);
                let body = std::mem::take(&mut self.spare);
                self.tune = Some(Tune { line: number, header, body });
                self.in_header = true;
                self.take_field(at, field::field('K', text));
            }
            _ => {
                self.take_field(at, field::field(letter, text));
                // The header ends even if its key is wrong: otherwise all notes would be errors
                // too.
                self.in_header &= letter != 'K';
            }
        }
    }

    /// Stores a field, or reports its problem.
    fn take_field(&mut self, at: Place, field: Result<Field, Problem>) {
        let field = match field {
            Ok(field) => field,
            Err(Problem { message, help }) => {
                self.diagnostics.error(at, message, help);
                return;
            }
        };
        if let Field::Directive(text) = &field {
            self.symbols.plus = match text.split_whitespace().collect::<Vec<_>>().as_slice() {
                ["decoration", sign] => *sign == "+",
                _ => self.symbols.plus,
            };
        }
        match &mut self.tune {
            None => self.loose.push(field),
            Some(tune) if self.in_header => {
                let ends_header = matches!(field, Field::Key(_));
                tune.header.push(field);
                self.in_header = !ends_header;
            }
            Some(tune) => {
                let field = Box::new(field);
                tune.body.push(Item { at, element: Element::Field { field, inline: false } });
            }
        }
    }

    /// `+:` adds to the field before it.
    fn continue_field(&mut self, at: Place, more: &str) {
        let last = match &mut self.tune {
            None => self.loose.last_mut(),
            Some(tune) if self.in_header => tune.header.last_mut(),
            Some(tune) => tune.body.last_mut().and_then(last_field),
        };
        if let Some(Field::Lyrics(text) | Field::Symbols(text) | Field::Text { text, .. }) = last {
            text.push(' ');
            text.push_str(more.trim());
        } else {
            let help = "put `+:` right after a line of text or lyrics";
            self.diagnostics.error(at, "no field to continue", help);
        }
    }

    /// `U: T = !trill!`
    fn define_symbol(&mut self, at: Place, text: &str) {
        let definition = text.split_once('=').and_then(|(symbol, meaning)| {
            let mut chars = symbol.trim().chars();
            let symbol = chars.next().filter(|_| chars.next().is_none())?;
            let known = matches!(symbol, 'H'..='W' | 'h'..='w' | '~');
            known.then(|| (symbol, meaning.trim().to_owned()))
        });
        match definition {
            Some((symbol, meaning)) => {
                self.symbols.defined.insert(symbol, meaning);
            }
            None => {
                let help = "write `U: T = !trill!` with one of the letters H to W, h to w or ~";
                self.diagnostics.error(at, "this does not define a symbol", help);
            }
        }
    }

    fn start_tune(&mut self, at: Place, text: &str) {
        if self.tune.is_some() {
            let message = "a tune starts before an empty line ends the one before";
            self.diagnostics.warning(at, message, "put an empty line before `X:`");
        }
        self.end_tune();
        self.flush_loose();
        let body = std::mem::take(&mut self.spare);
        self.tune = Some(Tune { line: at.line, header: Vec::new(), body });
        self.in_header = true;
        self.take_field(at, field::field('X', text));
    }

    fn end_tune(&mut self) {
        let Some(tune) = self.tune.take() else { return };
        let at = Place { line: tune.line, column: 1 };
        let has = |wanted: fn(&Field) -> bool| tune.header.iter().any(wanted);
        if self.in_header {
            let help = "end its header with a line such as `K:C`, and put the notes after it";
            self.diagnostics.error(at, "the tune has no key, so its music never starts", help);
        }
        if !has(|field| matches!(field, Field::Text { letter: 'T', .. })) {
            let help = "add a line `T:` with its title after `X:`";
            self.diagnostics.warning(at, "the tune has no title", help);
        }
        self.in_header = false;
        self.n_tunes += 1;
        self.ended = Some(tune);
    }

    /// Fields before the first tune apply to all; later ones are ignored.
    fn flush_loose(&mut self) {
        let loose = std::mem::take(&mut self.loose);
        if self.n_tunes == 0 && self.tune.is_none() {
            let room = FILE_FIELDS_MAX.saturating_sub(self.file_header.len());
            self.file_header.extend(loose.into_iter().take(room));
        }
    }

    fn music_line(&mut self, number: u32, line: &str) -> Result<(), LimitError> {
        if self.in_header {
            let at = Place { line: number, column: 1 };
            let help = "put a line such as `K:C` before the first notes";
            self.diagnostics.error(at, "music before the key", help);
            self.in_header = false;
        }
        let line = line.trim_end();
        let (line, continued) = match line.strip_suffix('\\') {
            Some(line) => (line, true),
            None => (line, false),
        };
        self.chars.clear();
        self.chars.extend(line.chars());
        let expanded = self.macros.expand(number, &self.chars)?;
        let Some(tune) = &mut self.tune else { return Ok(()) };
        let cursor = match &expanded {
            Some((chars, columns)) => Cursor::expanded(number, chars, columns),
            None => Cursor::new(number, &self.chars),
        };
        let mut music = Music {
            cursor,
            items: &mut tune.body,
            diagnostics: &mut self.diagnostics,
            symbols: &mut self.symbols,
        };
        music.line();
        let at = music.cursor.place();
        music.push(at, Element::LineEnd { continued });
        Ok(())
    }
}

/// Returns the field of an item that is a field on its own line.
fn last_field(item: &mut Item) -> Option<&mut Field> {
    if let Element::Field { field, inline: false } = &mut item.element { Some(field) } else { None }
}

/// Returns the line up to an unescaped percent sign.
fn strip_comment(line: &str) -> &str {
    let mut escaped = false;
    for (at, byte) in line.bytes().enumerate() {
        match byte {
            b'%' if !escaped => return &line[..at],
            b'\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    line
}

/// Returns the letter and the text of a field line. `C:|` in a body is a note and a repeat, not a
/// composer.
fn field_line(line: &str, in_body: bool) -> Option<(char, &str)> {
    let mut chars = line.chars();
    let letter = chars.next().filter(|c| c.is_ascii_alphabetic() || *c == '+')?;
    chars.next().filter(|c| *c == ':')?;
    let text = chars.as_str();
    let is_music = in_body
        && matches!(letter, 'A'..='G' | 'a'..='g' | 'z' | 'x' | 'y')
        && text.starts_with(['|', ':']);
    (!is_music).then_some((letter, text))
}
