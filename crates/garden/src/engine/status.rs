//! The state of the engine.

use ringback_proto::garden::{
    GardenCounters, GardenDevice, GardenStatus, LoopRange, Ticks, TroubleKind,
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
            loop_range: self.timeline.loop_range().map(LoopRange::beats),
            waiting_for: self.repeating.and_then(|cause| self.course.awaited(cause)),
            region_count: u32::try_from(self.timeline.regions().len()).unwrap_or(u32::MAX),
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
        self.report_trouble(TroubleKind::Device, cause, None);
    }

    pub(super) fn report_trouble(
        &mut self,
        kind: TroubleKind,
        cause: String,
        region_id: Option<RegionId>,
    ) {
        let position_beats = self.position_beats();
        self.reports.trouble(kind, position_beats, cause, region_id);
    }
}
