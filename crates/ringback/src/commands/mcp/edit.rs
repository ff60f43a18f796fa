//! Changes to other programs' configuration files: adds or removes one entry and keeps everything
//! else byte for byte.

use std::fmt::Write as _;
use std::ops::Range;

use ringback_mcp_wire::{Object, RawValue};

/// Why a file is left alone.
#[derive(Debug, thiserror::Error)]
pub(super) enum EditError {
    /// It has comments, or is malformed.
    #[error("it is not plain JSON: {0}")]
    NotJson(String),
    /// The name is used for something else.
    #[error("`{0}` in it is not an object")]
    NotAnObject(&'static str),
}

/// The place of an entry in a JSON file.
#[derive(Debug, Clone, Copy)]
pub(super) struct JsonPlace {
    /// The object of all servers.
    pub(super) servers: &'static str,
    /// The entry's name in it.
    pub(super) name: &'static str,
}

impl JsonPlace {
    /// Returns the text with the entry.
    pub(super) fn put(self, text: &str, entry: &str) -> Result<String, EditError> {
        let text = if text.trim().is_empty() { "{}\n" } else { text };
        let root = parse(text)?;
        let entry = indented(entry, 2);
        let field = format!("\"{}\": {entry}", self.name);
        let Some(raw) = root.get(self.servers) else {
            let whole = text.find('{').unwrap_or(0)..text.trim_end().len();
            let field = format!("\"{}\": {{\n    {field}\n  }}", self.servers);
            return Ok(insert(text, whole, root.is_empty(), 1, &field));
        };
        let servers = Object::of(raw).map_err(|_| EditError::NotAnObject(self.servers))?;
        Ok(match servers.get(self.name) {
            Some(old) => spliced(text, span(text, old), &entry),
            None => insert(text, span(text, raw), servers.is_empty(), 2, &field),
        })
    }

    /// Returns the text without the entry.
    pub(super) fn take(self, text: &str) -> Result<String, EditError> {
        if text.trim().is_empty() {
            return Ok(text.to_owned());
        }
        let root = parse(text)?;
        let Some(raw) = root.get(self.servers) else { return Ok(text.to_owned()) };
        let servers = Object::of(raw).map_err(|_| EditError::NotAnObject(self.servers))?;
        let fields: Vec<_> = servers.fields().collect();
        let Some(place) = fields.iter().position(|(name, _)| *name == self.name) else {
            return Ok(text.to_owned());
        };
        let (whole, value) = (span(text, raw), span(text, fields[place].1));
        let gone = match (place, fields.len()) {
            (0, 1) => whole.start + 1..whole.end - 1,
            // With the comma behind it.
            (0, _) => {
                let comma = text[value.end..].find(',').map_or(value.end, |at| value.end + at + 1);
                whole.start + 1..comma
            }
            // With the comma before it.
            (_, _) => span(text, fields[place - 1].1).end..value.end,
        };
        Ok(spliced(text, gone, ""))
    }
}

/// A line-based file whose entries are blocks: a first line and the lines that belong to it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    /// The line above all entries; empty without one.
    pub(super) under: &'static str,
    /// The first line of the entry.
    pub(super) head: &'static str,
    /// Whether another line still belongs to it.
    pub(super) continues: fn(&str) -> bool,
}

impl Block {
    /// Returns the text with the entry; `lines` are those after its first.
    pub(super) fn put(self, text: &str, lines: &str) -> String {
        let mut text = self.take(text);
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        let entry = format!("{}\n{lines}", self.head);
        if self.under.is_empty() {
            let gap = if text.is_empty() { "" } else { "\n" };
            return format!("{text}{gap}{entry}");
        }
        let empty = format!("{} {{}}", self.under);
        let mut written = String::with_capacity(text.len() + entry.len());
        let mut is_in = false;
        for line in text.lines() {
            let is_head = !is_in && (line.trim_end() == self.under || line.trim_end() == empty);
            let line = if is_head { self.under } else { line };
            written.write_fmt(format_args!("{line}\n")).expect("a String takes any text");
            if is_head {
                written.push_str(&entry);
                is_in = true;
            }
        }
        if is_in { written } else { format!("{written}{}\n{entry}", self.under) }
    }

    /// Returns the text without the entry.
    pub(super) fn take(self, text: &str) -> String {
        let mut is_gone = false;
        text.split_inclusive('\n')
            .filter(|line| {
                is_gone = line.trim_end() == self.head || (is_gone && (self.continues)(line));
                !is_gone
            })
            .collect()
    }
}

/// Shows the difference between two texts that differ in one place.
pub(super) fn diff(old: &str, new: &str) -> String {
    let (old, new): (Vec<_>, Vec<_>) = (old.lines().collect(), new.lines().collect());
    let n_before = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let rest = old.len().min(new.len()) - n_before;
    let ends = old.iter().rev().zip(new.iter().rev()).take(rest);
    let n_after = ends.take_while(|(a, b)| a == b).count();
    let lines = [
        (' ', &new[n_before.saturating_sub(2)..n_before]),
        ('-', &old[n_before..old.len() - n_after]),
        ('+', &new[n_before..new.len() - n_after]),
        (' ', &new[new.len() - n_after..(new.len() - n_after + 2).min(new.len())]),
    ];
    let mut text = String::new();
    for (mark, lines) in lines {
        for line in lines {
            text.write_fmt(format_args!("{mark} {line}\n")).expect("a String takes any text");
        }
    }
    text
}

fn parse(text: &str) -> Result<Object<'_>, EditError> {
    Object::parse(text.as_bytes()).map_err(|error| EditError::NotJson(error.to_string()))
}

/// Returns the range of a value in the text it was parsed from.
fn span(text: &str, raw: &RawValue) -> Range<usize> {
    let start = raw.get().as_ptr() as usize - text.as_ptr() as usize;
    start..start + raw.get().len()
}

fn spliced(text: &str, span: Range<usize>, with: &str) -> String {
    format!("{}{with}{}", &text[..span.start], &text[span.end..])
}

/// Inserts a field at the end of an object.
fn insert(text: &str, object: Range<usize>, is_empty: bool, depth: usize, field: &str) -> String {
    let close = object.end - 1;
    let end = object.start + text[object.start..close].trim_end().len();
    let (indent, outdent) = ("  ".repeat(depth), "  ".repeat(depth - 1));
    let comma = if is_empty { "" } else { "," };
    let gap = match &text[end..close] {
        gap if gap.contains('\n') => gap.to_owned(),
        _ => format!("\n{outdent}"),
    };
    format!("{}{comma}\n{indent}{field}{gap}{}", &text[..end], &text[close..])
}

/// Indents JSON that spans several lines.
fn indented(json: &str, depth: usize) -> String {
    json.replace('\n', &format!("\n{}", "  ".repeat(depth)))
}

#[cfg(test)]
mod tests {
    use super::{Block, JsonPlace, diff};

    const PLACE: JsonPlace = JsonPlace { servers: "mcpServers", name: "ringback" };
    const ENTRY: &str = "{\n  \"command\": \"r\"\n}";

    #[test]
    fn everything_else_in_a_json_file_stays_as_it_is() {
        for text in [
            "{}",
            "{\n  \"z\": 1.50,\n  \"a\": 12345678901234567890\n}\n",
            "{\"mcpServers\": {}, \"a\": [1,  2]}",
            "{\n  \"mcpServers\": {\n    \"other\": {\"x\": 1e2}\n  },\n  \"b\": null\n}\n",
        ] {
            let put = PLACE.put(text, ENTRY).unwrap();
            let value: serde_json::Value = serde_json::from_str(&put).unwrap();
            assert_eq!(value["mcpServers"]["ringback"]["command"], "r", "{put}");
            for kept in ["1.50", "12345678901234567890", "[1,  2]", "{\"x\": 1e2}", "null"] {
                assert_eq!(text.contains(kept), put.contains(kept), "{put}");
            }
            assert_eq!(PLACE.put(&put, ENTRY).unwrap(), put, "twice is once");
            let taken = PLACE.take(&put).unwrap();
            let value: serde_json::Value = serde_json::from_str(&taken).unwrap();
            assert!(value["mcpServers"].get("ringback").is_none(), "{taken}");
            assert_eq!(taken.contains("other"), text.contains("other"));
        }
        let first = "{\"mcpServers\": {\"ringback\": 1, \"b\": 2}}";
        assert_eq!(PLACE.take(first).unwrap(), "{\"mcpServers\": { \"b\": 2}}");
    }

    #[test]
    fn a_file_with_comments_is_left_alone() {
        assert!(PLACE.put("{ // mine\n}", ENTRY).is_err());
        assert!(PLACE.put("{\"mcpServers\": []}", ENTRY).is_err());
        assert_eq!(PLACE.take("").unwrap(), "");
    }

    #[test]
    fn blocks_come_and_go_between_others() {
        let toml = Block {
            under: "",
            head: "[mcp_servers.ringback]",
            continues: |line| !line.starts_with('['),
        };
        let text = "model = \"x\"\n\n[other]\na = 1\n";
        let put = toml.put(text, "command = \"r\"\n");
        assert!(put.ends_with("[mcp_servers.ringback]\ncommand = \"r\"\n") && put.contains(text));
        assert_eq!(toml.put(&put, "command = \"r\"\n").matches("ringback").count(), 1);
        assert_eq!(toml.take(&put).trim_end(), text.trim_end());

        let yaml = Block {
            under: "extensions:",
            head: "  ringback:",
            continues: |line| line.starts_with("    "),
        };
        let text = "A: 1\nextensions:\n  other:\n    cmd: x\nB: 2\n";
        let put = yaml.put(text, "    cmd: r\n");
        assert_eq!(put, "A: 1\nextensions:\n  ringback:\n    cmd: r\n  other:\n    cmd: x\nB: 2\n");
        assert_eq!(yaml.take(&put), text);
        assert_eq!(yaml.put("", "    cmd: r\n"), "extensions:\n  ringback:\n    cmd: r\n");
    }

    #[test]
    fn a_diff_shows_what_changes_and_a_little_around_it() {
        assert_eq!(diff("a\nb\nc\nd\n", "a\nb\nx\nc\nd\n"), "  a\n  b\n+ x\n  c\n  d\n");
        assert_eq!(diff("", "a\n"), "+ a\n");
    }
}
