//! Trills and rolls: signs that stand for several notes.

use super::super::exact::{add, multiply, subtract};
use super::super::model::Fraction;
use super::PlayError;
use super::score::{Ornament, OrnamentKind};

/// The notes of a trill are thirty-seconds, as fast as fingers are.
const TRILL_NOTE: (i64, i64) = (1, 32);
/// The fraction of a unit length that the short notes of a roll take.
const CUT: (i64, i64) = (1, 4);
/// A roll on three unit lengths has room for all five notes.
const LONG_ROLL_UNITS: i64 = 3;

/// Calls `play` with every note of an ornament on `key`: its key, onset and duration.
pub(super) fn notes(
    ornament: &Ornament,
    key: i32,
    (onset, duration): (Fraction, Fraction),
    play: &mut dyn FnMut(i32, Fraction, Fraction) -> Result<(), PlayError>,
) -> Result<(), PlayError> {
    let mut at = onset;
    let mut next = |key, duration| {
        play(key, at, duration)?;
        at = add(at, duration)?;
        Ok(())
    };
    match ornament.kind {
        OrnamentKind::Trill => trill(ornament.upper, key, duration, &mut next),
        OrnamentKind::Roll => roll(ornament, key, duration, &mut next),
    }
}

/// Plays the upper note and the note in turn; the remainder belongs to the note.
fn trill(
    upper: i32,
    key: i32,
    duration: Fraction,
    next: &mut dyn FnMut(i32, Fraction) -> Result<(), PlayError>,
) -> Result<(), PlayError> {
    let each = Fraction::new(TRILL_NOTE.0, TRILL_NOTE.1);
    let pair = multiply(each, Fraction::from_integer(2))?;
    let mut left = duration;
    while left >= multiply(pair, Fraction::from_integer(2))? {
        next(upper, each)?;
        next(key, each)?;
        left = subtract(left, pair)?;
    }
    if left > each {
        next(upper, each)?;
        left = subtract(left, each)?;
    }
    next(key, left)
}

/// Plays, on three units: the note, a cut from above, the note, a tap from below, the note.
/// Otherwise a cut.
fn roll(
    ornament: &Ornament,
    key: i32,
    duration: Fraction,
    next: &mut dyn FnMut(i32, Fraction) -> Result<(), PlayError>,
) -> Result<(), PlayError> {
    let Ornament { upper, lower, unit, .. } = *ornament;
    let cut = multiply(unit, Fraction::new(CUT.0, CUT.1))?;
    if duration == multiply(unit, Fraction::from_integer(LONG_ROLL_UNITS))? {
        let rest = subtract(unit, cut)?;
        next(key, unit)?;
        next(upper, cut)?;
        next(key, rest)?;
        next(lower, cut)?;
        return next(key, rest);
    }
    if duration <= cut {
        return next(key, duration);
    }
    next(upper, cut)?;
    next(key, subtract(duration, cut)?)
}
