//! `[providers.NAME]`: whose models agents may ask, and where the keys for them are.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ringback_egress::{BaseUrl, KeyHeader};
use toml::de::DeValue;

use super::section::{Key, Raw, Section, SetError};
use super::value::Value;

const EXPECTED: &str = "a table such as `{ url = \"https://api.example\", key_file = \"/path\" }`";

const DOC: &str = "A provider whose models agents may ask: `url`, to which the path of each request is appended; \
    `key_file`, whose content only the provider gets (mode 600); `header` for the key, \
    `authorization` (the default), `x-api-key`, `x-goog-api-key` or `api-key`; `ca_file`, roots to \
    trust in place of the system's; `max_requests` for each session.";

/// Providers by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Providers(pub BTreeMap<String, ProviderEntry>);

/// One provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderEntry {
    /// What the path of each request is appended to.
    pub url: BaseUrl,
    /// The file with its key.
    pub key_file: Option<PathBuf>,
    /// Where its provider wants the key.
    pub header: KeyHeader,
    /// The roots to trust.
    pub ca_file: Option<PathBuf>,
    /// Requests that one session may make.
    pub max_requests: Option<u64>,
}

impl Section for Providers {
    fn name(&self) -> &'static str {
        "providers"
    }

    /// One for all: their names are the user's.
    fn keys(&self) -> Vec<Key> {
        let (section, name) = (self.name(), "NAME");
        vec![Key { section, name, kind: "table", default: None, doc: DOC }]
    }

    fn set(&mut self, key: &str, raw: Raw<'_>) -> Result<(), SetError> {
        let entry = ProviderEntry::parse(raw).map_err(SetError::Invalid)?;
        self.0.insert(key.to_owned(), entry);
        Ok(())
    }

    fn show(&self, key: &str) -> Option<Option<toml::Value>> {
        self.0.get(key).map(Value::show)
    }

    fn table(&self) -> toml::Table {
        let shown =
            |(name, model): (&String, &ProviderEntry)| Some((name.clone(), Value::show(model)?));
        self.0.iter().filter_map(shown).collect()
    }
}

impl Value for BaseUrl {
    const KIND: &'static str = "http:// or https:// address";

    fn parse(raw: Raw<'_>) -> Result<Self, String> {
        String::parse(raw)?.parse().map_err(|error: ringback_egress::UrlError| error.to_string())
    }

    fn show(&self) -> Option<toml::Value> {
        Some(self.to_string().into())
    }
}

impl Value for KeyHeader {
    const KIND: &'static str = "`authorization`, `x-api-key`, `x-goog-api-key` or `api-key`";

    fn parse(raw: Raw<'_>) -> Result<Self, String> {
        let name = String::parse(raw)?;
        let found = Self::ALL.into_iter().find(|header| header.name() == name);
        found.ok_or_else(|| format!("expected {}, found `{name}`", Self::KIND))
    }

    fn show(&self) -> Option<toml::Value> {
        Some(self.name().into())
    }
}

impl Value for ProviderEntry {
    const KIND: &'static str = "table";

    /// In text it is an inline table of TOML.
    fn parse(raw: Raw<'_>) -> Result<Self, String> {
        let table = match raw {
            Raw::Toml(DeValue::Table(table)) => table,
            Raw::Toml(_) => return Err(format!("expected {EXPECTED}")),
            Raw::Text(text) => {
                let parsed = DeValue::parse(text).map_err(|_| format!("expected {EXPECTED}"))?;
                return Self::parse(Raw::Toml(parsed.get_ref()));
            }
        };
        let (mut url, mut key_file, mut header) = (None, None, KeyHeader::default());
        let (mut ca_file, mut max_requests) = (None, None);
        for (name, value) in table {
            let (name, raw) = (name.get_ref().as_ref(), Raw::Toml(value.get_ref()));
            let set = match name {
                "url" => Value::parse(raw).map(|value| url = Some(value)),
                "key_file" => Value::parse(raw).map(|value| key_file = Some(value)),
                "header" => Value::parse(raw).map(|value| header = value),
                "ca_file" => Value::parse(raw).map(|value| ca_file = Some(value)),
                "max_requests" => Value::parse(raw).map(|value| max_requests = Some(value)),
                unknown => {
                    return Err(format!(
                        "there is no `{unknown}`, only `url`, `key_file`, `header`, `ca_file` and \
                         `max_requests`"
                    ));
                }
            };
            set.map_err(|reason| format!("`{name}`: {reason}"))?;
        }
        let url = url.ok_or("`url` is missing: where the model is")?;
        Ok(Self { url, key_file, header, ca_file, max_requests })
    }

    fn show(&self) -> Option<toml::Value> {
        let entries = [
            ("url", self.url.show()),
            ("key_file", self.key_file.show()),
            ("header", self.key_file.as_ref().and_then(|_| self.header.show())),
            ("ca_file", self.ca_file.show()),
            ("max_requests", self.max_requests.show()),
        ];
        let shown = entries.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        Some(toml::Value::Table(shown.collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_read_whole() {
        let text = r#"{ url = "https://api.example/", key_file = "/k", header = "x-api-key", max_requests = 7 }"#;
        let provider = ProviderEntry::parse(Raw::Text(text)).unwrap();
        assert_eq!(provider.url.to_string(), "https://api.example");
        assert_eq!(provider.key_file, Some(PathBuf::from("/k")));
        assert_eq!((provider.header, provider.max_requests), (KeyHeader::XApiKey, Some(7)));
        let shown = provider.show().unwrap();
        assert_eq!(ProviderEntry::parse(Raw::Text(&shown.to_string())).unwrap(), provider);
        let least = ProviderEntry::parse(Raw::Text("{ url = 'http://127.0.0.1:1' }")).unwrap();
        assert_eq!((least.key_file, least.header), (None, KeyHeader::Authorization));
    }

    #[test]
    fn what_is_wrong_with_a_model_is_said_without_what_was_pasted_into_its_url() {
        for (text, expected) in [
            ("{}", "`url` is missing"),
            ("3", "a table such as"),
            ("{ url = 'api.example' }", "`url`: expected `http://HOST`"),
            ("{ url = 'https://me:secret@api.example' }", "`url`: expected"),
            ("{ url = 'https://a.example', key_file = 'relative' }", "`key_file`: "),
            ("{ url = 'https://a.example', header = 'cookie' }", "`x-goog-api-key`"),
            ("{ url = 'https://a.example', key = 'secret' }", "there is no `key`"),
            ("{ url = 'https://a.example', max_requests = -1 }", "`max_requests`: "),
        ] {
            let error = ProviderEntry::parse(Raw::Text(text)).unwrap_err();
            assert!(error.contains(expected) && !error.contains("secret"), "{text}: {error}");
        }
    }
}
