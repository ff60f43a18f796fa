//! Pictures of music.

use ringback_studio::analysis::Sound;
use ringback_studio::picture::{piano_roll, waveform};
use ringback_studio::render::Score;

use crate::support::{Midi, TICKS};

const Q: u64 = TICKS as u64;

#[test]
fn a_piano_roll_has_a_rectangle_for_each_note() {
    let midi = Midi::default().note(0, Q, 0, 60, 100).note(Q, Q, 1, 64, 80).bytes(2 * Q);
    let svg = piano_roll(&Score::read(&midi).unwrap(), "a <tune> & more");
    assert_eq!(svg.matches("rx=\"1\"").count(), 2);
    assert!(svg.contains("a &lt;tune&gt; &amp; more"));
    assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
}

/// Rule: the size of a picture has a limit, however long or dense the music is.
#[test]
fn pictures_do_not_grow_with_the_music() {
    let mut midi = Midi::default();
    for idx in 0..60_000 {
        midi.note(idx * 10, 9, (idx % 16) as u8, (idx % 128) as u8, 100);
    }
    let svg = piano_roll(&Score::read(&midi.bytes(600_000)).unwrap(), "dense");
    assert!(svg.len() < 4 << 20, "{}", svg.len());
    let samples = vec![0.25; 22_050 * 600];
    let beats: Vec<f64> = (0..100_000).map(f64::from).collect();
    let svg = waveform(&Sound::from_samples(&samples, 1, 22_050).unwrap(), &beats, "long");
    assert!(svg.len() < 1 << 20, "{}", svg.len());
}

#[test]
fn an_empty_score_is_still_a_picture() {
    let svg = piano_roll(&Score::read(&Midi::default().bytes(0)).unwrap(), "");
    assert!(svg.ends_with("</svg>\n"));
}
