//! Tables within a section: entries under names that the user chose, and the keys of an entry.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};

use super::section::Raw;
use super::value::Value;

/// An entry: a table with known keys.
pub(super) struct Entry<'a>(&'a DeTable<'a>);

impl Entry<'_> {
    /// Returns the value of a key, if it is set.
    pub(super) fn get<T: Value>(&self, key: &str) -> Result<Option<T>, String> {
        let Some(value) = self.0.get(key) else { return Ok(None) };
        let parsed = T::parse(Raw::Toml(value.get_ref()));
        parsed.map(Some).map_err(|reason| format!("`{key}`: {reason}"))
    }
}

/// Parses one entry; text is parsed as an inline TOML table.
pub(super) fn entry<T>(
    raw: Raw<'_>,
    expected: &str,
    known: &[&str],
    parse: impl FnOnce(&Entry<'_>) -> Result<T, String>,
) -> Result<T, String> {
    with_table(raw, expected, |table| {
        let mut keys = table.keys().map(|key| key.get_ref().as_ref());
        match keys.find(|key: &&str| !known.contains(key)) {
            Some(unknown) => {
                let known = known.join("`, `");
                Err(format!("unknown key `{unknown}`; known keys: `{known}`"))
            }
            None => parse(&Entry(table)),
        }
    })
}

/// Parses a table of entries by name; text is parsed as an inline TOML table.
pub(super) fn named<T>(
    raw: Raw<'_>,
    expected: &str,
    parse: impl Fn(Raw<'_>) -> Result<T, String>,
) -> Result<BTreeMap<String, T>, String> {
    with_table(raw, expected, |table| {
        let parsed = table.iter().map(|(name, value)| {
            let name = name.get_ref().as_ref();
            let parsed = parse(Raw::Toml(value.get_ref()));
            let parsed = parsed.map_err(|reason| format!("`{name}`: {reason}"))?;
            Ok((name.to_owned(), parsed))
        });
        parsed.collect()
    })
}

/// Returns an entry for display, without the keys that are not set.
pub(super) fn shown<const N: usize>(keys: [(&str, Option<toml::Value>); N]) -> toml::Value {
    let set = keys.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    toml::Value::Table(set.collect())
}

/// Returns entries by name for display; `None` if the table is empty.
pub(super) fn shown_by_name<N: ToString, T>(
    entries: &BTreeMap<N, T>,
    show: impl Fn(&T) -> toml::Value,
) -> Option<toml::Value> {
    let shown = entries.iter().map(|(name, entry)| (name.to_string(), show(entry)));
    (!entries.is_empty()).then(|| toml::Value::Table(shown.collect()))
}

/// The error does not repeat what was found: entries can hold secrets.
fn with_table<T>(
    raw: Raw<'_>,
    expected: &str,
    parse: impl FnOnce(&DeTable<'_>) -> Result<T, String>,
) -> Result<T, String> {
    let refused = || format!("expected {expected}");
    match raw {
        Raw::Toml(DeValue::Table(table)) => parse(table),
        Raw::Toml(_) => Err(refused()),
        Raw::Text(text) => {
            let value = DeValue::parse(text).map_err(|_| refused())?;
            let table = value.get_ref().as_table().ok_or_else(refused)?;
            parse(table)
        }
    }
}
