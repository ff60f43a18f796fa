//! MIDI on the timeline against `fluidsynth`, which plays the same notes at the timeline's tempo.

use std::process::{Command, Stdio};

use ringback_garden::content::{ContentError, Preparer};
use ringback_garden::sound::key_of;
use ringback_garden::tempo::TempoMap;
use ringback_proto::garden::{TempoChange, Ticks};
use ringback_studio::soundfont::{SEARCHED_DIRS, find};

use crate::support::{RATE, Shop, midi, region};

/// The gain at which `fluidsynth` is as loud as we are.
const GAIN: &str = "0.42";
const TICKS: u8 = 96;
/// Beats between two notes.
const APART: u8 = 3;
const KEYS: [u8; 5] = [48, 60, 64, 67, 76];

/// A file of notes that last a beat each, at a tempo in microseconds per quarter note.
pub(crate) fn file(tempo_us: u32) -> Vec<u8> {
    let [_, a, b, c] = tempo_us.to_be_bytes();
    let mut track = vec![0, 0xFF, 0x51, 3, a, b, c];
    for (idx, key) in KEYS.iter().enumerate() {
        let pause = if idx == 0 { 0 } else { u16::from(TICKS) * u16::from(APART - 1) };
        track.extend([(pause >> 7) as u8 | 0x80, (pause & 0x7F) as u8, 0x90, *key, 100]);
        track.extend([TICKS, 0x80, *key, 0]);
    }
    track.extend([TICKS, 0xFF, 0x2F, 0]);
    let mut file = b"MThd\0\0\0\x06\0\0\0\x01\0".to_vec();
    file.push(TICKS);
    file.extend_from_slice(b"MTrk\0\0\0");
    file.push(track.len() as u8);
    file.extend_from_slice(&track);
    file
}

/// Returns the onset in milliseconds and the level in decibels of the notes.
fn notes(mono: &[f32], seconds_apart: f64) -> Vec<(f64, f64)> {
    let length = (seconds_apart * f64::from(RATE)) as usize;
    let starts = (0..KEYS.len()).map(|idx| (idx as f64 * seconds_apart * f64::from(RATE)) as usize);
    let measure = |start: usize| {
        // The reverb of the note before is over by then.
        let note = &mono[start..start + length / 2];
        let peak = note.iter().fold(0.0_f32, |peak, sample| peak.max(sample.abs()));
        let onset = note.iter().position(|sample| sample.abs() > peak * 0.1).unwrap();
        let power: f64 = note.iter().map(|sample| f64::from(sample * sample)).sum();
        (onset as f64 * 1000.0 / f64::from(RATE), 10.0 * (power / note.len() as f64).log10())
    };
    starts.map(measure).collect()
}

/// Rule: MIDI follows the tempo of the timeline, and agrees with `fluidsynth` as the studio's does:
/// within 7 ms and 2 dB.
#[test]
fn midi_follows_the_timeline_and_agrees_with_fluidsynth() {
    let shop = Shop::new();
    std::fs::write(shop.path("in.mid"), file(500_000)).unwrap();
    // At 90 quarter notes per minute.
    std::fs::write(shop.path("slow.mid"), file(666_667)).unwrap();
    let font = find(None, &SEARCHED_DIRS).unwrap();
    let status = Command::new("fluidsynth")
        .args(["-ni", "-R", "0", "-C", "0", "-g", GAIN, "-r", "48000", "-O", "float", "-T", "wav"])
        .arg("-F")
        .args([shop.path("out.wav").as_std_path(), &font, shop.path("slow.mid").as_std_path()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("`fluidsynth` is installed by the tests' preparation");
    assert!(status.success());
    let hash = shop.store("in.mid", "audio/midi");
    let placed = midi(1, hash, 2.0);
    let map = TempoMap::new(&[TempoChange { bpm: 90.0, ..TempoChange::DEFAULT }], RATE);
    let font = camino::Utf8PathBuf::from_path_buf(font).unwrap();
    let mut preparer = Preparer::new(shop.source(), RATE, 1 << 30, Some(font));
    let sound = preparer.prepare(&key_of(&placed, &map).unwrap()).unwrap();
    let mono = |[left, right]: [f32; 2]| (left + right) / 2.0;
    let mut ours = vec![0.0; sound.n_frames() as usize * 2];
    sound.add_to(&mut ours, 0, [1.0, 1.0]);
    let ours: Vec<f32> = ours.chunks_exact(2).map(|frame| mono([frame[0], frame[1]])).collect();
    let theirs: Vec<f32> = shop.read("out.wav").into_iter().map(mono).collect();
    let seconds_apart = f64::from(APART) * 60.0 / 90.0;
    let pairs = notes(&ours, seconds_apart).into_iter().zip(notes(&theirs, seconds_apart));
    for (idx, (ours, theirs)) in pairs.enumerate() {
        assert!((ours.0 - theirs.0).abs() < 7.0, "note {idx}: {ours:?} and {theirs:?}");
        assert!((ours.1 - theirs.1).abs() < 2.0, "note {idx}: {ours:?} and {theirs:?}");
    }
    let beats = f64::from(APART) * (KEYS.len() - 1) as f64 + 2.0;
    assert_eq!(preparer.midi_length(hash).unwrap(), Ticks::nearest(beats).unwrap());
}

#[test]
fn midi_without_a_soundfont_says_what_to_set() {
    let shop = Shop::new();
    std::fs::write(shop.path("in.mid"), file(500_000)).unwrap();
    let hash = shop.store("in.mid", "audio/midi");
    let placed = midi(1, hash, 0.0);
    let key = key_of(&placed, &TempoMap::new(&[], RATE)).unwrap();
    let refused = Preparer::new(shop.source(), RATE, 1 << 30, None).prepare(&key).unwrap_err();
    assert!(matches!(refused, ContentError::NoFont));
    assert!(refused.to_string().contains("`garden.soundfont`"), "{refused}");
}

/// Rule: a missing, damaged or foreign blob is an error, never a panic.
#[test]
fn content_that_cannot_be_played_is_an_error() {
    let shop = Shop::new();
    std::fs::write(shop.path("text"), b"this is no sound").unwrap();
    let text = shop.store("text", "audio/wav");
    let map = TempoMap::new(&[], RATE);
    let mut preparer = Preparer::new(shop.source(), RATE, 1 << 20, None);
    let key = |hash| key_of(&region(1, hash, 0.0), &map).unwrap();
    let mut prepare = |hash| preparer.prepare(&key(hash)).unwrap_err();
    assert!(matches!(prepare(text), ContentError::Decode(_)));
    let missing = ringback_proto::ids::BlobHash::from_bytes([7; 32]);
    assert!(matches!(prepare(missing), ContentError::Read(_)));
    let name = text.to_string();
    let path = shop.path("blobs").join(&name[..2]).join(&name[2..4]).join(&name);
    std::fs::write(path, b"this is not it any more").unwrap();
    assert!(matches!(prepare(text), ContentError::Read(_)));
    shop.write("long.wav", RATE, &vec![[0.1, 0.1]; 200_000]);
    let long = shop.store("long.wav", "audio/wav");
    assert!(matches!(prepare(long), ContentError::TooLarge { .. }));
}
