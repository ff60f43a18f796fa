//! A line of music, read character by character.

use super::super::exact::fraction;
use super::super::model::{Fraction, Place};

/// The largest number that is read: lengths and the like need no more.
const NUMBER_MAX: u32 = 9999;

/// The longest name of a decoration.
const NAME_CHARS_MAX: usize = 64;

/// A line of text and a place in it.
#[derive(Debug, Clone)]
pub(super) struct Cursor<'a> {
    chars: &'a [char],
    /// The column of each character before macros were expanded, if there are any.
    columns: Option<&'a [u32]>,
    line: u32,
    pos: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(line: u32, chars: &'a [char]) -> Self {
        Self { chars, columns: None, line, pos: 0 }
    }

    /// Returns a cursor on a line with expanded macros; `columns` has one entry for each character.
    pub(super) fn expanded(line: u32, chars: &'a [char], columns: &'a [u32]) -> Self {
        debug_assert_eq!(chars.len(), columns.len());
        Self { chars, columns: Some(columns), line, pos: 0 }
    }

    /// Returns the place of the next character.
    pub(super) fn place(&self) -> Place {
        let column = match self.columns {
            None => self.pos as u32 + 1,
            Some(columns) => match columns.get(self.pos) {
                Some(column) => *column,
                None => columns.last().map_or(1, |last| last + 1),
            },
        };
        Place { line: self.line, column }
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.chars.get(self.pos).copied()
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.pos + ahead).copied()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let c = self.peek();
        self.pos += usize::from(c.is_some());
        c
    }

    pub(super) fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        self.pos += usize::from(found);
        found
    }

    /// Consumes a run of this character, and returns its length.
    pub(super) fn count(&mut self, wanted: char) -> u32 {
        let mut n = 0;
        while self.take(wanted) {
            n += 1;
        }
        n
    }

    /// Consumes the text up to the next `close`; `None` without one.
    pub(super) fn until(&mut self, close: char) -> Option<String> {
        let n = self.chars[self.pos..].iter().position(|c| *c == close)?;
        let text = self.chars[self.pos..self.pos + n].iter().collect();
        self.pos += n + 1;
        Some(text)
    }

    /// Does the same, but consumes nothing unless the text is near and wanted.
    pub(super) fn until_if(&mut self, close: char, wanted: fn(&str) -> bool) -> Option<String> {
        let near = self.chars[self.pos..].iter().take(NAME_CHARS_MAX);
        let text: String = near.take_while(|c| **c != close).collect();
        let n_chars = text.chars().count();
        let is_closed = self.peek_at(n_chars) == Some(close);
        if !is_closed || !wanted(&text) {
            return None;
        }
        self.pos += n_chars + 1;
        Some(text)
    }

    /// Consumes a number; `None` without one. Larger ones are cut to the limit.
    pub(super) fn number(&mut self) -> Option<u32> {
        let mut number = None;
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(10)) {
            self.pos += 1;
            let so_far = number.unwrap_or(0_u32);
            number = Some((so_far * 10 + digit).min(NUMBER_MAX));
        }
        number
    }

    /// Consumes a length: `2`, `3/2`, `/2`, `/`, `//`. The default is 1. `Err` if it is 0.
    pub(super) fn length(&mut self) -> Result<Fraction, ()> {
        let above = i64::from(self.number().unwrap_or(1));
        let slashes = self.count('/');
        let below = match self.number().filter(|_| slashes > 0) {
            Some(below) => i64::from(below) << (slashes - 1).min(10),
            // `//` halves twice; more than ten slashes is shorter than anything audible.
            None => 1 << slashes.min(10),
        };
        if above == 0 || below == 0 { Err(()) } else { Ok(fraction(above, below)) }
    }
}
