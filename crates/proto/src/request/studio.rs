//! Audio: SoundFonts, rendering, analysis.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::wire_struct;
use crate::ids::{ArtifactId, BlobHash, VariationSetId};

/// The sample format of a rendered file, which is a WAV file unless FLAC is named.
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
    /// 16-bit integers in a FLAC file, which is lossless and half as large.
    Flac16,
    /// 24-bit integers in a FLAC file.
    Flac24,
}

wire_struct! {
    /// The SoundFont to inspect.
    #[derive(Default)]
    SoundfontInspectRequest {
        /// The hash of its content; the daemon's default SoundFont if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        soundfont_hash: Option<BlobHash>,
        /// Whether to list the sound of each key of the drum kits.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<bool>")]
        include_drum_map: bool,
    }

    /// The contents of a SoundFont.
    SoundfontInfoResponse {
        /// Its name.
        name: String,
        /// Its presets, sorted by bank and program.
        presets: Vec<SoundfontPreset>,
        /// The number of presets.
        preset_count: u64,
        /// The number of instruments.
        instrument_count: u64,
        /// The number of samples.
        sample_count: u64,
        /// Its author.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        author: Option<String>,
        /// Its copyright notice.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        copyright: Option<String>,
        /// The drum kits, if requested.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        drum_maps: Option<Vec<SoundfontDrumMap>>,
    }

    /// A preset.
    SoundfontPreset {
        /// Its bank; drum kits are in bank 128.
        bank: u16,
        /// Its program number in the bank.
        program: u16,
        /// Its name.
        name: String,
    }

    /// A drum kit.
    SoundfontDrumMap {
        /// Its bank.
        bank: u16,
        /// Its program number.
        program: u16,
        /// The sounds of its keys.
        keys: Vec<SoundfontDrumKey>,
    }

    /// A key of a drum kit.
    SoundfontDrumKey {
        /// The MIDI key number.
        key: u8,
        /// The sample it plays.
        sample_name: String,
        /// The instrument that the sample belongs to.
        instrument_name: String,
    }

    /// The preset to inspect.
    SoundfontPresetInspectRequest {
        /// The hash of the SoundFont; the daemon's default SoundFont if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        soundfont_hash: Option<BlobHash>,
        /// The bank; drum kits are in bank 128.
        bank: u16,
        /// The program number in the bank.
        program: u16,
    }

    /// A preset with its regions.
    SoundfontPresetInfoResponse {
        /// Its bank.
        bank: u16,
        /// Its program number.
        program: u16,
        /// Its name.
        name: String,
        /// The regions, which map keys and velocities to samples.
        regions: Vec<SoundfontRegion>,
    }

    /// The sample for a range of keys and velocities.
    SoundfontRegion {
        /// The lowest key.
        key_low: u8,
        /// The highest key.
        key_high: u8,
        /// The lowest velocity.
        velocity_low: u8,
        /// The highest velocity.
        velocity_high: u8,
        /// The key at which the sample sounds at its recorded pitch.
        root_key: u8,
        /// The tuning offset in cents.
        tuning_cents: i32,
        /// The stereo position, from -50 (left) to 50 (right).
        pan: f32,
        /// The attenuation in decibels.
        attenuation_db: f32,
        /// Whether it loops while the key is held.
        looped: bool,
        /// The exclusive class: regions of one class silence each other; 0 means no class.
        exclusive_class: u8,
        /// The sample.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sample_name: Option<String>,
        /// The instrument.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        instrument_name: Option<String>,
    }

    /// A MIDI file to render.
    MidiToWavRequest with_lineage {
        /// The hash of the MIDI file.
        input_hash: BlobHash,
        /// The hash of the SoundFont; the daemon's default SoundFont if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        soundfont_hash: Option<BlobHash>,
        /// The sample rate in hertz: 16000 to 192000, default 44100.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sample_rate: Option<u32>,
        /// The sample and file format; 16-bit integers in a WAV file if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        format: Option<SampleFormat>,
        /// The gain in decibels: -60 to 24.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        gain_db: Option<f32>,
    }

    /// The created artifacts.
    ArtifactsCreatedResponse {
        /// The artifacts.
        artifacts: Vec<MadeArtifact>,
        /// The backend that created them.
        backend: String,
        /// The variation set they belong to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        variation_set_id: Option<VariationSetId>,
    }

    /// A created artifact.
    MadeArtifact {
        /// The id of the artifact.
        artifact_id: ArtifactId,
        /// The hash of its content.
        content_hash: BlobHash,
        /// The MIME type of its content.
        mime_type: String,
        /// Its duration in seconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration_seconds: Option<f64>,
    }

    /// Audio to find the beats of. Give its hash, or the path of a file on the daemon's machine.
    #[derive(Default)]
    BeatthisAnalyzeRequest {
        /// The hash of the audio: WAV, FLAC, MP3 or Ogg Vorbis.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        audio_hash: Option<BlobHash>,
        /// Its path, inside one of `files.roots`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        audio_path: Option<String>,
        /// Whether to include the onset strength at each hundredth of a second.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<bool>")]
        include_frames: bool,
    }

    /// The beats of an audio file.
    BeatsAnalyzedResponse {
        /// The times of the beats, in seconds.
        beats: Vec<f64>,
        /// The times of the first beats of bars, in seconds.
        downbeats: Vec<f64>,
        /// The typical tempo in beats per minute.
        estimated_bpm: f64,
        /// The confidence, from 0 to 1: how much stronger onsets are on the beats than between
        /// them.
        confidence: f32,
        /// The number of beats per bar; 0 if there are no beats.
        beats_per_bar: u32,
        /// The duration of the audio in seconds.
        duration_seconds: f64,
        /// The backend: a music service, or the embedded method.
        backend: String,
        /// The onset strength of each frame, if requested.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        frames: Option<Vec<f32>>,
        /// The number of `frames` per second.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        frames_per_second: Option<f64>,
        /// The artifact with this analysis.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        artifact_id: Option<ArtifactId>,
    }

    /// Audio to analyze.
    ClapAnalyzeRequest {
        /// The hash of the audio: WAV, FLAC, MP3 or Ogg Vorbis.
        audio_hash: BlobHash,
        /// The hash of a second audio file, for `similarity`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        audio_b_hash: Option<BlobHash>,
        /// The tasks: `embeddings`, `features`, `similarity`, `genre`, `mood`, `zero_shot`;
        /// `embeddings` if absent. The last three need a music service.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<Vec<String>>")]
        tasks: Vec<String>,
        /// The candidate labels for `zero_shot`.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<Vec<String>>")]
        text_candidates: Vec<String>,
        /// The creator of the analysis.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        creator: Option<String>,
        /// The analyzed artifact, which must exist.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_id: Option<ArtifactId>,
    }

    /// The analysis of an audio file.
    ClapAnalyzedResponse {
        /// Tasks that this backend does not support.
        unavailable: Vec<String>,
        /// The backend: a music service, or the embedded method.
        backend: String,
        /// The embedding vector, comparable with others of the same backend.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        embeddings: Option<Vec<f32>>,
        /// The measured features.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        features: Option<SoundFeatures>,
        /// Its genres.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        genre: Option<Vec<LabelScore>>,
        /// Its moods.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mood: Option<Vec<LabelScore>>,
        /// The score of each candidate label.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        zero_shot: Option<Vec<LabelScore>>,
        /// The similarity of the two audio files; 1 if they are the same.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        similarity: Option<f32>,
        /// The artifact with this analysis.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        artifact_id: Option<ArtifactId>,
    }

    /// A label and its score.
    LabelScore {
        /// The label.
        label: String,
        /// The score, from 0 to 1.
        score: f32,
    }

    /// Features measured in an audio file.
    SoundFeatures {
        /// Its duration in seconds.
        duration_seconds: f64,
        /// Its sample rate in hertz.
        sample_rate: u32,
        /// The number of its channels.
        channels: u32,
        /// The times of onsets, in seconds.
        onsets: Vec<f64>,
        /// The spectral centroid, in hertz.
        centroid_hertz: f32,
        /// The spectral bandwidth, in hertz.
        bandwidth_hertz: f32,
        /// The spectral rolloff: 85 % of the power is below it, in hertz.
        rolloff_hertz: f32,
        /// The spectral flatness, from 0 for a tone to 1 for noise.
        flatness: f32,
        /// The root mean square of the samples.
        rms: f32,
        /// The integrated loudness according to EBU R 128; absent for silence.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        loudness_lufs: Option<f64>,
        /// The loudness range according to EBU R 128.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        loudness_range_lu: Option<f64>,
        /// The true peak between samples, in decibels relative to full scale.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        true_peak_dbtp: Option<f64>,
        /// Its key, such as `D minor`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
        /// How much better that key fits than the next, from 0 to 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key_confidence: Option<f32>,
    }
}
