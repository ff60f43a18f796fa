//! Samples of the tools for tunes.

use super::*;

sample!(
    AbcParseRequest,
    Self { abc: String::new(), include_notes: false },
    Self { abc: awkward(), include_notes: true }
);
sample!(
    AbcParsedResponse,
    Self {
        valid: false,
        title: None,
        key: None,
        meter: None,
        tempo: None,
        notes_count: 0,
        tunes: vec![],
        errors: vec![],
    },
    Self {
        valid: true,
        title: Some(awkward()),
        key: Some("Bbm".into()),
        meter: Some("C|".into()),
        tempo: Some(u32::MAX),
        notes_count: u64::MAX,
        tunes: vec![abc_tune_least(), abc_tune_full()],
        errors: vec![abc_problem()],
    }
);
sample!(AbcValidateRequest, Self { abc: String::new() }, Self { abc: awkward() });
sample!(
    AbcValidatedResponse,
    Self { valid: true, errors: vec![], warnings: vec![] },
    Self { valid: false, errors: vec![abc_problem()], warnings: vec![abc_problem()] }
);
sample!(
    AbcTransposeRequest,
    Self { abc: String::new(), semitones: None, target_key: None },
    Self { abc: awkward(), semitones: Some(i8::MIN), target_key: Some("Bb".into()) }
);
sample!(
    AbcTransposedResponse,
    Self {
        valid: false,
        abc: String::new(),
        original_key: None,
        new_key: None,
        semitones: 0,
        errors: vec![],
    },
    Self {
        valid: true,
        abc: awkward(),
        original_key: Some("C".into()),
        new_key: Some("Bb".into()),
        semitones: -2,
        errors: vec![abc_problem()],
    }
);
sample!(
    AbcToMidiRequest,
    Self {
        abc: String::new(),
        tune: None,
        tempo_override: None,
        transpose: None,
        velocity: None,
        channel: None,
        chords: false,
        tags: vec![],
        creator: None,
        parent_id: None,
        variation_set_id: None,
    },
    Self {
        abc: awkward(),
        tune: Some(u32::MAX),
        tempo_override: Some(u16::MAX),
        transpose: Some(i8::MIN),
        velocity: Some(127),
        channel: Some(15),
        chords: true,
        tags: vec![String::new(), awkward()],
        creator: Some(awkward()),
        parent_id: Some(artifact()),
        variation_set_id: Some(variations()),
    }
);
sample!(
    AbcConvertedResponse,
    Self {
        artifact_id: artifact(),
        content_hash: hash(),
        abc_hash: hash(),
        duration_seconds: 0.0,
        notes_count: 0,
        warnings: vec![],
    },
    Self {
        artifact_id: artifact(),
        content_hash: hash(),
        abc_hash: hash(),
        duration_seconds: 0.5,
        notes_count: u64::MAX,
        warnings: vec![abc_problem()],
    }
);

fn abc_problem() -> AbcProblem {
    AbcProblem { line: 1, column: u32::MAX, message: awkward(), help: awkward() }
}

fn abc_tune_least() -> AbcTune {
    AbcTune {
        reference: None,
        title: None,
        composer: None,
        key: None,
        meter: None,
        tempo: None,
        voices: vec![],
        notes_count: 0,
        bars_count: 0,
        duration_seconds: None,
        notes: None,
    }
}

fn abc_tune_full() -> AbcTune {
    AbcTune {
        reference: Some(u32::MAX),
        title: Some(awkward()),
        composer: Some(awkward()),
        key: Some("D exp _b ^f".into()),
        meter: Some("(2+3)/8".into()),
        tempo: Some(1),
        voices: vec![String::new(), awkward()],
        notes_count: u64::MAX,
        bars_count: 1,
        duration_seconds: Some(0.25),
        notes: Some(vec![AbcNote { voice: 1, onset: 0.5, duration: 1.0 / 3.0, key: 127 }]),
    }
}
