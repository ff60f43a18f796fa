//! What the engine reports of itself: its state, and trouble.

use ringback_proto::garden::{
    GardenCounters, GardenDevice, GardenEvent, GardenRegionEvent, GardenStatus, GardenTroubleEvent,
    RegionChange, Ticks, TroubleKind,
};
use ringback_proto::ids::RegionId;

use super::Engine;
use crate::block::Shared;

impl Engine {
    /// Returns the state of playback as it is heard.
    #[must_use]
    pub fn status(&self, device: GardenDevice, shared: &Shared) -> GardenStatus {
        let frame = self.heard.frame();
        let tick = self.map.tick(frame);
        let (tempo, bar) = (self.map.at(tick), self.map.bar(tick));
        GardenStatus {
            state: self.heard.state(),
            position: self.map.whole_tick(frame),
            position_beats: tick / Ticks::PER_BEAT as f64,
            position_seconds: frame as f64 / f64::from(self.map.rate()),
            bar: bar.bar,
            beat_in_bar: bar.beat,
            tempo_bpm: tempo.bpm,
            time_signature: format!("{}/{}", tempo.beats_per_bar, tempo.beat_unit),
            region_count: u32::try_from(self.voices.len()).unwrap_or(u32::MAX),
            revision: self.timeline.revision(),
            device,
            counters: GardenCounters {
                frames: shared.n_frames(),
                underruns: shared.n_underruns(),
                late: self.n_late,
                clipped: shared.n_clipped(),
                commands: self.n_commands,
            },
        }
    }

    /// Reports trouble with the device.
    pub fn report_device(&mut self, cause: String) {
        self.report_kind(TroubleKind::Device, cause, None);
    }

    pub(super) fn report_failed(&mut self, region_id: RegionId, message: &str) {
        let Some(region) = self.timeline.region(region_id) else { return };
        let (position_beats, duration) = (region.position.beats(), region.duration);
        self.events.push(GardenEvent::Region(GardenRegionEvent {
            region_id,
            change: RegionChange::Failed,
            position_beats,
            duration_beats: duration.map(Ticks::beats),
            message: Some(message.to_owned()),
        }));
        self.report_kind(TroubleKind::Content, message.to_owned(), Some(region_id));
    }

    /// Reports what the callback counted since the last time.
    pub(super) fn report_trouble(&mut self, shared: &Shared) {
        let (n_underruns, n_clipped) = (shared.n_underruns(), shared.n_clipped());
        if n_underruns > self.n_underruns_reported {
            let n_new = n_underruns - self.n_underruns_reported;
            self.n_underruns_reported = n_underruns;
            let cause = format!("the device found no sound ready, {n_new} times");
            self.report_kind(TroubleKind::Underrun, cause, None);
        }
        // One report a second of playback is enough.
        if n_clipped > self.n_clipped_reported && self.clock >= self.next_clipping_report {
            let n_new = n_clipped - self.n_clipped_reported;
            self.n_clipped_reported = n_clipped;
            self.next_clipping_report = self.clock + u64::from(self.map.rate());
            let cause = format!("{n_new} samples were too loud; lower the gain of regions");
            self.report_kind(TroubleKind::Clipping, cause, None);
        }
    }

    fn report_kind(&mut self, kind: TroubleKind, cause: String, region_id: Option<RegionId>) {
        let position_beats = self.position_beats();
        self.events.push(GardenEvent::Trouble(GardenTroubleEvent {
            kind,
            position_beats,
            cause,
            region_id,
        }));
    }
}
