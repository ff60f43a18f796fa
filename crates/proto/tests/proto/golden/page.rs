//! A page of golden vectors: sections with one labelled value per line.

use std::fmt::Write as _;

use serde::Serialize;

/// A page under construction.
pub(crate) struct Page {
    text: String,
}

impl Page {
    pub(crate) fn new(about: &str) -> Self {
        Self { text: format!("# {about}\n# Made by `cargo xtask golden`; do not edit.\n") }
    }

    /// Starts the vectors of one value.
    pub(crate) fn section(&mut self, name: &str) -> &mut Self {
        self.line(format_args!("\n[{name}]"))
    }

    /// Adds bytes.
    pub(crate) fn hex(&mut self, label: &str, bytes: &[u8]) -> &mut Self {
        self.line(format_args!("{label:<5} {}", hex(bytes)))
    }

    /// Adds the JSON form, for people and for the edges that use JSON.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> &mut Self {
        let json = serde_json::to_string(value).expect("every value of the wire has a JSON form");
        self.line(format_args!("json  {json}"))
    }

    /// Adds a line of text unchanged.
    pub(crate) fn line(&mut self, line: std::fmt::Arguments<'_>) -> &mut Self {
        self.text.push_str(line.to_string().trim_end_matches(' '));
        self.text.push('\n');
        self
    }

    pub(crate) fn text(self) -> String {
        self.text
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a String takes everything");
        text
    })
}

/// Sorts the keys of all objects, regardless of the map that `serde_json` was built with.
pub(crate) fn sorted(value: serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> =
                fields.into_iter().map(|(name, value)| (name, sorted(value))).collect();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(fields.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}
