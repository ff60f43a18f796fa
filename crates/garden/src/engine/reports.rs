//! What the engine reports: events, and trouble that was counted.

use ringback_proto::garden::{GardenEvent, GardenTroubleEvent, TroubleKind};
use ringback_proto::ids::RegionId;

use super::heard::HeardPart;
use crate::block::Shared;
use crate::tempo::TempoMap;

/// Events that wait to be fetched; more are dropped, oldest first, because playback waits for no
/// listener.
const EVENTS_MAX: usize = 1024;

/// Events that wait to be fetched, and what of the counters was reported.
#[derive(Debug, Default)]
pub(super) struct Reports {
    events: Vec<GardenEvent>,
    n_underruns: u64,
    n_clipped: u64,
    /// The clock from which clipping is reported again.
    next_clipping: u64,
}

impl Reports {
    pub(super) fn push(&mut self, event: GardenEvent) {
        if self.events.len() >= EVENTS_MAX {
            self.events.remove(0);
        }
        self.events.push(event);
    }

    /// Reports what was heard, in the beats of the map by which it was played.
    pub(super) fn heard(&mut self, parts: Vec<HeardPart>, map: &TempoMap) {
        for part in parts {
            self.push(GardenEvent::Heard(part.event(map)));
        }
    }

    pub(super) fn take(&mut self) -> Vec<GardenEvent> {
        std::mem::take(&mut self.events)
    }

    pub(super) fn trouble(
        &mut self,
        kind: TroubleKind,
        position_beats: f64,
        cause: String,
        region_id: Option<RegionId>,
    ) {
        let event = GardenTroubleEvent { kind, position_beats, cause, region_id };
        self.push(GardenEvent::Trouble(event));
    }

    /// Reports what the callback counted since the last time. Of clipping, one report in
    /// `clipping_pause` frames is enough.
    pub(super) fn counted(
        &mut self,
        shared: &Shared,
        position_beats: f64,
        clock: u64,
        clipping_pause: u64,
    ) {
        let (n_underruns, n_clipped) = (shared.n_underruns(), shared.n_clipped());
        if n_underruns > self.n_underruns {
            let n_new = n_underruns - self.n_underruns;
            self.n_underruns = n_underruns;
            let cause = format!("the device found no sound ready, {n_new} times");
            self.trouble(TroubleKind::Underrun, position_beats, cause, None);
        }
        if n_clipped > self.n_clipped && clock >= self.next_clipping {
            let n_new = n_clipped - self.n_clipped;
            self.n_clipped = n_clipped;
            self.next_clipping = clock + clipping_pause;
            let cause = format!("{n_new} samples were too loud; lower the gain of regions");
            self.trouble(TroubleKind::Clipping, position_beats, cause, None);
        }
    }
}
