//! Our renders against those of `fluidsynth`, note by note.

use std::fs;
use std::process::{Command, Stdio};

use realfft::RealFftPlanner;
use ringback_studio::render::RenderSettings;

use crate::support::{Midi, TICKS, font_path, mono, rendered};

const RATE: u32 = 44_100;
/// At 120 quarters a minute, a note starts every three seconds and lasts one.
const TICKS_APART: u64 = TICKS as u64 * 6;
const TICKS_LONG: u64 = TICKS as u64 * 2;
const SECONDS_APART: f64 = 3.0;

/// The gain at which `fluidsynth` is as loud as we are.
const GAIN: &str = "0.42";
/// `fluidsynth` plays a note one block of frames after it is struck.
const LATENCY_FRAMES: usize = 64;

/// Bins of a spectrum, finer than the window so that a peak is located to a cent.
const BINS: usize = 1 << 16;

#[derive(Clone, Copy, Debug)]
enum TestSound {
    Program { program: u8, key: u8 },
    Drum { key: u8 },
}

struct Measurement {
    onset_ms: f64,
    level_db: f64,
}

/// Returns `fluidsynth`'s render of a file, without effects.
fn reference(midi: &[u8]) -> Vec<f32> {
    let dir = tempfile::tempdir().unwrap();
    let (input, output) = (dir.path().join("in.mid"), dir.path().join("out.wav"));
    fs::write(&input, midi).unwrap();
    let status = Command::new("fluidsynth")
        .args(["-ni", "-R", "0", "-C", "0", "-g", GAIN, "-r", "44100", "-O", "float", "-T", "wav"])
        .arg("-F")
        .args([&output, &font_path(), &input])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("`fluidsynth` is installed by the tests' preparation");
    assert!(status.success());
    let mut reader = hound::WavReader::open(&output).unwrap();
    assert_eq!((reader.spec().sample_rate, reader.spec().channels), (RATE, 2));
    let samples: Vec<f32> = reader.samples::<f32>().map(Result::unwrap).collect();
    mono(&samples).split_off(LATENCY_FRAMES)
}

fn piece(samples: &[f32], idx: usize) -> &[f32] {
    let start = (idx as f64 * SECONDS_APART * f64::from(RATE)) as usize;
    let end = (start + (SECONDS_APART * f64::from(RATE)) as usize).min(samples.len());
    &samples[start.min(end)..end]
}

fn measure(samples: &[f32]) -> Measurement {
    let second = &samples[..RATE as usize];
    let peak = second.iter().fold(0.0_f32, |peak, sample| peak.max(sample.abs()));
    let onset = second.iter().position(|sample| sample.abs() > peak * 0.1).unwrap_or(0);
    let power = second.iter().map(|sample| f64::from(sample * sample)).sum::<f64>();
    Measurement {
        onset_ms: onset as f64 * 1000.0 / f64::from(RATE),
        level_db: 10.0 * (power / f64::from(RATE)).log10(),
    }
}

fn spectrum(samples: &[f32]) -> Vec<f32> {
    let fft = RealFftPlanner::<f32>::new().plan_fft_forward(BINS * 2);
    let mut input = fft.make_input_vec();
    for (idx, sample) in samples.iter().enumerate() {
        let phase = idx as f32 / samples.len() as f32 * std::f32::consts::TAU;
        input[idx] = sample * (0.5 - 0.5 * phase.cos());
    }
    let mut output = fft.make_output_vec();
    fft.process(&mut input, &mut output).unwrap();
    output.iter().map(|bin| bin.norm()).collect()
}

fn peak_in(spectrum: &[f32], range: std::ops::Range<usize>) -> f64 {
    let best = range.clone().max_by(|a, b| spectrum[*a].total_cmp(&spectrum[*b])).unwrap();
    let (a, b, c) = (spectrum[best - 1], spectrum[best], spectrum[best + 1]);
    best as f64 + f64::from(0.5 * (a - c) / (a - 2.0 * b + c))
}

/// Returns the distance of our strongest partial from the reference's, within a semitone.
fn cents_apart(ours: &[f32], theirs: &[f32], from: usize, length: usize) -> f64 {
    let window = from..from + length;
    let (ours, theirs) = (spectrum(&ours[window.clone()]), spectrum(&theirs[window]));
    let reference = peak_in(&theirs, 64..BINS);
    let range = (reference / 1.06) as usize..(reference * 1.06) as usize + 2;
    1200.0 * (peak_in(&ours, range) / reference).log2()
}

fn file(played: &[TestSound]) -> Vec<u8> {
    let mut midi = Midi::default();
    midi.tempo(0, 120.0);
    for (idx, played) in played.iter().enumerate() {
        let at = idx as u64 * TICKS_APART;
        match *played {
            TestSound::Program { program, key } => {
                midi.program(at, 0, program).note(at, TICKS_LONG, 0, key, 100)
            }
            TestSound::Drum { key } => midi.note(at, TICKS_LONG, 9, key, 100),
        };
    }
    midi.bytes(played.len() as u64 * TICKS_APART)
}

/// Returns every preset with an attack and a pitch: neither the swells and noises of 96 to 103 nor
/// the sound effects from 119 on can be compared.
fn presets() -> impl Iterator<Item = TestSound> {
    (0..96).chain(104..119).map(|program| {
        let key = if (32..40).contains(&program) { 40 } else { 64 };
        TestSound::Program { program, key }
    })
}

/// REQ: a rendered note's pitch, onset and level match `fluidsynth`'s, within 15 cents (25 for
/// drums), 7 ms and 2 dB (3 for drums), for 111 presets and 47 drum notes.
#[test]
fn notes_match_those_of_fluidsynth() {
    let played: Vec<_> = presets().chain((35..=81).map(|key| TestSound::Drum { key })).collect();
    let bytes = file(&played);
    let theirs = reference(&bytes);
    let settings = RenderSettings { effects: false, ..RenderSettings::default() };
    let ours = mono(&rendered(&bytes, settings).0);
    let mut off = Vec::new();
    for (idx, played) in played.iter().enumerate() {
        let (ours, theirs) = (piece(&ours, idx), piece(&theirs, idx));
        let (measured, expected) = (measure(ours), measure(theirs));
        let onset_ms = measured.onset_ms - expected.onset_ms;
        let level_db = measured.level_db - expected.level_db;
        let (cents, db_max, cents_max) = match played {
            TestSound::Program { .. } => (cents_apart(ours, theirs, 2048, 1 << 15), 2.0, 15.0),
            TestSound::Drum { .. } => (cents_apart(ours, theirs, 0, 1 << 12), 3.0, 25.0),
        };
        if onset_ms.abs() > 7.0 || level_db.abs() > db_max || cents.abs() > cents_max {
            off.push(format!("{played:?}: {onset_ms:.1} ms, {level_db:.1} dB, {cents:.1} cents"));
        }
    }
    assert!(off.is_empty(), "{off:#?}");
}
