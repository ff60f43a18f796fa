//! The tables of all keys and of their old names, for `docs/configuration.md`.

use std::fmt::Write;

use super::{Config, Key, old_names};

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

    /// Returns the table of old names in Markdown, one row per key.
    #[must_use]
    pub fn renamed_markdown() -> String {
        let rows = old_names::RENAMED.map(|(old, new)| format!("| `{old}` | `{new}` |\n"));
        format!("| old name | name |\n|---|---|\n{}", rows.concat())
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
    fn the_page_lists_every_old_name() {
        let table = Config::renamed_markdown();
        assert!(PAGE.contains(&table), "docs/configuration.md should contain:\n\n{table}");
    }

    #[test]
    fn every_key_is_documented() {
        for key in Config::keys() {
            assert!(key.doc.ends_with('.'), "`{}`: {}", key.full_name(), key.doc);
        }
    }

    /// Rule: a key is snake_case without a unit; only `clientTools` keeps its spelling.
    #[test]
    fn keys_are_snake_case_without_units() {
        const UNITS: [&str; 9] =
            ["ms", "millis", "secs", "seconds", "minutes", "bytes", "mib", "percent", "usd"];
        let keys = Config::keys()
            .into_iter()
            .filter(|key| !matches!(key.section, "clientTools" | "providers"));
        for name in keys.map(|key| key.full_name()) {
            assert!(!name.contains(|c: char| c.is_uppercase()), "{name}");
            assert!(!name.split(['.', '_']).any(|word| UNITS.contains(&word)), "{name}");
        }
    }
}
