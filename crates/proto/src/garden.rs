//! The garden: what the daemon and the process that plays the timeline say to each other, and what
//! both tell callers.
//!
//! Positions and lengths are [`Ticks`] between the two processes and in the store, and beats
//! (quarter notes) for callers. The tools of the garden process and their arguments are in
//! [`command`].

pub mod command;
mod event;
mod ticks;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::event::*;
pub use self::ticks::{GardenAt, Ticks};
use crate::ids::{BlobHash, JobId, RegionId};
use crate::request::wire_struct;
use crate::wire_enum::wire_enum;

/// The service of the garden process: the transport and the timeline.
pub const SERVICE: &str = "garden";
/// The service for commands that wait for no other command, on a connection of its own.
pub const CONTROL_SERVICE: &str = "garden_control";

/// The state of the transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TransportState {
    /// It does not play; playing starts where playback last began, or where a seek went.
    Stopped,
    /// It plays.
    Playing,
    /// It does not play; playing goes on from the position.
    Paused,
}

impl TransportState {
    /// Returns the name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::Playing => "playing",
            Self::Paused => "paused",
        }
    }
}

/// The state of the garden's audio device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GardenDeviceState {
    /// It takes sound.
    Running,
    /// It was lost; the garden plays into nothing and tries the device again.
    Lost,
    /// It is not the configured one, which did not answer.
    Fallback,
}

wire_enum! {
    /// The state of a region.
    RegionState {
        /// Its content is still being made.
        Pending = "pending",
        /// Its content is there and waits for `garden_approve` or `garden_reject`.
        AwaitingApproval = "awaiting_approval",
        /// It is played.
        Ready = "ready",
        /// Its content could not be made, or cannot be played.
        Failed = "failed",
        /// Its content was rejected and is never played.
        Rejected = "rejected",
    }

    /// What playback does when it reaches a region that is not ready.
    IfLate {
        /// Goes on; the region is silent.
        Silence = "silence",
        /// Repeats the bar before the region until it is ready.
        Vamp = "vamp",
    }
}

wire_struct! {
    /// A region of the timeline, as the garden plays it.
    GardenRegion {
        /// Its id.
        region_id: RegionId,
        /// Where it starts.
        position: Ticks,
        /// Its length, or that of one pass if it repeats; that of its content if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration: Option<Ticks>,
        /// Its state: only a `ready` region is played.
        state: RegionState,
        /// Its content; absent while that is being made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<GardenContent>,
        /// The job that makes its content.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        promise: Option<GardenPromise>,
        /// How many times it is played, one pass after the other.
        repeat: u32,
        /// Its gain in decibels.
        gain_db: f32,
        /// Its place between left (-1) and right (1).
        pan: f32,
        /// How much of its content is skipped at the start, in seconds.
        offset_seconds: f64,
        /// The length of its fade in.
        fade_in: Ticks,
        /// The length of its fade out.
        fade_out: Ticks,
        /// How long it takes over from the regions that end within this time after its start: they
        /// fade out and it fades in, with equal power.
        crossfade: Ticks,
        /// Its name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    }

    /// What a region plays.
    GardenContent {
        /// The hash of the content.
        hash: BlobHash,
        /// Its MIME type.
        mime_type: String,
    }

    /// Content that a job is making.
    GardenPromise {
        /// The job.
        job_id: JobId,
        /// What playback does when it reaches the region too early.
        if_late: IfLate,
    }

    /// The part of the timeline that is played again and again.
    LoopRange {
        /// Its first tick.
        start: Ticks,
        /// The tick after its last one.
        end: Ticks,
    }

    /// A loop, in beats.
    GardenLoop {
        /// The beat at which it starts.
        start: f64,
        /// The beat at which it ends.
        end: f64,
    }

    /// A point of the tempo map.
    TempoChange {
        /// Where the tempo begins.
        at: Ticks,
        /// Quarter notes per minute.
        bpm: f64,
        /// The upper number of the time signature.
        beats_per_bar: u8,
        /// The lower number of the time signature: 1, 2, 4, 8 or 16.
        beat_unit: u8,
    }

    /// The whole timeline.
    #[derive(Default)]
    GardenTimeline {
        /// The number of changes that led to it.
        revision: u64,
        /// The tempo map, in order. Before its first point, and if it is empty, the tempo is that
        /// of [`TempoChange::DEFAULT`].
        tempo: Vec<TempoChange>,
        /// The loop.
        #[serde(default, rename = "loop", skip_serializing_if = "Option::is_none")]
        loop_range: Option<LoopRange>,
        /// The regions.
        regions: Vec<GardenRegion>,
    }

    /// What the garden is doing.
    GardenStatus {
        /// The state of the transport.
        state: TransportState,
        /// Where it is, in ticks: 960 to the beat.
        position: Ticks,
        /// Where it is, in beats (quarter notes).
        position_beats: f64,
        /// Where it is, in seconds from the start of the timeline.
        position_seconds: f64,
        /// The bar, counted from 1.
        bar: u64,
        /// The beat of the bar, counted from 1, in units of the time signature.
        beat_in_bar: f64,
        /// The tempo there, in quarter notes per minute.
        tempo_bpm: f64,
        /// The time signature there, such as `4/4`.
        time_signature: String,
        /// The loop.
        #[serde(default, rename = "loop", skip_serializing_if = "Option::is_none")]
        loop_range: Option<GardenLoop>,
        /// The region that playback waits for: the bar before it is repeated.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        waiting_for: Option<RegionId>,
        /// The number of regions on the timeline.
        region_count: u32,
        /// The number of changes that led to the timeline.
        revision: u64,
        /// The audio device.
        device: GardenDevice,
        /// What was counted since the garden started.
        counters: GardenCounters,
    }

    /// The garden's audio device.
    GardenDevice {
        /// Its kind: `pulse`, `command`, `file` or `null`.
        kind: String,
        /// Its name.
        name: String,
        /// Frames per second.
        sample_rate: u32,
        /// The frames of one buffer.
        buffer_frames: u32,
        /// Whether it takes sound.
        state: GardenDeviceState,
        /// Why it is not the configured device, or why it was lost.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// Whether the garden has real-time scheduling.
        realtime: bool,
    }

    /// What the garden counted since it started.
    #[derive(Default)]
    GardenCounters {
        /// Frames played.
        frames: u64,
        /// How often the device had to wait for sound.
        underruns: u64,
        /// How often content was not ready in time and was played as silence.
        late: u64,
        /// Samples that were too loud.
        clipped: u64,
        /// Commands executed.
        commands: u64,
    }
}

impl LoopRange {
    /// Returns it in beats.
    #[must_use]
    pub fn beats(&self) -> GardenLoop {
        GardenLoop { start: self.start.beats(), end: self.end.beats() }
    }
}

impl TempoChange {
    /// The tempo of an empty tempo map: 120 quarter notes per minute in 4/4, as MIDI files have it.
    pub const DEFAULT: Self = Self { at: Ticks(0), bpm: 120.0, beats_per_bar: 4, beat_unit: 4 };
}
