//! `ringback studio abc`: checks, plays and draws tunes, and makes MIDI files from them.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use ringback_studio::abc::{self, Diagnostic, Performance};
use ringback_studio::picture::piano_roll;
use serde::Serialize;

use super::play::{PlayArgs, play};
use super::sound::{PictureFile, write_picture};
use super::tune::{TuneArgs, read, shown, unreadable, validate};
use crate::config::Environment;
use crate::failure::Failure;
use crate::screen::Screen;

/// All MIDI files of a tunebook are kept in memory until the whole book is known to be valid.
const ALL_BYTES_MAX: usize = 128 * 1024 * 1024;

/// `ringback studio abc`
#[derive(Debug, Args)]
pub struct AbcArgs {
    /// What to do
    #[command(subcommand)]
    pub action: AbcAction,
}

/// Actions on tunes.
#[derive(Debug, Subcommand)]
pub enum AbcAction {
    /// Show errors, their places and fixes
    Check {
        /// The file; `-` is standard input
        file: PathBuf,
    },
    /// Play a tune on this machine's speakers
    Play(PlayArgs),
    /// Write a MIDI file
    Midi(MidiArgs),
    /// Draw a tune as a piano roll
    Svg(SvgArgs),
}

/// A tune, how it is played, and the output file.
#[derive(Debug, Args)]
pub struct MidiArgs {
    /// Which tune, and how
    #[command(flatten)]
    pub tune: TuneArgs,
    /// File to write [default: the same name with `.mid`]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write every tune of the file, each to its own numbered file
    #[arg(long, conflicts_with = "tune")]
    pub all: bool,
}

/// A tune, how it is played, and the output file.
#[derive(Debug, Args)]
pub struct SvgArgs {
    /// Which tune, and how
    #[command(flatten)]
    pub tune: TuneArgs,
    /// File to write [default: the same name with `.svg`]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// The result of a check.
#[derive(Debug, Serialize)]
struct CheckReport {
    valid: bool,
    tunes: usize,
    errors: Vec<Problem>,
    warnings: Vec<Problem>,
}

#[derive(Debug, Serialize)]
struct Problem {
    line: u32,
    column: u32,
    message: String,
    help: String,
}

/// A MIDI file that was written.
#[derive(Debug, Serialize)]
struct MidiFile {
    file: PathBuf,
    notes: usize,
    seconds: f64,
}

impl MidiFile {
    fn shown(&self) -> String {
        format!("{}: {}, {:.1} s", self.file.display(), count(self.notes, "note"), self.seconds)
    }
}

pub(crate) fn run(
    args: &AbcArgs,
    environment: &Environment,
    screen: Screen,
) -> Result<(), Failure> {
    match &args.action {
        AbcAction::Check { file } => check(file, screen),
        AbcAction::Play(args) => play(args, environment, screen),
        AbcAction::Midi(args) => midi(args, screen),
        AbcAction::Svg(args) => svg(args, screen),
    }
}

fn check(file: &Path, screen: Screen) -> Result<(), Failure> {
    let text = read(file)?;
    let parsed = validate(file, &text)?;
    let checked = CheckReport {
        valid: parsed.is_valid(),
        tunes: parsed.book.tunes.len(),
        errors: parsed.errors().map(problem).collect(),
        warnings: parsed.warnings().map(problem).collect(),
    };
    screen.answer(&checked, |checked| {
        let mut lines: Vec<String> = shown(screen, file, &text, &parsed.diagnostics).collect();
        let verdict = if checked.valid { "valid" } else { "not valid" };
        let (n_errors, n_warnings) = (checked.errors.len(), checked.warnings.len());
        lines.push(format!(
            "{verdict}: {}, {}, {}",
            count(checked.tunes, "tune"),
            count(n_errors, "error"),
            count(n_warnings, "warning")
        ));
        lines.join("\n")
    })?;
    if checked.valid {
        return Ok(());
    }
    Err(Failure::Wrong(format!("`{}` is not valid ABC", file.display())))
}

fn midi(args: &MidiArgs, screen: Screen) -> Result<(), Failure> {
    if args.all {
        return midi_of_all(args, screen);
    }
    let parsed = args.tune.parsed(screen)?;
    let output = args.tune.output(args.output.as_deref(), "mid")?;
    let performance = args.tune.perform(&parsed, args.tune.tune)?;
    screen.answer(&Midi::of(&performance).write(output)?, MidiFile::shown)
}

/// Performs each tune while the file is checked; writes files only if all of it is valid.
fn midi_of_all(args: &MidiArgs, screen: Screen) -> Result<(), Failure> {
    let TuneArgs { file, .. } = &args.tune;
    let text = read(file)?;
    let output = args.tune.output(args.output.as_deref(), "mid")?;
    let (mut files, mut size) = (Vec::new(), 0);
    let diagnostics = abc::perform_each(&text, &args.tune.options(), |_, performance| {
        if size <= ALL_BYTES_MAX {
            let midi = Midi::of(&performance);
            size += midi.bytes.len();
            files.push(midi);
        }
    });
    args.tune.say(screen, &text, &diagnostics.map_err(|error| unreadable(file, &error))?)?;
    if size > ALL_BYTES_MAX {
        return Err(Failure::Wrong(format!(
            "the MIDI files of `{}` are larger than {ALL_BYTES_MAX} bytes; split the tunebook",
            file.display()
        )));
    }
    let numbered = |tune| numbered(&output, tune);
    let made = (1..).zip(files).map(|(tune, midi)| midi.write(numbered(tune)));
    let made = made.collect::<Result<Vec<_>, _>>()?;
    screen.answer(&made, |made| made.iter().map(MidiFile::shown).collect::<Vec<_>>().join("\n"))
}

/// A MIDI file that is not written yet.
struct Midi {
    bytes: Vec<u8>,
    notes: usize,
    seconds: f64,
}

impl Midi {
    fn of(performance: &Performance) -> Self {
        let bytes = abc::to_midi(performance).write();
        Self { bytes, notes: performance.notes().count(), seconds: performance.seconds() }
    }

    fn write(self, file: PathBuf) -> Result<MidiFile, Failure> {
        let Self { bytes, notes, seconds } = self;
        match fs::write(&file, bytes) {
            Ok(()) => Ok(MidiFile { file, notes, seconds }),
            Err(source) => Err(Failure::File { action: "write", path: file, source }),
        }
    }
}

fn svg(args: &SvgArgs, screen: Screen) -> Result<(), Failure> {
    let (score, title) = args.tune.score(screen)?;
    let output = args.tune.output(args.output.as_deref(), "svg")?;
    screen.answer(&write_picture(&output, &piano_roll(&score, &title))?, PictureFile::shown)
}

/// Adds the number of a tune to a file name: `tunes.mid` becomes `tunes-3.mid`.
fn numbered(output: &Path, tune: u32) -> PathBuf {
    let stem = output.file_stem().unwrap_or_default().to_string_lossy();
    let extension = output.extension().map_or_else(|| "mid".into(), |it| it.to_string_lossy());
    output.with_file_name(format!("{stem}-{tune}.{extension}"))
}

fn problem(found: &Diagnostic) -> Problem {
    Problem {
        line: found.at.line,
        column: found.at.column,
        message: found.message.clone(),
        help: found.help.clone(),
    }
}

fn count(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}
