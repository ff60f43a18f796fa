//! Music: tunes against `abc2midi`, renders against `fluidsynth`, beats against real time. Each
//! side is one process of a program that people run, on the one core that all benchmarks share.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::Context;
use ringback_studio::analysis::{Novelty, Sound, measure, similarity};
use ringback_studio::audio::DecodeLimits;
use ringback_studio::smf::{Event, Message, Sequence, Timing};
use ringback_studio::soundfont::{SEARCHED_DIRS, find};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use crate::figure::{Figure, Line, Round};
use crate::settings::Settings;

/// Traditional tunes, repeated until there are enough.
const TUNES: &str = include_str!("../../crates/studio/src/compose/tunes.abc");
const TUNES_MAX: usize = 1000;

/// Keeps files off the disk.
const MEMORY: &str = "/dev/shm";

/// The dense piece: three minutes, eight instruments that play three-note chords on every eighth.
const QUARTERS: usize = 360;
const TICKS: u16 = 480;
const PROGRAMS: [u8; 8] = [0, 11, 24, 33, 48, 52, 61, 73];

pub(crate) fn run(settings: &Settings) -> anyhow::Result<Vec<Figure>> {
    let dir = tempfile::Builder::new()
        .prefix("ringback-bench")
        .tempdir_in(MEMORY)
        .with_context(|| format!("cannot create a directory in `{MEMORY}`"))?;
    let mut figures = tunes(settings, dir.path())?;
    figures.extend(sound(settings, dir.path())?);
    Ok(figures)
}

/// Measures tunes per second, from a tunebook to one MIDI file each, and the CPU time per tune.
fn tunes(settings: &Settings, dir: &Path) -> anyhow::Result<Vec<Figure>> {
    let n_tunes = settings.size(TUNES_MAX);
    let text = tunebook(n_tunes);
    let (mut rounds, mut cpu_us) = (Vec::new(), Vec::new());
    for _ in 0..settings.n_rounds {
        // Both write new files next to the book, into an empty directory.
        let book = fresh(dir)?.join("book.abc");
        fs::write(&book, &text)?;
        let bare = timed(Command::new("abc2midi").arg(&book))?;
        let made = fresh(dir)?;
        fs::write(&book, &text)?;
        let ours = timed(
            Command::new(&settings.ringback).args(["studio", "abc", "midi", "--all"]).arg(&book),
        )?;
        let n_made = fs::read_dir(&made)?.count() - 1;
        anyhow::ensure!(n_made == n_tunes, "only {n_made} of {n_tunes} tunes were converted");
        let count = n_tunes as f64;
        rounds.push(Round { bare: count / bare.seconds, ours: count / ours.seconds });
        cpu_us.push(Round { bare: bare.cpu_us / count, ours: ours.cpu_us / count });
    }
    let name = "1,000 tunes to MIDI files";
    Ok(vec![Figure::ratio(name, "tunes/s", &rounds, Line::AtLeast(1.0)).with_cpu(&cpu_us)])
}

/// Measures seconds of sound per second: rendered by both, then analyzed.
fn sound(settings: &Settings, dir: &Path) -> anyhow::Result<Vec<Figure>> {
    let (midi, font) = (dir.join("dense.mid"), find(None, &SEARCHED_DIRS)?);
    let (theirs, ours) = (dir.join("theirs.wav"), dir.join("ours.wav"));
    fs::write(&midi, dense(settings.size(QUARTERS)).write())?;
    let (mut renders, mut listens) = (Vec::new(), Vec::new());
    for _ in 0..settings.n_rounds {
        let bare = timed(&mut fluidsynth(&font, &midi, &theirs))?;
        let rendered = timed(
            Command::new(&settings.ringback)
                .args(["studio", "render"])
                .arg(&midi)
                .arg("-s")
                .arg(&font)
                .arg("-o")
                .arg(&ours),
        )?;
        let (seconds, their_seconds) = (heard(&ours)?.seconds(), heard(&theirs)?.seconds());
        renders
            .push(Round { bare: their_seconds / bare.seconds, ours: seconds / rendered.seconds });
        let listened =
            timed(Command::new(&settings.ringback).args(["studio", "beats"]).arg(&ours))?;
        listens.push(seconds / listened.seconds);
    }
    listens.sort_by(f64::total_cmp);
    let speed = listens[listens.len() / 2];
    let features = |path: &Path| -> anyhow::Result<_> {
        let sound = heard(path)?;
        Ok(measure(&sound, &Novelty::of(&sound)))
    };
    let likeness = similarity(&features(&ours)?, &features(&theirs)?).0;
    Ok(vec![
        Figure::ratio("render of a dense 3 minutes", "s/s", &renders, Line::AtLeast(1.2)),
        Figure::value("likeness of the two renders", "", likeness.into(), Line::AtLeast(0.95)),
        Figure::value("beats of 3 minutes", "s/s", speed, Line::AtLeast(150.0)),
    ])
}

/// The same rate, samples, voices and effects as ours.
fn fluidsynth(font: &Path, midi: &Path, output: &Path) -> Command {
    let mut command = Command::new("fluidsynth");
    command
        .args(["-ni", "-q", "-r", "44100", "-O", "s16", "-T", "wav"])
        .args(["-o", "synth.polyphony=256", "-R", "1", "-C", "1", "-F"])
        .arg(output)
        .arg(font)
        .arg(midi);
    command
}

fn heard(path: &Path) -> anyhow::Result<Sound> {
    let file = fs::File::open(path).with_context(|| format!("no `{}`", path.display()))?;
    Ok(Sound::read(file, DecodeLimits::default(), &|| true)?)
}

/// The time that a program takes.
struct RunTime {
    seconds: f64,
    /// CPU time of its main thread.
    cpu_us: f64,
}

fn timed(command: &mut Command) -> anyhow::Result<RunTime> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let program = command.get_program().to_string_lossy().into_owned();
    let start = Instant::now();
    let mut child = command.spawn().with_context(|| format!("cannot start `{program}`"))?;
    // The kernel keeps its times until its status is collected.
    let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(Pid::from_child(&child)), ended)?;
    let seconds = start.elapsed().as_secs_f64();
    let schedstat = fs::read_to_string(format!("/proc/{}/schedstat", child.id()))?;
    let nanos = schedstat.split_whitespace().next().and_then(|nanos| nanos.parse::<f64>().ok());
    let cpu_us = nanos.context("cannot read the CPU time")? / 1e3;
    let status = child.wait()?;
    anyhow::ensure!(status.success(), "`{program}` failed: {status}");
    Ok(RunTime { seconds, cpu_us })
}

/// Returns an empty directory in place of the last one.
fn fresh(dir: &Path) -> anyhow::Result<PathBuf> {
    let fresh = dir.join("made");
    if fresh.exists() {
        fs::remove_dir_all(&fresh)?;
    }
    fs::create_dir(&fresh)?;
    Ok(fresh)
}

fn tunebook(n_tunes: usize) -> String {
    let tunes: Vec<&str> =
        TUNES.split("\n\n").filter(|tune| tune.trim_start().starts_with("X:")).collect();
    let numbered = |number: usize| {
        let tune = tunes[number % tunes.len()].trim_start();
        let rest = tune.split_once('\n').map_or("", |(_, rest)| rest);
        format!("X:{}\n{rest}\n", number + 1)
    };
    (0..n_tunes).map(numbered).collect::<Vec<_>>().join("\n")
}

/// Returns chords on every eighth for eight instruments, and a drum.
fn dense(n_quarters: usize) -> Sequence {
    let ticks = u64::from(TICKS);
    let mut track = vec![Event { tick: 0, message: Message::Tempo(500_000) }];
    for (channel, program) in PROGRAMS.iter().enumerate() {
        let (channel, program) = (channel as u8, *program);
        track.push(Event { tick: 0, message: Message::Program { channel, program } });
    }
    let mut note = |tick: u64, length: u64, channel: u8, key: u8| {
        let on = Message::NoteOn { channel, key, velocity: 70 };
        track.push(Event { tick, message: on });
        track.push(Event { tick: tick + length, message: Message::NoteOff { channel, key } });
    };
    for eighth in 0..n_quarters * 2 {
        let tick = eighth as u64 * ticks / 2;
        let root = 40 + [0, 5, 7, 0, 9, 5, 7, 0][eighth / 8 % 8];
        for channel in 0..PROGRAMS.len() as u8 {
            for third in [0, 4, 7] {
                note(tick, ticks / 2 - 1, channel, root + third + 3 * channel);
            }
        }
        note(tick, ticks / 4, 9, if eighth % 4 == 0 { 36 } else { 42 });
    }
    track.sort_by_key(|event| event.tick);
    Sequence { timing: Timing::PerQuarter(TICKS), tracks: vec![track] }
}
