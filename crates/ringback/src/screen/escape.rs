//! What a terminal must not obey: control characters in text that tools, agents and files brought.

use super::style::{RESET, Style};

/// Whether a terminal would act on this character instead of showing it: control characters, and
/// those that change the direction of the text after them.
fn is_obeyed(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn is_obeyed_in_text(c: char) -> bool {
    is_obeyed(c) && !matches!(c, '\n' | '\t')
}

/// Escapes what a terminal would obey, except line ends and tabs.
pub(crate) fn printable(text: &str) -> String {
    escaped(text, is_obeyed_in_text, |c| c.escape_unicode().to_string())
}

/// Escapes control characters in a text of a row, so that it can neither control a terminal nor pass
/// for another row.
pub(crate) fn one_line(text: &str) -> String {
    escaped(text, is_obeyed, |c| c.escape_unicode().to_string())
}

/// Escapes JSON in its own notation, so that it stays JSON.
pub(super) fn json(text: &str) -> String {
    escaped(text, is_obeyed_in_text, |c| {
        let mut units = [0; 2];
        c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")).collect()
    })
}

/// The last barrier before a terminal: escapes everything that is not plain text or a style of ours.
pub(super) fn barrier(text: &str) -> String {
    if !text.contains(is_obeyed_in_text) {
        return text.to_owned();
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(is_obeyed_in_text) {
        shown.push_str(&rest[..at]);
        rest = &rest[at..];
        let codes = Style::ALL.iter().map(|style| style.code()).chain([RESET]);
        if let Some(code) = codes.into_iter().find(|code| rest.starts_with(code)) {
            shown.push_str(code);
            rest = &rest[code.len()..];
        } else if let Some(c) = rest.chars().next() {
            shown.extend(c.escape_unicode());
            rest = &rest[c.len_utf8()..];
        }
    }
    shown.push_str(rest);
    shown
}

fn escaped(text: &str, obeyed: fn(char) -> bool, how: impl Fn(char) -> String) -> String {
    if !text.contains(obeyed) {
        return text.to_owned();
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if obeyed(c) {
            shown.push_str(&how(c));
        } else {
            shown.push(c);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule: nothing but text and our own styles reaches a terminal: no move of the cursor, no title,
    /// no eight-bit control, no change of direction.
    #[test]
    fn the_barrier_passes_text_and_styles_only() {
        assert_eq!(barrier("a\tb\n"), "a\tb\n");
        assert_eq!(barrier("\u{1b}[1mbold\u{1b}[0m"), "\u{1b}[1mbold\u{1b}[0m");
        for (sent, shown) in [
            ("\u{1b}[2J", "\\u{1b}[2J"),
            ("\u{1b}]0;title\u{7}", "\\u{1b}]0;title\\u{7}"),
            ("\u{1b}[8mhidden", "\\u{1b}[8mhidden"),
            ("a\rb", "a\\u{d}b"),
            ("\u{9b}2J", "\\u{9b}2J"),
            ("\u{202e}txt", "\\u{202e}txt"),
        ] {
            assert_eq!(barrier(sent), shown);
        }
    }

    #[test]
    fn json_stays_json() {
        assert_eq!(json("\"\u{9b}\u{7f}é\""), "\"\\u009b\\u007fé\"");
    }
}
