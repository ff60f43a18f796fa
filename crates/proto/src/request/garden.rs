//! The garden: `garden_*`. Positions and lengths are in beats, which are quarter notes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::wire_struct;
use crate::garden::{GardenAt, GardenEvent};
pub use crate::garden::{
    GardenStatus as GardenStatusResponse, GardenTimeline as GardenTimelineResponse,
};
use crate::ids::{ArtifactId, BlobHash, RegionId};

/// What a region does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RegionBehavior {
    /// Plays content that exists.
    PlayContent,
}

wire_struct! {
    /// A request for the garden's state: no fields.
    #[derive(Default)]
    GardenStatusRequest {}

    /// When to play.
    #[derive(Default)]
    GardenPlayRequest {
        /// When: `now` (the default), `next_beat`, `next_bar` or a beat.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<GardenAt>,
    }

    /// When to pause.
    #[derive(Default)]
    GardenPauseRequest {
        /// When: `now` (the default), `next_beat`, `next_bar` or a beat.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<GardenAt>,
    }

    /// When to stop.
    #[derive(Default)]
    GardenStopRequest {
        /// When: `now` (the default), `next_beat`, `next_bar` or a beat.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<GardenAt>,
    }

    /// A request to be silent immediately: no fields.
    #[derive(Default)]
    GardenEmergencyPauseRequest {}

    /// Where to go.
    GardenSeekRequest {
        /// The beat to go to, from 0 to 1000000; rounded to 1/960 beat.
        beat: f64,
        /// When: `now` (the default), `next_beat`, `next_bar` or a beat.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<GardenAt>,
    }

    /// A new tempo.
    GardenSetTempoRequest {
        /// Quarter notes per minute, from 5 to 960.
        bpm: f64,
        /// The beat from which it holds; rounded to 1/960 beat. If absent, `at` decides while the
        /// timeline plays; otherwise it holds from the start.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        beat: Option<f64>,
        /// The time signature, such as `3/4`; unchanged if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        time_signature: Option<String>,
        /// When: `now`, `next_beat`, `next_bar` (the default while the timeline plays) or a beat.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<GardenAt>,
    }

    /// Which regions to list.
    #[derive(Default)]
    GardenGetRegionsRequest {
        /// Only regions that end after this beat.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        start: Option<f64>,
        /// Only regions that start before this beat.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        end: Option<f64>,
    }

    /// The regions of a range, by position.
    GardenRegionsResponse {
        /// The regions.
        regions: Vec<GardenRegionInfo>,
        /// Their number.
        count: u64,
        /// The number of changes that led to this timeline.
        revision: u64,
    }

    /// A region. What it holds is present only if you may see it.
    GardenRegionInfo {
        /// Its id.
        region_id: RegionId,
        /// The beat at which it starts.
        position: f64,
        /// Its length in beats.
        duration: f64,
        /// Whether it is yours to move and delete.
        yours: bool,
        /// What it holds, if you may see it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<GardenRegionContent>,
    }

    /// What a region holds.
    GardenRegionContent {
        /// What it does.
        behavior_type: RegionBehavior,
        /// The artifact it was placed from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        artifact_id: Option<ArtifactId>,
        /// The hash of its content.
        content_hash: BlobHash,
        /// The MIME type of its content.
        mime_type: String,
        /// Its gain in decibels.
        gain_db: f32,
        /// Its place between left (-1) and right (1).
        pan: f32,
        /// How much of its content is skipped at the start, in seconds.
        offset_seconds: f64,
        /// The length of its fade in, in beats.
        fade_in: f64,
        /// The length of its fade out, in beats.
        fade_out: f64,
        /// Its name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Its tags.
        tags: Vec<String>,
    }

    /// A region to place.
    GardenCreateRegionRequest {
        /// The beat at which it starts, from 0 to 1000000; rounded to 1/960 beat.
        position: f64,
        /// Its length in beats; that of its content if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration: Option<f64>,
        /// What it does.
        behavior_type: RegionBehavior,
        /// The artifact or the hash of the content to play: audio or MIDI.
        content_id: String,
        /// Its gain in decibels, from -120 to 24; default 0.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        gain_db: Option<f32>,
        /// Its place between left (-1) and right (1); default 0.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pan: Option<f32>,
        /// How much of its content to skip at the start, in seconds; default 0.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        offset_seconds: Option<f64>,
        /// The length of its fade in, in beats; default 0.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fade_in: Option<f64>,
        /// The length of its fade out, in beats; default 0.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fade_out: Option<f64>,
        /// Its name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Its tags.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<Vec<String>>")]
        tags: Vec<String>,
    }

    /// A region was placed.
    GardenRegionCreatedResponse {
        /// Its id.
        region_id: RegionId,
        /// The beat at which it starts.
        position: f64,
        /// Its length in beats.
        duration: f64,
        /// The fields that were rounded to 1/960 beat.
        #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<Vec<String>>")]
        rounded: Vec<String>,
    }

    /// A region to move.
    GardenMoveRegionRequest {
        /// The id of the region.
        region_id: RegionId,
        /// The beat at which it is to start, from 0 to 1000000; rounded to 1/960 beat.
        new_position: f64,
    }

    /// A region to remove.
    GardenDeleteRegionRequest {
        /// The id of the region.
        region_id: RegionId,
    }

    /// A request for the whole timeline: no fields.
    #[derive(Default)]
    GardenTimelineRequest {}

    /// What happened in the garden.
    GardenReportRequest {
        /// The events, in order.
        events: Vec<GardenEvent>,
    }
}
