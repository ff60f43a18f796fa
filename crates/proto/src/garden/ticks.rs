//! Positions on the timeline: ticks, and the beats that callers write.

use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A position or a length on the timeline, 960 to the quarter note.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
pub struct Ticks(pub u64);

impl Ticks {
    /// Ticks to the quarter note: divides by 2 to 64, by 3 and by 5, so that common notes are whole.
    pub const PER_BEAT: u64 = 960;
    /// The last beat that a position may name: five days at 120 beats per minute.
    pub const MAX_BEATS: f64 = 1_000_000.0;

    /// Returns the tick nearest to a beat; `None` if it is negative, not a number, or beyond
    /// [`Self::MAX_BEATS`].
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "960 and the range that was checked fit exactly"
    )]
    pub fn nearest(beats: f64) -> Option<Self> {
        let is_position = (0.0..=Self::MAX_BEATS).contains(&beats);
        is_position.then(|| Self((beats * Self::PER_BEAT as f64).round() as u64))
    }

    /// Returns the position in beats.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "positions are far below 2^53")]
    pub fn beats(self) -> f64 {
        self.0 as f64 / Self::PER_BEAT as f64
    }
}

/// In beats, for people: a tick is about a thousandth.
impl fmt::Display for Ticks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", (self.beats() * 1000.0).round() / 1000.0)
    }
}

/// When a command takes effect.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum GardenAt {
    /// As soon as possible.
    Now,
    /// At the next beat.
    NextBeat,
    /// At the next bar line.
    NextBar,
    /// When playback reaches this beat.
    Beat(f64),
}

impl GardenAt {
    const NAMES: [(&'static str, Self); 3] =
        [("now", Self::Now), ("next_beat", Self::NextBeat), ("next_bar", Self::NextBar)];
}

impl Serialize for GardenAt {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Now => serializer.serialize_str("now"),
            Self::NextBeat => serializer.serialize_str("next_beat"),
            Self::NextBar => serializer.serialize_str("next_bar"),
            Self::Beat(beat) => serializer.serialize_f64(*beat),
        }
    }
}

impl<'de> Deserialize<'de> for GardenAt {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AtVisitor)
    }
}

struct AtVisitor;

impl de::Visitor<'_> for AtVisitor {
    type Value = GardenAt;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`now`, `next_beat`, `next_bar` or a beat as a number")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<GardenAt, E> {
        GardenAt::NAMES
            .into_iter()
            .find_map(|(name, at)| (name == text).then_some(at))
            .ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
    }

    fn visit_f64<E: de::Error>(self, beat: f64) -> Result<GardenAt, E> {
        Ok(GardenAt::Beat(beat))
    }

    fn visit_f32<E: de::Error>(self, beat: f32) -> Result<GardenAt, E> {
        Ok(GardenAt::Beat(beat.into()))
    }

    #[expect(clippy::cast_precision_loss, reason = "positions that far out are refused later")]
    fn visit_u64<E: de::Error>(self, beat: u64) -> Result<GardenAt, E> {
        Ok(GardenAt::Beat(beat as f64))
    }

    #[expect(clippy::cast_precision_loss, reason = "positions that far out are refused later")]
    fn visit_i64<E: de::Error>(self, beat: i64) -> Result<GardenAt, E> {
        Ok(GardenAt::Beat(beat as f64))
    }
}

impl JsonSchema for GardenAt {
    fn schema_name() -> Cow<'static, str> {
        "GardenAt".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "anyOf": [
                { "type": "string", "enum": Self::NAMES.map(|(name, _)| name) },
                { "type": "number", "format": "double" },
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_shown_to_a_thousandth_of_a_beat() {
        assert_eq!(
            [Ticks(0), Ticks(1955), Ticks(2400)].map(|at| at.to_string()),
            ["0", "2.036", "2.5"]
        );
    }

    #[test]
    fn a_beat_becomes_the_nearest_tick_and_back() {
        for (beats, ticks) in [
            (0.0, 0),
            (1.0, 960),
            (0.25, 240),
            (1.0 / 3.0, 320),
            (0.000_52, 0),
            (0.000_53, 1),
            (1_000_000.0, 960_000_000),
        ] {
            assert_eq!(Ticks::nearest(beats), Some(Ticks(ticks)), "{beats}");
        }
        assert!((Ticks(480).beats() - 0.5).abs() < f64::EPSILON);
    }

    #[test]
    fn a_beat_outside_the_timeline_has_no_tick() {
        for beats in [-0.001, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1_000_000.001] {
            assert_eq!(Ticks::nearest(beats), None, "{beats}");
        }
    }

    #[test]
    fn a_moment_is_a_name_or_a_number_in_both_encodings() {
        for (at, json) in [
            (GardenAt::Now, "\"now\""),
            (GardenAt::NextBeat, "\"next_beat\""),
            (GardenAt::NextBar, "\"next_bar\""),
            (GardenAt::Beat(4.5), "4.5"),
        ] {
            assert_eq!(serde_json::to_string(&at).unwrap(), json);
            assert_eq!(serde_json::from_str::<GardenAt>(json).unwrap(), at);
            let bytes = rmp_serde::to_vec_named(&at).unwrap();
            assert_eq!(rmp_serde::from_slice::<GardenAt>(&bytes).unwrap(), at);
        }
        assert_eq!(serde_json::from_str::<GardenAt>("4").unwrap(), GardenAt::Beat(4.0));
        assert_eq!(serde_json::from_str::<GardenAt>("-1").unwrap(), GardenAt::Beat(-1.0));
        let refused = serde_json::from_str::<GardenAt>("\"soon\"").unwrap_err().to_string();
        assert!(refused.contains("`next_bar` or a beat"), "{refused}");
    }
}
