//! Tunes in ABC notation: `abc_*`.

use ringback_proto::request::{
    AbcConvertedResponse, AbcNote, AbcParseRequest, AbcParsedResponse, AbcProblem,
    AbcToMidiRequest, AbcTransposeRequest, AbcTransposedResponse, AbcTune, AbcValidateRequest,
    AbcValidatedResponse, SourceRole,
};
use ringback_proto::{Error, ErrorKind, Result};
use ringback_studio::abc::{
    self, Diagnostic, LimitError, Options, Parsed, Performance, PlayError, Target,
};
use ringback_studio::smf::{Sequence, Timing};
use serde::Serialize;

use crate::Context;

/// The longest text of a tool: a `Sync` tool answers immediately, so its text is bounded in time
/// too.
const TEXT_BYTES_MAX: usize = 256 * 1024;
/// The notes that `abc_parse` lists for each tune.
const NOTES_LISTED_MAX: usize = 10_000;
/// The problems that an answer lists.
const PROBLEMS_MAX: usize = 100;

const ABC_TYPE: &str = "text/vnd.abc";
const MIDI_TYPE: &str = "audio/midi";
/// The default creator of a file.
const CREATOR: &str = "abc_to_midi";
/// The tags of every MIDI file made from ABC.
const TAGS: &[&str] = &["type:midi", "source:abc", "tool:abc_to_midi"];

/// The slowest and the fastest tempo allowed.
const TEMPOS: std::ops::RangeInclusive<u16> = 1..=2000;
/// The furthest transposition.
const SEMITONES_MAX: i8 = 60;

pub(crate) fn describe(request: AbcParseRequest) -> Result<AbcParsedResponse> {
    let AbcParseRequest { abc, include_notes } = request;
    let parsed = parse(&abc, abc::parse)?;
    let tunes: Vec<AbcTune> =
        (0..parsed.book.tunes.len()).filter_map(|idx| tune(&parsed, idx, include_notes)).collect();
    let first = tunes.first().cloned();
    let first = first.as_ref();
    Ok(AbcParsedResponse {
        valid: parsed.is_valid(),
        title: first.and_then(|tune| tune.title.clone()),
        key: first.and_then(|tune| tune.key.clone()),
        meter: first.and_then(|tune| tune.meter.clone()),
        tempo: first.and_then(|tune| tune.tempo),
        notes_count: tunes.iter().map(|tune| tune.notes_count).sum(),
        errors: problems(parsed.errors()),
        tunes,
    })
}

pub(crate) fn validate(request: AbcValidateRequest) -> Result<AbcValidatedResponse> {
    let AbcValidateRequest { abc } = request;
    let parsed = parse(&abc, abc::validate)?;
    Ok(AbcValidatedResponse {
        valid: parsed.is_valid(),
        errors: problems(parsed.errors()),
        warnings: problems(parsed.warnings()),
    })
}

pub(crate) fn transpose(request: AbcTransposeRequest) -> Result<AbcTransposedResponse> {
    let AbcTransposeRequest { abc, semitones, target_key } = request;
    let (target, field) = match (semitones, target_key) {
        (Some(semitones), None) => (Target::Semitones(semitones.into()), "semitones"),
        (None, Some(key)) => (Target::Key(key), "target_key"),
        (None, None) | (Some(_), Some(_)) => {
            let message = "give either `semitones` or `target_key`";
            return Err(Error::invalid_field("semitones", message));
        }
    };
    let parsed = parse(&abc, abc::parse)?;
    if !parsed.is_valid() {
        let errors = problems(parsed.errors());
        return Ok(AbcTransposedResponse {
            valid: false,
            abc,
            original_key: None,
            new_key: None,
            semitones: 0,
            errors,
        });
    }
    let transposed = abc::transpose(&parsed.book, &target)
        .map_err(|error| Error::invalid_field(field, error.to_string()))?;
    Ok(AbcTransposedResponse {
        valid: true,
        abc: abc::print(&transposed.book),
        original_key: transposed.original_key,
        new_key: transposed.new_key,
        semitones: i8::try_from(transposed.semitones).unwrap_or_default(),
        errors: Vec::new(),
    })
}

pub(crate) async fn to_midi(
    ctx: Context,
    mut request: AbcToMidiRequest,
) -> Result<AbcConvertedResponse> {
    let options = options(&request)?;
    let mut lineage = request.take_lineage();
    lineage.tags.extend(TAGS.iter().map(|tag| (*tag).to_owned()));
    lineage.creator.get_or_insert_with(|| CREATOR.to_owned());
    let AbcToMidiRequest { abc, tune, .. } = request;
    ctx.broker.check_lineage(&lineage).await?;
    let broker = ctx.broker.clone();
    let converted = ctx.broker.blocking(move |_| {
        let MidiConversion { midi, warnings, seconds, n_notes, info } =
            convert(&abc, tune, &options)?;
        let text = broker.store_source(SourceRole::Abc, abc.as_bytes(), ABC_TYPE)?;
        let midi = broker.store(&midi, MIDI_TYPE)?;
        Ok((text, midi, warnings, seconds, n_notes, info))
    });
    let (text, midi, warnings, duration_seconds, notes_count, midi_info) = converted.await?;
    let metadata =
        Metadata { abc_hash: text.hash.to_string(), duration_seconds, notes_count, midi_info };
    let abc_hash = text.hash;
    let created = ctx.broker.create_artifact(midi, &[text], lineage, &metadata).await?;
    Ok(AbcConvertedResponse {
        artifact_id: created.artifact_id,
        content_hash: created.content_hash,
        abc_hash,
        duration_seconds,
        notes_count,
        warnings,
    })
}

/// Returns the metadata of the artifact.
#[derive(Serialize)]
struct Metadata {
    abc_hash: String,
    duration_seconds: f64,
    notes_count: u64,
    midi_info: MidiInfo,
}

#[derive(Serialize)]
struct MidiInfo {
    tracks: usize,
    ticks_per_quarter: u16,
    duration_ticks: u64,
}

struct MidiConversion {
    midi: Vec<u8>,
    warnings: Vec<AbcProblem>,
    seconds: f64,
    n_notes: u64,
    info: MidiInfo,
}

/// Parses a text within the size limit of a tool.
fn parse(text: &str, read: fn(&str) -> Result<Parsed, LimitError>) -> Result<Parsed> {
    if text.len() > TEXT_BYTES_MAX {
        let message = format!(
            "`abc` has {} bytes, the limit is {TEXT_BYTES_MAX}: send fewer tunes per call",
            text.len()
        );
        return Err(Error::new(ErrorKind::TooLarge, message));
    }
    read(text).map_err(|error| Error::new(ErrorKind::TooLarge, error.to_string()))
}

fn options(request: &AbcToMidiRequest) -> Result<Options> {
    let mut options = Options { chords: request.chords, ..Options::default() };
    if let Some(tempo) = request.tempo_override {
        if !TEMPOS.contains(&tempo) {
            let message = "the tempo must be 1 to 2000 quarter notes per minute";
            return Err(Error::invalid_field("tempo_override", message));
        }
        options.tempo = Some(tempo.into());
    }
    if let Some(semitones) = request.transpose {
        if semitones.unsigned_abs() > SEMITONES_MAX.unsigned_abs() {
            return Err(Error::invalid_field("transpose", "semitones must be -60 to 60"));
        }
        options.transpose = semitones.into();
    }
    if let Some(velocity) = request.velocity {
        if !(1..=127).contains(&velocity) {
            return Err(Error::invalid_field("velocity", "the velocity must be 1 to 127"));
        }
        options.velocity = velocity;
    }
    if let Some(channel) = request.channel {
        if channel > 15 {
            return Err(Error::invalid_field("channel", "the channel must be 0 to 15"));
        }
        options.channel = channel;
    }
    Ok(options)
}

fn convert(text: &str, tune: Option<u32>, options: &Options) -> Result<MidiConversion> {
    let parsed = parse(text, abc::validate)?;
    if let Some(first) = parsed.errors().next() {
        let n_more = parsed.errors().count() - 1;
        let more = if n_more > 0 { format!(" (and {n_more} more)") } else { String::new() };
        return Err(Error::invalid_field("abc", format!("{first}{more}")));
    }
    let index = match tune {
        Some(0) => return Err(Error::invalid_field("tune", "tunes are counted from 1")),
        Some(number) => number as usize - 1,
        None => 0,
    };
    let performance = abc::perform(&parsed.book, index, options).map_err(play_error)?;
    let sequence = abc::to_midi(&performance);
    Ok(MidiConversion {
        midi: sequence.write(),
        warnings: problems(parsed.warnings()),
        seconds: performance.seconds(),
        n_notes: performance.notes().count() as u64,
        info: midi_info(&sequence),
    })
}

fn play_error(error: PlayError) -> Error {
    match error {
        PlayError::NoTune { n_tunes, .. } => {
            Error::invalid_field("tune", format!("the text has {n_tunes} tunes"))
        }
        error @ (PlayError::TooManyNotes | PlayError::TooLong | PlayError::TooFine) => {
            Error::new(ErrorKind::TooLarge, error.to_string())
        }
    }
}

fn midi_info(sequence: &Sequence) -> MidiInfo {
    let ticks_per_quarter = match sequence.timing {
        Timing::PerQuarter(ticks) => ticks,
        Timing::PerSecond(_) => 0,
    };
    let (tracks, duration_ticks) = (sequence.tracks.len(), sequence.end_tick());
    MidiInfo { tracks, ticks_per_quarter, duration_ticks }
}

fn tune(parsed: &Parsed, index: usize, include_notes: bool) -> Option<AbcTune> {
    let summary = abc::summary(&parsed.book, index)?;
    let notes = include_notes
        .then(|| abc::perform(&parsed.book, index, &Options::default()).ok())
        .flatten()
        .map(|performance| notes(&performance));
    Some(AbcTune {
        reference: summary.reference,
        title: summary.title,
        composer: summary.composer,
        key: summary.key,
        meter: summary.meter,
        tempo: summary.tempo,
        voices: summary.voices,
        notes_count: summary.n_notes as u64,
        bars_count: summary.n_bars as u64,
        duration_seconds: summary.seconds,
        notes,
    })
}

fn notes(performance: &Performance) -> Vec<AbcNote> {
    let quarters = |time: abc::Fraction| *time.numer() as f64 * 4.0 / *time.denom() as f64;
    let lines = performance.lines.iter().enumerate();
    lines
        .flat_map(|(line_idx, line)| {
            line.notes.iter().map(move |note| AbcNote {
                voice: line_idx as u32,
                onset: quarters(note.onset),
                duration: quarters(note.duration),
                key: note.key,
            })
        })
        .take(NOTES_LISTED_MAX)
        .collect()
}

fn problems<'a>(diagnostics: impl Iterator<Item = &'a Diagnostic>) -> Vec<AbcProblem> {
    let problem = |found: &Diagnostic| AbcProblem {
        line: found.at.line,
        column: found.at.column,
        message: found.message.clone(),
        help: found.help.clone(),
    };
    diagnostics.take(PROBLEMS_MAX).map(problem).collect()
}
