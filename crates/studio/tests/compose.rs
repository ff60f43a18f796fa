//! The embedded model of note sequences.
#![expect(clippy::unwrap_used, reason = "a test names what it expects and fails on the rest")]

use std::cell::{Cell, RefCell};

use proptest::prelude::*;
use ringback_studio::abc;
use ringback_studio::compose::{
    Composition, CompositionStopped, NOTES_MAX, Piece, Settings, Task, compose, compose_aloud,
    judge,
};
use ringback_studio::smf::{Event, Message, Sequence, Timing};

fn sequence(tune: &str) -> Sequence {
    let parsed = abc::parse(tune).unwrap();
    assert!(parsed.is_valid());
    abc::to_midi(&abc::perform(&parsed.book, 0, &abc::Options::default()).unwrap())
}

fn piece(tune: &str) -> Piece {
    Piece::from_sequence(&sequence(tune)).unwrap()
}

const REEL: &str =
    "X:1\nT:Reel\nM:4/4\nL:1/8\nQ:1/4=90\nK:D\nFAdA BAdA|FAdA BAFE|FAdA BAdB|AFEF D4|\n";

fn settings(seed: u64) -> Settings {
    Settings { n_notes: 60, temperature: 1.0, top_p: 0.95, seed }
}

fn made(task: Task<'_>, settings: &Settings) -> Composition {
    compose(task, settings, &|| true).unwrap()
}

/// Returns the onsets of notes, in ticks, and their keys.
fn notes(sequence: &Sequence) -> Vec<(u64, u8)> {
    let events = sequence.tracks.iter().flatten();
    events
        .filter_map(|event| {
            let Message::NoteOn { key, .. } = event.message else { return None };
            Some((event.tick, key))
        })
        .collect()
}

/// REQ: the same request with the same seed gives the same bytes, another seed others.
#[test]
fn a_seed_decides_everything() {
    let reel = piece(REEL);
    for task in [Task::New, Task::Seeded(&reel), Task::Loop(None), Task::Bridge(&reel, Some(&reel))]
    {
        let bytes = |seed| made(task, &settings(seed)).sequence.write();
        assert_eq!(bytes(1), bytes(1), "{task:?}");
        assert_ne!(bytes(1), bytes(2), "{task:?}");
    }
}

/// Rule: new music ends on the tonic, with a bar, and is about as long as requested.
#[test]
fn new_music_comes_home() {
    for seed in 0..20 {
        let made = made(Task::New, &settings(seed));
        assert!((60..=84).contains(&made.n_notes), "{}", made.n_notes);
        let read = Sequence::read(&made.sequence.write()).unwrap();
        assert_eq!(read.n_notes(), made.n_notes);
        let again = Piece::from_sequence(&read).unwrap();
        assert!(made.seconds > 5.0, "{again:?}");
    }
}

/// Rule: a continuation is the piece, then more of it, in its tempo and mostly in its own notes.
#[test]
fn a_continuation_goes_on_from_the_piece() {
    let (reel, before) = (piece(REEL), notes(&sequence(REEL)));
    let made = made(Task::Continue(&reel), &settings(3));
    let after = notes(&made.sequence);
    assert_eq!(after.len(), before.len() + made.n_notes);
    let keys = |notes: &[(u64, u8)]| notes.iter().map(|(_, key)| *key).collect::<Vec<_>>();
    assert_eq!(keys(&after)[..before.len()], keys(&before)[..]);
    let own: std::collections::BTreeSet<_> = keys(&before).into_iter().collect();
    let new = &keys(&after)[before.len()..];
    let n_own = new.iter().filter(|key| own.contains(key)).count();
    assert!(n_own * 10 >= new.len() * 8, "{n_own} of {}", new.len());
    let tempo = Message::Tempo(666_667);
    assert!(made.sequence.tracks[0].iter().any(|event| event.message == tempo));
    // The first new note is on the bar line after the old ones: four bars of 96 ticks.
    assert_eq!(after[before.len()].0, 4 * 96);
}

/// Rule: seeded music starts with the same notes as its piece.
#[test]
fn seeded_music_starts_like_its_seed() {
    let reel = piece(REEL);
    let made = made(Task::Seeded(&reel), &settings(4));
    let keys: Vec<u8> = notes(&made.sequence).iter().map(|(_, key)| *key).collect();
    let seed: Vec<u8> = notes(&sequence(REEL)).iter().map(|(_, key)| *key).collect();
    assert_eq!(keys[..16], seed[..16]);
}

/// Rule: a loop has whole bars and nothing sounds beyond them.
#[test]
fn a_loop_has_whole_bars() {
    let jig = piece("X:1\nM:6/8\nL:1/8\nQ:3/8=120\nK:G\nGAB dBG|ABA AGE|\n");
    for (n_notes, bars) in [(1, 1), (10, 2), (1000, 8)] {
        let made = made(Task::Loop(Some(&jig)), &Settings { n_notes, ..settings(5) });
        assert!((made.seconds - f64::from(bars)).abs() < 1e-3, "{} s", made.seconds);
    }
}

/// Rule: at temperature 0 chance plays no part.
#[test]
fn without_temperature_every_seed_gives_the_same() {
    let reel = piece(REEL);
    let cold = |seed| Settings { temperature: 0.0, ..settings(seed) };
    let one = made(Task::Continue(&reel), &cold(1));
    assert_eq!(one.sequence, made(Task::Continue(&reel), &cold(2)).sequence);
}

/// Rule: a composition stops on request.
#[test]
fn a_composition_stops_when_it_is_told() {
    let large = Settings { n_notes: NOTES_MAX, ..settings(1) };
    assert_eq!(compose(Task::New, &large, &|| false), Err(CompositionStopped));
}

fn played(uneven: u64, spread: u8) -> Piece {
    let mut track = Vec::new();
    for n in 0..64_u64 {
        // Some pseudo-random but fixed unevenness.
        let late = n * 7919 % (uneven + 1);
        let velocity = 80 + (n * 104_729 % (u64::from(spread) + 1)) as u8;
        let tick = n * 240 + late;
        let key = 60 + (n % 12) as u8;
        track.push(Event { tick, message: Message::NoteOn { channel: 0, key, velocity } });
        let message = Message::NoteOff { channel: 0, key };
        track.push(Event { tick: n * 240 + 200, message });
    }
    Piece::from_sequence(&Sequence { timing: Timing::PerQuarter(480), tracks: vec![track] })
        .unwrap()
}

/// REQ: the embedded classifier separates performed from programmed music, and no more.
#[test]
fn what_is_even_was_programmed() {
    assert!(judge(&played(0, 0)).performed < 0.2);
    assert!(judge(&played(40, 40)).performed > 0.8);
    assert!(judge(&piece(REEL)).performed < 0.2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Rule: any file is music or an error, within bounds.
    #[test]
    fn any_file_is_a_piece_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut file = b"MThd\0\0\0\x06\0\0\0\x01\0\x60MTrk".to_vec();
        file.extend((bytes.len() as u32).to_be_bytes());
        file.extend(bytes);
        if let Ok(piece) = Piece::read(&file) {
            let made = compose(Task::Continue(&piece), &settings(1), &|| true).unwrap();
            prop_assert!(made.n_notes >= 1);
            prop_assert!(judge(&piece).performed.is_finite());
        }
    }
}

/// Rule: what is heard while it is composed is the file, in order and without a gap, and new music is
/// heard before it is complete.
#[test]
fn what_is_heard_on_the_way_is_the_file() {
    let piece = piece(REEL);
    let tasks = [
        (Task::New, true),
        (Task::Seeded(&piece), true),
        (Task::Continue(&piece), true),
        (Task::Bridge(&piece, Some(&piece)), false),
        (Task::Loop(Some(&piece)), false),
    ];
    for (task, comes_in_parts) in tasks {
        for seed in 0..10 {
            let settings = Settings { n_notes: 300, ..settings(seed) };
            let heard = RefCell::new(Vec::new());
            let parts = Cell::new(0);
            let hear = |events: &[Event]| {
                heard.borrow_mut().extend_from_slice(events);
                parts.set(parts.get() + 1);
            };
            let made = compose_aloud(task, &settings, &|| true, &hear).unwrap();
            assert_eq!(heard.into_inner(), made.sequence.tracks[0], "{task:?} {seed}");
            assert_eq!(parts.get() > 2, comes_in_parts, "{task:?} {seed}");
        }
    }
}
