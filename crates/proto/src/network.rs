//! Network policies: what an agent may reach, the rules of a policy, and the destinations it is
//! checked against.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

pub use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::wire_enum::wire_enum;

/// Rules in one policy: a person has to read them all.
pub const RULES_MAX: usize = 64;
/// The longest valid host name.
const NAME_BYTES_MAX: usize = 253;
/// The longest valid label of a host name.
const LABEL_BYTES_MAX: usize = 63;
/// The widest range of addresses in one rule; wider access needs `full`.
const PREFIX_MIN: u8 = 8;

wire_enum! {
    /// The reach of a session; each mode includes those before it.
    #[derive(Default, PartialOrd, Ord)]
    NetworkMode {
        /// No network.
        #[default]
        None = "none",
        /// Only the agent's model.
        Model = "model",
        /// The listed destinations.
        Allow = "allow",
        /// Every public destination.
        Full = "full",
    }
}

/// The network policy of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkPolicy {
    /// The mode.
    pub mode: NetworkMode,
    /// The allowed destinations, as `HOST:PORT`: with `allow` the complete list, with `full`
    /// additional addresses in private networks. At most 64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<HostRule>>")]
    pub allow: Vec<HostRule>,
}

/// Destinations that may be reached: `example.org:443`, `*.example.org:443` (subdomains, not the
/// domain itself), `10.1.2.3:80`, `10.0.0.0/8:*`, `[fd00::1]:443`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostRule {
    /// The hosts.
    pub host: HostPattern,
    /// The port; every port if absent.
    pub port: Option<u16>,
}

/// The hosts that a rule covers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum HostPattern {
    /// The host with this name.
    Name(HostName),
    /// The subdomains of this name, not the name itself.
    Below(HostName),
    /// Hosts with an address in this range.
    Address(IpNet),
}

/// A host name, in lower case and without a trailing dot. It can never be read as an address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostName(String);

/// A host as requested.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// By its name.
    Name(HostName),
    /// By its address.
    Address(IpAddr),
}

/// The destination of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Destination {
    /// The host.
    pub host: Host,
    /// The port.
    pub port: u16,
}

/// Why a text is not a policy, or not part of one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// An unknown mode.
    #[error("`{0}` is not a network mode; use `none`, `model`, `allow` or `full`")]
    Mode(String),
    /// A rule without a port.
    #[error("`{0}` has no port; write `{0}:443`, or `{0}:*` for every port")]
    NoPort(String),
    /// An invalid port.
    #[error("`{0}` is not a port: use a number from 1 to 65535, or `*`")]
    Port(String),
    /// An invalid host.
    #[error(
        "`{0}` is not a host: use a name such as `example.org` or `*.example.org`, or an address \
         such as `10.1.2.3`, `10.0.0.0/8` or `[fd00::1]`"
    )]
    Host(String),
    /// A rule that covers nearly everything.
    #[error("`{0}` is too wide; use the mode `full` to allow every public destination")]
    TooWide(String),
    /// Too many rules.
    #[error(
        "a network policy has at most {RULES_MAX} rules; one such as `*.example.org:443` covers \
         many hosts"
    )]
    TooMany,
    /// Rules with a mode that ignores them.
    #[error("`{0}` takes no list of destinations; use `allow`")]
    NothingToList(NetworkMode),
}

impl NetworkMode {
    /// Returns whether there is a network proxy, to other destinations than a model.
    #[must_use]
    pub const fn has_door(self) -> bool {
        match self {
            Self::None | Self::Model => false,
            Self::Allow | Self::Full => true,
        }
    }
}

impl NetworkPolicy {
    /// Makes a policy without a list.
    #[must_use]
    pub const fn of(mode: NetworkMode) -> Self {
        Self { mode, allow: Vec::new() }
    }

    /// Checks that the policy is meaningful.
    ///
    /// # Errors
    /// A list that is too long, or given with a mode that takes none.
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
    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether this name is a subdomain of `other`, and not `other` itself.
    #[must_use]
    pub fn is_below(&self, other: &Self) -> bool {
        self.0.strip_suffix(&other.0).is_some_and(|rest| rest.ends_with('.'))
    }
}

impl Destination {
    /// Parses a host as in a URL, an IPv6 address in brackets, and a port.
    ///
    /// # Errors
    /// An invalid host, or port 0.
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
        // An IPv4-mapped IPv6 address is an IPv4 address, to the system as well.
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
        // Many resolvers read `127.1`, `0x7f.1` and `2130706433` as addresses.
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
            // A colon inside brackets is part of the address.
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

/// A mode and its rules, separated by spaces.
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

/// Parses an address, or a range of addresses.
fn net(text: &str) -> Option<IpNet> {
    let found = text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from)).ok()?;
    match found {
        // Never matches a request: see `Destination::new`.
        IpNet::V6(net) if net.addr().to_ipv4_mapped().is_some() => None,
        IpNet::V4(_) | IpNet::V6(_) => Some(found),
    }
}

/// Shortens a text from an untrusted peer for an error message.
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
        assert_eq!(rule.to_string(), "10.0.0.0/8:1", "only the start of a range counts");
    }

    /// Rule: what is not clearly a destination is refused, and the error shows what to write.
    #[test]
    fn what_is_no_rule_is_refused_with_what_to_write() {
        for (text, part) in [
            ("example.org", "write `example.org:443`"),
            ("[fd00::1]", "has no port"),
            ("example.org:0", "is not a port"),
            ("example.org:https", "is not a port"),
            ("*:443", "`full`"),
            ("0.0.0.0/0:443", "`full`"),
            ("[::/0]:443", "`full`"),
            ("*.*.org:443", "is not a host"),
            ("ex*mple.org:443", "is not a host"),
            (":443", "is not a host"),
            ("http://example.org:443", "is not a host"),
            ("fd00::1:443", "is not a host"),
            ("[10.0.0.1]:443", "is not a host"),
            ("[::ffff:10.0.0.1]:443", "is not a host"),
            ("127.1:443", "is not a host"),
            ("0x7f000001:443", "is not a host"),
            ("2130706433:443", "is not a host"),
            ("user@example.org:443", "is not a host"),
            ("exämple.org:443", "is not a host"),
            ("a..b:443", "is not a host"),
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
        for (text, part) in [
            ("", "is not a network mode"),
            ("open", "is not a network mode"),
            ("none a.org:1", "use `allow`"),
        ] {
            let refused = text.parse::<NetworkPolicy>().unwrap_err().to_string();
            assert!(refused.contains(part), "{text}: {refused}");
        }
        let rules = (0..=RULES_MAX).map(|n| format!(" h{n}.org:1")).collect::<String>();
        assert_eq!(format!("allow{rules}").parse::<NetworkPolicy>(), Err(NetworkError::TooMany));
    }

    /// Rule: an address is recognised however it is written.
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
