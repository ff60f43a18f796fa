//! Tunes in ABC notation: `abc_*`.

use super::wire_struct;
use crate::ids::{ArtifactId, BlobHash};

wire_struct! {
    /// A text to parse.
    AbcParseRequest {
        /// The text, in ABC 2.1: one tune or several.
        abc: String,
        /// Whether to list the notes as played, with repeats expanded.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<bool>")]
        include_notes: bool,
    }

    /// The contents of a text. The facts of the first tune are also at the top level.
    AbcParsedResponse {
        /// Whether the text has no errors.
        valid: bool,
        /// The number of notes as written, in all tunes; each note of a chord counts.
        notes_count: u64,
        /// The tunes.
        tunes: Vec<AbcTune>,
        /// The errors.
        errors: Vec<AbcProblem>,
        /// The title of the first tune.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// The key of the first tune, as written.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
        /// The meter of the first tune, as written.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        meter: Option<String>,
        /// The tempo at the start of the first tune, in quarter notes per minute.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tempo: Option<u32>,
    }

    /// A tune.
    AbcTune {
        /// The names of its voices.
        voices: Vec<String>,
        /// The number of its notes, as written.
        notes_count: u64,
        /// The number of its bar lines, as written.
        bars_count: u64,
        /// Its reference number.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reference: Option<u32>,
        /// Its title.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// Its composer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        composer: Option<String>,
        /// Its key as written.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
        /// Its meter as written.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        meter: Option<String>,
        /// The tempo at its start, in quarter notes per minute.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tempo: Option<u32>,
        /// Its duration in seconds, including repeats.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration_seconds: Option<f64>,
        /// Its first 10000 notes as played, if requested.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        notes: Option<Vec<AbcNote>>,
    }

    /// A note as played. Times are in quarter notes.
    AbcNote {
        /// The index of its voice, from 0.
        voice: u32,
        /// When it starts.
        onset: f64,
        /// How long it lasts.
        duration: f64,
        /// The MIDI key number; 60 is middle C.
        key: u8,
    }

    /// An error or a warning about a text.
    AbcProblem {
        /// The line of text, from 1.
        line: u32,
        /// The character in the line of text, from 1.
        column: u32,
        /// The problem.
        message: String,
        /// How to fix it.
        help: String,
    }

    /// A text to check.
    AbcValidateRequest {
        /// The text, in ABC 2.1.
        abc: String,
    }

    /// The result of checking a text.
    AbcValidatedResponse {
        /// Whether it has no errors; warnings do not count.
        valid: bool,
        /// The errors, which make it invalid.
        errors: Vec<AbcProblem>,
        /// The warnings: the text can be played, but perhaps not as intended.
        warnings: Vec<AbcProblem>,
    }

    /// A text to transpose. Give either `semitones` or `target_key`.
    AbcTransposeRequest {
        /// The text, in ABC 2.1.
        abc: String,
        /// The number of semitones to transpose by, from -36 to 36; negative is down.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        semitones: Option<i8>,
        /// The new tonic, such as `D` or `Bb`, reached the shorter way; each tune keeps its mode.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        target_key: Option<String>,
    }

    /// A transposed text.
    AbcTransposedResponse {
        /// Whether the text has no errors; a text with errors is returned unchanged.
        valid: bool,
        /// The text.
        abc: String,
        /// The number of semitones the first tune was transposed by.
        semitones: i8,
        /// The errors, which make the text invalid.
        errors: Vec<AbcProblem>,
        /// The key of the first tune before transposing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        original_key: Option<String>,
        /// The key of the first tune after transposing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        new_key: Option<String>,
    }

    /// A tune to convert to a MIDI file.
    AbcToMidiRequest with_lineage {
        /// The text, in ABC 2.1.
        abc: String,
        /// The number of the tune in the text, from 1; the first if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tune: Option<u32>,
        /// The tempo in quarter notes per minute, instead of the tune's own: 1 to 2000.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tempo_override: Option<u16>,
        /// The number of semitones to transpose by, from -60 to 60; negative is down.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        transpose: Option<i8>,
        /// The velocity of notes without dynamics: 1 to 127, default 80.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        velocity: Option<u8>,
        /// The MIDI channel of the first voice: 0 to 15, default 0.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        channel: Option<u8>,
        /// Whether to play an accompaniment from the chord symbols.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<bool>")]
        chords: bool,
    }

    /// The new MIDI file.
    AbcConvertedResponse {
        /// The id of the artifact.
        artifact_id: ArtifactId,
        /// The hash of its content.
        content_hash: BlobHash,
        /// The hash of the text it was converted from.
        abc_hash: BlobHash,
        /// Its duration in seconds.
        duration_seconds: f64,
        /// The number of its notes, with repeats expanded.
        notes_count: u64,
        /// The warnings about the text.
        warnings: Vec<AbcProblem>,
    }
}
