//! Quantities with a unit: durations, sizes, percentages, and those with a word for "no limit".

use std::fmt;
use std::time::Duration;

use super::section::Raw;
use super::value::{Value, mismatch, text};
use crate::units;

const NONE: &str = "none";
const AUTO: &str = "auto";

const MS_PER_SECOND: u64 = 1000;

const A_DURATION: &str = "a duration such as `500ms`, `30m` or `1h`";
const A_SIZE: &str = "a size such as `512MB` or `4GiB`";

/// A duration; a bare number counts in units of `BARE_MS` milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span<const BARE_MS: u64>(pub Duration);

/// A duration whose bare numbers are milliseconds.
pub type Millis = Span<1>;

/// A duration whose bare numbers are seconds.
pub type Seconds = Span<MS_PER_SECOND>;

/// Milliseconds that programs read as a number; people may write a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlainMillis(pub u64);

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

/// A percentage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Percent(pub u64);

/// A limit, or `none`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionalLimit<T>(pub Option<T>);

/// A quantity, or `auto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Auto<T>(pub Option<T>);

/// A quantity that can be a limit; its default is zero.
pub(super) trait Quantity: Value + Default + PartialEq {
    /// The kind of [`OptionalLimit`].
    const OR_NONE: &'static str;
    /// The kind of [`Auto`].
    const OR_AUTO: &'static str;
}

impl<const BARE_MS: u64> From<Duration> for Span<BARE_MS> {
    fn from(duration: Duration) -> Self {
        Self(duration)
    }
}

impl<const BARE_MS: u64> Span<BARE_MS> {
    /// Creates one of this number of seconds.
    pub(super) const fn secs(secs: u64) -> Self {
        Self(Duration::from_secs(secs))
    }

    /// Creates one of this number of milliseconds.
    pub(super) const fn millis(millis: u64) -> Self {
        Self(Duration::from_millis(millis))
    }

    /// Returns it in milliseconds.
    #[must_use]
    pub fn as_millis(self) -> u64 {
        u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX)
    }

    /// Returns it in seconds, rounded up.
    #[must_use]
    pub fn as_secs(self) -> u64 {
        self.as_millis().div_ceil(MS_PER_SECOND)
    }
}

impl ByteSize {
    /// Returns it as a length in memory.
    #[must_use]
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl<const BARE_MS: u64> fmt::Display for Span<BARE_MS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&units::duration_text(self.0))
    }
}

impl fmt::Display for PlainMillis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&units::size_text(self.0))
    }
}

impl Quantity for u64 {
    const OR_NONE: &'static str = "whole number or `none`";
    const OR_AUTO: &'static str = "whole number or `auto`";
}

impl Quantity for ByteSize {
    const OR_NONE: &'static str = "size (bare number: bytes) or `none`";
    const OR_AUTO: &'static str = "size (bare number: bytes) or `auto`";
}

impl Quantity for Percent {
    const OR_NONE: &'static str = "percentage or `none`";
    const OR_AUTO: &'static str = "percentage or `auto`";
}

impl<const BARE_MS: u64> Value for Span<BARE_MS> {
    const KIND: &'static str =
        if BARE_MS == 1 { "duration (bare number: ms)" } else { "duration (bare number: s)" };

    fn parse(raw: Raw<'_>) -> Result<Self, String> {
        let bare = u64::parse(raw).ok().and_then(|number| number.checked_mul(BARE_MS));
        bare.map(Duration::from_millis)
            .or_else(|| text(raw).and_then(units::duration))
            .map(Self)
            .ok_or_else(|| mismatch(A_DURATION, raw))
    }

    fn show(&self) -> Option<toml::Value> {
        Some(self.to_string().into())
    }
}

impl Value for PlainMillis {
    const KIND: &'static str = Millis::KIND;

    fn parse(raw: Raw<'_>) -> Result<Self, String> {
        Millis::parse(raw).map(|span| Self(span.as_millis()))
    }

    fn show(&self) -> Option<toml::Value> {
        self.0.show()
    }
}

impl Value for ByteSize {
    const KIND: &'static str = "size (bare number: bytes)";

    fn parse(raw: Raw<'_>) -> Result<Self, String> {
        let bytes = u64::parse(raw).ok().or_else(|| text(raw).and_then(units::size));
        bytes.map(Self).ok_or_else(|| mismatch(A_SIZE, raw))
    }

    fn show(&self) -> Option<toml::Value> {
        Some(self.to_string().into())
    }
}

impl Value for Percent {
    const KIND: &'static str = "percentage";

    fn parse(raw: Raw<'_>) -> Result<Self, String> {
        let written = || u64::parse(Raw::Text(text(raw)?.strip_suffix('%')?.trim_end())).ok();
        let percent = u64::parse(raw).ok().or_else(written);
        percent.map(Self).ok_or_else(|| mismatch("a percentage such as `150%`", raw))
    }

    fn show(&self) -> Option<toml::Value> {
        Some(format!("{}%", self.0).into())
    }
}

impl<T: Quantity> Value for OptionalLimit<T> {
    const KIND: &'static str = T::OR_NONE;

    /// A limit of nothing is a mistake: `none` lifts it.
    fn parse(raw: Raw<'_>) -> Result<Self, String> {
        if text(raw) == Some(NONE) {
            return Ok(Self(None));
        }
        let limit = T::parse(raw).ok().filter(|limit| *limit != T::default());
        limit.map(|limit| Self(Some(limit))).ok_or_else(|| mismatch(Self::KIND, raw))
    }

    fn show(&self) -> Option<toml::Value> {
        self.0.as_ref().map_or_else(|| Some(NONE.into()), T::show)
    }
}

impl<T: Quantity> Value for Auto<T> {
    const KIND: &'static str = T::OR_AUTO;

    fn parse(raw: Raw<'_>) -> Result<Self, String> {
        if text(raw) == Some(AUTO) {
            return Ok(Self(None));
        }
        T::parse(raw).map(|value| Self(Some(value))).map_err(|_| mismatch(Self::KIND, raw))
    }

    fn show(&self) -> Option<toml::Value> {
        self.0.as_ref().map_or_else(|| Some(AUTO.into()), T::show)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T: Value>(text: &str) -> Option<T> {
        T::parse(Raw::Text(text)).ok()
    }

    /// Rule: a bare number keeps the unit that its key had before units were written.
    #[test]
    fn a_bare_number_has_the_unit_of_its_key() {
        assert_eq!(read("1500"), Some(Span::<1>(Duration::from_millis(1500))));
        assert_eq!(read("1_500"), Some(Seconds::secs(1500)));
        assert_eq!(read("1500"), Some(PlainMillis(1500)));
        assert_eq!(read("1500"), Some(ByteSize(1500)));
        assert_eq!(read("150"), Some(Percent(150)));
        let file = toml::de::DeValue::parse("1500").unwrap();
        assert_eq!(Seconds::parse(Raw::Toml(file.get_ref())), Ok(Seconds::secs(1500)));
        let quoted = toml::de::DeValue::parse("'1500'").unwrap();
        assert!(Seconds::parse(Raw::Toml(quoted.get_ref())).is_err());
    }

    #[test]
    fn a_unit_means_the_same_for_every_key() {
        assert_eq!(read("2m"), Some(Millis::secs(120)));
        assert_eq!(read("2m"), Some(Seconds::secs(120)));
        assert_eq!(read("2m"), Some(PlainMillis(120_000)));
        assert_eq!(read("2KiB"), Some(ByteSize(2048)));
        assert_eq!(read("150 %"), Some(Percent(150)));
        assert_eq!(Seconds::from(Duration::from_millis(1001)).as_secs(), 2);
    }

    #[test]
    fn negative_overflowing_and_misspelled_values_are_refused() {
        for text in ["", "-1", "-1s", "1.5", "9223372036854775807", "soon"] {
            assert_eq!(read::<Seconds>(text), None, "{text}");
        }
        for text in ["", "-1", "-1GiB", "1.5", "9223372036854775808", "9000000TiB", "big"] {
            assert_eq!(read::<ByteSize>(text), None, "{text}");
        }
        for text in ["", "-1%", "%", "150%%", "x"] {
            assert_eq!(read::<Percent>(text), None, "{text}");
        }
        let error = Seconds::parse(Raw::Text("30 min.")).unwrap_err();
        assert_eq!(error, "expected a duration such as `500ms`, `30m` or `1h`, found `30 min.`");
    }

    /// Rule: a limit is lifted only explicitly.
    #[test]
    fn a_limit_is_a_quantity_or_none_in_words() {
        for (text, expected) in
            [("none", Some(None)), ("7", Some(Some(7))), ("0", None), ("", None), ("auto", None)]
        {
            assert_eq!(read::<OptionalLimit<u64>>(text).map(|bound| bound.0), expected, "{text}");
        }
        assert_eq!(read("4GiB"), Some(OptionalLimit(Some(ByteSize(4 << 30)))));
        assert_eq!(read::<OptionalLimit<ByteSize>>("0GiB"), None);
        for (text, expected) in [("auto", Some(None)), ("0", Some(Some(0))), ("none", None)] {
            assert_eq!(read::<Auto<u64>>(text).map(|auto| auto.0), expected, "{text}");
        }
    }

    #[test]
    fn quantities_are_shown_as_people_write_them() {
        let shown = |value: Option<toml::Value>| value.unwrap().as_str().unwrap().to_owned();
        assert_eq!(shown(Seconds::secs(1800).show()), "30m");
        assert_eq!(shown(OptionalLimit(Some(ByteSize(4 << 30))).show()), "4GiB");
        assert_eq!(shown(OptionalLimit(Some(Percent(200))).show()), "200%");
        assert_eq!(shown(OptionalLimit::<u64>(None).show()), "none");
        assert_eq!(shown(Auto::<u64>(None).show()), "auto");
        assert_eq!(PlainMillis(30_000).show(), Some(30_000.into()));
    }
}
