//! Checks what a session may reach, and which policy is wider than another.
//!
//! A name is checked twice: by itself before it is resolved, so that names that are not listed
//! never reach a resolver, and again with each address it resolves to. An address that is not
//! public is reached only if it is listed as an address, whatever name resolves to it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ringback_proto::network::{
    Destination, Host, HostPattern, HostRule, Ipv4Net, Ipv6Net, NetworkMode, NetworkPolicy,
};

/// Why a destination is denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denial {
    /// The session has no network.
    NoNetwork,
    /// The destination is not listed.
    NotListed,
    /// The address belongs to this machine or a private network, and is not listed as an address.
    NotPublic,
}

/// Whether an address belongs to this machine. It is passed in because only the shell knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressOwner {
    /// It is.
    Ours,
    /// It is not.
    Others,
}

/// Checks whether a destination may be requested. A permitted name still resolves to addresses,
/// each to be checked by [`permits_address`].
///
/// # Errors
/// The reason for the denial.
pub fn permits(policy: &NetworkPolicy, to: &Destination) -> Result<(), Denial> {
    match policy.mode {
        NetworkMode::None | NetworkMode::Model => Err(Denial::NoNetwork),
        NetworkMode::Full => Ok(()),
        NetworkMode::Allow if policy.allow.iter().any(|rule| names(rule, to)) => Ok(()),
        NetworkMode::Allow => Err(Denial::NotListed),
    }
}

/// Checks whether a destination may be reached at this address, its own or one that its name
/// resolves to.
///
/// # Errors
/// The reason for the denial.
pub fn permits_address(
    policy: &NetworkPolicy,
    to: &Destination,
    address: IpAddr,
    whose: AddressOwner,
) -> Result<(), Denial> {
    permits(policy, to)?;
    let address = address.to_canonical();
    let listed = Destination { host: Host::Address(address), port: to.port };
    if policy.allow.iter().any(|rule| names(rule, &listed)) {
        return Ok(());
    }
    match whose {
        AddressOwner::Others if is_public(address) => Ok(()),
        AddressOwner::Others | AddressOwner::Ours => Err(Denial::NotPublic),
    }
}

/// Returns whether `wide` allows everything that `narrow` allows.
#[must_use]
pub fn is_within(narrow: &NetworkPolicy, wide: &NetworkPolicy) -> bool {
    let is_covered = |rule: &HostRule| wide.allow.iter().any(|wide| covers(wide, rule));
    match (narrow.mode, wide.mode) {
        (NetworkMode::None, _)
        | (NetworkMode::Model, NetworkMode::Model | NetworkMode::Allow | NetworkMode::Full) => true,
        (NetworkMode::Allow, NetworkMode::Model) => narrow.allow.is_empty(),
        (NetworkMode::Allow, NetworkMode::Allow) | (NetworkMode::Full, NetworkMode::Full) => {
            narrow.allow.iter().all(is_covered)
        }
        // A name alone leads only to public destinations, and `full` has them all.
        (NetworkMode::Allow, NetworkMode::Full) => narrow.allow.iter().all(|rule| {
            is_covered(rule)
                || match rule.host {
                    HostPattern::Name(_) | HostPattern::Below(_) => true,
                    HostPattern::Address(_) => false,
                }
        }),
        (NetworkMode::Model | NetworkMode::Allow, NetworkMode::None)
        | (NetworkMode::Full, NetworkMode::None | NetworkMode::Model | NetworkMode::Allow) => false,
    }
}

fn names(rule: &HostRule, to: &Destination) -> bool {
    let is_host = match (&rule.host, &to.host) {
        (HostPattern::Name(listed), Host::Name(name)) => listed == name,
        (HostPattern::Below(domain), Host::Name(name)) => name.is_below(domain),
        (HostPattern::Address(net), Host::Address(address)) => net.contains(address),
        (HostPattern::Name(_) | HostPattern::Below(_), Host::Address(_))
        | (HostPattern::Address(_), Host::Name(_)) => false,
    };
    is_host && rule.port.is_none_or(|port| port == to.port)
}

fn covers(wide: &HostRule, narrow: &HostRule) -> bool {
    let is_host = match (&wide.host, &narrow.host) {
        (HostPattern::Name(wide), HostPattern::Name(narrow)) => wide == narrow,
        (HostPattern::Below(wide), HostPattern::Name(narrow)) => narrow.is_below(wide),
        (HostPattern::Below(wide), HostPattern::Below(narrow)) => {
            wide == narrow || narrow.is_below(wide)
        }
        (HostPattern::Address(wide), HostPattern::Address(narrow)) => wide.contains(narrow),
        (HostPattern::Name(_), HostPattern::Below(_) | HostPattern::Address(_))
        | (HostPattern::Below(_), HostPattern::Address(_))
        | (HostPattern::Address(_), HostPattern::Name(_) | HostPattern::Below(_)) => false,
    };
    is_host && (wide.port.is_none() || wide.port == narrow.port)
}

const fn v4(a: u8, b: u8, c: u8, prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, 0), prefix)
}

const fn v6(a: u16, b: u16, prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, 0, 0, 0, 0, 0, 0), prefix)
}

/// Addresses that the special-purpose registry (RFC 6890 and later) assigns to other uses than
/// public hosts.
const SPECIAL_V4: [Ipv4Net; 15] = [
    v4(0, 0, 0, 8),       // this network
    v4(10, 0, 0, 8),      // private
    v4(100, 64, 0, 10),   // carrier-grade NAT
    v4(127, 0, 0, 8),     // loopback
    v4(169, 254, 0, 16),  // link-local, including cloud metadata services
    v4(172, 16, 0, 12),   // private
    v4(192, 0, 0, 24),    // protocol assignments
    v4(192, 0, 2, 24),    // documentation
    v4(192, 88, 99, 24),  // relays from IPv6
    v4(192, 168, 0, 16),  // private
    v4(198, 18, 0, 15),   // benchmarks
    v4(198, 51, 100, 24), // documentation
    v4(203, 0, 113, 24),  // documentation
    v4(224, 0, 0, 4),     // multicast
    v4(240, 0, 0, 4),     // reserved, and broadcast
];

/// The public range of IPv6; everything else is special.
const PUBLIC_V6: Ipv6Net = v6(0x2000, 0, 3);

/// Special ranges within it: some lead to IPv4 addresses that would go unchecked.
const SPECIAL_V6: [Ipv6Net; 4] = [
    v6(0x2001, 0, 23),     // protocol assignments, tunnels
    v6(0x2001, 0xdb8, 32), // documentation
    v6(0x2002, 0, 16),     // tunnels
    v6(0x3fff, 0, 20),     // documentation
];

/// Returns whether an address belongs to the public internet.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !SPECIAL_V4.iter().any(|net| net.contains(&address)),
        IpAddr::V6(address) => {
            PUBLIC_V6.contains(&address) && !SPECIAL_V6.iter().any(|net| net.contains(&address))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(text: &str) -> NetworkPolicy {
        text.parse().unwrap()
    }

    fn to(host: &str, port: u16) -> Destination {
        Destination::new(host, port).unwrap()
    }

    /// Checks a host at its own address or one that its name resolves to.
    fn judged(text: &str, host: &str, address: &str) -> Result<(), Denial> {
        permits_address(
            &policy(text),
            &to(host, 443),
            address.parse().unwrap(),
            AddressOwner::Others,
        )
    }

    /// REQ: network policy: `none` and `model` reach no host.
    #[test]
    fn without_a_network_no_host_is_permitted() {
        for text in ["none", "model"] {
            let found = permits(&policy(text), &to("example.org", 443));
            assert_eq!(found, Err(Denial::NoNetwork), "{text}");
        }
    }

    /// REQ: network policy: a host that is not on the list is refused by its name, port and address.
    #[test]
    fn what_is_not_listed_is_refused_before_it_is_looked_up() {
        let policy = policy("allow example.org:443 *.example.net:* 93.184.216.34:443");
        for (host, port, is_fine) in [
            ("example.org", 443, true),
            ("example.org", 80, false),
            ("www.example.org", 443, false),
            ("badexample.org", 443, false),
            ("example.org.evil.net", 443, false),
            ("a.example.net", 1, true),
            ("a.b.example.net", 1, true),
            ("example.net", 1, false),
            ("badexample.net", 1, false),
            ("93.184.216.34", 443, true),
            ("93.184.216.34", 80, false),
            ("93.184.216.35", 443, false),
            ("[::ffff:93.184.216.34]", 443, true),
            ("[2606:2800::1]", 443, false),
        ] {
            let expected = if is_fine { Ok(()) } else { Err(Denial::NotListed) };
            assert_eq!(permits(&policy, &to(host, port)), expected, "{host}:{port}");
        }
    }

    /// REQ: network policy: a listed name leads to no address of this machine or a private network.
    #[test]
    fn a_name_leads_only_to_public_addresses_unless_they_are_listed() {
        for address in [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "10.0.0.1",
            "172.31.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "198.18.0.1",
            "::1",
            "::",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "fe80::1",
            "fd00::1",
            "ff02::1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "2001:0:7f00:1::",
            "2001:db8::1",
        ] {
            for text in ["allow example.org:443", "full"] {
                let found = judged(text, "example.org", address);
                assert_eq!(found, Err(Denial::NotPublic), "{text}: {address}");
            }
        }
        for address in ["93.184.216.34", "1.1.1.1", "2606:4700::1111", "2a00:1450::1"] {
            assert_eq!(
                judged("allow example.org:443", "example.org", address),
                Ok(()),
                "{address}"
            );
            assert_eq!(judged("full", "example.org", address), Ok(()), "{address}");
        }
        let listed = "allow example.org:443 10.0.0.0/8:443 [fd00::1]:*";
        assert_eq!(judged(listed, "example.org", "10.1.1.1"), Ok(()));
        assert_eq!(judged(listed, "example.org", "fd00::1"), Ok(()));
        assert_eq!(judged(listed, "example.org", "127.0.0.1"), Err(Denial::NotPublic));
        assert_eq!(
            judged("allow example.org:443 127.0.0.1:80", "example.org", "127.0.0.1"),
            Err(Denial::NotPublic)
        );
    }

    /// REQ: network policy: an address is reached if it is listed, not because some name resolves
    /// to it.
    #[test]
    fn an_address_must_be_listed_itself() {
        let text = "allow example.org:443";
        assert_eq!(judged(text, "93.184.216.34", "93.184.216.34"), Err(Denial::NotListed));
        assert_eq!(judged("full", "127.0.0.1", "127.0.0.1"), Err(Denial::NotPublic));
        assert_eq!(judged("full 127.0.0.1:443", "127.0.0.1", "127.0.0.1"), Ok(()));
        assert_eq!(judged("full 127.0.0.1:443", "127.0.0.2", "127.0.0.2"), Err(Denial::NotPublic));
    }

    /// Rule: an address of this machine is not public, whatever it looks like.
    #[test]
    fn an_address_of_this_machine_must_be_listed() {
        let address = "93.184.216.34".parse().unwrap();
        let ours = |text: &str| {
            permits_address(&policy(text), &to("example.org", 443), address, AddressOwner::Ours)
        };
        assert_eq!(ours("full"), Err(Denial::NotPublic));
        assert_eq!(ours("allow example.org:443"), Err(Denial::NotPublic));
        assert_eq!(ours("full 93.184.216.34:443"), Ok(()));
    }

    /// REQ: "No elevation": a wider policy needs admin, so it must be recognised.
    #[test]
    fn a_policy_is_within_another_only_if_it_allows_nothing_more() {
        let within = [
            ("none", "none"),
            ("none", "model"),
            ("model", "allow"),
            ("allow", "model"),
            ("model", "full"),
            ("allow a.org:1", "allow b.org:1 a.org:1"),
            ("allow a.org:1", "allow a.org:*"),
            ("allow x.a.org:1", "allow *.a.org:1"),
            ("allow *.x.a.org:1", "allow *.a.org:1"),
            ("allow 10.1.0.0/16:1", "allow 10.0.0.0/8:1"),
            ("allow a.org:1 *.b.org:*", "full"),
            ("allow 10.0.0.1:1", "full 10.0.0.1:1"),
            ("full", "full 10.0.0.1:1"),
        ];
        for (narrow, wide) in within {
            assert!(is_within(&policy(narrow), &policy(wide)), "{narrow} < {wide}");
            if narrow != wide
                && (narrow, wide) != ("model", "allow")
                && (narrow, wide) != ("allow", "model")
            {
                assert!(!is_within(&policy(wide), &policy(narrow)), "{wide} < {narrow}");
            }
        }
        let not_within = [
            ("model", "none"),
            ("allow", "none"),
            ("allow a.org:*", "allow a.org:1"),
            ("allow a.org:1", "allow *.a.org:1"),
            ("allow *.a.org:1", "allow a.org:1"),
            ("allow 10.0.0.1:1", "full"),
            ("full 10.0.0.1:1", "full"),
            ("full", "allow 10.0.0.0/8:*"),
        ];
        for (narrow, wide) in not_within {
            assert!(!is_within(&policy(narrow), &policy(wide)), "{narrow} < {wide}");
        }
    }
}
