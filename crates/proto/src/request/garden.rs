//! The garden: `garden_*`. Positions and lengths are in beats, which are quarter notes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{SampleFormat, wire_struct};
use crate::data::Data;
use crate::garden::{GardenAt, GardenContent, GardenEvent, GardenLoop, IfLate, RegionState};
pub use crate::garden::{
    GardenStatus as GardenStatusResponse, GardenTimeline as GardenTimelineResponse,
};
use crate::ids::{ArtifactId, BlobHash, JobId, RegionId};
use crate::wire_enum::wire_enum;

/// What a region does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RegionBehavior {
    /// Plays content that exists.
    PlayContent,
    /// Plays what a job is making, once it is there.
    Latent,
}

wire_enum! {
    /// Whether a region is played without being asked.
    RegionApproval {
        /// As soon as its content is there.
        Auto = "auto",
        /// Only after `garden_approve`.
        Required = "required",
    }
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
        /// The tempo map, in order.
        tempo: Vec<GardenTempoPoint>,
        /// The loop.
        #[serde(default, rename = "loop", skip_serializing_if = "Option::is_none")]
        loop_range: Option<GardenLoop>,
        /// The number of changes that led to this timeline.
        revision: u64,
    }

    /// A tempo and a time signature, from a beat on.
    GardenTempoPoint {
        /// The beat from which they hold.
        beat: f64,
        /// Quarter notes per minute.
        bpm: f64,
        /// The time signature, such as `3/4`.
        time_signature: String,
    }

    /// A region. What it holds is present only if you may see it.
    GardenRegionInfo {
        /// Its id.
        region_id: RegionId,
        /// The beat at which it starts.
        position: f64,
        /// Its length in beats, or that of one pass if it repeats.
        duration: f64,
        /// How many times it is played, one pass after the other.
        repeat: u32,
        /// Its state: only a `ready` region is played.
        state: RegionState,
        /// Whether it is yours to move, delete, approve and reject.
        yours: bool,
        /// When it was last heard.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_heard_at: Option<u64>,
        /// What it holds, if you may see it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<GardenRegionContent>,
    }

    /// What a region holds.
    GardenRegionContent {
        /// What it does.
        behavior_type: RegionBehavior,
        /// The artifact it plays.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        artifact_id: Option<ArtifactId>,
        /// The hash of its content, once that is there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content_hash: Option<BlobHash>,
        /// The MIME type of its content, once that is there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
        /// The job that makes its content.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        job_id: Option<JobId>,
        /// What playback does when it reaches the region before its content is there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        if_late: Option<IfLate>,
        /// Whether it needs approval.
        approval: RegionApproval,
        /// Why it failed or was rejected.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
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
        /// The length of its crossfade, in beats.
        crossfade: f64,
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
        /// Its length in beats, or that of one pass if it repeats; that of its content if absent. A
        /// `latent` region needs it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration: Option<f64>,
        /// What it does: `play_content`, or `latent` for content that a job is still making.
        behavior_type: RegionBehavior,
        /// What to play, audio or MIDI: an artifact or the hash of its content; for `latent`, the job.
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
        /// How long it takes over from the regions that end within these beats after its start: they
        /// fade out and it fades in, with equal power. Default 0.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        crossfade: Option<f64>,
        /// How many times it is played, one pass after the other: 1 to 1000, default 1. Each pass
        /// counts as a region.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repeat: Option<u32>,
        /// Whether it is played as soon as its content is there (`auto`, the default), or only after
        /// `garden_approve` (`required`).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        approval: Option<RegionApproval>,
        /// What playback does when it reaches a `latent` region before its content is there: `silence`
        /// (the default), or `vamp` to repeat the bar before it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        if_late: Option<IfLate>,
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
        /// Its length in beats, or that of one pass if it repeats.
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

    /// A loop: both fields, or neither to end it.
    #[derive(Default)]
    GardenSetLoopRequest {
        /// The beat at which it starts; rounded to 1/960 beat.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        start: Option<f64>,
        /// The beat at which it ends and playback goes back to its start; rounded to 1/960 beat.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        end: Option<f64>,
    }

    /// A region to approve.
    GardenApproveRequest {
        /// The id of the region.
        region_id: RegionId,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    }

    /// A region to reject: it is never heard again.
    GardenRejectRequest {
        /// The id of the region.
        region_id: RegionId,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    }

    /// A part of the timeline to render.
    GardenExportRequest with_lineage {
        /// The beat at which to start; the start of the timeline if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        start: Option<f64>,
        /// The beat at which to end; where the last region has ended if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        end: Option<f64>,
        /// The sample and file format; 16-bit integers in a WAV file if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        format: Option<SampleFormat>,
        /// The sample rate in hertz: 16000 to 192000; that of the garden's device if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sample_rate: Option<u32>,
    }

    /// What became of the job that a region waited for.
    GardenSettleRequest {
        /// The id of the region.
        region_id: RegionId,
        /// The job.
        job_id: JobId,
        /// What it made; absent if it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<GardenContent>,
        /// The artifact that it made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        artifact_id: Option<ArtifactId>,
        /// Why it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    }

    /// The state of a region whose job has ended.
    GardenSettledResponse {
        /// Its state.
        state: RegionState,
        /// The number of changes that led to the timeline with it.
        revision: u64,
    }

    /// Sound, as it is heard.
    GardenMonitorRequest {
        /// 32-bit floats, little-endian, left and right in turn.
        frames: Data,
        /// Frames before these that are missing.
        missed: u64,
    }

    /// Who hears the garden.
    GardenMonitorResponse {
        /// The number of listeners; the garden stops sending at 0.
        listeners: u32,
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
