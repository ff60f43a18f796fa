//! Exact arithmetic with lengths. Nearly all of them are small with powers of two as denominators:
//! those need no greatest common divisor, and no overflow checks.

use std::cmp::Ordering;

use num_traits::{CheckedAdd as _, CheckedDiv as _, CheckedMul as _};

use super::model::Fraction;
use super::play::PlayError;

/// A numerator is small from minus this on and below this; a denominator, up to twice this. Such
/// numbers can be cross-multiplied and added in 64 bits.
const SMALL: i64 = 1 << 30;

/// Returns the fraction in its lowest terms; `below` is positive.
#[inline]
pub(super) fn fraction(above: i64, below: i64) -> Fraction {
    if below & (below - 1) != 0 {
        return Fraction::new(above, below);
    }
    let shift = above.trailing_zeros().min(below.trailing_zeros());
    Fraction::new_raw(above >> shift, below >> shift)
}

/// Returns the sum, if it can be represented.
#[inline]
pub(super) fn add(a: Fraction, b: Fraction) -> Result<Fraction, PlayError> {
    match small(a, b) {
        Some(([a, a_below], [b, b_below])) if a_below == b_below => Ok(fraction(a + b, a_below)),
        Some(([a, a_below], [b, b_below])) => {
            Ok(fraction(a * b_below + b * a_below, a_below * b_below))
        }
        None => a.checked_add(&b).ok_or(PlayError::TooFine),
    }
}

/// Returns the difference, if it can be represented.
#[inline]
pub(super) fn subtract(a: Fraction, b: Fraction) -> Result<Fraction, PlayError> {
    match small(a, b) {
        Some(([a, a_below], [b, b_below])) if a_below == b_below => Ok(fraction(a - b, a_below)),
        Some(([a, a_below], [b, b_below])) => {
            Ok(fraction(a * b_below - b * a_below, a_below * b_below))
        }
        None => {
            let less = b.checked_mul(&Fraction::from_integer(-1));
            less.and_then(|less| a.checked_add(&less)).ok_or(PlayError::TooFine)
        }
    }
}

/// Returns the product, if it can be represented.
#[inline]
pub(super) fn multiply(a: Fraction, b: Fraction) -> Result<Fraction, PlayError> {
    match small(a, b) {
        Some(([a, a_below], [b, b_below])) => Ok(fraction(a * b, a_below * b_below)),
        None => a.checked_mul(&b).ok_or(PlayError::TooFine),
    }
}

/// Returns the quotient, if it can be represented.
pub(super) fn divide(a: Fraction, b: Fraction) -> Result<Fraction, PlayError> {
    a.checked_div(&b).ok_or(PlayError::TooFine)
}

/// Compares two fractions.
#[inline]
pub(super) fn compare(a: Fraction, b: Fraction) -> Ordering {
    match small(a, b) {
        Some(([a, a_below], [b, b_below])) => (a * b_below).cmp(&(b * a_below)),
        None => a.cmp(&b),
    }
}

/// Returns the greater one.
#[inline]
pub(super) fn later(a: Fraction, b: Fraction) -> Fraction {
    if compare(a, b) == Ordering::Less { b } else { a }
}

/// Returns the numerators and denominators of both, if all four are small.
#[inline]
fn small(a: Fraction, b: Fraction) -> Option<([i64; 2], [i64; 2])> {
    let (a, b) = ([*a.numer(), *a.denom()], [*b.numer(), *b.denom()]);
    // All are small if all their bits together are: one comparison instead of eight.
    let bits = a[0].wrapping_add(SMALL) | b[0].wrapping_add(SMALL) | a[1] | b[1];
    (0..2 * SMALL).contains(&bits).then_some((a, b))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Small and large ones, with all kinds of denominators.
    fn fractions() -> impl Strategy<Value = Fraction> {
        let above = prop_oneof![
            -100_i64..100,
            (SMALL - 9..SMALL + 9),
            (-SMALL - 9..-SMALL + 9),
            any::<i32>().prop_map_into()
        ];
        let below =
            prop_oneof![1_i64..100, (0_u32..40).prop_map(|n| 1 << n), 2 * SMALL - 9..2 * SMALL + 9];
        (above, below).prop_map(|(above, below)| Fraction::new(above, below))
    }

    proptest! {
        /// Rule: the fast path and the slow path have the same results, in lowest terms.
        #[test]
        fn short_and_long_ways_agree(a in fractions(), b in fractions()) {
            let same = |short: Result<Fraction, PlayError>, long: Option<Fraction>| {
                let parts = |it: Fraction| (*it.numer(), *it.denom());
                assert_eq!(short.ok().map(parts), long.map(parts), "{a} and {b}");
            };
            same(add(a, b), a.checked_add(&b));
            same(subtract(a, b), a.checked_add(&-b));
            same(multiply(a, b), a.checked_mul(&b));
            prop_assert_eq!(compare(a, b), a.cmp(&b));
            prop_assert_eq!(later(a, b), a.max(b));
        }
    }
}
