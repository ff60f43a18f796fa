//! `ringback studio abc`: check tunes, play and draw them, and make MIDI files of them.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use ringback_studio::abc::{self, Diagnostic, Parsed};
use ringback_studio::picture::piano_roll;
use serde::Serialize;

use super::play::{PlayArgs, play};
use super::sound::{Drawn, write_picture};
use super::tune::{TuneArgs, read, shown, validate};
use crate::config::Environment;
use crate::failure::Failure;
use crate::screen::Screen;

/// `ringback studio abc`
#[derive(Debug, Args)]
pub struct AbcArgs {
    /// What to do
    #[command(subcommand)]
    pub action: AbcAction,
}

/// What to do with a tune.
#[derive(Debug, Subcommand)]
pub enum AbcAction {
    /// Say what is wrong, where, and what to do
    Check {
        /// The file; `-` is standard input
        file: PathBuf,
    },
    /// Play a tune on this machine's speakers
    Play(PlayArgs),
    /// Make a MIDI file
    Midi(MidiArgs),
    /// Draw a tune as a piano roll
    Svg(SvgArgs),
}

/// Which tune, how it is played, and where to.
#[derive(Debug, Args)]
pub struct MidiArgs {
    /// Which tune, and how
    #[command(flatten)]
    pub tune: TuneArgs,
    /// File to write [default: the same name with `.mid`]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Every tune of the file, each into a file with its number in its name
    #[arg(long, conflicts_with = "tune")]
    pub all: bool,
}

/// Which tune, how it is played, and where to.
#[derive(Debug, Args)]
pub struct SvgArgs {
    /// Which tune, and how
    #[command(flatten)]
    pub tune: TuneArgs,
    /// File to write [default: the same name with `.svg`]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// What a check found.
#[derive(Debug, Serialize)]
struct Checked {
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

/// What was made.
#[derive(Debug, Serialize)]
struct Made {
    file: PathBuf,
    notes: usize,
    seconds: f64,
}

impl Made {
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
    let checked = Checked {
        valid: parsed.is_valid(),
        tunes: parsed.book.tunes.len(),
        errors: parsed.errors().map(problem).collect(),
        warnings: parsed.warnings().map(problem).collect(),
    };
    screen.answer(&checked, |checked| {
        let mut lines: Vec<String> =
            parsed.diagnostics.iter().map(|found| shown(screen, file, &text, found)).collect();
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
    let parsed = args.tune.parsed(screen)?;
    let output = args.tune.output(args.output.as_deref(), "mid")?;
    if !args.all {
        let made = write(args, &parsed, args.tune.tune, &output)?;
        return screen.answer(&made, Made::shown);
    }
    let n_tunes = u32::try_from(parsed.book.tunes.len()).unwrap_or(u32::MAX);
    let made = (1..=n_tunes).map(|tune| write(args, &parsed, tune, &numbered(&output, tune)));
    let made = made.collect::<Result<Vec<_>, _>>()?;
    screen.answer(&made, |made| made.iter().map(Made::shown).collect::<Vec<_>>().join("\n"))
}

fn write(args: &MidiArgs, parsed: &Parsed, tune: u32, output: &Path) -> Result<Made, Failure> {
    let performance = args.tune.perform(parsed, tune)?;
    fs::write(output, abc::to_midi(&performance).write()).map_err(|source| Failure::File {
        action: "write",
        path: output.to_owned(),
        source,
    })?;
    let (notes, seconds) = (performance.notes().count(), performance.seconds());
    Ok(Made { file: output.to_owned(), notes, seconds })
}

fn svg(args: &SvgArgs, screen: Screen) -> Result<(), Failure> {
    let (score, title) = args.tune.score(screen)?;
    let output = args.tune.output(args.output.as_deref(), "svg")?;
    screen.answer(&write_picture(&output, &piano_roll(&score, &title))?, Drawn::shown)
}

/// `tunes.mid` for the third tune is `tunes-3.mid`.
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
