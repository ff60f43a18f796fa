//! Content that was prepared for regions that are about to be placed, so that placing them takes no
//! time.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ringback_proto::ids::RegionId;
use ringback_sync::lock;

use crate::reader::{HOLD_TIME, Probed};
use crate::sound::SoundKey;

/// Regions that are about to be placed: as many as may wait for the daemon's turn.
const PREPARED_MAX: usize = 64;

/// A region is placed within this time, or what was prepared for it is of no use: the cache keeps its
/// sound a little longer.
const PREPARED_TIME: Duration = Duration::from_secs(30);
const _: () = assert!(PREPARED_TIME.as_secs() < HOLD_TIME.as_secs());

/// What is known of a region's content.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// What it plays.
    pub(crate) key: SoundKey,
    /// `None` if it takes too long; it is prepared later.
    pub(crate) probed: Option<Probed>,
}

/// The regions, oldest first.
#[derive(Debug, Clone, Default)]
pub(crate) struct PreparedRegions(Arc<Mutex<VecDeque<(Instant, RegionId, Prepared)>>>);

impl PreparedRegions {
    /// Keeps the content of a region until that is placed.
    pub(crate) fn put(&self, id: RegionId, prepared: Prepared) {
        let now = Instant::now();
        let mut regions = lock(&self.0);
        regions.retain(|(at, other, _)| *other != id && now - *at < PREPARED_TIME);
        if regions.len() == PREPARED_MAX {
            regions.pop_front();
        }
        regions.push_back((now, id, prepared));
    }

    /// Returns the content of a region that is being placed.
    pub(crate) fn take(&self, id: RegionId) -> Option<Prepared> {
        let mut regions = lock(&self.0);
        regions.retain(|(at, _, _)| at.elapsed() < PREPARED_TIME);
        let place = regions.iter().position(|(_, other, _)| *other == id)?;
        regions.remove(place).map(|(_, _, prepared)| prepared)
    }
}
