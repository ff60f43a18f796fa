//! Reading what was written, limits, and seconds.

use super::*;

fn note(tick: u64, key: u8, on: bool) -> Event {
    let message = if on {
        Message::NoteOn { channel: 0, key, velocity: 80 }
    } else {
        Message::NoteOff { channel: 0, key }
    };
    Event { tick, message }
}

fn sample() -> Sequence {
    let tempo = |tick, micros| Event { tick, message: Message::Tempo(micros) };
    Sequence {
        timing: Timing::PerQuarter(480),
        tracks: vec![
            vec![
                Event { tick: 0, message: Message::Text(TextKind::TrackName, "Air".to_owned()) },
                tempo(0, 500_000),
                Event {
                    tick: 0,
                    message: Message::TimeSignature { numerator: 6, denominator_power: 3 },
                },
                Event { tick: 0, message: Message::KeySignature { sharps: -3, minor: true } },
                tempo(480, 1_000_000),
            ],
            vec![
                Event { tick: 0, message: Message::Program { channel: 0, program: 40 } },
                note(0, 60, true),
                note(480, 60, false),
                Event { tick: 480, message: Message::PitchBend { channel: 0, bend: -8192 } },
                note(480, 127, true),
                note(960, 127, false),
            ],
        ],
    }
}

/// Rule: what is written reads back the same.
#[test]
fn a_sequence_reads_back_as_it_was_written() {
    let sequence = sample();
    assert_eq!(Sequence::read(&sequence.write()), Ok(sequence));
}

/// Rule: one track is format 0, several are format 1.
#[test]
fn one_track_is_format_0_and_several_are_format_1() {
    let several = sample();
    let one = Sequence { timing: several.timing, tracks: vec![several.tracks[1].clone()] };
    assert_eq!(several.write()[8..10], [0, 1]);
    assert_eq!(one.write()[8..10], [0, 0]);
}

/// Rule: seconds follow every change of tempo.
#[test]
fn seconds_follow_the_changes_of_tempo() {
    let sequence = sample();
    let map = TempoMap::new(&sequence);
    assert!((map.seconds(480) - 0.5).abs() < 1e-12);
    assert!((sequence.seconds() - 1.5).abs() < 1e-12);
    assert_eq!(map.quarters_per_minute(0, sequence.timing).map(f64::round), Some(120.0));
    assert_eq!(map.quarters_per_minute(480, sequence.timing).map(f64::round), Some(60.0));
    assert_eq!(sequence.n_notes(), 2);
}

/// Rule: every prefix of a file is read or refused, never a panic.
#[test]
fn a_torn_file_is_an_error_or_shorter_music() {
    let bytes = sample().write();
    for end in 0..bytes.len() {
        if let Ok(read) = Sequence::read(&bytes[..end]) {
            assert!(read.n_notes() <= 2);
        }
    }
    assert!(matches!(Sequence::read(b"hello world"), Err(ReadError::NotMidi { .. })));
}

/// Rule: a file over a limit is refused, and the error names the limit.
#[test]
fn a_file_over_the_limit_is_refused() {
    let error = Sequence::read(&vec![0; BYTES_MAX + 1]).unwrap_err();
    assert_eq!(error, ReadError::TooLarge { size: BYTES_MAX + 1 });
    assert!(error.to_string().contains(&BYTES_MAX.to_string()));
}
