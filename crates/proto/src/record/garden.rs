//! The records of the garden's timeline.

use super::UnixMs;
use crate::garden::{GardenRegion, TempoChange, Ticks};
use crate::ids::{ArtifactId, ProjectId, RegionId};
use crate::principal::PrincipalId;

/// A stored region. Its length is known.
#[derive(Debug, Clone, PartialEq)]
pub struct RegionRecord {
    /// The region as the garden plays it.
    pub region: GardenRegion,
    /// Its owner.
    pub owner: PrincipalId,
    /// The project it belongs to.
    pub project: Option<ProjectId>,
    /// The artifact it was placed from.
    pub artifact: Option<ArtifactId>,
    /// Its tags.
    pub tags: Vec<String>,
    /// When it was placed.
    pub created_at: UnixMs,
}

/// A change of the timeline.
#[derive(Debug, Clone, PartialEq)]
pub enum TimelineChange {
    /// A new region.
    Placed(Box<RegionRecord>),
    /// A region starts elsewhere.
    Moved {
        /// The id of the region.
        id: RegionId,
        /// Its new position.
        position: Ticks,
    },
    /// A region is removed.
    Deleted {
        /// The id of the region.
        id: RegionId,
    },
    /// A point of the tempo map is set.
    Tempo(TempoChange),
}
