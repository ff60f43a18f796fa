//! `ringback studio abc`: check tunes, and make MIDI files of them.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use ringback_studio::abc::{self, Diagnostic, Options, Parsed, Severity};
use serde::Serialize;

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
    /// Make a MIDI file
    Midi(MidiArgs),
}

/// Which tune, where to, and how it is played.
#[derive(Debug, Args)]
pub struct MidiArgs {
    /// The file; `-` is standard input
    pub file: PathBuf,
    /// File to write [default: the same name with `.mid`]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Which tune of the file
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub tune: u32,
    /// Every tune of the file, each into a file with its number in its name
    #[arg(long, conflicts_with = "tune")]
    pub all: bool,
    /// Quarter notes per minute, instead of what the tune says
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=2000))]
    pub tempo: Option<u32>,
    /// Semitones up, down if negative
    #[arg(long, value_name = "N", default_value_t = 0, allow_hyphen_values = true, value_parser = clap::value_parser!(i32).range(-60..=60))]
    pub transpose: i32,
    /// How hard notes are struck that no dynamics change
    #[arg(long, value_name = "N", default_value_t = 80, value_parser = clap::value_parser!(u8).range(1..=127))]
    pub velocity: u8,
    /// The MIDI channel of the first voice
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=15))]
    pub channel: u8,
    /// Accompany the chord symbols
    #[arg(long)]
    pub chords: bool,
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

pub(crate) fn run(args: &AbcArgs, screen: Screen) -> Result<(), Failure> {
    match &args.action {
        AbcAction::Check { file } => check(file, screen),
        AbcAction::Midi(args) => midi(args, screen),
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
    let text = read(&args.file)?;
    let parsed = validate(&args.file, &text)?;
    for found in &parsed.diagnostics {
        screen.remark(shown(screen, &args.file, &text, found));
    }
    if !parsed.is_valid() {
        let message = format!("`{}` is not valid ABC: nothing was written", args.file.display());
        return Err(Failure::Wrong(message));
    }
    let options = Options {
        tempo: args.tempo,
        transpose: args.transpose,
        velocity: args.velocity,
        channel: args.channel,
        chords: args.chords,
    };
    let output = output(args)?;
    if !args.all {
        return screen.answer(&write(args, &parsed, args.tune, &output, &options)?, Made::shown);
    }
    let n_tunes = u32::try_from(parsed.book.tunes.len()).unwrap_or(u32::MAX);
    let made = (1..=n_tunes).map(|tune| {
        let numbered = numbered(&output, tune);
        write(args, &parsed, tune, &numbered, &options)
    });
    let made = made.collect::<Result<Vec<_>, _>>()?;
    screen.answer(&made, |made| made.iter().map(Made::shown).collect::<Vec<_>>().join("\n"))
}

fn write(
    args: &MidiArgs,
    parsed: &Parsed,
    tune: u32,
    output: &Path,
    options: &Options,
) -> Result<Made, Failure> {
    let performance = abc::perform(&parsed.book, tune as usize - 1, options).map_err(|error| {
        Failure::Wrong(format!("cannot play tune {tune} of `{}`: {error}", args.file.display()))
    })?;
    fs::write(output, abc::to_midi(&performance).write()).map_err(|source| Failure::File {
        action: "write",
        path: output.to_owned(),
        source,
    })?;
    let (notes, seconds) = (performance.notes().count(), performance.seconds());
    Ok(Made { file: output.to_owned(), notes, seconds })
}

/// `tunes.mid` for the third tune is `tunes-3.mid`.
fn numbered(output: &Path, tune: u32) -> PathBuf {
    let stem = output.file_stem().unwrap_or_default().to_string_lossy();
    let extension = output.extension().map_or_else(|| "mid".into(), |it| it.to_string_lossy());
    output.with_file_name(format!("{stem}-{tune}.{extension}"))
}

fn output(args: &MidiArgs) -> Result<PathBuf, Failure> {
    match &args.output {
        Some(output) => Ok(output.clone()),
        None if args.file == Path::new("-") => {
            Err(Failure::Usage("name the file to write with `-o`".to_owned()))
        }
        None => Ok(args.file.with_extension("mid")),
    }
}

fn read(file: &Path) -> Result<String, Failure> {
    let failed = |source| Failure::File { action: "read", path: file.to_owned(), source };
    // One byte over the limit is enough to know that it is passed.
    let limit = abc::TEXT_BYTES_MAX as u64 + 1;
    let mut bytes = Vec::new();
    if file == Path::new("-") {
        std::io::stdin().lock().take(limit).read_to_end(&mut bytes).map_err(failed)?;
    } else {
        let opened = fs::File::open(file).map_err(failed)?;
        opened.take(limit).read_to_end(&mut bytes).map_err(failed)?;
    }
    // Old tunebooks are in Latin-1: their letters show as questions, their music is whole.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn validate(file: &Path, text: &str) -> Result<Parsed, Failure> {
    abc::validate(text)
        .map_err(|error| Failure::Wrong(format!("cannot read `{}`: {error}", file.display())))
}

fn problem(found: &Diagnostic) -> Problem {
    Problem {
        line: found.at.line,
        column: found.at.column,
        message: found.message.clone(),
        help: found.help.clone(),
    }
}

/// Where it is, what is wrong, the line with a mark under the place, and what to do.
fn shown(screen: Screen, file: &Path, text: &str, found: &Diagnostic) -> String {
    let kind = match found.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let place = format!("{}:{}:{}", file.display(), found.at.line, found.at.column);
    let head = format!("{} {kind}: {}", screen.bold(&format!("{place}:")), found.message);
    let line = text.lines().nth(found.at.line.saturating_sub(1) as usize).unwrap_or_default();
    let column = found.at.column.saturating_sub(1) as usize;
    // Tabs stay tabs, so that the mark stands under its character.
    let indent: String =
        line.chars().take(column).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
    format!("{head}\n    {line}\n    {indent}^ {}", found.help)
}

fn count(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}
