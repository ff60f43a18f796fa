//! Money as integer millionths of a dollar, never as floating point.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Millionths in one dollar.
const MILLION: u64 = 1_000_000;
/// Decimal places of an amount in dollars.
const DIGITS: usize = 6;

/// An amount of money in millionths of a US dollar.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
pub struct MicroUsd(pub u64);

/// A text that is not an amount.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected dollars such as `2`, `0.50` or `1.25`, with at most 6 decimal places")]
pub struct MicroUsdError;

impl FromStr for MicroUsd {
    type Err = MicroUsdError;

    fn from_str(text: &str) -> Result<Self, MicroUsdError> {
        let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
        let is_digits =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_digits(whole) || !is_digits(part) || part.len() > DIGITS {
            return Err(MicroUsdError);
        }
        let whole: u64 = whole.parse().map_err(|_| MicroUsdError)?;
        let part: u64 = format!("{part:0<DIGITS$}").parse().map_err(|_| MicroUsdError)?;
        let micros = whole.checked_mul(MILLION).and_then(|micros| micros.checked_add(part));
        micros.map(Self).ok_or(MicroUsdError)
    }
}

/// Writes dollars, with as many decimal places as needed and at least two.
impl fmt::Display for MicroUsd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = format!("{:06}", self.0 % MILLION);
        let digits = part.trim_end_matches('0').len().max(2);
        write!(f, "{}.{}", self.0 / MILLION, &part[..digits])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule: money is exact: amounts round-trip, and nothing is rounded.
    #[test]
    fn dollars_are_read_and_shown_to_the_millionth() {
        for (text, micros, shown) in [
            ("2", 2_000_000, "2.00"),
            ("0.5", 500_000, "0.50"),
            ("1.25", 1_250_000, "1.25"),
            ("0.000001", 1, "0.000001"),
            ("3.140000", 3_140_000, "3.14"),
            ("0", 0, "0.00"),
        ] {
            assert_eq!(text.parse(), Ok(MicroUsd(micros)), "{text}");
            assert_eq!(MicroUsd(micros).to_string(), shown);
            assert_eq!(shown.parse(), Ok(MicroUsd(micros)));
        }
        for text in
            ["", ".", "1.", ".5", "-1", "1e3", "0.0000001", "99999999999999999", "1,5", "$1"]
        {
            assert!(text.parse::<MicroUsd>().is_err(), "{text}");
        }
    }
}
