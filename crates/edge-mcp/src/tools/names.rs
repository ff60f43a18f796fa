//! Names that every client takes: at most 64 of letters, digits, `_` and `-`.

use std::borrow::Cow;

/// What the strictest clients take.
const NAME_BYTES_MAX: usize = 64;
/// Enough of a hash that two tools of one daemon do not share it.
const HASH_DIGITS: usize = 8;

/// Whether a name can be offered as it is.
pub(super) fn is_plain(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.bytes().all(fits)
}

/// The name a tool is offered under: its own, or one made from it and its hash. The same name gives
/// the same one every time.
pub(super) fn offered(name: &str) -> Cow<'_, str> {
    if is_plain(name) {
        return name.into();
    }
    let hash = blake3::hash(name.as_bytes()).to_hex();
    let kept = name.chars().take(NAME_BYTES_MAX - HASH_DIGITS - 1);
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    let start: String = kept.map(plain).collect();
    format!("{start}_{}", &hash[..HASH_DIGITS]).into()
}

/// Whether a name could be one that [`offered`] made.
pub(super) fn is_made(name: &str) -> bool {
    let hash = name.rsplit('_').next().unwrap_or_default();
    is_plain(name) && hash.len() == HASH_DIGITS && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::{is_made, is_plain, offered};

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
}
