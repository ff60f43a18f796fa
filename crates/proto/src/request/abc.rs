//! Tunes in ABC notation: `abc_*`.

use super::wire_struct;
use crate::ids::{ArtifactId, BlobHash};

wire_struct! {
    /// A text to read.
    AbcParseRequest {
        /// The text, in ABC 2.1: one tune or several.
        abc: String,
        /// Whether to list the notes as they sound, with repeats written out.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<bool>")]
        include_notes: bool,
    }

    /// What is in a text. The first tune's facts are also at the top.
    AbcParsedResponse {
        /// Whether it has no errors.
        valid: bool,
        /// Notes as written, all tunes together; each note of a chord counts.
        notes_count: u64,
        /// The tunes.
        tunes: Vec<AbcTune>,
        /// What is wrong.
        errors: Vec<AbcProblem>,
        /// The title.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// The key as written.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
        /// The meter as written.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        meter: Option<String>,
        /// Quarter notes per minute at the start.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tempo: Option<u32>,
    }

    /// A tune.
    AbcTune {
        /// The names of its voices.
        voices: Vec<String>,
        /// Its notes as written.
        notes_count: u64,
        /// Its bar lines as written.
        bars_count: u64,
        /// Its reference number.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reference: Option<u32>,
        /// Its title.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// Who made it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        composer: Option<String>,
        /// Its key as written.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
        /// Its meter as written.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        meter: Option<String>,
        /// Quarter notes per minute at its start.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tempo: Option<u32>,
        /// How long it lasts with its repeats.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration_seconds: Option<f64>,
        /// Its notes as they sound, if asked for: the first 10000.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        notes: Option<Vec<AbcNote>>,
    }

    /// A note that sounds. Times are in quarter notes.
    AbcNote {
        /// Its voice, from 0.
        voice: u32,
        /// When it starts.
        onset: f64,
        /// How long it lasts.
        duration: f64,
        /// The MIDI key; 60 is middle C.
        key: u8,
    }

    /// Something wrong or doubtful in a text.
    AbcProblem {
        /// The line, from 1.
        line: u32,
        /// The character in the line, from 1.
        column: u32,
        /// What is wrong.
        message: String,
        /// What to do.
        help: String,
    }

    /// A text to check.
    AbcValidateRequest {
        /// The text, in ABC 2.1.
        abc: String,
    }

    /// What is wrong with a text.
    AbcValidatedResponse {
        /// Whether it has no errors; warnings do not count.
        valid: bool,
        /// What makes it invalid.
        errors: Vec<AbcProblem>,
        /// What can be played, but perhaps not as it was meant.
        warnings: Vec<AbcProblem>,
    }

    /// A text to transpose: give `semitones` or `target_key`.
    AbcTransposeRequest {
        /// The text, in ABC 2.1.
        abc: String,
        /// So many semitones up, down if negative: -36 to 36.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        semitones: Option<i8>,
        /// To this tonic, the nearer way, such as `D` or `Bb`; each tune keeps its mode.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        target_key: Option<String>,
    }

    /// A text in another key.
    AbcTransposedResponse {
        /// Whether the text has no errors; one that has is given back as it was.
        valid: bool,
        /// The text.
        abc: String,
        /// How far the first tune went.
        semitones: i8,
        /// What makes the text invalid.
        errors: Vec<AbcProblem>,
        /// The key of the first tune before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        original_key: Option<String>,
        /// The key of the first tune now.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        new_key: Option<String>,
    }

    /// A tune to make a MIDI file of.
    AbcToMidiRequest with_lineage {
        /// The text, in ABC 2.1.
        abc: String,
        /// Which tune of the text, from 1; the first if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tune: Option<u32>,
        /// Quarter notes per minute, instead of what the tune says: 1 to 2000.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tempo_override: Option<u16>,
        /// Semitones up, down if negative: -60 to 60.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        transpose: Option<i8>,
        /// How hard notes are struck that no dynamics change: 1 to 127, 80 if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        velocity: Option<u8>,
        /// The MIDI channel of the first voice: 0 to 15, 0 if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        channel: Option<u8>,
        /// Whether chord symbols are accompanied.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<bool>")]
        chords: bool,
    }

    /// The MIDI file exists.
    AbcConvertedResponse {
        /// Its artifact.
        artifact_id: ArtifactId,
        /// Its content.
        content_hash: BlobHash,
        /// The content of the text it was made from.
        abc_hash: BlobHash,
        /// How long it lasts.
        duration_seconds: f64,
        /// Its notes, with repeats written out.
        notes_count: u64,
        /// What is doubtful about the text.
        warnings: Vec<AbcProblem>,
    }
}
