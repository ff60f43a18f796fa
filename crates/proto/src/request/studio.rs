//! Sound: SoundFonts, rendering, analysis.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::wire_struct;
use crate::ids::{ArtifactId, BlobHash, VariationSetId};

/// What a sample is in a rendered file, which is a WAV file unless it says FLAC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SampleFormat {
    /// 16-bit integers.
    #[default]
    S16,
    /// 24-bit integers.
    S24,
    /// 32-bit floats, which never clip.
    F32,
    /// 16-bit integers in a FLAC file, which loses nothing and is half as large.
    Flac16,
    /// 24-bit integers in a FLAC file.
    Flac24,
}

wire_struct! {
    /// Which SoundFont.
    #[derive(Default)]
    SoundfontInspectRequest {
        /// Its content; the daemon's own font if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        soundfont_hash: Option<BlobHash>,
        /// Whether to tell what each key of the drum kits plays.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<bool>")]
        include_drum_map: bool,
    }

    /// What is in a SoundFont.
    SoundfontInfoResponse {
        /// Its name.
        name: String,
        /// Its presets, by bank and program.
        presets: Vec<SoundfontPreset>,
        /// How many they are.
        preset_count: u64,
        /// How many instruments.
        instrument_count: u64,
        /// How many samples.
        sample_count: u64,
        /// Who made it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        author: Option<String>,
        /// The rights in it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        copyright: Option<String>,
        /// The drum kits, if asked for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        drum_maps: Option<Vec<SoundfontDrumMap>>,
    }

    /// A preset.
    SoundfontPreset {
        /// Its bank; 128 has the drum kits.
        bank: u16,
        /// Its program in the bank.
        program: u16,
        /// Its name.
        name: String,
    }

    /// A drum kit.
    SoundfontDrumMap {
        /// Its bank.
        bank: u16,
        /// Its program.
        program: u16,
        /// What its keys play.
        keys: Vec<SoundfontDrumKey>,
    }

    /// A key of a drum kit.
    SoundfontDrumKey {
        /// The key.
        key: u8,
        /// The sample it plays.
        sample_name: String,
        /// The instrument it belongs to.
        instrument_name: String,
    }

    /// Which preset.
    SoundfontPresetInspectRequest {
        /// The SoundFont's content; the daemon's own font if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        soundfont_hash: Option<BlobHash>,
        /// The bank; 128 has the drum kits.
        bank: u16,
        /// The program in the bank.
        program: u16,
    }

    /// A preset with its regions.
    SoundfontPresetInfoResponse {
        /// Its bank.
        bank: u16,
        /// Its program.
        program: u16,
        /// Its name.
        name: String,
        /// What plays when a key is struck.
        regions: Vec<SoundfontRegion>,
    }

    /// What plays when a key in a range is struck with a velocity in a range.
    SoundfontRegion {
        /// Lowest key.
        key_low: u8,
        /// Highest key.
        key_high: u8,
        /// Softest velocity.
        velocity_low: u8,
        /// Hardest velocity.
        velocity_high: u8,
        /// The key at which the sample sounds as recorded.
        root_key: u8,
        /// How far it is tuned from that, in cents.
        tuning_cents: i32,
        /// -50 left to 50 right.
        pan: f32,
        /// How much it is turned down, in decibels.
        attenuation_db: f32,
        /// Whether it sounds on while the key is held.
        looped: bool,
        /// Regions of one class silence each other; 0 is none.
        exclusive_class: u8,
        /// The sample.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sample_name: Option<String>,
        /// The instrument.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        instrument_name: Option<String>,
    }

    /// A MIDI file to be rendered.
    MidiToWavRequest with_lineage {
        /// The MIDI file's content.
        input_hash: BlobHash,
        /// The SoundFont's content; the daemon's own font if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        soundfont_hash: Option<BlobHash>,
        /// Frames per second, 16000 to 192000; 44100 if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sample_rate: Option<u32>,
        /// What a sample is, and in which file; 16-bit integers in a WAV file if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        format: Option<SampleFormat>,
        /// How much louder, in decibels: -60 to 24.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        gain_db: Option<f32>,
    }

    /// What was made.
    ArtifactsCreatedResponse {
        /// The artifacts.
        artifacts: Vec<MadeArtifact>,
        /// What made them.
        backend: String,
        /// The set of variations they are in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        variation_set_id: Option<VariationSetId>,
    }

    /// One of what was made.
    MadeArtifact {
        /// Its id.
        artifact_id: ArtifactId,
        /// Its content.
        content_hash: BlobHash,
        /// Its content's type.
        mime_type: String,
        /// How long it lasts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration_seconds: Option<f64>,
    }

    /// A sound whose beats are wanted: by its content, or as a file of the daemon's machine.
    #[derive(Default)]
    BeatthisAnalyzeRequest {
        /// Its content: WAV, FLAC, MP3 or Ogg Vorbis.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        audio_hash: Option<BlobHash>,
        /// Its path, inside one of `files.roots`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        audio_path: Option<String>,
        /// Whether to add how much begins at each hundredth of a second.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<bool>")]
        include_frames: bool,
    }

    /// The beats of a sound.
    BeatsAnalyzedResponse {
        /// When, in seconds.
        beats: Vec<f64>,
        /// Those that begin a bar.
        downbeats: Vec<f64>,
        /// The usual tempo.
        estimated_bpm: f64,
        /// 0 to 1: how much stronger sounds begin on the beats than between them.
        confidence: f32,
        /// Beats of a bar; 0 without beats.
        beats_per_bar: u32,
        /// How long the sound lasts.
        duration_seconds: f64,
        /// What found them: a model service, or the embedded method.
        backend: String,
        /// How much begins at each moment, if asked for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        frames: Option<Vec<f32>>,
        /// Moments in a second of `frames`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        frames_per_second: Option<f64>,
        /// Where this analysis is kept.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        artifact_id: Option<ArtifactId>,
    }

    /// A sound to be described.
    ClapAnalyzeRequest {
        /// Its content: WAV, FLAC, MP3 or Ogg Vorbis.
        audio_hash: BlobHash,
        /// Another one, for `similarity`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        audio_b_hash: Option<BlobHash>,
        /// Of `embeddings`, `features`, `similarity`, `genre`, `mood`, `zero_shot`; `embeddings` if
        /// absent. The last three need a model service.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<Vec<String>>")]
        tasks: Vec<String>,
        /// The labels of `zero_shot`.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<Vec<String>>")]
        text_candidates: Vec<String>,
        /// Who asks.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        creator: Option<String>,
        /// The artifact that is described; must exist.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_id: Option<ArtifactId>,
    }

    /// A sound described.
    ClapAnalyzedResponse {
        /// Tasks that this backend cannot do.
        unavailable: Vec<String>,
        /// What described it: a model service, or the embedded method.
        backend: String,
        /// The sound as a vector, to be compared with others of the same backend.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        embeddings: Option<Vec<f32>>,
        /// What was measured.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        features: Option<SoundFeatures>,
        /// Its genres.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        genre: Option<Vec<LabelScore>>,
        /// Its moods.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mood: Option<Vec<LabelScore>>,
        /// How well each candidate fits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        zero_shot: Option<Vec<LabelScore>>,
        /// How alike the two sounds are; 1 for the same.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        similarity: Option<f32>,
        /// Where this analysis is kept.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        artifact_id: Option<ArtifactId>,
    }

    /// A label and how well it fits.
    LabelScore {
        /// The label.
        label: String,
        /// 0 to 1.
        score: f32,
    }

    /// What is measured in a sound.
    SoundFeatures {
        /// How long it lasts.
        duration_seconds: f64,
        /// Its frames per second.
        sample_rate: u32,
        /// Its channels.
        channels: u32,
        /// When sounds begin, in seconds.
        onsets: Vec<f64>,
        /// The middle of the spectrum, in hertz.
        centroid_hertz: f32,
        /// How wide it spreads, in hertz.
        bandwidth_hertz: f32,
        /// 85 % of the power lies below, in hertz.
        rolloff_hertz: f32,
        /// 0 for a tone, 1 for noise.
        flatness: f32,
        /// The root of the mean power.
        rms: f32,
        /// Integrated loudness after EBU R 128; silence has none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        loudness_lufs: Option<f64>,
        /// Loudness range after EBU R 128.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        loudness_range_lu: Option<f64>,
        /// The largest value between samples, in decibels of full scale.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        true_peak_dbtp: Option<f64>,
        /// Its key, such as `D minor`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
        /// 0 to 1: how much better that key fits than the next.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key_confidence: Option<f32>,
    }
}
