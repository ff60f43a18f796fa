//! `ringback studio render|beats|picture`: renders MIDI files, and analyses and draws MIDI and
//! audio.

use std::fs::{self, File};
use std::io::{BufWriter, Seek, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use ringback_studio::analysis::{BACKEND, Beats, Novelty, Sound, track_beats};
use ringback_studio::audio::DecodeLimits;
use ringback_studio::picture::{piano_roll, waveform};
use ringback_studio::render::{
    FileFormat, FileSink, RenderError, RenderLimits, RenderSettings, Rendered, Score, SinkError,
    WavFormat, render,
};
use ringback_studio::soundfont::{Font, SEARCHED_DIRS, find};
use serde::Serialize;
use tempfile::NamedTempFile;

use crate::config::{Config, Environment, ServeFlags};
use crate::failure::Failure;
use crate::screen::Screen;

/// The first bytes of a MIDI file; anything else is treated as audio.
const MIDI_MAGIC: &[u8] = b"MThd";

/// A MIDI file, the font, and the output file.
#[derive(Debug, Args)]
pub struct RenderArgs {
    /// The MIDI file
    pub file: PathBuf,
    /// SoundFont [default: `studio.soundfont`, else one installed on this system]
    #[arg(long, short, value_name = "FONT")]
    pub soundfont: Option<PathBuf>,
    /// File to write [default: the same name with `.wav` or `.flac`]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Sample rate, in frames per second
    #[arg(long, value_name = "N", default_value_t = 44_100, value_parser = clap::value_parser!(u32).range(16_000..=192_000))]
    pub rate: u32,
    /// Sample format and file type [default: s16, or flac16 for a `.flac` file]
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// Gain, in decibels
    #[arg(long, value_name = "DB", default_value_t = 0.0, allow_hyphen_values = true)]
    pub gain: f32,
}

/// The sample format.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Format {
    /// 16-bit integers
    S16,
    /// 24-bit integers
    S24,
    /// 32-bit floats
    F32,
    /// 16-bit integers in a FLAC file
    Flac16,
    /// 24-bit integers in a FLAC file
    Flac24,
}

impl From<Format> for FileFormat {
    fn from(format: Format) -> Self {
        match format {
            Format::S16 => Self::Wav(WavFormat::Int16),
            Format::S24 => Self::Wav(WavFormat::Int24),
            Format::F32 => Self::Wav(WavFormat::Float32),
            Format::Flac16 => Self::Flac16,
            Format::Flac24 => Self::Flac24,
        }
    }
}

/// The input and output files.
#[derive(Debug, Args)]
pub struct PictureArgs {
    /// A MIDI file, or audio: WAV, FLAC, MP3 or Ogg Vorbis
    pub file: PathBuf,
    /// File to write [default: the same name with `.svg`]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Mark the beats of an audio file
    #[arg(long)]
    pub beats: bool,
}

#[derive(Debug, Serialize)]
struct RenderedFile<'a> {
    file: &'a Path,
    seconds: f64,
    tail_seconds: f64,
    peak: f32,
    clipped_samples: u64,
}

#[derive(Debug, Serialize)]
struct BeatReport {
    beats: Vec<f64>,
    downbeats: Vec<f64>,
    estimated_bpm: f64,
    beats_per_bar: u32,
    confidence: f32,
    backend: &'static str,
}

/// A picture that was written.
#[derive(Debug, Serialize)]
pub(super) struct PictureFile<'a> {
    file: &'a Path,
    bytes: usize,
}

impl PictureFile<'_> {
    pub(super) fn shown(&self) -> String {
        self.file.display().to_string()
    }
}

pub(super) fn render_file(
    args: &RenderArgs,
    environment: &Environment,
    screen: Screen,
) -> Result<(), Failure> {
    let score = score(&args.file, &read(&args.file)?)?;
    let font = load_font(args.soundfont.as_deref(), environment)?;
    let (format, output) = target(args);
    let rendered = write_sound(args, format, &score, &font, &output)?;
    let made = RenderedFile {
        file: &output,
        seconds: rendered.seconds,
        tail_seconds: rendered.tail_seconds,
        peak: rendered.peak,
        clipped_samples: rendered.n_clipped,
    };
    screen.answer(&made, |made| {
        let clipped = match made.clipped_samples {
            0 => String::new(),
            n => format!("; {n} samples clipped, try `--gain -6` or `--format f32`"),
        };
        format!("{}: {:.1} s{clipped}", made.file.display(), made.seconds)
    })
}

/// Returns the format and path of the output file.
fn target(args: &RenderArgs) -> (FileFormat, PathBuf) {
    let is_flac = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "flac");
    let named =
        if args.output.as_ref().is_some_and(is_flac) { Format::Flac16 } else { Format::S16 };
    let format = FileFormat::from(args.format.unwrap_or(named));
    let output = args.output.clone();
    (format, output.unwrap_or_else(|| args.file.with_extension(format.extension())))
}

/// Writes the output file atomically.
fn write_sound(
    args: &RenderArgs,
    format: FileFormat,
    score: &Score,
    font: &Font,
    output: &Path,
) -> Result<Rendered, Failure> {
    let dir = output.parent().filter(|dir| !dir.as_os_str().is_empty());
    let cannot = |source| Failure::File { action: "write", path: output.to_owned(), source };
    let mut file = NamedTempFile::new_in(dir.unwrap_or(Path::new("."))).map_err(cannot)?;
    let settings =
        RenderSettings { sample_rate: args.rate, gain_db: args.gain, ..RenderSettings::default() };
    let rendered = record(BufWriter::new(&mut file), format, settings, score, font)
        .map_err(|error| not_recorded(error, &args.file, output))?;
    file.persist(output).map_err(|error| cannot(error.error))?;
    Ok(rendered)
}

/// Renders into a writer.
pub(super) fn record(
    writer: impl Write + Seek,
    format: FileFormat,
    settings: RenderSettings,
    score: &Score,
    font: &Font,
) -> Result<Rendered, RenderError> {
    let mut sink =
        FileSink::new(writer, format, 2, settings.sample_rate).map_err(RenderError::Sink)?;
    let rendered = render(score, font, settings, RenderLimits::default(), &mut sink)?;
    sink.finish().map_err(RenderError::Sink)?;
    Ok(rendered)
}

/// Explains why rendering `source` into `target` failed.
pub(super) fn not_recorded(error: RenderError, source: &Path, target: &Path) -> Failure {
    match error {
        RenderError::Sink(SinkError::Failed(error)) => {
            Failure::File { action: "write", path: target.to_owned(), source: error }
        }
        RenderError::Sink(SinkError::Stopped) => Failure::Interrupted,
        error @ (RenderError::TooLong { .. }
        | RenderError::SampleRate { .. }
        | RenderError::Font) => wrong("render", source, &error),
    }
}

/// Loads the given font, or the configured one, or one installed on this system.
pub(super) fn load_font(named: Option<&Path>, environment: &Environment) -> Result<Font, Failure> {
    let path = if let Some(path) = named {
        path.to_owned()
    } else {
        let configured = Config::load(&ServeFlags::default(), environment)?.studio.soundfont;
        find(configured.as_deref(), &SEARCHED_DIRS)
            .map_err(|error| Failure::Wrong(error.to_string()))?
    };
    Font::read(&read(&path)?).map_err(|error| wrong("use", &path, &error))
}

pub(super) fn beats(file: &Path, screen: Screen) -> Result<(), Failure> {
    let (_, found) = listen(file)?;
    let found = BeatReport {
        beats: found.beats,
        downbeats: found.downbeats,
        estimated_bpm: found.bpm,
        beats_per_bar: found.beats_per_bar,
        confidence: found.confidence,
        backend: BACKEND,
    };
    screen.answer(&found, |found| {
        let mut lines: Vec<String> = found
            .beats
            .iter()
            .map(|at| {
                let first = found.downbeats.contains(at);
                format!("{at:9.3}{}", if first { "  |" } else { "" })
            })
            .collect();
        lines.push(format!(
            "{:.1} bpm, {} beats a bar, confidence {:.2} ({})",
            found.estimated_bpm, found.beats_per_bar, found.confidence, found.backend
        ));
        lines.join("\n")
    })
}

pub(super) fn picture(args: &PictureArgs, screen: Screen) -> Result<(), Failure> {
    let title =
        args.file.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    let bytes = read(&args.file)?;
    let svg = if bytes.starts_with(MIDI_MAGIC) {
        piano_roll(&score(&args.file, &bytes)?, &title)
    } else {
        let (sound, found) = listen(&args.file)?;
        let beats = if args.beats { found.beats } else { Vec::new() };
        waveform(&sound, &beats, &title)
    };
    let output = args.output.clone().unwrap_or_else(|| args.file.with_extension("svg"));
    screen.answer(&write_picture(&output, &svg)?, PictureFile::shown)
}

/// Writes a picture.
pub(super) fn write_picture<'a>(output: &'a Path, svg: &str) -> Result<PictureFile<'a>, Failure> {
    fs::write(output, svg).map_err(|source| Failure::File {
        action: "write",
        path: output.to_owned(),
        source,
    })?;
    Ok(PictureFile { file: output, bytes: svg.len() })
}

fn listen(path: &Path) -> Result<(Sound, Beats), Failure> {
    let file = File::open(path).map_err(|source| cannot_read(path, source))?;
    let sound = Sound::read(file, DecodeLimits::default(), &|| true)
        .map_err(|error| wrong("read", path, &error))?;
    let beats = track_beats(&sound, &Novelty::of(&sound));
    Ok((sound, beats))
}

fn score(path: &Path, bytes: &[u8]) -> Result<Score, Failure> {
    Score::read(bytes).map_err(|error| wrong("read", path, &error))
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|source| cannot_read(path, source))
}

fn cannot_read(path: &Path, source: std::io::Error) -> Failure {
    Failure::File { action: "read", path: path.to_owned(), source }
}

fn wrong(action: &str, path: &Path, error: &dyn std::error::Error) -> Failure {
    Failure::Wrong(format!("cannot {action} `{}`: {error}", path.display()))
}
