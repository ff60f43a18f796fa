//! A tune from a file in ABC notation, and how it is played.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args;
use ringback_studio::abc::{self, Diagnostic, LimitError, Options, Parsed, Performance, Severity};
use ringback_studio::render::Score;

use crate::failure::Failure;
use crate::screen::Screen;

/// A tune, and how it is played.
#[derive(Debug, Args)]
pub struct TuneArgs {
    /// The file; `-` is standard input
    pub file: PathBuf,
    /// Number of the tune in the file
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub tune: u32,
    /// Quarter notes per minute, overriding the tune
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=2000))]
    pub tempo: Option<u32>,
    /// Semitones to transpose, down if negative
    #[arg(long, value_name = "N", default_value_t = 0, allow_hyphen_values = true, value_parser = clap::value_parser!(i32).range(-60..=60))]
    pub transpose: i32,
    /// Velocity of notes without dynamics
    #[arg(long, value_name = "N", default_value_t = 80, value_parser = clap::value_parser!(u8).range(1..=127))]
    pub velocity: u8,
    /// MIDI channel of the first voice
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=15))]
    pub channel: u8,
    /// Play an accompaniment from the chord symbols
    #[arg(long)]
    pub chords: bool,
}

impl TuneArgs {
    /// Reads the tunes of the file and shows diagnostics; fails if they are not valid.
    pub(super) fn parsed(&self, screen: Screen) -> Result<Parsed, Failure> {
        let text = read(&self.file)?;
        let parsed = validate(&self.file, &text)?;
        self.say(screen, &text, &parsed.diagnostics)?;
        Ok(parsed)
    }

    /// Shows diagnostics; fails if the file is not valid.
    pub(super) fn say(
        &self,
        screen: Screen,
        text: &str,
        diagnostics: &[Diagnostic],
    ) -> Result<(), Failure> {
        if !diagnostics.is_empty() {
            let remarks: Vec<String> = shown(screen, &self.file, text, diagnostics).collect();
            screen.remark(remarks.join("\n"));
        }
        if diagnostics.iter().all(|found| found.severity == Severity::Warning) {
            return Ok(());
        }
        let message = format!("`{}` is not valid ABC; nothing was produced", self.file.display());
        Err(Failure::Wrong(message))
    }

    /// Returns the options for playing the tune.
    pub(super) fn options(&self) -> Options {
        Options {
            tempo: self.tempo,
            transpose: self.transpose,
            velocity: self.velocity,
            channel: self.channel,
            chords: self.chords,
        }
    }

    /// Performs one of the tunes.
    pub(super) fn perform(&self, parsed: &Parsed, tune: u32) -> Result<Performance, Failure> {
        abc::perform(&parsed.book, tune as usize - 1, &self.options())
            .map_err(|error| self.cannot_play(tune, &error))
    }

    /// Returns the chosen tune for rendering and drawing, and its title.
    pub(super) fn score(&self, screen: Screen) -> Result<(Score, String), Failure> {
        let parsed = self.parsed(screen)?;
        let performance = self.perform(&parsed, self.tune)?;
        let score = Score::read(&abc::to_midi(&performance).write())
            .map_err(|error| self.cannot_play(self.tune, &error))?;
        let summary = abc::summary(&parsed.book, self.tune as usize - 1);
        let title = summary.and_then(|summary| summary.title);
        Ok((score, title.unwrap_or_else(|| self.file.display().to_string())))
    }

    /// Returns the file to write: as given, or the input with another extension.
    pub(super) fn output(&self, given: Option<&Path>, extension: &str) -> Result<PathBuf, Failure> {
        match given {
            Some(output) => Ok(output.to_owned()),
            None if self.file == Path::new("-") => {
                Err(Failure::Usage("give the file to write with `-o`".to_owned()))
            }
            None => Ok(self.file.with_extension(extension)),
        }
    }

    fn cannot_play(&self, tune: u32, error: &dyn std::error::Error) -> Failure {
        Failure::Wrong(format!("cannot play tune {tune} of `{}`: {error}", self.file.display()))
    }
}

pub(super) fn read(file: &Path) -> Result<String, Failure> {
    let failed = |source| Failure::File { action: "read", path: file.to_owned(), source };
    // One byte over the limit is enough to detect an overlong file.
    let limit = abc::TEXT_BYTES_MAX as u64 + 1;
    let mut bytes = Vec::new();
    if file == Path::new("-") {
        std::io::stdin().lock().take(limit).read_to_end(&mut bytes).map_err(failed)?;
    } else {
        let opened = fs::File::open(file).map_err(failed)?;
        opened.take(limit).read_to_end(&mut bytes).map_err(failed)?;
    }
    // Old tunebooks are in Latin-1: accented letters become replacement characters, the music is
    // intact.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

pub(super) fn validate(file: &Path, text: &str) -> Result<Parsed, Failure> {
    abc::validate(text).map_err(|error| unreadable(file, &error))
}

pub(super) fn unreadable(file: &Path, error: &LimitError) -> Failure {
    Failure::Wrong(format!("cannot read `{}`: {error}", file.display()))
}

/// Formats each problem, in order of position: its place, the message, the line of text with a
/// mark, and the fix.
pub(super) fn shown(
    screen: Screen,
    file: &Path,
    text: &str,
    diagnostics: &[Diagnostic],
) -> impl Iterator<Item = String> {
    let mut lines = (1..).zip(text.lines()).peekable();
    diagnostics.iter().map(move |found| {
        while lines.next_if(|(number, _)| *number < found.at.line).is_some() {}
        let line = lines.peek().map_or("", |(_, line)| line);
        one_shown(screen, file, line, found)
    })
}

fn one_shown(screen: Screen, file: &Path, line: &str, found: &Diagnostic) -> String {
    let kind = match found.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let place = format!("{}:{}:{}", file.display(), found.at.line, found.at.column);
    let head = format!(
        "{} {kind}: {}",
        screen.bold(&format!("{place}:")),
        screen.printable(&found.message)
    );
    let column = found.at.column.saturating_sub(1) as usize;
    // Tabs stay tabs, so that the mark is under its character.
    let indent: String =
        line.chars().take(column).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
    let line = screen.printable(line);
    format!("{head}\n    {line}\n    {indent}^ {}", screen.printable(&found.help))
}
