//! Durations and sizes as people write them: `30m`, `4GiB`.

use std::time::Duration;

use jiff::fmt::friendly::SpanParser;
use jiff::{SignedDuration, SpanRelativeTo};

const NANOS_PER_MS: u32 = 1_000_000;

/// Digits after the point; more would be a typing error.
const DECIMALS_MAX: usize = 9;

/// Units of sizes, the largest first.
const SIZES: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("TB", 1_000_000_000_000),
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("kB", 1_000),
    ("B", 1),
];

/// Parses a duration with a unit, such as `500ms`, `30m` or `1h 30m`; a day has 24 hours. `None` if
/// it is negative, or finer than a millisecond.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let span = SpanParser::new().parse_span(text).ok()?;
    let signed = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
    let duration = Duration::try_from(signed).ok()?;
    duration.subsec_nanos().is_multiple_of(NANOS_PER_MS).then_some(duration)
}

/// Formats a duration so that [`duration`] can parse it.
pub(crate) fn duration_text(duration: Duration) -> String {
    let signed = SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
    format!("{signed:#}")
}

/// Parses a size with a unit, such as `4GiB`, `512MB` or `1.5 GiB`; a fraction of a byte is cut
/// off. `None` if a TOML number could not hold the bytes.
pub(crate) fn size(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(end);
    let unit = unit.trim_start();
    let (_, unit) = SIZES.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    if whole.is_empty() || part.is_empty() || part.len() > DECIMALS_MAX {
        return None;
    }
    let parts_per_whole = 10_u128.pow(u32::try_from(part.len()).ok()?);
    let parts = whole.parse::<u128>().ok()?.checked_mul(parts_per_whole)?;
    let parts = parts.checked_add(part.parse().ok()?)?.checked_mul(unit.into())?;
    i64::try_from(parts / parts_per_whole).ok()?.try_into().ok()
}

/// Formats a size exactly, in the largest unit that needs no fraction.
pub(crate) fn size_text(bytes: u64) -> String {
    let fits = |(_, unit): &(&str, u64)| bytes > 0 && bytes.is_multiple_of(*unit);
    let (name, unit) = SIZES.into_iter().find(fits).unwrap_or(("B", 1));
    format!("{}{name}", bytes / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit_and_are_shown_as_they_are_written() {
        for (text, ms, shown) in [
            ("500ms", 500, "500ms"),
            ("0s", 0, "0s"),
            ("30s", 30_000, "30s"),
            ("90s", 90_000, "1m 30s"),
            ("30m", 1_800_000, "30m"),
            ("1h", 3_600_000, "1h"),
            ("1h30m", 5_400_000, "1h 30m"),
            ("1.5h", 5_400_000, "1h 30m"),
            ("90 minutes", 5_400_000, "1h 30m"),
            ("1d", 86_400_000, "24h"),
            ("2w", 1_209_600_000, "336h"),
            ("0.5s", 500, "500ms"),
        ] {
            assert_eq!(duration(text), Some(Duration::from_millis(ms)), "{text}");
            assert_eq!(duration_text(Duration::from_millis(ms)), shown);
            assert_eq!(duration(shown), Some(Duration::from_millis(ms)), "{shown}");
        }
    }

    #[test]
    fn what_is_not_a_duration_is_refused() {
        for text in [
            "",
            "30",
            "m",
            "-30m",
            "30m ago",
            "30 parsecs",
            "1y",
            "1mo",
            "5us",
            "0.5ms",
            "1e3s",
            "99999999999999999999h",
            "1h-30m",
            "0x10s",
        ] {
            assert_eq!(duration(text), None, "{text}");
        }
    }

    #[test]
    fn sizes_have_a_unit_and_are_shown_exactly() {
        for (text, bytes, shown) in [
            ("0B", 0, "0B"),
            ("7B", 7, "7B"),
            ("1kB", 1000, "1kB"),
            ("1KiB", 1024, "1KiB"),
            ("512MB", 512_000_000, "512MB"),
            ("512mb", 512_000_000, "512MB"),
            ("4GiB", 4 << 30, "4GiB"),
            ("4 GiB", 4 << 30, "4GiB"),
            ("1.5GiB", 3 << 29, "1536MiB"),
            ("1000KiB", 1_024_000, "1000KiB"),
            ("2TB", 2_000_000_000_000, "2TB"),
            ("0.1KiB", 102, "102B"),
            ("9223372036854775807B", i64::MAX as u64, "9223372036854775807B"),
        ] {
            assert_eq!((size(text), size_text(bytes)), (Some(bytes), shown.to_owned()), "{text}");
            assert_eq!(size(shown), Some(bytes), "{shown}");
        }
    }

    #[test]
    fn what_is_not_a_size_is_refused() {
        for text in [
            "",
            "4",
            "GiB",
            "-4GiB",
            "+4GiB",
            "4G",
            "4 gigs",
            "1.GiB",
            ".5GiB",
            "1.2.3GiB",
            "4GiB ",
            "8388608TiB",
            "9223372036854775808B",
            "99999999999999999999999999999999999999999TiB",
            "1.0000000001GiB",
            "1_000B",
        ] {
            assert_eq!(size(text), None, "{text}");
        }
    }
}
