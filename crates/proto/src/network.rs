//! What an agent may reach: a policy, the rules in it, and the places that it is asked about.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

pub use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rules in one policy: a person reads them all.
pub const RULES_MAX: usize = 64;
/// The longest name there is.
const NAME_BYTES_MAX: usize = 253;
/// The longest part of a name between dots.
const LABEL_BYTES_MAX: usize = 63;
/// The widest range of addresses in one rule; whoever wants more says `full`.
const PREFIX_MIN: u8 = 8;

/// How far a session may reach; each mode includes those before it.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum NetworkMode {
    /// Nothing.
    #[default]
    None,
    /// The model of its agent.
    Model,
    /// The places that are listed.
    Allow,
    /// Every public place.
    Full,
}

/// What a session may reach.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkPolicy {
    /// How far.
    pub mode: NetworkMode,
    /// The places, as `HOST:PORT`: for `allow` all there are, for `full` the addresses of private
    /// networks that may be reached too. At most 64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<HostRule>>")]
    pub allow: Vec<HostRule>,
}

/// Places that may be reached: `example.org:443`, `*.example.org:443` (what is below it, not itself),
/// `10.1.2.3:80`, `10.0.0.0/8:*`, `[fd00::1]:443`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostRule {
    /// Which hosts.
    pub host: HostPattern,
    /// Which port; every one if absent.
    pub port: Option<u16>,
}

/// Hosts that a rule is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum HostPattern {
    /// The one of this name.
    Name(HostName),
    /// Those whose names end with this one, not itself.
    Below(HostName),
    /// Those with such an address.
    Address(IpNet),
}

/// The name of a host, in small letters and without a dot at its end. It cannot be read as an
/// address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostName(String);

/// A host, as somebody asks for it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// By its name.
    Name(HostName),
    /// By its address.
    Address(IpAddr),
}

/// Where a connection is to go.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Destination {
    /// To which host.
    pub host: Host,
    /// To which port.
    pub port: u16,
}

/// Why a text is no policy, or no part of one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// There is no such mode.
    #[error("`{0}` is no network; there are `none`, `model`, `allow` and `full`")]
    Mode(String),
    /// A rule without a port.
    #[error("`{0}` has no port; say `{0}:443`, or `{0}:*` for every port")]
    NoPort(String),
    /// A port that is none.
    #[error("`{0}` is no port: a number from 1 to 65535, or `*`")]
    Port(String),
    /// A host that is none.
    #[error(
        "`{0}` is no host: a name such as `example.org` or `*.example.org`, or an address such as \
         `10.1.2.3`, `10.0.0.0/8` or `[fd00::1]`"
    )]
    Host(String),
    /// A rule for nearly everything.
    #[error("`{0}` is too wide; `full` is the network for every public place")]
    TooWide(String),
    /// Too many rules.
    #[error("a network has at most {RULES_MAX} rules; `*.example.org:443` is one for many hosts")]
    TooMany,
    /// Rules that say nothing.
    #[error("with `{0}` nothing can be listed; say `allow`")]
    NothingToList(NetworkMode),
}

impl NetworkMode {
    /// All there are.
    pub const ALL: [Self; 4] = [Self::None, Self::Model, Self::Allow, Self::Full];

    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Model => "model",
            Self::Allow => "allow",
            Self::Full => "full",
        }
    }

    /// Whether there is a door to other places than a model.
    #[must_use]
    pub const fn has_door(self) -> bool {
        match self {
            Self::None | Self::Model => false,
            Self::Allow | Self::Full => true,
        }
    }
}

impl NetworkPolicy {
    /// A policy without a list.
    #[must_use]
    pub const fn of(mode: NetworkMode) -> Self {
        Self { mode, allow: Vec::new() }
    }

    /// Whether it says what it can mean.
    ///
    /// # Errors
    /// A list that is too long, or where there is nothing to list.
    pub fn check(&self) -> Result<(), NetworkError> {
        if self.allow.len() > RULES_MAX {
            return Err(NetworkError::TooMany);
        }
        if !self.allow.is_empty() && !self.mode.has_door() {
            return Err(NetworkError::NothingToList(self.mode));
        }
        Ok(())
    }
}

impl HostName {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this name is part of the domain `other`, and not `other` itself.
    #[must_use]
    pub fn is_below(&self, other: &Self) -> bool {
        self.0.strip_suffix(&other.0).is_some_and(|rest| rest.ends_with('.'))
    }
}

impl Destination {
    /// A host as it stands in a URL, an IPv6 address in brackets, and a port.
    ///
    /// # Errors
    /// A host that is none, or port 0.
    pub fn new(host: &str, port: u16) -> Result<Self, NetworkError> {
        if port == 0 {
            return Err(NetworkError::Port(port.to_string()));
        }
        let host = match host.strip_prefix('[') {
            Some(rest) => {
                let address = rest.strip_suffix(']').and_then(|text| text.parse().ok());
                let address = address.map(IpAddr::V6);
                Host::Address(address.ok_or_else(|| NetworkError::Host(shortened(host)))?)
            }
            None => match host.parse() {
                Ok(address) => Host::Address(IpAddr::V4(address)),
                Err(_) => Host::Name(host.parse()?),
            },
        };
        // An IPv4 address in the clothes of an IPv6 address is one, to the system as well.
        let host = match host {
            Host::Address(address) => Host::Address(address.to_canonical()),
            Host::Name(name) => Host::Name(name),
        };
        Ok(Self { host, port })
    }
}

impl FromStr for HostName {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        let is_label = |label: &str| {
            (1..=LABEL_BYTES_MAX).contains(&label.len())
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        };
        // `127.1`, `0x7f.1` and `2130706433` are addresses to many a resolver.
        let is_number = |label: &str| {
            label.bytes().all(|byte| byte.is_ascii_digit()) || label.starts_with("0x")
        };
        let is_name = name.len() <= NAME_BYTES_MAX
            && name.split('.').all(is_label)
            && !name.rsplit('.').next().is_some_and(is_number);
        if is_name { Ok(Self(name)) } else { Err(NetworkError::Host(shortened(text))) }
    }
}

impl FromStr for HostRule {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let (host, port) = match text.rsplit_once(':') {
            // A colon inside of brackets is part of the address.
            Some((_, port)) if port.contains(']') => {
                return Err(NetworkError::NoPort(shortened(text)));
            }
            Some((host, port)) => (host, port),
            None => return Err(NetworkError::NoPort(shortened(text))),
        };
        let port = match port {
            "*" => None,
            port => match port.parse() {
                Ok(port) if port != 0 => Some(port),
                Ok(_) | Err(_) => return Err(NetworkError::Port(shortened(port))),
            },
        };
        Ok(Self { host: host.parse()?, port })
    }
}

impl FromStr for HostPattern {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        if text == "*" {
            return Err(NetworkError::TooWide(text.to_owned()));
        }
        if let Some(domain) = text.strip_prefix("*.") {
            return domain.parse().map(Self::Below);
        }
        let in_brackets = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let net = match in_brackets {
            Some(inner) => net(inner).filter(|net| matches!(net, IpNet::V6(_))),
            None => net(text).filter(|net| matches!(net, IpNet::V4(_))),
        };
        match net {
            Some(net) if net.prefix_len() < PREFIX_MIN => {
                Err(NetworkError::TooWide(shortened(text)))
            }
            Some(net) => Ok(Self::Address(net.trunc())),
            None if in_brackets.is_some() => Err(NetworkError::Host(shortened(text))),
            None => text.parse().map(Self::Name),
        }
    }
}

impl FromStr for NetworkMode {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let found = Self::ALL.into_iter().find(|mode| mode.as_str() == text);
        found.ok_or_else(|| NetworkError::Mode(shortened(text)))
    }
}

/// A mode, and then its rules, with spaces between them.
impl FromStr for NetworkPolicy {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let mut words = text.split_ascii_whitespace();
        let mode = words.next().unwrap_or_default().parse()?;
        let policy = Self { mode, allow: words.map(str::parse).collect::<Result<_, _>>()? };
        policy.check()?;
        Ok(policy)
    }
}

impl fmt::Display for NetworkMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for NetworkPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.mode)?;
        self.allow.iter().try_for_each(|rule| write!(f, " {rule}"))
    }
}

impl fmt::Display for HostRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) => write!(f, "{}:{port}", self.host),
            None => write!(f, "{}:*", self.host),
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_one = |net: &IpNet| net.prefix_len() == net.max_prefix_len();
        match self {
            Self::Name(name) => write!(f, "{name}"),
            Self::Below(name) => write!(f, "*.{name}"),
            Self::Address(net @ IpNet::V4(_)) if is_one(net) => write!(f, "{}", net.addr()),
            Self::Address(net @ IpNet::V6(_)) if is_one(net) => write!(f, "[{}]", net.addr()),
            Self::Address(net @ IpNet::V4(_)) => write!(f, "{net}"),
            Self::Address(net @ IpNet::V6(_)) => write!(f, "[{net}]"),
        }
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Name(name) => write!(f, "{name}:{}", self.port),
            Host::Address(address) => {
                write!(f, "{}", (std::net::SocketAddr::new(*address, self.port)))
            }
        }
    }
}

impl Serialize for HostRule {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for HostRule {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for HostRule {
    fn schema_name() -> Cow<'static, str> {
        "HostRule".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

/// An address, or a range of them.
fn net(text: &str) -> Option<IpNet> {
    let found = text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from)).ok()?;
    match found {
        // Nobody is asked for by such an address: see `Destination::new`.
        IpNet::V6(net) if net.addr().to_ipv4_mapped().is_some() => None,
        IpNet::V4(_) | IpNet::V6(_) => Some(found),
    }
}

/// What an error repeats of a text that a stranger chose.
fn shortened(text: &str) -> String {
    text.chars().take(NAME_BYTES_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_written_as_it_is_read() {
        for text in [
            "example.org:443",
            "*.example.org:*",
            "localhost:8080",
            "my_host-1.internal:1",
            "10.1.2.3:80",
            "10.0.0.0/8:65535",
            "[fd00::1]:443",
            "[fd00::/8]:*",
        ] {
            assert_eq!(text.parse::<HostRule>().unwrap().to_string(), text);
        }
        let rule: HostRule = "EXAMPLE.org.:443".parse().unwrap();
        assert_eq!(rule.to_string(), "example.org:443");
        let rule: HostRule = "10.1.2.3/8:1".parse().unwrap();
        assert_eq!(rule.to_string(), "10.0.0.0/8:1", "of a range only the start counts");
    }

    /// Rule: what is not clearly a place is refused, and the error says what to write.
    #[test]
    fn what_is_no_rule_is_refused_with_what_to_write() {
        for (text, part) in [
            ("example.org", "say `example.org:443`"),
            ("[fd00::1]", "has no port"),
            ("example.org:0", "is no port"),
            ("example.org:https", "is no port"),
            ("*:443", "`full`"),
            ("0.0.0.0/0:443", "`full`"),
            ("[::/0]:443", "`full`"),
            ("*.*.org:443", "is no host"),
            ("ex*mple.org:443", "is no host"),
            (":443", "is no host"),
            ("http://example.org:443", "is no host"),
            ("fd00::1:443", "is no host"),
            ("[10.0.0.1]:443", "is no host"),
            ("[::ffff:10.0.0.1]:443", "is no host"),
            ("127.1:443", "is no host"),
            ("0x7f000001:443", "is no host"),
            ("2130706433:443", "is no host"),
            ("user@example.org:443", "is no host"),
            ("exämple.org:443", "is no host"),
            ("a..b:443", "is no host"),
        ] {
            let refused = text.parse::<HostRule>().unwrap_err().to_string();
            assert!(refused.contains(part), "{text}: {refused}");
        }
        assert!(format!("{}:1", "a.".repeat(130)).parse::<HostRule>().is_err());
        assert!(format!("{}.org:1", "a".repeat(64)).parse::<HostRule>().is_err());
    }

    #[test]
    fn a_policy_is_written_as_it_is_read() {
        for text in ["none", "model", "allow", "full", "allow a.org:1 *.b.org:*", "full 10.0.0.1:*"]
        {
            assert_eq!(text.parse::<NetworkPolicy>().unwrap().to_string(), text);
        }
        for (text, part) in
            [("", "is no network"), ("open", "is no network"), ("none a.org:1", "say `allow`")]
        {
            let refused = text.parse::<NetworkPolicy>().unwrap_err().to_string();
            assert!(refused.contains(part), "{text}: {refused}");
        }
        let rules = (0..=RULES_MAX).map(|n| format!(" h{n}.org:1")).collect::<String>();
        assert_eq!(format!("allow{rules}").parse::<NetworkPolicy>(), Err(NetworkError::TooMany));
    }

    /// Rule: an address is known as one however it is written.
    #[test]
    fn a_destination_is_a_name_or_an_address_and_never_in_between() {
        let shown = |host: &str| Destination::new(host, 80).map(|found| found.to_string());
        assert_eq!(shown("Example.ORG.").unwrap(), "example.org:80");
        assert_eq!(shown("127.0.0.1").unwrap(), "127.0.0.1:80");
        assert_eq!(shown("[::1]").unwrap(), "[::1]:80");
        assert_eq!(shown("[::ffff:127.0.0.1]").unwrap(), "127.0.0.1:80");
        for host in
            ["", "127.1", "0x7f.0.0.1", "017700000001", "::1", "[::1", "[fe80::1%lo]", "a b"]
        {
            assert!(shown(host).is_err(), "{host}");
        }
        assert!(Destination::new("example.org", 0).is_err());
    }
}
