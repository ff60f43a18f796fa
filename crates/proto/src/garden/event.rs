//! What happens in the garden, as the garden reports it and as subscribers see it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Ticks, TransportState};
use crate::ids::{JobId, RegionId};
use crate::request::wire_struct;

/// Why the transport changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TransportCause {
    /// A command.
    Command,
    /// The end of the last region.
    End,
    /// The end of the loop.
    Loop,
    /// A region that is not ready: the bar before it is played again.
    Vamp,
    /// An emergency pause.
    Emergency,
    /// The garden started.
    Restart,
}

/// What happened to a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RegionChange {
    /// It was placed.
    Created,
    /// It was moved.
    Moved,
    /// It was removed.
    Deleted,
    /// Its content is there, and it is played.
    Ready,
    /// Its content is there and waits for approval.
    AwaitingApproval,
    /// Its content was rejected.
    Rejected,
    /// Its content could not be made, or cannot be played.
    Failed,
}

/// A kind of trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TroubleKind {
    /// The device had to wait for sound.
    Underrun,
    /// Content was not ready in time.
    Late,
    /// The device was lost or refused.
    Device,
    /// The sound was too loud.
    Clipping,
    /// Content is missing or cannot be decoded.
    Content,
    /// Listeners of the monitor missed a part: one of them, or the daemon, was too slow.
    Monitor,
}

wire_struct! {
    /// The transport changed.
    GardenTransportEvent {
        /// Its new state.
        state: TransportState,
        /// Where it is, in beats.
        position_beats: f64,
        /// The tempo there, in quarter notes per minute.
        tempo_bpm: f64,
        /// Why it changed.
        cause: TransportCause,
        /// The job of the command that changed it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        job_id: Option<JobId>,
    }

    /// A region changed. Its content, name and tags are left out.
    GardenRegionEvent {
        /// The id of the region.
        region_id: RegionId,
        /// What happened to it.
        change: RegionChange,
        /// Where it starts, in beats.
        position_beats: f64,
        /// Its length in beats, if it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration_beats: Option<f64>,
        /// Why it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    }

    /// Playback was disturbed.
    GardenTroubleEvent {
        /// The kind of trouble.
        kind: TroubleKind,
        /// Where it happened, in beats.
        position_beats: f64,
        /// What caused it.
        cause: String,
        /// The region it concerns.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        region_id: Option<RegionId>,
    }

    /// Where playback is, ten times a second. Published live and not kept.
    GardenPositionEvent {
        /// Where it is, in beats.
        position_beats: f64,
        /// The state of the transport.
        state: TransportState,
        /// The highest level of each channel since the last of these events, 1 being full scale.
        peaks: [f32; 2],
    }

    /// A part of the timeline in which a region was heard without a break.
    GardenHeard {
        /// The region.
        region_id: RegionId,
        /// Where it began to be heard.
        from: Ticks,
        /// Where that ended.
        to: Ticks,
    }
}

/// An event of the garden. The daemon publishes it under the same name; `garden.heard` is only
/// recorded.
///
/// Of `garden.region`, the garden reports only [`RegionChange::Failed`]: the daemon publishes the
/// other changes itself, once they are durable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type")]
pub enum GardenEvent {
    /// The transport changed.
    #[serde(rename = "garden.transport")]
    Transport(GardenTransportEvent),
    /// A region changed.
    #[serde(rename = "garden.region")]
    Region(GardenRegionEvent),
    /// Playback was disturbed.
    #[serde(rename = "garden.trouble")]
    Trouble(GardenTroubleEvent),
    /// Where playback is.
    #[serde(rename = "garden.position")]
    Position(GardenPositionEvent),
    /// A region was heard.
    #[serde(rename = "garden.heard")]
    Heard(GardenHeard),
}
