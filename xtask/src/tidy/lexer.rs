//! Separates code, comments and literals of Rust, so that a rule about code is not triggered by a
//! word in a sentence.

use std::iter::Peekable;
use std::str::Chars;

/// Two views of one source, with the same lines as the source.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Views {
    /// The source with blank comments, and [`FILL`] inside literals.
    pub(crate) code: String,
    /// The source with everything but comments blank.
    pub(crate) comments: String,
}

/// Replaces a character of a literal: not blank, and part of no pattern.
const FILL: char = '~';

/// Splits `source` into its views. Invalid sources produce some result, not a panic.
pub(crate) fn split(source: &str) -> Views {
    let mut lexer = Lexer { rest: source.chars().peekable(), views: Views::default() };
    while lexer.token() {}
    lexer.views
}

struct Lexer<'a> {
    rest: Peekable<Chars<'a>>,
    views: Views,
}

impl Lexer<'_> {
    /// Consumes one token or character; false at the end.
    fn token(&mut self) -> bool {
        let Some(&first) = self.rest.peek() else { return false };
        match first {
            '/' if self.second() == Some('/') => self.line_comment(),
            '/' if self.second() == Some('*') => self.block_comment(),
            '"' => self.string(),
            '\'' => self.quote(),
            _ if first.is_alphabetic() || first == '_' => self.word(),
            _ => self.code(),
        }
        true
    }

    fn second(&self) -> Option<char> {
        self.rest.clone().nth(1)
    }

    fn code(&mut self) {
        if let Some(c) = self.rest.next() {
            self.put(c, blank(c));
        }
    }

    fn comment(&mut self) {
        if let Some(c) = self.rest.next() {
            self.put(blank(c), c);
        }
    }

    fn literal(&mut self) -> Option<char> {
        let c = self.rest.next()?;
        self.put(if c == '\n' { c } else { FILL }, blank(c));
        Some(c)
    }

    fn put(&mut self, code: char, comment: char) {
        self.views.code.push(code);
        self.views.comments.push(comment);
    }

    fn line_comment(&mut self) {
        while self.rest.peek().is_some_and(|c| *c != '\n') {
            self.comment();
        }
    }

    fn block_comment(&mut self) {
        let mut depth = 0_usize;
        while let Some(&c) = self.rest.peek() {
            match (c, self.second()) {
                ('/', Some('*')) => depth += 1,
                ('*', Some('/')) => depth -= 1,
                _ => {
                    self.comment();
                    continue;
                }
            }
            self.comment();
            self.comment();
            if depth == 0 {
                return;
            }
        }
    }

    fn string(&mut self) {
        self.code();
        while let Some(&c) = self.rest.peek() {
            match c {
                '"' => return self.code(),
                '\\' => {
                    self.literal();
                    self.literal();
                }
                _ => {
                    self.literal();
                }
            }
        }
    }

    /// Consumes a character literal, or a lifetime, which is code.
    fn quote(&mut self) {
        let mut ahead = self.rest.clone().skip(1);
        let (first, second) = (ahead.next(), ahead.next());
        self.code();
        if first == Some('\\') {
            self.literal();
            self.literal();
            while self.rest.peek().is_some_and(|c| *c != '\'') {
                self.literal();
            }
            self.code();
        } else if second == Some('\'') {
            self.literal();
            self.code();
        }
    }

    /// Consumes an identifier, or the prefix of a raw string.
    fn word(&mut self) {
        let mut word = String::new();
        while let Some(&c) = self.rest.peek().filter(|c| c.is_alphanumeric() || **c == '_') {
            word.push(c);
            self.code();
        }
        if matches!(word.as_str(), "r" | "br" | "cr") {
            self.raw_string();
        }
    }

    fn raw_string(&mut self) {
        let hashes = self.rest.clone().take_while(|c| *c == '#').count();
        if self.rest.clone().nth(hashes) != Some('"') {
            return; // a raw identifier
        }
        for _ in 0..=hashes {
            self.code();
        }
        let end: String = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
        while !self.rest.clone().take(end.len()).eq(end.chars()) {
            if self.literal().is_none() {
                return;
            }
        }
        for _ in 0..=hashes {
            self.code();
        }
    }
}

/// Keeps line breaks.
fn blank(c: char) -> char {
    if c == '\n' { '\n' } else { ' ' }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, code: &str) {
        assert_eq!(split(source).code, code);
    }

    #[test]
    fn comments_are_blank_in_the_code_and_code_is_blank_in_the_comments() {
        let views = split("a // b\nc /* d /* e */ f */ g");
        assert_eq!(views.code, format!("a     \nc{}g", " ".repeat(19)));
        assert_eq!(views.comments, "  // b\n  /* d /* e */ f */  ");
    }

    #[test]
    fn the_insides_of_strings_are_hidden() {
        check(r#"f("a\"b", b"c")"#, r#"f("~~~~", b"~")"#);
        check("r#\"a\"b\"# c", "r#\"~~~\"# c");
        check("\"//\" x", "\"~~\" x");
    }

    #[test]
    fn lifetimes_are_code_and_characters_are_not() {
        check("&'a x '}' '\\'' '\\u{7d}'", "&'a x '~' '~~' '~~~~~~'");
    }

    #[test]
    fn raw_identifiers_are_code() {
        check("r#type", "r#type");
    }

    #[test]
    fn an_open_literal_at_the_end_is_no_panic() {
        for source in ["\"a", "r#\"a", "'", "'\\", "/* a", "r#", "b\"\\"] {
            assert_eq!(split(source).code.len(), source.len(), "{source}");
        }
    }
}
