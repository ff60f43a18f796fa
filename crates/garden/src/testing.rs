//! What the unit tests share.

use ringback_proto::garden::{GardenContent, GardenRegion, RegionState, Ticks};
use ringback_proto::ids::{BlobHash, RegionId};

/// A plain region; its number is also its content.
pub(crate) fn region(
    number: u8,
    position: f64,
    duration: Option<f64>,
    mime_type: &str,
) -> GardenRegion {
    let ticks = |beats| Ticks::nearest(beats).expect("a beat");
    GardenRegion {
        region_id: RegionId::from_random([number; 16]),
        position: ticks(position),
        duration: duration.map(ticks),
        state: RegionState::Ready,
        content: Some(GardenContent {
            hash: BlobHash::from_bytes([number; 32]),
            mime_type: mime_type.to_owned(),
        }),
        promise: None,
        repeat: 1,
        gain_db: 0.0,
        pan: 0.0,
        offset_seconds: 0.0,
        fade_in: Ticks(0),
        fade_out: Ticks(0),
        crossfade: Ticks(0),
        name: None,
    }
}
