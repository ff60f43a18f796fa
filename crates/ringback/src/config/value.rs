//! The types of keys: how each is parsed from TOML or text, and how it is shown.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use camino::Utf8PathBuf;
use ringback_proto::secret::Secret;
use toml::de::DeValue;
use tracing_subscriber::EnvFilter;

use super::garden::GardenStart;
use super::section::Raw;
use super::table;

/// Shown instead of a secret.
const MASK: &str = "***";

/// A type that a key can have.
pub(super) trait Value: Sized {
    /// Its name in the reference table.
    const KIND: &'static str;
    /// Parses it; the error names what was expected and what was found.
    fn parse(raw: Raw<'_>) -> Result<Self, String>;
    /// Returns its value for display, secrets masked; `None` if it is not set.
    fn show(&self) -> Option<toml::Value>;
}

/// A TCP address of the HOOT01 edge: `tcp://127.0.0.1:5580`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HootEndpoint(pub SocketAddr);

/// A certificate and its key, both PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, with its chain.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

/// Which log lines appear: a checked `tracing` filter such as `info,ringback_store=debug`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFilter(String);

/// The address of an OpenTelemetry collector for traces, plain gRPC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtlpEndpoint(String);

impl fmt::Display for HootEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tcp://{}", self.0)
    }
}

impl LogFormat {
    /// Returns its name in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

impl LogFilter {
    /// Returns the default filter: what an operator should know, nothing per call.
    #[must_use]
    pub fn info() -> Self {
        Self("info".to_owned())
    }

    /// Returns the text of the filter.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl OtlpEndpoint {
    /// Returns the URL.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Value for bool {
    const KIND: &'static str = "true or false";

    fn parse(raw: Raw<'_>) -> Result<Self, String> {
        match raw {
            Raw::Toml(DeValue::Boolean(value)) => Ok(*value),
            Raw::Text("true") => Ok(true),
            Raw::Text("false") => Ok(false),
            Raw::Toml(_) | Raw::Text(_) => Err(mismatch(Self::KIND, raw)),
        }
    }

    fn show(&self) -> Option<toml::Value> {
        Some((*self).into())
    }
}

impl Value for u64 {
    const KIND: &'static str = "whole number";

    fn parse(raw: Raw<'_>) -> Result<Self, String> {
        let parsed = match raw {
            Raw::Toml(DeValue::Integer(value)) => {
                Self::from_str_radix(value.as_str(), value.radix()).ok()
            }
            Raw::Toml(_) => None,
            Raw::Text(text) => text.replace('_', "").parse().ok(),
        };
        // TOML integers are signed; a value that cannot be written back is not accepted.
        parsed
            .filter(|value| i64::try_from(*value).is_ok())
            .ok_or_else(|| mismatch("a whole number, not negative", raw))
    }

    fn show(&self) -> Option<toml::Value> {
        i64::try_from(*self).ok().map(Into::into)
    }
}

impl Value for usize {
    const KIND: &'static str = u64::KIND;

    fn parse(raw: Raw<'_>) -> Result<Self, String> {
        u64::parse(raw)?.try_into().map_err(|_| mismatch("a smaller number", raw))
    }

    fn show(&self) -> Option<toml::Value> {
        i64::try_from(*self).ok().map(Into::into)
    }
}

impl Value for String {
    const KIND: &'static str = "text";

    fn parse(raw: Raw<'_>) -> Result<Self, String> {
        text(raw).map(str::to_owned).ok_or_else(|| mismatch(Self::KIND, raw))
    }

    fn show(&self) -> Option<toml::Value> {
        Some(self.as_str().into())
    }
}

impl Value for PathBuf {
    const KIND: &'static str = "absolute path";

    /// A path in a file must be absolute: it has no obvious base. In a flag or a variable it is
    /// relative to the working directory, as usual in a shell.
    fn parse(raw: Raw<'_>) -> Result<Self, String> {
        let given = text(raw).filter(|text| !text.is_empty());
        let path = given.map(Path::new).ok_or_else(|| mismatch(Self::KIND, raw))?;
        match raw {
            Raw::Toml(_) if path.is_relative() => Err(mismatch(Self::KIND, raw)),
            Raw::Toml(_) => Ok(path.to_owned()),
            Raw::Text(_) => std::path::absolute(path)
                .map_err(|error| format!("cannot make `{}` absolute: {error}", path.display())),
        }
    }

    fn show(&self) -> Option<toml::Value> {
        (!self.as_os_str().is_empty()).then(|| self.display().to_string().into())
    }
}

impl Value for Utf8PathBuf {
    const KIND: &'static str = PathBuf::KIND;

    fn parse(raw: Raw<'_>) -> Result<Self, String> {
        let path = PathBuf::parse(raw)?;
        Self::from_path_buf(path).map_err(|_| mismatch("a path in UTF-8", raw))
    }

    fn show(&self) -> Option<toml::Value> {
        Some(self.as_str().into())
    }
}

impl Value for SocketAddr {
    const KIND: &'static str = "address";

    fn parse(raw: Raw<'_>) -> Result<Self, String> {
        text(raw)
            .and_then(parse_addr)
            .ok_or_else(|| mismatch("an address with a port such as `127.0.0.1:7180`", raw))
    }

    fn show(&self) -> Option<toml::Value> {
        Some(self.to_string().into())
    }
}

impl Value for HootEndpoint {
    const KIND: &'static str = "tcp:// address";

    fn parse(raw: Raw<'_>) -> Result<Self, String> {
        text(raw)
            .and_then(|text| text.strip_prefix("tcp://"))
            .and_then(parse_addr)
            .map(Self)
            .ok_or_else(|| mismatch("an endpoint such as `tcp://127.0.0.1:5580`", raw))
    }

    fn show(&self) -> Option<toml::Value> {
        Some(self.to_string().into())
    }
}

impl Value for TlsFiles {
    const KIND: &'static str = "table";

    fn parse(raw: Raw<'_>) -> Result<Self, String> {
        const EXPECTED: &str = "a table of two files such as `{ cert = \"/etc/ringback/cert.pem\", \
            key = \"/etc/ringback/key.pem\" }`";
        table::entry(raw, EXPECTED, &["cert", "key"], |entry| {
            let file = |name: &str| entry.get(name)?.ok_or_else(|| format!("`{name}` is missing"));
            Ok(Self { cert: file("cert")?, key: file("key")? })
        })
    }

    fn show(&self) -> Option<toml::Value> {
        Some(table::shown([("cert", self.cert.show()), ("key", self.key.show())]))
    }
}

impl Value for LogFormat {
    const KIND: &'static str = "`text` or `json`";

    fn parse(raw: Raw<'_>) -> Result<Self, String> {
        [Self::Text, Self::Json]
            .into_iter()
            .find(|format| text(raw) == Some(format.name()))
            .ok_or_else(|| mismatch(Self::KIND, raw))
    }

    fn show(&self) -> Option<toml::Value> {
        Some(self.name().into())
    }
}

impl Value for GardenStart {
    const KIND: &'static str = "`on_demand`, `always` or `never`";

    fn parse(raw: Raw<'_>) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|start| text(raw) == Some(start.name()))
            .ok_or_else(|| mismatch(Self::KIND, raw))
    }

    fn show(&self) -> Option<toml::Value> {
        Some(self.name().into())
    }
}

impl Value for LogFilter {
    const KIND: &'static str = "log filter";

    fn parse(raw: Raw<'_>) -> Result<Self, String> {
        let filter = text(raw).filter(|text| EnvFilter::try_new(text).is_ok());
        filter.map(|text| Self(text.to_owned())).ok_or_else(|| {
            mismatch("a log filter such as `info` or `info,ringback_store=debug`", raw)
        })
    }

    fn show(&self) -> Option<toml::Value> {
        Some(self.as_str().into())
    }
}

impl Value for OtlpEndpoint {
    const KIND: &'static str = "http:// address";

    /// The error does not repeat the text: people paste credentials into URLs.
    fn parse(raw: Raw<'_>) -> Result<Self, String> {
        const EXPECTED: &str = "expected the plain address of a collector such as \
            `http://127.0.0.1:4317`; to reach one that needs TLS or credentials, run a local collector \
            that forwards to it";
        let rest = text(raw).and_then(|text| text.strip_prefix("http://")).ok_or(EXPECTED)?;
        let host = rest.strip_suffix('/').unwrap_or(rest);
        let is_plain = !host.is_empty() && !host.contains(['@', '/', '?', '#', ' ']);
        if is_plain { Ok(Self(format!("http://{host}"))) } else { Err(EXPECTED.to_owned()) }
    }

    fn show(&self) -> Option<toml::Value> {
        Some(self.as_str().into())
    }
}

impl Value for ringback_music_services::Endpoint {
    const KIND: &'static str = "http:// address";

    fn parse(raw: Raw<'_>) -> Result<Self, String> {
        let text = text(raw).ok_or_else(|| mismatch("a text", raw))?;
        text.parse().map_err(|error: ringback_music_services::EndpointError| error.to_string())
    }

    fn show(&self) -> Option<toml::Value> {
        Some(self.to_string().into())
    }
}

impl<T: Value> Value for Option<T> {
    const KIND: &'static str = T::KIND;

    fn parse(raw: Raw<'_>) -> Result<Self, String> {
        match raw {
            Raw::Text("") => Ok(None),
            Raw::Text(_) | Raw::Toml(_) => T::parse(raw).map(Some),
        }
    }

    fn show(&self) -> Option<toml::Value> {
        self.as_ref().and_then(T::show)
    }
}

impl<T: Value> Value for Vec<T> {
    const KIND: &'static str = "list";

    /// Text is a TOML list if it starts with `[`, else separated by commas.
    fn parse(raw: Raw<'_>) -> Result<Self, String> {
        match raw {
            Raw::Toml(DeValue::Array(items)) => {
                items.iter().map(|item| T::parse(Raw::Toml(item.get_ref()))).collect()
            }
            Raw::Text(text) if text.starts_with('[') => {
                let list = DeValue::parse(text).map_err(|_| mismatch("a list", raw))?;
                Self::parse(Raw::Toml(list.get_ref()))
            }
            Raw::Text("") => Ok(Self::new()),
            Raw::Text(text) => {
                text.split(',').map(|item| T::parse(Raw::Text(item.trim()))).collect()
            }
            Raw::Toml(_) => Err(mismatch("a list", raw)),
        }
    }

    fn show(&self) -> Option<toml::Value> {
        Some(toml::Value::Array(self.iter().filter_map(T::show).collect()))
    }
}

impl Value for Secret {
    const KIND: &'static str = "secret";

    /// The error never repeats the secret.
    fn parse(raw: Raw<'_>) -> Result<Self, String> {
        let parsed = String::parse(raw).map(Self::new);
        parsed.map_err(|_| format!("expected a {} (not shown)", String::KIND))
    }

    fn show(&self) -> Option<toml::Value> {
        Some(MASK.into())
    }
}

pub(super) fn text(raw: Raw<'_>) -> Option<&str> {
    match raw {
        Raw::Toml(value) => value.as_str(),
        Raw::Text(text) => Some(text),
    }
}

fn parse_addr(text: &str) -> Option<SocketAddr> {
    let (host, port) = text.rsplit_once(':')?;
    let host = match host {
        "localhost" => "127.0.0.1",
        "*" => "0.0.0.0",
        address => address,
    };
    format!("{host}:{port}").parse().ok()
}

pub(super) fn mismatch(expected: &str, found: Raw<'_>) -> String {
    match found {
        Raw::Text(text) => format!("expected {expected}, found `{text}`"),
        Raw::Toml(DeValue::String(text)) => format!("expected {expected}, found `{text}`"),
        Raw::Toml(DeValue::Integer(number)) => format!("expected {expected}, found {number}"),
        Raw::Toml(value) => format!("expected {expected}, found a {}", value.type_str()),
    }
}
