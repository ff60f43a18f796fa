//! What was heard: for each region, the parts of the timeline in which it sounded without a break.
//! What a loop repeats is one part, however often it is heard.

use std::collections::BTreeMap;

use ringback_proto::garden::GardenHeard;
use ringback_proto::ids::RegionId;

use crate::mix::Voice;
use crate::tempo::TempoMap;

/// A part of the timeline in which a region was heard, in frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HeardPart {
    region_id: RegionId,
    from: u64,
    to: u64,
}

impl HeardPart {
    pub(super) fn event(self, map: &TempoMap) -> GardenHeard {
        let Self { region_id, from, to } = self;
        GardenHeard { region_id, from: map.whole_tick(from), to: map.whole_tick(to) }
    }
}

/// The parts that are being heard.
#[derive(Debug, Default)]
pub(super) struct HeardLog {
    parts: Vec<HeardPart>,
    /// Where the parts of a repetition end that are not reported yet, by region and first frame.
    repeated: BTreeMap<(RegionId, u64), u64>,
    /// The frame up to which playback has come.
    at: u64,
}

impl HeardLog {
    /// Notes that playback went from one frame to another, with the voices around them.
    pub(super) fn played(&mut self, voices: &[Voice], from: u64, to: u64) {
        self.at = to;
        let sounding =
            voices.iter().filter(|voice| voice.sounds(from, to) && voice.sound.is_some());
        for voice in sounding {
            let (from, to) = (from.max(voice.start), to.min(voice.end));
            let known = self.parts.iter_mut();
            let part =
                known.rev().find(|part| part.region_id == voice.region_id && part.to >= from);
            match part {
                Some(part) => part.to = part.to.max(to),
                None => self.parts.push(HeardPart { region_id: voice.region_id, from, to }),
            }
        }
    }

    /// Returns the parts that playback has left behind.
    pub(super) fn take_ended(&mut self) -> Vec<HeardPart> {
        let at = self.at;
        self.parts.extract_if(.., |part| part.to < at).collect()
    }

    /// Joins parts with those that the passes before had at the same place.
    pub(super) fn repeat(&mut self, parts: Vec<HeardPart>) {
        for HeardPart { region_id, mut from, mut to } in parts {
            let before = self.repeated.range((region_id, 0)..=(region_id, from)).next_back();
            if let Some((key, end)) = before.filter(|(_, end)| **end >= from) {
                (from, to) = (key.1, to.max(*end));
            }
            while let Some((key, end)) =
                self.repeated.range((region_id, from)..=(region_id, to)).next()
            {
                let key = *key;
                to = to.max(*end);
                self.repeated.remove(&key);
            }
            self.repeated.insert((region_id, from), to);
        }
    }

    /// Notes that what was heard up to here belongs to a repetition.
    pub(super) fn repeat_all(&mut self) {
        let parts = std::mem::take(&mut self.parts);
        self.repeat(parts);
    }

    /// Returns the parts of the repetition so far.
    pub(super) fn take_repeated(&mut self) -> Vec<HeardPart> {
        let repeated = std::mem::take(&mut self.repeated).into_iter();
        repeated.map(|((region_id, from), to)| HeardPart { region_id, from, to }).collect()
    }

    /// Returns all parts, as at a jump.
    pub(super) fn take_all(&mut self) -> Vec<HeardPart> {
        let mut all = self.take_repeated();
        all.append(&mut self.parts);
        all
    }
}
