//! The records of the garden's timeline.

use super::UnixMs;
use crate::garden::{GardenContent, GardenRegion, LoopRange, RegionState, TempoChange, Ticks};
use crate::ids::{ArtifactId, ProjectId, RegionId};
use crate::principal::PrincipalId;
use crate::request::RegionApproval;

/// A stored region. Its length is known.
#[derive(Debug, Clone, PartialEq)]
pub struct RegionRecord {
    /// The region as the garden plays it.
    pub region: GardenRegion,
    /// Its owner.
    pub owner: PrincipalId,
    /// The project it belongs to.
    pub project: Option<ProjectId>,
    /// The artifact it plays.
    pub artifact: Option<ArtifactId>,
    /// Whether it needs approval.
    pub approval: RegionApproval,
    /// Why it failed, was approved or was rejected.
    pub reason: Option<String>,
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
    /// The loop is set or ended.
    Loop(Option<LoopRange>),
    /// A region is in another state.
    State {
        /// The id of the region.
        id: RegionId,
        /// Its new state.
        state: RegionState,
        /// Why, if there is something to say.
        reason: Option<String>,
    },
    /// The job of a region has ended.
    Settled {
        /// The id of the region.
        id: RegionId,
        /// Its new state.
        state: RegionState,
        /// What the job made.
        content: Option<GardenContent>,
        /// The artifact that it made.
        artifact: Option<ArtifactId>,
        /// Why the job failed.
        reason: Option<String>,
    },
}

/// A part of the timeline in which a region was heard without a break.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeardRecord {
    /// The region.
    pub region: RegionId,
    /// The artifact it played.
    pub artifact: Option<ArtifactId>,
    /// Where it began to be heard.
    pub from: Ticks,
    /// Where that ended.
    pub to: Ticks,
    /// When that was reported.
    pub at: UnixMs,
}
