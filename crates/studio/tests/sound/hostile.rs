//! Truncated, lying and random files of every format: a typed error or a result, within bounds of
//! time and memory. The corpus in `tests/hostile` has files that once went wrong or look dangerous.

use std::fs;
use std::io::Cursor;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use proptest::prelude::*;
use proptest::test_runner::Config;
use ringback_studio::analysis::Sound;
use ringback_studio::audio::{DecodeError, DecodeLimits};
use ringback_studio::render::{RenderLimits, RenderSettings, Score, ScoreError, render};
use ringback_studio::soundfont::{Font, FontError};

use crate::support::{Memory, Midi, TICKS, font, font_path};

/// Fast enough for every test run: a few seconds for each format.
const CASES: u32 = 200;

/// Small, so that a lie in a header cannot make a test slow.
const LIMITS: DecodeLimits = DecodeLimits { seconds_max: 20.0, channels_max: 8 };

fn decode(bytes: &[u8]) -> Result<Sound, DecodeError> {
    Sound::read(Cursor::new(bytes.to_vec()), LIMITS, &|| true)
}

fn play(midi: &[u8], font: &Font) {
    if let Ok(score) = Score::read(midi) {
        let limits = RenderLimits { seconds_max: 2.0, tail_seconds_max: 1.0 };
        // A result or an error is fine: only a crash or a hang is not.
        drop(render(&score, font, RenderSettings::default(), limits, &mut Memory::default()));
    }
}

fn a_tune() -> Vec<u8> {
    let q = u64::from(TICKS);
    Midi::default().tempo(0, 100.0).program(0, 0, 3).note(0, q, 0, 60, 99).bytes(q)
}

/// Returns a second of a tone as WAV, FLAC, MP3 and Ogg.
fn sounds() -> &'static [Vec<u8>] {
    static SOUNDS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    SOUNDS.get_or_init(|| ["wav", "flac", "mp3", "ogg"].map(encoded).to_vec())
}

fn encoded(extension: &str) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(format!("tone.{extension}"));
    let status = Command::new("ffmpeg")
        .args(["-f", "lavfi", "-i", "sine=frequency=440:duration=1", "-ac", "2"])
        .arg(&path)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("`ffmpeg` is installed by the tests' preparation");
    assert!(status.success(), "{extension}");
    fs::read(path).unwrap()
}

/// Returns a font without most of its samples: the tables alone decide how it is read.
fn small_font() -> &'static [u8] {
    static SMALL: OnceLock<Vec<u8>> = OnceLock::new();
    SMALL.get_or_init(|| fs::read(font_path()).unwrap())
}

/// REQ: decoding of WAV, FLAC, MP3 and Ogg.
#[test]
fn a_tone_is_the_same_in_every_format() {
    for bytes in sounds() {
        let sound = decode(bytes).unwrap();
        assert!((sound.seconds() - 1.0).abs() < 0.06, "{}", sound.seconds());
        assert_eq!(sound.decoded().channels, 2);
    }
}

/// REQ: truncated files are a typed error with the place, or what was whole in them.
#[test]
fn a_truncated_sound_is_shorter_or_an_error() {
    for bytes in sounds() {
        for share in 1..20 {
            if let Ok(sound) = decode(&bytes[..bytes.len() * share / 20]) {
                assert!(sound.seconds() <= 1.06, "{}", sound.seconds());
            }
        }
        assert!(decode(&bytes[..10]).is_err());
    }
    assert!(matches!(decode(b""), Err(DecodeError::Unknown)));
    assert!(matches!(decode(&[0; 4096]), Err(DecodeError::Unknown)));
}

/// Rule: a header that promises hours costs nothing; more than the limit is refused.
#[test]
fn a_lying_wav_header_costs_nothing_and_a_long_sound_is_refused() {
    let mut lying = sounds()[0].clone();
    let data = lying.windows(4).position(|name| name == b"data").unwrap();
    lying[data + 4..data + 8].copy_from_slice(&u32::MAX.to_le_bytes());
    if let Ok(sound) = decode(&lying) {
        assert!(sound.seconds() < 2.0);
    }
    let short = DecodeLimits { seconds_max: 0.5, channels_max: 8 };
    let error = Sound::read(Cursor::new(sounds()[0].clone()), short, &|| true).unwrap_err();
    assert!(matches!(error, DecodeError::TooLong { .. }), "{error}");
}

/// Rule: an analysis stops on request.
#[test]
fn decoding_stops_when_it_is_told() {
    let stopped = Sound::read(Cursor::new(sounds()[0].clone()), LIMITS, &|| false);
    assert!(matches!(stopped, Err(DecodeError::Stopped)));
}

/// REQ: a SoundFont that is cut off anywhere is an error with its place.
#[test]
fn a_truncated_font_is_an_error_with_its_place() {
    let whole = small_font();
    for share in 0..40 {
        let cut = &whole[..whole.len() * share / 40];
        let error = Font::read(cut).unwrap_err();
        assert!(matches!(error, FontError::Malformed { .. }), "{share}: {error}");
    }
}

/// Rule: indices that go back would make a small table own another many times over.
#[test]
fn a_font_whose_indices_go_back_is_refused() {
    let mut bytes = small_font().to_vec();
    let ibag = bytes.windows(4).rposition(|name| name == b"ibag").unwrap();
    bytes[ibag + 8 + 40..ibag + 8 + 42].copy_from_slice(&60_000_u16.to_le_bytes());
    let Err(FontError::Malformed { at, what }) = Font::read(&bytes) else { panic!("no error") };
    assert!(at > ibag && what.contains("ibag"), "{at} {what}");
}

/// REQ: the committed corpus of every format ends in a result or a typed error.
#[test]
fn the_corpus_is_survived() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile");
    let mut n_files = 0;
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        n_files += 1;
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("mid") => play(&bytes, font()),
            Some("sf2") => drop(Font::read(&bytes)),
            _ => drop(decode(&bytes)),
        }
    }
    assert!(n_files >= 10);
}

/// Changes some bytes anywhere in a file.
fn damaged(bytes: &[u8], damage: &[(prop::sample::Index, u8)]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for (place, value) in damage {
        let idx = place.index(bytes.len());
        bytes[idx] = *value;
    }
    bytes
}

fn damage() -> impl Strategy<Value = Vec<(prop::sample::Index, u8)>> {
    prop::collection::vec(any::<(prop::sample::Index, u8)>(), 1..12)
}

proptest! {
    #![proptest_config(Config { cases: CASES, failure_persistence: None, ..Config::default() })]

    #[test]
    fn fuzz_midi(damage in damage(), tail in prop::collection::vec(any::<u8>(), 0..64)) {
        let mut bytes = damaged(&a_tune(), &damage);
        bytes.extend(tail);
        play(&bytes, font());
    }

    #[test]
    fn fuzz_sound(format in 0..4_usize, damage in damage()) {
        drop(decode(&damaged(&sounds()[format], &damage)));
    }

    #[test]
    fn fuzz_random_bytes(format in 0..3_usize, bytes in prop::collection::vec(any::<u8>(), 0..2048)) {
        match format {
            0 => prop_assert!(Score::read(&bytes).is_err_and(|error| error != ScoreError::Format2)),
            1 => prop_assert!(Font::read(&bytes).is_err()),
            _ => drop(decode(&bytes)),
        }
    }
}

proptest! {
    #![proptest_config(Config { cases: CASES / 4, failure_persistence: None, ..Config::default() })]

    /// Damages the tables, which start where the samples end.
    #[test]
    fn fuzz_font(damage in damage()) {
        let whole = small_font();
        let tables = whole.windows(4).rposition(|name| name == b"pdta").unwrap();
        let mut bytes = whole[..tables].to_vec();
        bytes.extend(damaged(&whole[tables..], &damage));
        if let Ok(font) = Font::read(&bytes) {
            play(&a_tune(), &font);
        }
    }
}
