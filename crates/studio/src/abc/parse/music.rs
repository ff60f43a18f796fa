//! A line of music.

use super::super::diagnostic::Diagnostics;
use super::super::model::{Bar, BarStyle, Element, Item, Place, Tuplet};
use super::cursor::Cursor;
use super::field::{self, Problem};
use super::lines::Symbols;
use super::note::starts_note;

/// Decorations of one character, unless `U:` redefines them.
const SHORTHANDS: &[(char, &str)] = &[
    ('.', "staccato"),
    ('~', "roll"),
    ('H', "fermata"),
    ('L', "accent"),
    ('M', "lowermordent"),
    ('O', "coda"),
    ('P', "uppermordent"),
    ('S', "segno"),
    ('T', "trill"),
    ('u', "upbow"),
    ('v', "downbow"),
];

/// Signs that ABC reserves for later versions.
const RESERVED: &[char] = &['#', '*', ';', '?', '@'];

/// The longest tuplet.
const TUPLET_MAX: u32 = 64;
/// The most endings of a section.
const ENDING_MAX: u32 = 64;

/// Returns whether it can be written between exclamation marks.
fn is_decoration(name: &str) -> bool {
    !name.is_empty() && !name.contains([' ', '|', '!'])
}

/// A line of music while it is read.
#[derive(Debug)]
pub(super) struct Music<'a> {
    pub(super) cursor: Cursor<'a>,
    pub(super) items: &'a mut Vec<Item>,
    pub(super) diagnostics: &'a mut Diagnostics,
    pub(super) symbols: &'a mut Symbols,
}

impl Music<'_> {
    pub(super) fn line(&mut self) {
        while let Some(c) = self.cursor.peek() {
            let at = self.cursor.place();
            if starts_note(&self.cursor) {
                if let Some(note) = self.note() {
                    self.push(at, Element::Note(note));
                }
            } else if self.starts_bar() {
                self.bar(at);
            } else {
                self.cursor.next();
                self.element(at, c);
            }
        }
    }

    pub(super) fn push(&mut self, at: Place, element: Element) {
        self.items.push(Item { at, element });
    }

    pub(super) fn error(&mut self, at: Place, message: impl Into<String>, help: impl Into<String>) {
        self.diagnostics.error(at, message, help);
    }

    /// Reads anything but notes and bars; its first character is consumed.
    fn element(&mut self, at: Place, c: char) {
        match c {
            ' ' | '\t' => {
                while matches!(self.cursor.peek(), Some(' ' | '\t')) {
                    self.cursor.next();
                }
                self.push(at, Element::Space);
            }
            '`' | '$' | '\\' => {} // for legibility, or for line breaks on paper
            '[' => self.bracket(at),
            '{' => self.grace(at),
            '(' if self.cursor.peek().is_some_and(|c| c.is_ascii_digit()) => self.tuplet(at),
            '(' if self.cursor.take('&') => self.push(at, Element::Overlay),
            '(' => self.push(at, Element::SlurOpen),
            ')' => self.push(at, Element::SlurClose),
            '"' => self.quoted(at),
            '!' => self.decoration(at, '!'),
            '+' if self.symbols.plus => self.decoration(at, '+'),
            '>' | '<' => {
                let n = (1 + self.cursor.count(c)).min(4);
                self.push(at, Element::Broken { n, long_first: c == '>' });
            }
            '&' => {
                // `&)` ends an overlay of several bars, as does the bar line.
                if self.cursor.peek() == Some(')') {
                    self.cursor.next();
                } else {
                    self.push(at, Element::Overlay);
                }
            }
            '-' => self.late_tie(at),
            'z' | 'x' => {
                let length = self.length();
                self.push(at, Element::Rest { length, visible: c == 'z' });
            }
            'Z' | 'X' => {
                let bars = self.cursor.number().unwrap_or(1);
                self.push(at, Element::BarRest { bars, visible: c == 'Z' });
            }
            'y' => {
                self.length();
                self.push(at, Element::Spacer);
            }
            '.' if self.cursor.peek() == Some('(') => {} // a dotted slur
            '.' if self.cursor.peek() == Some('-') => {} // a dotted tie
            _ => self.symbol(at, c),
        }
    }

    /// Reads a letter or sign that stands for a decoration.
    fn symbol(&mut self, at: Place, c: char) {
        if let Some(meaning) = self.symbols.defined.get(&c).cloned() {
            self.defined_symbol(at, &meaning);
        } else if let Some((_, name)) = SHORTHANDS.iter().find(|(known, _)| *known == c) {
            self.push(at, Element::Decoration((*name).to_owned()));
        } else if RESERVED.contains(&c) {
            self.diagnostics.warning(at, format!("`{c}` means nothing in music"), "remove it");
        } else if matches!(c, 'H'..='Y' | 'h'..='y') {
            let help = format!("define it with a line such as `U: {c} = !trill!`, or remove it");
            self.error(at, format!("the symbol `{c}` has no meaning"), help);
        } else {
            self.unknown(at, c);
        }
    }

    fn defined_symbol(&mut self, at: Place, meaning: &str) {
        let quoted = |sign: char| meaning.strip_prefix(sign).and_then(|m| m.strip_suffix(sign));
        if let Some(text) = quoted('"') {
            self.push(at, Element::Quoted(text.to_owned()));
            return;
        }
        let name = quoted('!').or_else(|| quoted('+')).unwrap_or(meaning);
        // `!nil!` removes a meaning.
        if is_decoration(name) && !matches!(name, "nil" | "none" | "ignore") {
            self.push(at, Element::Decoration(name.to_owned()));
        }
    }

    /// Reports one error for a run of characters that are not music.
    fn unknown(&mut self, at: Place, first: char) {
        let mut run = String::from(first);
        while let Some(c) = self.cursor.peek() {
            let known = c.is_ascii() && !c.is_ascii_digit() && !c.is_control();
            if known || run.chars().count() >= 20 {
                break;
            }
            run.push(c);
            self.cursor.next();
        }
        let help = "remove it, put it in quotes, or start a line of text with `N:`";
        self.error(at, format!("`{run}` is not music"), help);
    }

    /// Reads what follows `[`: an inline field, an ending or a chord.
    fn bracket(&mut self, at: Place) {
        let (first, second) = (self.cursor.peek(), self.cursor.peek_at(1));
        match (first, second) {
            (Some(letter), Some(':')) if letter.is_ascii_alphabetic() => self.inline_field(at),
            (Some(c), _) if c.is_ascii_digit() => self.ending(at),
            _ => self.chord(at),
        }
    }

    fn inline_field(&mut self, at: Place) {
        let Some(text) = self.cursor.until(']') else {
            self.error(at, "a field is not closed", "close it with `]`, as in `[K:G]`");
            while self.cursor.next().is_some() {}
            return;
        };
        let mut chars = text.chars();
        let letter = chars.next().unwrap_or(' ');
        chars.next();
        if matches!(letter, 'r' | 'N') {
            return;
        }
        if !matches!(letter, 'I' | 'K' | 'L' | 'M' | 'P' | 'Q' | 'V' | 'R') {
            let help = "inside music only I, K, L, M, N, P, Q, R, r and V may stand in brackets";
            self.error(at, format!("`{letter}:` cannot stand inside music"), help);
            return;
        }
        match field::field(letter, chars.as_str()) {
            Ok(field) => {
                self.push(at, Element::Field { field: Box::new(field), inline: true });
            }
            Err(Problem { message, help }) => self.error(at, message, help),
        }
    }

    /// Reads `1`, `1,3`, `1-3`; the cursor is at the first digit.
    fn ending(&mut self, at: Place) {
        let mut numbers = Vec::new();
        while let Some(from) = self.cursor.number() {
            let to =
                if self.cursor.take('-') { self.cursor.number().unwrap_or(from) } else { from };
            if from == 0 || to < from || to > ENDING_MAX {
                let help = "endings are numbers from 1 to 64, as in `[1`, `[1,3` or `[1-3`";
                self.error(at, "no such ending", help);
                return;
            }
            numbers.extend((from..=to).take(ENDING_MAX as usize));
            if numbers.len() > ENDING_MAX as usize || !self.cursor.take(',') {
                break;
            }
        }
        numbers.truncate(ENDING_MAX as usize);
        self.push(at, Element::Ending(numbers));
    }

    /// Reads `3`, `3:2`, `3:2:4`, `3::4`; the cursor is at the first digit.
    fn tuplet(&mut self, at: Place) {
        let p = self.cursor.number().unwrap_or(0);
        let mut part = || if self.cursor.take(':') { self.cursor.number() } else { None };
        let (q, r) = (part(), part());
        let fine = |n: u32| (1..=TUPLET_MAX).contains(&n);
        if p < 2 || !fine(p) || !q.is_none_or(fine) || !r.is_none_or(fine) {
            let help = "a tuplet is `(3`, `(3:2` or `(3:2:3`, with numbers from 2 to 64";
            self.error(at, "no such tuplet", help);
            return;
        }
        self.push(at, Element::Tuplet(Tuplet { p, q, r }));
    }

    fn quoted(&mut self, at: Place) {
        match self.cursor.until('"') {
            Some(text) => self.push(at, Element::Quoted(text)),
            None => {
                self.error(at, "a quote is not closed", "close it with `\"`, as in `\"Am\"`");
                while self.cursor.next().is_some() {}
            }
        }
    }

    fn decoration(&mut self, at: Place, sign: char) {
        match self.cursor.until_if(sign, is_decoration) {
            Some(name) => self.push(at, Element::Decoration(name)),
            None => {
                let help = "close a decoration, as in `!trill!`; a line on paper ends where a line of text ends";
                self.diagnostics.warning(at, format!("a lone `{sign}` means nothing"), help);
            }
        }
    }

    /// Reads a tie that does not directly follow its note.
    fn late_tie(&mut self, at: Place) {
        let transparent = |element: &Element| {
            matches!(
                element,
                Element::Space
                    | Element::SlurClose
                    | Element::SlurOpen
                    | Element::Quoted(_)
                    | Element::Decoration(_)
                    | Element::Broken { .. }
                    | Element::Spacer
            )
        };
        let last = self.items.iter_mut().rev().find(|item| !transparent(&item.element));
        let tie = match last.map(|item| &mut item.element) {
            Some(Element::Note(note)) => Some(&mut note.tie),
            Some(Element::Chord(chord)) => Some(&mut chord.tie),
            Some(_) | None => None,
        };
        match tie {
            Some(tie) => *tie = true,
            None => self.error(at, "a tie after no note", "put `-` right after a note or a chord"),
        }
    }

    /// Returns whether a bar line starts here. Brackets also start chords, fields and endings.
    fn starts_bar(&self) -> bool {
        matches!(
            (self.cursor.peek(), self.cursor.peek_at(1)),
            (Some('|' | ']'), _)
                | (Some(':'), Some(':' | '|'))
                | (Some('[' | '.'), Some('|'))
                | (Some('['), Some(']'))
        )
    }

    /// Reads any run of `|`, `[` and `]` with colons around it.
    fn bar(&mut self, at: Place) {
        let dotted = self.cursor.take('.');
        let mut before = self.cursor.count(':');
        let (mut strokes, mut n_strokes) = ([' '; 3], 0);
        while let (Some(c @ ('|' | ']')), _) | (Some(c @ '['), Some('|' | ']')) =
            (self.cursor.peek(), self.cursor.peek_at(1))
        {
            self.cursor.next();
            if let Some(stroke) = strokes.get_mut(n_strokes) {
                *stroke = c;
            }
            n_strokes += 1;
        }
        let mut after = self.cursor.count(':');
        if n_strokes == 0 {
            // `::` is an end and a start.
            after = before / 2;
            before -= after;
        }
        let style = match (strokes, n_strokes) {
            _ if dotted => BarStyle::Dotted,
            (['|', ']', _], 2) | ([']', ..], 1) => BarStyle::ThinThick,
            (['[', '|', _], 2) => BarStyle::ThickThin,
            (['[', '|', ']'], 3) | (['[', ']', _], 2) => BarStyle::Invisible,
            (_, 0 | 1) => BarStyle::Single,
            (_, _) => BarStyle::Double,
        };
        let repeats = |colons: u32| colons.min(8);
        let bar = Bar { repeats_before: repeats(before), repeats_after: repeats(after), style };
        self.push(at, Element::Bar(bar));
        if self.cursor.peek().is_some_and(|c| c.is_ascii_digit()) {
            let at = self.cursor.place();
            self.ending(at);
        }
    }
}
