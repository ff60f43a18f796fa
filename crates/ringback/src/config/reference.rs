//! The table of all keys for `docs/configuration.md`.

use std::fmt::Write;

use super::{Config, Key};

impl Config {
    /// Returns the reference table in Markdown, one row per key.
    #[must_use]
    pub fn reference_markdown() -> String {
        let mut table = String::from("| key | kind | default | description |\n|---|---|---|---|\n");
        for key in Self::keys() {
            let (name, default) = (key.full_name(), default_text(&key));
            let row = format_args!("| `{name}` | {} | {default} | {} |\n", key.kind, key.doc);
            table.write_fmt(row).expect("a String takes any text");
        }
        table
    }
}

fn default_text(key: &Key) -> String {
    match &key.default {
        Some(value) => format!("`{value}`"),
        None if key.section.is_empty() => "by environment".to_owned(),
        None => "not set".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    const PAGE: &str = include_str!("../../../../docs/configuration.md");

    #[test]
    fn the_page_lists_every_key_with_its_default_and_doc() {
        let table = Config::reference_markdown();
        assert!(PAGE.contains(&table), "docs/configuration.md should contain:\n\n{table}");
    }

    #[test]
    fn every_key_is_documented() {
        for key in Config::keys() {
            assert!(key.doc.ends_with('.'), "`{}`: {}", key.full_name(), key.doc);
        }
    }
}
