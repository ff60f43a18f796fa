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

/// Between two reports of what a loop or a vamp repeats, in seconds of playback: rows of what was
/// heard are few, and still say when that was.
const REPEATED_PAUSE_SECONDS: u64 = 60;

/// The parts that are being heard.
#[derive(Debug, Default)]
pub(super) struct HeardLog {
    parts: Vec<HeardPart>,
    /// Where the parts of a repetition end that are not reported yet, by region and first frame.
    repeated: BTreeMap<(RegionId, u64), u64>,
    /// The clock from which they are reported.
    next_repeated: u64,
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

    /// Returns the parts that playback has left behind and that are reported now. Those of a
    /// repetition are collected before.
    pub(super) fn take_due(&mut self, is_repeating: bool, clock: u64, rate: u64) -> Vec<HeardPart> {
        let ended = self.take_ended();
        if !is_repeating {
            return ended;
        }
        self.repeat(ended);
        if clock < self.next_repeated {
            return Vec::new();
        }
        self.start_repeating(clock, rate);
        self.take_repeated()
    }

    /// Notes that a repetition is reported again after a while.
    pub(super) const fn start_repeating(&mut self, clock: u64, rate: u64) {
        self.next_repeated = clock + REPEATED_PAUSE_SECONDS * rate;
    }

    /// Returns the parts that playback has left behind.
    fn take_ended(&mut self) -> Vec<HeardPart> {
        let at = self.at;
        self.parts.extract_if(.., |part| part.to < at).collect()
    }

    /// Joins parts with those that the passes before had at the same place.
    fn repeat(&mut self, parts: Vec<HeardPart>) {
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
