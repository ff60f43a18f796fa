//! The requested part of some content (RFC 9110, section 14).

use axum::http::HeaderMap;
use axum::http::header::{IF_NONE_MATCH, IF_RANGE, RANGE};

/// The part of content to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// All of it.
    Whole,
    /// From the first byte to the one before `end`.
    Bytes {
        /// The first byte.
        start: u64,
        /// One past the last byte.
        end: u64,
    },
    /// Nothing: the range starts past the end.
    Behind,
}

/// Returns the requested part of content of `size` bytes. A range that is not understood is
/// ignored, as the standard requires: several ranges in one request get the whole.
pub(super) fn part(headers: &HeaderMap, etag: &str, size: u64) -> Part {
    let is_same = headers.get(IF_RANGE).is_none_or(|value| value == etag);
    let range = headers.get(RANGE).and_then(|value| value.to_str().ok());
    match range.filter(|_| is_same).and_then(|range| range.strip_prefix("bytes=")) {
        None => Part::Whole,
        Some(range) => one_range(range.trim(), size).unwrap_or(Part::Whole),
    }
}

/// Whether the caller's copy is current.
pub(super) fn is_known(headers: &HeaderMap, etag: &str) -> bool {
    let values = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    values
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == etag)
}

fn one_range(range: &str, size: u64) -> Option<Part> {
    let (first, last) = range.split_once('-')?;
    if first.is_empty() {
        let n_last: u64 = last.parse().ok()?;
        let start = size.saturating_sub(n_last);
        return Some(if n_last == 0 || size == 0 {
            Part::Behind
        } else {
            Part::Bytes { start, end: size }
        });
    }
    let start: u64 = first.parse().ok()?;
    let last = if last.is_empty() { u64::MAX } else { last.parse().ok()? };
    if last < start {
        return None;
    }
    let end = last.saturating_add(1).min(size);
    Some(if start < size { Part::Bytes { start, end } } else { Part::Behind })
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderName};

    use super::{Part, is_known, part};

    const ETAG: &str = "\"abc\"";

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn a_range_is_read_as_the_standard_says() {
        let bytes = |start, end| Part::Bytes { start, end };
        for (range, expected) in [
            ("bytes=0-0", bytes(0, 1)),
            ("bytes=2-", bytes(2, 10)),
            ("bytes=2-99999999999999999999", Part::Whole),
            ("bytes=8-100", bytes(8, 10)),
            ("bytes=-3", bytes(7, 10)),
            ("bytes=-100", bytes(0, 10)),
            ("bytes=10-", Part::Behind),
            ("bytes=-0", Part::Behind),
            ("bytes=5-2", Part::Whole),
            ("bytes=0-1,4-5", Part::Whole),
            ("lines=1-2", Part::Whole),
            ("bytes=x-", Part::Whole),
        ] {
            assert_eq!(part(&headers(&[("range", range)]), ETAG, 10), expected, "{range}");
        }
        assert_eq!(part(&headers(&[]), ETAG, 10), Part::Whole);
        assert_eq!(part(&headers(&[("range", "bytes=-1")]), ETAG, 0), Part::Behind);
        let if_range = |etag| headers(&[("range", "bytes=0-0"), ("if-range", etag)]);
        assert_eq!(part(&if_range(ETAG), ETAG, 10), bytes(0, 1));
        assert_eq!(part(&if_range("\"other\""), ETAG, 10), Part::Whole);
    }

    #[test]
    fn what_is_known_is_told_by_its_tag() {
        for (value, expected) in [
            (ETAG, true),
            ("W/\"abc\"", true),
            ("\"x\", \"abc\"", true),
            ("*", true),
            ("\"x\"", false),
        ] {
            assert_eq!(is_known(&headers(&[("if-none-match", value)]), ETAG), expected, "{value}");
        }
        assert!(!is_known(&headers(&[]), ETAG));
    }
}
