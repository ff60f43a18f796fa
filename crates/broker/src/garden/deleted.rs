//! Regions that were deleted a moment ago: what was heard of them is reported later.

use std::collections::VecDeque;
use std::sync::Mutex;

use ringback_proto::ids::{ArtifactId, RegionId};

use crate::sync::lock;

/// The regions that are remembered: more than are deleted between two reports.
const DELETED_MAX: usize = 1024;

/// What the last deleted regions played.
#[derive(Debug, Default)]
pub(super) struct DeletedRegions(Mutex<VecDeque<(RegionId, Option<ArtifactId>)>>);

impl DeletedRegions {
    /// Remembers a region that is being deleted.
    pub(super) fn add(&self, id: RegionId, artifact: Option<ArtifactId>) {
        let mut regions = lock(&self.0);
        if regions.len() == DELETED_MAX {
            regions.pop_front();
        }
        regions.push_back((id, artifact));
    }

    /// Returns the artifact that a deleted region played, if it had one; `None` for others.
    pub(super) fn artifact(&self, id: RegionId) -> Option<Option<ArtifactId>> {
        let regions = lock(&self.0);
        regions.iter().rev().find(|(deleted, _)| *deleted == id).map(|(_, artifact)| *artifact)
    }
}
