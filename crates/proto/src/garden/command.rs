//! The tools of the garden process: their arguments and answers. A tool's name with its service
//! and an underscore in front is the name of the native tool that uses it.

use super::{
    GardenAt, GardenContent, GardenRegion, LoopRange, RegionState, TempoChange, Ticks,
    TransportState,
};
use crate::ids::{BlobHash, RegionId};
use crate::request::{SampleFormat, wire_struct};

/// Returns the state of the garden: no arguments, answer [`super::GardenStatus`].
pub const STATUS: &str = "status";
/// Plays: [`TransportArguments`], [`TransportAnswer`].
pub const PLAY: &str = "play";
/// Pauses: [`TransportArguments`], [`TransportAnswer`].
pub const PAUSE: &str = "pause";
/// Stops: [`TransportArguments`], [`TransportAnswer`].
pub const STOP: &str = "stop";
/// Moves the transport: [`SeekArguments`], [`TransportAnswer`].
pub const SEEK: &str = "seek";
/// Changes the tempo map: [`SetTempoArguments`], [`TempoAnswer`].
pub const SET_TEMPO: &str = "set_tempo";
/// Prepares the content of a region that is about to be placed: [`PrepareRegionArguments`], no
/// answer. A garden without this tool prepares it when the region is placed.
pub const PREPARE_REGION: &str = "prepare_region";
/// Places a region: [`CreateRegionArguments`], [`CreateRegionAnswer`].
pub const CREATE_REGION: &str = "create_region";
/// Moves a region: [`MoveRegionArguments`], no answer.
pub const MOVE_REGION: &str = "move_region";
/// Removes a region: [`DeleteRegionArguments`], no answer.
pub const DELETE_REGION: &str = "delete_region";
/// Sets the loop or ends it: [`SetLoopArguments`], no answer.
pub const SET_LOOP: &str = "set_loop";
/// Approves or rejects the content of a region: [`SetRegionStateArguments`], no answer.
pub const SET_REGION_STATE: &str = "set_region_state";
/// Renders the timeline to a file: [`ExportArguments`], [`ExportAnswer`].
pub const EXPORT: &str = "export";
/// Sends what is heard with `garden_monitor`, until an answer says that nobody listens:
/// no arguments, [`MonitorAnswer`].
pub const MONITOR: &str = "monitor";
/// Fetches the timeline again: no arguments, no answer.
pub const RELOAD: &str = "reload";
/// Pauses immediately, of the service [`super::CONTROL_SERVICE`]: no arguments,
/// [`TransportAnswer`].
pub const EMERGENCY_PAUSE: &str = "emergency_pause";

wire_struct! {
    /// When to play, pause or stop.
    #[derive(Default)]
    TransportArguments {
        /// When; now if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<GardenAt>,
    }

    /// Where to go.
    SeekArguments {
        /// The new position.
        position: Ticks,
        /// When; now if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<GardenAt>,
    }

    /// A time signature.
    TimeSignature {
        /// The upper number.
        beats_per_bar: u8,
        /// The lower number: 1, 2, 4, 8 or 16.
        beat_unit: u8,
    }

    /// A new tempo.
    SetTempoArguments {
        /// Quarter notes per minute.
        bpm: f64,
        /// Where it begins. If absent, `at` decides while the transport plays; otherwise it begins
        /// at the start of the timeline.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        position: Option<Ticks>,
        /// The time signature; the one that holds there if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        time_signature: Option<TimeSignature>,
        /// When; while the transport plays, at the next bar if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<GardenAt>,
        /// The revision that the timeline has with this change.
        revision: u64,
    }

    /// A region that is about to be placed.
    PrepareRegionArguments {
        /// The region.
        region: GardenRegion,
    }

    /// A region to place.
    CreateRegionArguments {
        /// The region.
        region: GardenRegion,
        /// The revision that the timeline has with this change.
        revision: u64,
    }

    /// A region to move.
    MoveRegionArguments {
        /// The region.
        region_id: RegionId,
        /// Its new position.
        position: Ticks,
        /// The revision that the timeline has with this change.
        revision: u64,
    }

    /// A region to remove.
    DeleteRegionArguments {
        /// The region.
        region_id: RegionId,
        /// The revision that the timeline has with this change.
        revision: u64,
    }

    /// A loop to set.
    SetLoopArguments {
        /// The loop; none if absent.
        #[serde(default, rename = "loop", skip_serializing_if = "Option::is_none")]
        loop_range: Option<LoopRange>,
        /// The revision that the timeline has with this change.
        revision: u64,
    }

    /// A region to approve or reject.
    SetRegionStateArguments {
        /// The region.
        region_id: RegionId,
        /// Its new state: `ready` or `rejected`.
        state: RegionState,
        /// The revision that the timeline has with this change.
        revision: u64,
    }

    /// A part of the timeline to render.
    ExportArguments {
        /// Where to start; the start of the timeline if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        start: Option<Ticks>,
        /// Where to end; where the last region has ended if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        end: Option<Ticks>,
        /// The sample and file format.
        format: SampleFormat,
        /// The sample rate in hertz; that of the device if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sample_rate: Option<u32>,
    }

    /// A rendered file, stored as content.
    ExportAnswer {
        /// The file.
        content: GardenContent,
        /// Its length in bytes.
        size: u64,
        /// Its duration in seconds.
        duration_seconds: f64,
        /// The regions that are heard in it.
        regions: Vec<ExportedRegion>,
        /// The hash of the SoundFont that played MIDI, if there was any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        soundfont: Option<BlobHash>,
    }

    /// A region that is heard in an exported file.
    ExportedRegion {
        /// The region.
        region_id: RegionId,
        /// The hash of its content.
        hash: BlobHash,
    }

    /// The format of the sound that is sent: 32-bit floats, little-endian, left and right in turn.
    MonitorAnswer {
        /// Frames per second.
        sample_rate: u32,
    }

    /// Where the transport is after a command.
    TransportAnswer {
        /// Its state.
        state: TransportState,
        /// Its position.
        position: Ticks,
    }

    /// What became of a change of tempo.
    TempoAnswer {
        /// The point that the tempo map now has.
        change: TempoChange,
    }

    /// What became of a new region.
    CreateRegionAnswer {
        /// Its length, as given or that of its content.
        duration: Ticks,
    }
}
