//! What was heard: for each region, the parts of the timeline in which it sounded without a break.

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

    /// Returns all parts, as at a jump.
    pub(super) fn take_all(&mut self) -> Vec<HeardPart> {
        std::mem::take(&mut self.parts)
    }
}
