//! Names that every client accepts: at most 64 letters, digits, `_` and `-`.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// What the strictest clients accept.
const NAME_BYTES_MAX: usize = 64;
/// Enough of a hash that two tools of one list do not share it.
const HASH_DIGITS: usize = 8;
/// The separator in the hashed text: no owner's name contains it.
const BETWEEN: char = '\0';

/// The prefix of the daemon's own tools in a session; no caller may have this name.
pub const NATIVE: &str = "oubliette";

/// A tool that wants a name in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim<'a> {
    /// Its owner; the first part of its name.
    pub owner: &'a str,
    /// The owner's name for it.
    pub tool: &'a str,
    /// Whether it always keeps its name.
    pub is_native: bool,
}

impl<'a> Claim<'a> {
    /// A tool of one of a session's callers.
    #[must_use]
    pub const fn caller(caller_id: &'a str, tool: &'a str) -> Self {
        Self { owner: caller_id, tool, is_native: false }
    }

    /// A tool of the daemon, in a session.
    #[must_use]
    pub const fn native(tool: &'a str) -> Self {
        Self { owner: NATIVE, tool, is_native: true }
    }

    fn full(&self) -> String {
        format!("{}_{}", self.owner, self.tool)
    }

    fn hash(&self) -> blake3::Hash {
        let Self { owner, tool, .. } = self;
        blake3::hash(format!("{owner}{BETWEEN}{tool}").as_bytes())
    }
}

/// Whether a name can be offered unchanged.
#[must_use]
pub fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.chars().all(fits)
}

/// The name a tool is offered under: its own, or one derived from it and its hash. The same name
/// always yields the same result.
#[must_use]
pub fn offered(name: &str) -> Cow<'_, str> {
    if is_plain(name) {
        return name.into();
    }
    made(name, &blake3::hash(name.as_bytes()).to_hex()[..HASH_DIGITS]).into()
}

/// Whether a name could be one derived with a hash.
#[must_use]
pub fn is_made(name: &str) -> bool {
    let hash = name.rsplit('_').next().unwrap_or_default();
    is_plain(name) && hash.len() == HASH_DIGITS && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// A unique name for each tool of a list: `{owner}_{tool}` where possible. A name claimed by two
/// tools goes to a native tool, or else to neither; the others get one with a hash of their owner
/// and name. So a name never stands for one tool and later, unannounced, for another.
#[must_use]
pub fn assign(claims: &[Claim<'_>]) -> Vec<String> {
    let wanted: Vec<String> =
        claims.iter().map(|claim| offered(&claim.full()).into_owned()).collect();
    let mut claimants: HashMap<&str, usize> = HashMap::new();
    for name in &wanted {
        *claimants.entry(name).or_default() += 1;
    }
    let mut natives = HashSet::new();
    let mut keeps = Vec::with_capacity(claims.len());
    for (claim, name) in claims.iter().zip(&wanted) {
        let is_alone = claimants.get(name.as_str()) == Some(&1);
        keeps.push(is_alone || (claim.is_native && natives.insert(name.as_str())));
    }
    let kept = wanted.iter().zip(&keeps).filter(|(_, keeps)| **keeps);
    let mut taken: HashSet<String> = kept.map(|(name, _)| name.clone()).collect();
    let mut names = Vec::with_capacity(claims.len());
    for ((claim, name), keeps) in claims.iter().zip(&wanted).zip(keeps) {
        names.push(if keeps { name.clone() } else { distinct(claim, &mut taken) });
    }
    names
}

/// A name that is free. More digits are needed only if a name was chosen to collide.
fn distinct(claim: &Claim<'_>, taken: &mut HashSet<String>) -> String {
    let mut hash = claim.hash();
    loop {
        let name = made(&claim.full(), &hash.to_hex()[..HASH_DIGITS]);
        if taken.insert(name.clone()) {
            return name;
        }
        hash = blake3::hash(hash.as_bytes());
    }
}

fn made(name: &str, hash: &str) -> String {
    let kept = name.chars().take(NAME_BYTES_MAX - HASH_DIGITS - 1);
    let start: String = kept.map(|c| if fits(c) { c } else { '_' }).collect();
    format!("{start}_{hash}")
}

const fn fits(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

#[cfg(test)]
mod tests {
    use super::{Claim, assign, is_made, is_plain, offered};

    const fn caller<'a>(owner: &'a str, tool: &'a str) -> Claim<'a> {
        Claim::caller(owner, tool)
    }

    /// REQ: design "names offered to agents": 64 characters, mapped deterministically.
    #[test]
    fn a_name_is_kept_or_mapped_to_one_that_fits() {
        assert_eq!(offered("client_a_zoom-in"), "client_a_zoom-in");
        let long = "x".repeat(65);
        for name in ["a.b", "a b", "ä", "", long.as_str()] {
            let made = offered(name);
            assert!(is_plain(&made) && is_made(&made), "{made}");
            assert_eq!(made, offered(name));
        }
        assert_ne!(offered("a.b"), offered("a b"));
    }

    /// REQ: design "names offered to agents": a collision gets a short hash.
    #[test]
    fn two_tools_never_share_a_name_and_neither_takes_it_from_the_other() {
        let claims = [caller("a_b", "c"), caller("a", "b_c"), caller("a", "d")];
        let names = assign(&claims);
        assert_ne!(names[0], names[1]);
        assert!(names[..2].iter().all(|name| name.starts_with("a_b_c_") && is_made(name)));
        assert_eq!(names[2], "a_d");
        let reversed: Vec<_> = claims.iter().rev().copied().collect();
        let mut again = assign(&reversed);
        again.reverse();
        assert_eq!(names, again, "the order does not matter");
    }

    /// Rule: a native name is never shadowed.
    #[test]
    fn a_native_tool_keeps_its_name() {
        let native = Claim::native("x_y");
        let names = assign(&[caller("oubliette_x", "y"), native]);
        assert_eq!(names[1], "oubliette_x_y");
        assert!(is_made(&names[0]), "{}", names[0]);
    }

    #[test]
    fn the_same_tool_twice_gets_two_names() {
        let names = assign(&[caller("a", "b"), caller("a", "b")]);
        assert_ne!(names[0], names[1]);
    }
}
