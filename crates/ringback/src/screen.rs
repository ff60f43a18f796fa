//! Output for people or programs: tables or JSON on standard output, remarks on standard error.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

use comfy_table::{ContentArrangement, Table, presets};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;

use crate::failure::Failure;

const BOLD: (&str, &str) = ("\u{1b}[1m", "\u{1b}[0m");
const GREEN: &str = "\u{1b}[32m";
const RED: &str = "\u{1b}[31m";

/// The output of a command.
#[derive(Debug, Clone, Copy)]
pub struct Screen {
    json: bool,
    /// Whether standard output is a terminal.
    terminal: bool,
}

impl Screen {
    /// Creates the output of this process, for programs (`json`) or for people.
    #[must_use]
    pub fn new(json: bool) -> Self {
        Self { json, terminal: io::stdout().is_terminal() }
    }

    /// Whether answers are JSON.
    pub(crate) const fn is_json(self) -> bool {
        self.json
    }

    /// Whether progress is worth showing: for people, on a terminal.
    pub(crate) fn is_watched(self) -> bool {
        !self.json && io::stderr().is_terminal()
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
        if self.json { self.text(json_text(item, false)?) } else { self.text(human(item)) }
    }

    /// Prints one JSON document, indented on a terminal.
    pub(crate) fn json_document<T: Serialize>(self, document: &T) -> Result<(), Failure> {
        self.text(json_text(document, self.terminal)?)
    }

    /// Prints a line of the answer.
    pub(crate) fn text(self, text: impl Display) -> Result<(), Failure> {
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

    /// Like [`Self::table`], for any number of columns; the first row is the head.
    pub(crate) fn columns(
        self,
        rows: impl IntoIterator<Item = Vec<String>>,
        nothing: &str,
    ) -> String {
        let mut rows = rows.into_iter();
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(rows.next().unwrap_or_default());
        table.add_rows(rows);
        if table.is_empty() {
            return nothing.to_owned();
        }
        let lines = table.lines().enumerate().map(|(row, line)| {
            let line = line.trim_end().trim_start_matches(' ').to_owned();
            if row == 0 { self.bold(&line) } else { line }
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Formats names and values, one pair per line.
    pub(crate) fn pairs(self, pairs: &[(&str, String)]) -> String {
        let width = pairs.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
        let lines = pairs.iter().map(|(name, value)| {
            let padding = " ".repeat(width - name.len());
            format!("{}{padding}  {value}", self.bold(name))
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Escapes control characters in an agent's text, so that it cannot control the terminal.
    pub(crate) fn printable(self, text: &str) -> String {
        let obeyed = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
        if !self.terminal || !text.contains(obeyed) {
            return text.to_owned();
        }
        let shown =
            |c: char| if obeyed(c) { c.escape_unicode().to_string() } else { c.to_string() };
        text.chars().map(shown).collect()
    }

    /// Formats a unified diff, with colours on a terminal.
    pub(crate) fn diff(self, diff: &str) -> String {
        let diff = self.printable(diff.trim_end_matches('\n'));
        if !self.terminal {
            return diff;
        }
        let coloured = diff.lines().map(|line| match line.as_bytes().first() {
            Some(b'+') => format!("{GREEN}{line}{}", BOLD.1),
            Some(b'-') => format!("{RED}{line}{}", BOLD.1),
            Some(b'd') => self.bold(line),
            Some(_) | None => line.to_owned(),
        });
        coloured.collect::<Vec<_>>().join("\n")
    }

    /// Makes text bold on a terminal.
    pub(crate) fn bold(self, text: &str) -> String {
        if self.terminal { format!("{}{text}{}", BOLD.0, BOLD.1) } else { text.to_owned() }
    }
}

/// Prints a line on standard error. A closed terminal does not matter.
pub fn remark(text: impl Display) {
    drop(writeln!(io::stderr().lock(), "{text}"));
}

/// Escapes control characters in a text of a row, so that it can neither control a terminal nor pass
/// for another row.
pub(crate) fn one_line(text: &str) -> String {
    let shown = |c: char| {
        if c.is_control() { c.escape_unicode().to_string() } else { c.to_string() }
    };
    text.chars().map(shown).collect()
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

    #[test]
    fn tables_line_up_and_have_no_borders() {
        let screen = Screen { json: false, terminal: false };
        let rows = [["a".to_owned(), "1".to_owned()], ["long".to_owned(), "2".to_owned()]];
        let table = screen.table(["NAME", "N"], rows, "nothing");
        assert_eq!(table, "NAME  N\na     1\nlong  2");
        assert_eq!(screen.table(["NAME"], [], "nothing"), "nothing");
    }

    /// Rule: an agent's text cannot control the terminal it is shown on.
    #[test]
    fn an_agents_text_does_not_command_a_terminal() {
        let terminal = Screen { json: false, terminal: true };
        assert_eq!(terminal.printable("a\tb\u{1b}[2J\n\r"), "a\tb\\u{1b}[2J\n\\u{d}");
        let file = Screen { json: false, terminal: false };
        assert_eq!(file.printable("\u{1b}"), "\u{1b}");
        assert!(terminal.diff("+\u{1b}x\n").starts_with("\u{1b}[32m+\\u{1b}x"));
    }

    #[test]
    fn spans_have_a_unit_that_fits() {
        assert_eq!(span(7), "7 ms");
        assert_eq!(span(1_250), "1.2 s");
        assert_eq!(span(600_000), "10 min");
    }
}
