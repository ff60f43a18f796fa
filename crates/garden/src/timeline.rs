//! The timeline: which regions exist, and how many of them sound together.

use std::collections::BTreeMap;

use ringback_proto::garden::{
    GardenContent, GardenRegion, GardenTimeline, LoopRange, RegionState, TempoChange, Ticks,
};
use ringback_proto::ids::RegionId;

/// The most regions of a timeline, each counted as often as it is played.
pub const REGIONS_MAX: u64 = 10_000;
/// The most regions that sound at the same time: what one core mixes without effort.
pub const TOGETHER_MAX: usize = 64;

/// Why a change is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TimelineError {
    /// The timeline is full.
    #[error("the timeline already has {REGIONS_MAX} regions; delete one first")]
    Full,
    /// Too many regions at the same time.
    #[error(
        "{TOGETHER_MAX} regions already sound together there; place it elsewhere, or delete one"
    )]
    TooMany,
    /// No such region.
    #[error("no region `{0}` on the timeline")]
    Unknown(RegionId),
    /// The change was made for another revision.
    #[error("the change is for revision {wanted}, the timeline is at {found}")]
    Revision {
        /// The revision that the change leads to.
        wanted: u64,
        /// The revision of the timeline.
        found: u64,
    },
}

/// The regions and the tempo changes, at a revision.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    revision: u64,
    tempo: Vec<TempoChange>,
    loop_range: Option<LoopRange>,
    regions: BTreeMap<RegionId, GardenRegion>,
}

impl Timeline {
    /// Makes the timeline that the daemon keeps.
    #[must_use]
    pub fn new(timeline: GardenTimeline) -> Self {
        let GardenTimeline { revision, tempo, loop_range, regions } = timeline;
        let regions = regions.into_iter().map(|region| (region.region_id, region)).collect();
        Self { revision, tempo, loop_range, regions }
    }

    /// Returns its revision.
    #[must_use]
    pub const fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns its tempo changes.
    #[must_use]
    pub fn tempo(&self) -> &[TempoChange] {
        &self.tempo
    }

    /// Returns the part that is repeated.
    #[must_use]
    pub const fn loop_range(&self) -> Option<&LoopRange> {
        self.loop_range.as_ref()
    }

    /// Returns a copy.
    #[must_use]
    pub fn to_wire(&self) -> GardenTimeline {
        GardenTimeline {
            revision: self.revision,
            tempo: self.tempo.clone(),
            loop_range: self.loop_range.clone(),
            regions: self.regions.values().cloned().collect(),
        }
    }

    /// Returns its regions.
    pub fn regions(&self) -> impl ExactSizeIterator<Item = &GardenRegion> {
        self.regions.values()
    }

    /// Returns a region.
    #[must_use]
    pub fn region(&self, id: RegionId) -> Option<&GardenRegion> {
        self.regions.get(&id)
    }

    /// Places a region.
    ///
    /// # Errors
    /// If the revision is another one, or a limit is reached.
    pub fn create(&mut self, region: GardenRegion, revision: u64) -> Result<(), TimelineError> {
        self.check_revision(revision)?;
        let n_passes = self.regions.values().map(|region| u64::from(region.repeat)).sum::<u64>();
        if n_passes + u64::from(region.repeat) > REGIONS_MAX {
            return Err(TimelineError::Full);
        }
        self.check_room(&region)?;
        self.regions.insert(region.region_id, region);
        self.revision = revision;
        Ok(())
    }

    /// Moves a region.
    ///
    /// # Errors
    /// If the revision is another one, the region does not exist, or too many sound there.
    pub fn shift(
        &mut self,
        id: RegionId,
        position: Ticks,
        revision: u64,
    ) -> Result<(), TimelineError> {
        self.check_revision(revision)?;
        let region = self.regions.get(&id).ok_or(TimelineError::Unknown(id))?;
        let moved = GardenRegion { position, ..region.clone() };
        self.check_room(&moved)?;
        self.regions.insert(id, moved);
        self.revision = revision;
        Ok(())
    }

    /// Removes a region.
    ///
    /// # Errors
    /// If the revision is another one, or the region does not exist.
    pub fn delete(&mut self, id: RegionId, revision: u64) -> Result<GardenRegion, TimelineError> {
        self.check_revision(revision)?;
        let region = self.regions.remove(&id).ok_or(TimelineError::Unknown(id))?;
        self.revision = revision;
        Ok(region)
    }

    /// Sets the tempo changes.
    ///
    /// # Errors
    /// If the revision is another one.
    pub fn set_tempo(
        &mut self,
        tempo: Vec<TempoChange>,
        revision: u64,
    ) -> Result<(), TimelineError> {
        self.check_revision(revision)?;
        self.tempo = tempo;
        self.revision = revision;
        Ok(())
    }

    /// Sets the part that is repeated, or none.
    ///
    /// # Errors
    /// If the revision is another one.
    pub fn set_loop(
        &mut self,
        loop_range: Option<LoopRange>,
        revision: u64,
    ) -> Result<(), TimelineError> {
        self.check_revision(revision)?;
        self.loop_range = loop_range;
        self.revision = revision;
        Ok(())
    }

    /// Sets the state of a region, and its content if there is new content.
    ///
    /// # Errors
    /// If the revision is another one, or the region does not exist.
    pub fn set_state(
        &mut self,
        id: RegionId,
        state: RegionState,
        content: Option<GardenContent>,
        revision: u64,
    ) -> Result<(), TimelineError> {
        self.check_revision(revision)?;
        let region = self.regions.get_mut(&id).ok_or(TimelineError::Unknown(id))?;
        region.state = state;
        region.content = content.or(region.content.take());
        self.revision = revision;
        Ok(())
    }

    fn check_revision(&self, wanted: u64) -> Result<(), TimelineError> {
        let found = self.revision;
        if wanted == found + 1 { Ok(()) } else { Err(TimelineError::Revision { wanted, found }) }
    }

    /// Refuses a region with which more than [`TOGETHER_MAX`] would sound at some tick.
    fn check_room(&self, region: &GardenRegion) -> Result<(), TimelineError> {
        let (start, end) = span(region);
        let mut edges: Vec<(u64, i32)> = Vec::new();
        let others = self.regions.values().filter(|other| other.region_id != region.region_id);
        for other in others.filter(|other| may_sound(other.state)) {
            let (other_start, other_end) = span(other);
            if other_start < end && start < other_end {
                edges.push((other_start.max(start), 1));
                edges.push((other_end.min(end), -1));
            }
        }
        // At the same tick, an end comes before a start.
        edges.sort_unstable();
        let mut together = 1_i32;
        for (_, edge) in edges {
            together += edge;
            if together > TOGETHER_MAX as i32 {
                return Err(TimelineError::TooMany);
            }
        }
        Ok(())
    }
}

/// Returns whether a region in this state is or may be played.
#[must_use]
pub const fn may_sound(state: RegionState) -> bool {
    match state {
        RegionState::Pending | RegionState::AwaitingApproval | RegionState::Ready => true,
        RegionState::Failed | RegionState::Rejected => false,
    }
}

/// Returns the tick after the last pass of a region; one without a length has at least its start.
#[must_use]
pub fn end_of(region: &GardenRegion) -> Ticks {
    let length = region.duration.map_or(1, |duration| duration.0.max(1));
    Ticks(region.position.0.saturating_add(length.saturating_mul(u64::from(region.repeat))))
}

fn span(region: &GardenRegion) -> (u64, u64) {
    (region.position.0, end_of(region).0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(number: u8, position: u64, duration: u64) -> GardenRegion {
        GardenRegion {
            position: Ticks(position),
            duration: Some(Ticks(duration)),
            ..crate::testing::region(number, 0.0, None, "audio/wav")
        }
    }

    #[test]
    fn a_change_leads_to_the_next_revision_or_nowhere() {
        let mut timeline = Timeline::default();
        timeline.create(region(1, 0, 10), 1).unwrap();
        let id = region(1, 0, 10).region_id;
        for revision in [0, 1, 3] {
            let refused = TimelineError::Revision { wanted: revision, found: 1 };
            assert_eq!(timeline.shift(id, Ticks(5), revision), Err(refused));
        }
        timeline.shift(id, Ticks(5), 2).unwrap();
        assert_eq!(timeline.region(id).unwrap().position, Ticks(5));
        timeline.delete(id, 3).unwrap();
        assert_eq!(timeline.delete(id, 4), Err(TimelineError::Unknown(id)));
        assert_eq!((timeline.revision(), timeline.regions().len()), (3, 0));
    }

    #[test]
    fn sixty_four_regions_sound_together_and_no_more() {
        let mut timeline = Timeline::default();
        for number in 0..64 {
            timeline.create(region(number, 0, 960), u64::from(number) + 1).unwrap();
        }
        assert_eq!(timeline.create(region(64, 959, 10), 65), Err(TimelineError::TooMany));
        timeline.create(region(64, 960, 10), 65).unwrap();
        let id = region(64, 0, 0).region_id;
        assert_eq!(timeline.shift(id, Ticks(100), 66), Err(TimelineError::TooMany));
        assert_eq!(timeline.revision(), 65);
    }
}
