//! Output for people or programs: tables or JSON on standard output, remarks on standard error.

mod escape;
mod layout;
mod style;

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

use console::Term;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;

pub(crate) use self::escape::one_line;
pub(crate) use self::layout::cut;
pub(crate) use self::style::Style;
use crate::failure::Failure;

/// The output of a command.
#[derive(Debug, Clone, Copy)]
pub struct Screen {
    json: bool,
    /// Whether standard output is a terminal.
    terminal: bool,
    /// Whether it shows colours.
    colours: bool,
    /// Its columns.
    width: Option<usize>,
}

impl Screen {
    /// Creates the output of this process, for programs (`json`) or for people.
    #[must_use]
    pub fn new(json: bool) -> Self {
        let terminal = io::stdout().is_terminal();
        let size = Term::stdout().size_checked().filter(|_| terminal);
        let width = size.map(|(_, columns)| usize::from(columns)).filter(|width| *width > 0);
        let colours = terminal && style::wants_colours(|name| std::env::var_os(name));
        Self { json, terminal, colours, width }
    }

    /// Whether answers are JSON.
    pub(crate) const fn is_json(self) -> bool {
        self.json
    }

    /// Whether progress is worth showing: for people, on a terminal that can redraw a line.
    pub(crate) fn is_watched(self) -> bool {
        let can_move = || style::can_move(|name| std::env::var_os(name));
        !self.json && io::stderr().is_terminal() && can_move()
    }

    /// Whether standard output is a terminal on which the cursor can move.
    pub(crate) fn can_redraw(self) -> bool {
        self.terminal && style::can_move(|name| std::env::var_os(name))
    }

    /// Returns the columns of the terminal; `None` where nothing is cut.
    pub(crate) const fn width(self) -> Option<usize> {
        self.width
    }

    /// Whether standard output is a terminal.
    pub(crate) const fn is_terminal(self) -> bool {
        self.terminal
    }

    /// Prints the answer, as one JSON document or as `human` formats it.
    pub(crate) fn answer<T: Serialize>(
        self,
        answer: &T,
        human: impl FnOnce(&T) -> String,
    ) -> Result<(), Failure> {
        if self.json { self.json_document(answer) } else { self.text(human(answer)) }
    }

    /// Prints one of many answers, as one line of JSON or as `human` formats it.
    pub(crate) fn item<T: Serialize>(
        self,
        item: &T,
        human: impl FnOnce(&T) -> String,
    ) -> Result<(), Failure> {
        if !self.json {
            return self.text(human(item));
        }
        let json = json_text(item, false)?;
        self.text(if self.terminal { escape::json(&json) } else { json })
    }

    /// Prints one JSON document, indented on a terminal.
    pub(crate) fn json_document<T: Serialize>(self, document: &T) -> Result<(), Failure> {
        let json = json_text(document, self.terminal)?;
        self.text(if self.terminal { escape::json(&json) } else { json })
    }

    /// Prints a line of the answer. On a terminal only text and our own styles pass.
    pub(crate) fn text(self, text: impl Display) -> Result<(), Failure> {
        let mut text = text.to_string();
        if self.terminal {
            text = escape::barrier(&text);
        }
        let mut stdout = io::stdout().lock();
        writeln!(stdout, "{text}").and_then(|()| stdout.flush()).map_err(Failure::Output)
    }

    /// Prints a remark for people on standard error. A closed terminal does not matter.
    pub(crate) fn remark(self, text: impl Display) {
        if !self.json {
            remark(text);
        }
    }

    /// Formats a table without borders, its head bold on a terminal. `nothing` replaces an empty
    /// one.
    pub(crate) fn table<const N: usize>(
        self,
        head: [&str; N],
        rows: impl IntoIterator<Item = [String; N]>,
        nothing: &str,
    ) -> String {
        let rows = rows.into_iter().map(|row| row.to_vec());
        let head = head.map(str::to_owned).to_vec();
        self.columns(std::iter::once(head).chain(rows), nothing)
    }

    /// Like [`Self::table`], for any number of columns; the first row is the head. Cells wider than
    /// the terminal are cut.
    pub(crate) fn columns(
        self,
        rows: impl IntoIterator<Item = Vec<String>>,
        nothing: &str,
    ) -> String {
        let one_line = |row: Vec<String>| row.iter().map(|cell| one_line(cell)).collect();
        let rows: Vec<Vec<String>> = rows.into_iter().map(one_line).collect();
        if rows.len() < 2 {
            return nothing.to_owned();
        }
        let lines = layout::table(&rows, self.width).into_iter().enumerate();
        let lines = lines.map(|(row, line)| if row == 0 { self.bold(&line) } else { line });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Formats names and values, one pair per line, or more lines where the terminal is narrow.
    pub(crate) fn pairs(self, pairs: &[(&str, String)]) -> String {
        let width = pairs.iter().map(|(name, _)| console::measure_text_width(name)).max();
        let width = width.unwrap_or_default();
        let lines = pairs.iter().map(|(name, value)| {
            let padding = " ".repeat(width - console::measure_text_width(name));
            let value = layout::wrapped(&self.printable(value), width + 2, self.width);
            format!("{}{padding}  {value}", self.bold(&one_line(name)))
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Escapes control characters in an agent's text, so that it cannot control the terminal.
    pub(crate) fn printable(self, text: &str) -> String {
        if self.terminal { escape::printable(text) } else { text.to_owned() }
    }

    /// Formats a unified diff, with colours on a terminal.
    pub(crate) fn diff(self, diff: &str) -> String {
        let diff = self.printable(diff.trim_end_matches('\n'));
        if !self.colours {
            return diff;
        }
        let coloured = diff.lines().map(|line| match line.as_bytes().first() {
            Some(b'+') => self.paint(Style::Green, line),
            Some(b'-') => self.paint(Style::Red, line),
            Some(b'd') => self.bold(line),
            Some(_) | None => line.to_owned(),
        });
        coloured.collect::<Vec<_>>().join("\n")
    }

    /// Makes text bold on a terminal.
    pub(crate) fn bold(self, text: &str) -> String {
        self.paint(Style::Bold, text)
    }

    /// Draws text in a style, on a terminal with colours.
    pub(crate) fn paint(self, style: Style, text: &str) -> String {
        if self.colours {
            format!("{}{text}{}", style.code(), style::RESET)
        } else {
            text.to_owned()
        }
    }
}

/// Prints a line on standard error. A closed terminal does not matter; an open one gets text only.
pub fn remark(text: impl Display) {
    let text = on_stderr(&text.to_string());
    drop(writeln!(io::stderr().lock(), "{text}"));
}

/// Whether standard error shows colours.
pub(crate) fn has_colours_on_stderr() -> bool {
    io::stderr().is_terminal() && style::wants_colours(|name| std::env::var_os(name))
}

/// Escapes control characters where standard error is a terminal.
pub(crate) fn on_stderr(text: &str) -> String {
    if io::stderr().is_terminal() { escape::printable(text) } else { text.to_owned() }
}

/// Formats a value as JSON.
pub(crate) fn json_text<T: Serialize>(value: &T, pretty: bool) -> Result<String, Failure> {
    let text =
        if pretty { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) };
    text.map_err(|error| Failure::Output(error.into()))
}

/// Formats a moment in the user's time zone.
pub(crate) fn moment(unix_ms: u64) -> String {
    i64::try_from(unix_ms)
        .ok()
        .and_then(|unix_ms| Timestamp::from_millisecond(unix_ms).ok())
        .map(|moment| moment.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string())
        .unwrap_or_default()
}

/// Formats a moment that may not have come.
pub(crate) fn maybe_moment(unix_ms: Option<u64>) -> String {
    unix_ms.map_or_else(|| "-".to_owned(), moment)
}

/// Formats a size for people.
pub(crate) fn size(bytes: u64) -> String {
    indicatif::BinaryBytes(bytes).to_string()
}

/// Formats a count for people.
pub(crate) fn counted(count: usize, of: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {of}{plural}")
}

/// Formats how long ago a moment was.
pub(crate) fn ago(unix_ms: u64) -> String {
    let now = u64::try_from(Timestamp::now().as_millisecond()).unwrap_or_default();
    format!("{} ago", age(now.saturating_sub(unix_ms)))
}

/// Formats an age for people: its largest unit.
fn age(milliseconds: u64) -> String {
    match milliseconds / 1000 {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min", seconds / 60),
        seconds @ 3600..86_400 => format!("{} h", seconds / 3600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

/// Formats a time span for people.
pub(crate) fn span(milliseconds: u64) -> String {
    match milliseconds {
        0..1_000 => format!("{milliseconds} ms"),
        1_000..120_000 => format!("{}.{} s", milliseconds / 1000, milliseconds % 1000 / 100),
        _ => format!("{} min", milliseconds / 60_000),
    }
}

#[cfg(test)]
mod tests {
    use super::{Screen, span};

    const FILE: Screen = Screen { json: false, terminal: false, colours: false, width: None };
    const TERMINAL: Screen = Screen { json: false, terminal: true, colours: true, width: Some(60) };

    #[test]
    fn tables_line_up_and_have_no_borders() {
        let rows = [["a".to_owned(), "1".to_owned()], ["long".to_owned(), "2".to_owned()]];
        let table = FILE.table(["NAME", "N"], rows, "nothing");
        assert_eq!(table, "NAME  N\na     1\nlong  2");
        assert_eq!(FILE.table(["NAME"], [], "nothing"), "nothing");
    }

    /// Rule: an agent's text cannot control the terminal it is shown on.
    #[test]
    fn an_agents_text_does_not_command_a_terminal() {
        assert_eq!(TERMINAL.printable("a\tb\u{1b}[2J\n\r"), "a\tb\\u{1b}[2J\n\\u{d}");
        assert_eq!(FILE.printable("\u{1b}"), "\u{1b}");
        assert!(TERMINAL.diff("+\u{1b}x\n").starts_with("\u{1b}[32m+\\u{1b}x"));
        let row = TERMINAL.table(["NAME"], [["a\u{1b}[2J\nb".to_owned()]], "nothing");
        assert!(row.ends_with("a\\u{1b}[2J\\u{a}b"), "{row}");
        let pair = TERMINAL.pairs(&[("n\u{7}", "\u{9b}2J".to_owned())]);
        assert!(pair.contains("n\\u{7}") && pair.contains("\\u{9b}2J"), "{pair}");
    }

    /// REQ: `NO_COLOR`: a terminal without colours gets plain text, still escaped.
    #[test]
    fn a_terminal_without_colours_gets_plain_text() {
        let plain = Screen { colours: false, ..TERMINAL };
        assert_eq!(plain.diff("+a\u{1b}\n-b"), "+a\\u{1b}\n-b");
        assert_eq!(plain.bold("x"), "x");
    }

    #[test]
    fn spans_have_a_unit_that_fits() {
        assert_eq!(span(7), "7 ms");
        assert_eq!(span(1_250), "1.2 s");
        assert_eq!(span(600_000), "10 min");
        let ages = [999, 61_000, 7_200_000, 200_000_000].map(super::age);
        assert_eq!(ages, ["0 s", "1 min", "2 h", "2 d"]);
    }
}
