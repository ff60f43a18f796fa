//! `[providers.NAME]`: providers whose models agents may use, their keys and prices; `[secrets]`:
//! how secrets are obtained.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ringback_egress::{BaseUrl, KeyHeader, Price, Prices, SecretName, SecretNameError};
use ringback_proto::money::{MicroUsd, MicroUsdError};
use toml::de::DeValue;

use super::known::{Address, KnownProvider};
use super::quantity::Millis;
use super::section::{Key, Raw, Section, SetError, section};
use super::table::{self, Entry};
use super::value::Value;

const EXPECTED: &str = "a table such as `{ url = \"https://api.example\", secret = \"mine\" }`";

const KEYS: [&str; 7] =
    ["url", "secret", "key_file", "header", "ca_file", "max_requests", "prices"];

const PRICES_EXPECTED: &str = "prices such as `{ \"model*\" = { input = 3.00, output = 15.00 } }`, in dollars per million tokens";

const DOC: &str = "A provider whose models agents may use: `url`, to which the path of each request is \
    appended; `secret`, the name of a secret stored with `ringback secret`, or `key_file`, whose \
    content only the provider gets (mode 600); `header` for the key, `authorization` (the default), \
    `x-api-key`, `x-goog-api-key` or `api-key`; `ca_file`, roots to trust instead of the system's; \
    `max_requests` for each session; `prices.\"MODEL*\"` with `input` and `output`, in dollars per \
    million tokens. `anthropic`, `google`, `openai`, `openrouter`, `ollama` and `lmstudio` have a \
    default `url` and `header`; `azure`, `bedrock` and `vertex` have a default `header`. All but \
    `ollama` and `lmstudio` use the secret of the same name.";

/// Time for a person to find the password manager's window.
const COMMAND_TIMEOUT: Millis = Millis::secs(20);

/// Agents make requests every few seconds; a changed key is used within a minute.
const COMMAND_KEPT: Millis = Millis::secs(60);

section! {
    /// How secrets are obtained (`ringback secret`).
    pub struct Secrets = "secrets" {
        /// Time limit of a command that prints a secret.
        pub command_timeout: Millis = COMMAND_TIMEOUT,
        /// How long its output is used before the command runs again.
        pub command_kept: Millis = COMMAND_KEPT,
    }
}

/// Providers by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Providers(pub BTreeMap<String, ProviderEntry>);

/// One provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderEntry {
    /// The base URL of requests.
    pub url: BaseUrl,
    /// The file with its key.
    pub key_file: Option<PathBuf>,
    /// The secret that is its key.
    pub secret: Option<SecretName>,
    /// The header for the key.
    pub header: KeyHeader,
    /// The roots to trust.
    pub ca_file: Option<PathBuf>,
    /// Requests that one session may make.
    pub max_requests: Option<u64>,
    /// The prices of its models.
    pub prices: Prices,
}

impl ProviderEntry {
    /// Returns a known provider that has an address, with the secret of the same name.
    #[must_use]
    pub fn known(name: &str) -> Option<Self> {
        let known = KnownProvider::of(name)?;
        let Address::Fixed(url) = known.address else { return None };
        Some(Self {
            url: url.parse().ok()?,
            key_file: None,
            secret: name.parse().ok().filter(|_| known.has_key),
            header: known.header,
            ca_file: None,
            max_requests: None,
            prices: Prices::default(),
        })
    }
}

impl Section for Providers {
    fn name(&self) -> &'static str {
        "providers"
    }

    /// One key for all: their names are chosen by the user.
    fn keys(&self) -> Vec<Key> {
        let (section, name) = (self.name(), "NAME");
        vec![Key { section, name, kind: "table", default: None, doc: DOC }]
    }

    fn set(&mut self, key: &str, raw: Raw<'_>) -> Result<(), SetError> {
        let entry = parse(Some(key), raw).map_err(SetError::Invalid)?;
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

impl Value for SecretName {
    const KIND: &'static str = "name of a secret";

    fn parse(raw: Raw<'_>) -> Result<Self, String> {
        String::parse(raw)?.parse().map_err(|error: SecretNameError| error.to_string())
    }

    fn show(&self) -> Option<toml::Value> {
        Some(self.as_str().into())
    }
}

impl Value for Prices {
    const KIND: &'static str = "table of prices by model";

    fn parse(raw: Raw<'_>) -> Result<Self, String> {
        let known = ["input", "output", "cache_read", "cache_write"];
        let price = |raw: Raw<'_>| table::entry(raw, PRICES_EXPECTED, &known, price);
        table::named(raw, PRICES_EXPECTED, price).map(Self)
    }

    fn show(&self) -> Option<toml::Value> {
        table::shown_by_name(&self.0, |price| {
            table::shown([
                ("input", price.input.show()),
                ("output", price.output.show()),
                ("cache_read", price.cache_read.show()),
                ("cache_write", price.cache_write.show()),
            ])
        })
    }
}

/// Dollars: a number, taken as written so that nothing is rounded, or text such as `$2.50`.
impl Value for MicroUsd {
    const KIND: &'static str = "dollars";

    fn parse(raw: Raw<'_>) -> Result<Self, String> {
        let text = match raw {
            Raw::Text(text) => text,
            Raw::Toml(DeValue::Integer(number)) if number.radix() == 10 => number.as_str(),
            Raw::Toml(DeValue::Float(number)) => number.as_str(),
            Raw::Toml(DeValue::String(text)) => text.as_ref(),
            Raw::Toml(_) => return Err(MicroUsdError.to_string()),
        };
        let amount = text.strip_prefix('$').unwrap_or(text);
        amount.parse().map_err(|error: MicroUsdError| error.to_string())
    }

    fn show(&self) -> Option<toml::Value> {
        Some(format!("${self}").into())
    }
}

fn price(entry: &Entry<'_>) -> Result<Price, String> {
    let missing = || format!("`input` and `output` are required, as in {PRICES_EXPECTED}");
    Ok(Price {
        input: entry.get("input")?.ok_or_else(missing)?,
        output: entry.get("output")?.ok_or_else(missing)?,
        cache_read: entry.get("cache_read")?,
        cache_write: entry.get("cache_write")?,
    })
}

impl Value for ProviderEntry {
    const KIND: &'static str = "table";

    fn parse(raw: Raw<'_>) -> Result<Self, String> {
        parse(None, raw)
    }

    fn show(&self) -> Option<toml::Value> {
        let has_key = self.key_file.is_some() || self.secret.is_some();
        Some(table::shown([
            ("url", self.url.show()),
            ("key_file", self.key_file.show()),
            ("secret", self.secret.show()),
            ("header", self.header.show().filter(|_| has_key)),
            ("ca_file", self.ca_file.show()),
            ("max_requests", self.max_requests.show()),
            ("prices", self.prices.show()),
        ]))
    }
}

/// Parses the provider of this name.
fn parse(name: Option<&str>, raw: Raw<'_>) -> Result<ProviderEntry, String> {
    table::entry(raw, EXPECTED, &KEYS, |entry| provider(name, entry))
}

fn provider(name: Option<&str>, entry: &Entry<'_>) -> Result<ProviderEntry, String> {
    let (url, key_file) = (entry.get::<BaseUrl>("url")?, entry.get::<PathBuf>("key_file")?);
    let secret: Option<SecretName> = entry.get("secret")?;
    if key_file.is_some() && secret.is_some() {
        return Err("`key_file` and `secret` exclude each other; set one of them".to_owned());
    }
    let known = name.and_then(KnownProvider::of);
    // With a URL of its own, an entry does not inherit from a provider that has one.
    let known = known.filter(|known| url.is_none() || known.advice().is_some());
    let usual_header = known.map(|known| known.header).unwrap_or_default();
    let has_key = known.is_some_and(|known| known.has_key && key_file.is_none());
    let usual_secret = || name.filter(|_| has_key)?.parse().ok();
    let usual_url = || known.and_then(|known| ProviderEntry::known(known.name)).map(|it| it.url);
    let missing = || match known.and_then(KnownProvider::advice) {
        Some(advice) => format!("`url` is missing: {advice}"),
        None => "`url` is missing: the address of the provider".to_owned(),
    };
    Ok(ProviderEntry {
        url: url.or_else(usual_url).ok_or_else(missing)?,
        secret: secret.or_else(usual_secret),
        header: entry.get("header")?.unwrap_or(usual_header),
        ca_file: entry.get("ca_file")?,
        max_requests: entry.get("max_requests")?,
        prices: entry.get("prices")?.unwrap_or_default(),
        key_file,
    })
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

    /// Rule: a price is read as written, not as the nearest floating-point number.
    #[test]
    fn prices_are_exact() {
        let text = r#"{ url = "https://a.example", prices = { "big*" = { input = 3, output = 15.10, cache_read = "0.3" } } }"#;
        let provider = ProviderEntry::parse(Raw::Text(text)).unwrap();
        let price = provider.prices.of("big-1").unwrap();
        assert_eq!((price.input, price.output), (MicroUsd(3_000_000), MicroUsd(15_100_000)));
        assert_eq!((price.cache_read, price.cache_write), (Some(MicroUsd(300_000)), None));
        let shown = provider.show().unwrap().to_string();
        assert_eq!(ProviderEntry::parse(Raw::Text(&shown)).unwrap(), provider);
        for (prices, expected) in [
            ("3", "expected prices such as"),
            ("{ a = 3 }", "`a`: expected prices"),
            ("{ a = { input = 1 } }", "`a`: `input` and `output` are required"),
            ("{ a = { input = -1, output = 1 } }", "`a`: `input`: expected dollars"),
            ("{ a = { input = 1e3, output = 1 } }", "`a`: `input`: expected dollars"),
            ("{ a = { input = 1, out = 1 } }", "unknown key `out`"),
        ] {
            let text = format!("{{ url = 'https://a.example', prices = {prices} }}");
            let error = ProviderEntry::parse(Raw::Text(&text)).unwrap_err();
            assert!(error.contains(expected), "{prices}: {error}");
        }
    }

    /// REQ: "`ringback secret set anthropic`" and `provider = "anthropic"` are enough.
    #[test]
    fn a_provider_that_everybody_knows_needs_no_more_than_its_name() {
        let named = |name, text| parse(Some(name), Raw::Text(text));
        for (name, host, header) in [
            ("anthropic", "https://api.anthropic.com", KeyHeader::XApiKey),
            ("openai", "https://api.openai.com", KeyHeader::Authorization),
            ("google", "https://generativelanguage.googleapis.com", KeyHeader::XGoogApiKey),
        ] {
            let provider = named(name, "{}").unwrap();
            assert_eq!(Some(provider.clone()), ProviderEntry::known(name));
            assert_eq!((provider.url.to_string().as_str(), provider.header), (host, header));
            assert_eq!(provider.secret.unwrap().as_str(), name);
        }
        for name in ["ollama", "lmstudio"] {
            let here = named(name, "{}").unwrap();
            assert!(here.secret.is_none() && here.url.to_string().starts_with("http://127."));
        }
        // One that belongs to an account says which key to set, and then is like the others.
        for name in ["azure", "bedrock", "vertex"] {
            let error = named(name, "{}").unwrap_err();
            assert!(error.contains(&format!("`url` in `[providers.{name}]`")), "{error}");
            let own = named(name, "{ url = 'https://models.example' }").unwrap();
            assert_eq!(own.secret.unwrap().as_str(), name);
        }
        let azure = named("azure", "{ url = 'https://models.example' }").unwrap();
        assert_eq!(azure.header, KeyHeader::ApiKey);
        let other = named("anthropic", "{ secret = 'work', max_requests = 3 }").unwrap();
        assert_eq!(other.secret.unwrap().as_str(), "work");
        let file = named("anthropic", "{ key_file = '/k' }").unwrap();
        assert!(file.secret.is_none() && file.header == KeyHeader::XApiKey);
        let own = named("anthropic", "{ url = 'http://127.0.0.1:1' }").unwrap();
        assert!(own.secret.is_none() && own.header == KeyHeader::Authorization);
        assert!(named("mine", "{}").unwrap_err().contains("`url` is missing"));
    }

    #[test]
    fn what_is_wrong_with_a_model_is_said_without_what_was_pasted_into_its_url() {
        for (text, expected) in [
            ("{}", "`url` is missing"),
            ("3", "a table such as"),
            ("{ url = 'api.example' }", "`url`: expected `http://HOST`"),
            ("{ url = 'https://me:pasted@api.example' }", "`url`: expected"),
            ("{ url = 'https://a.example', key_file = 'relative' }", "`key_file`: "),
            ("{ url = 'https://a.example', header = 'cookie' }", "`x-goog-api-key`"),
            ("{ url = 'https://a.example', key = 'pasted' }", "unknown key `key`"),
            ("{ url = 'https://a.example', max_requests = -1 }", "`max_requests`: "),
            ("{ url = 'https://a.example', secret = '../a' }", "`secret`: a secret's name must"),
            ("{ url = 'https://a.example', secret = 'a', key_file = '/k' }", "set one of them"),
        ] {
            let error = ProviderEntry::parse(Raw::Text(text)).unwrap_err();
            assert!(error.contains(expected) && !error.contains("pasted"), "{text}: {error}");
        }
    }
}
