//! The corpus against `abc2midi`, which `cargo xtask` installs before the tests (Debian: `abcmidi`).

use std::path::Path;
use std::process::Command;

use ringback_studio::abc::{self, Options};
use ringback_studio::smf::{Message, Sequence, Timing};

use crate::book;
use crate::corpus::{CorpusTune, tunes};

/// Tunes that we play differently, and the paragraph of the ABC standard 2.1 that explains why.
const DIFFERENCES: &str = include_str!("../differences.txt");

/// `abc2midi` starts notes one tick late and rounds tuplets; a tick is a 480th of a quarter.
const TICKS_TOLERANCE: i64 = 3;

/// Onset, duration (in 480ths of a quarter) and key.
type Sound = (i64, i64, u8);

/// REQ: note onsets, pitches and durations equal those of `abc2midi`, or the difference is listed.
#[test]
fn the_corpus_sounds_as_abc2midi_plays_it() {
    let directory = tempfile::tempdir().unwrap();
    let listed: Vec<&str> = DIFFERENCES
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
        .map(|line| line.split_whitespace().next().unwrap())
        .collect();
    let tunes = tunes();
    let mut wrong = Vec::new();
    let mut unused: Vec<&str> = listed.clone();
    for tune in &tunes {
        let ours = ours(&tune.text);
        let theirs = theirs(tune, directory.path());
        let same = same(&ours, &theirs);
        unused.retain(|name| *name != tune.name || same);
        if !same && !listed.contains(&tune.name.as_str()) {
            let first = ours.iter().zip(&theirs).position(|(a, b)| !near(*a, *b));
            let at = first.unwrap_or(ours.len().min(theirs.len()));
            let from = at.saturating_sub(2);
            let show = |sounds: &[Sound]| {
                format!("{:?}", sounds.iter().skip(from).take(8).collect::<Vec<_>>())
            };
            wrong.push(format!(
                "{} ({} and {} notes), from note {from}:\n  ours   {}\n  theirs {}",
                tune.name,
                ours.len(),
                theirs.len(),
                show(&ours),
                show(&theirs)
            ));
        }
    }
    assert!(wrong.is_empty(), "{} tunes differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(unused.is_empty(), "listed as different, but the same or unknown: {unused:?}");
}

fn near(a: Sound, b: Sound) -> bool {
    (a.0 - b.0).abs() <= TICKS_TOLERANCE && (a.1 - b.1).abs() <= TICKS_TOLERANCE && a.2 == b.2
}

fn same(ours: &[Sound], theirs: &[Sound]) -> bool {
    ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| near(*a, *b))
}

fn ours(text: &str) -> Vec<Sound> {
    let performance = abc::perform(&book(text), 0, &Options::default()).unwrap();
    sounds(&abc::to_midi(&performance), 0)
}

/// Converts without accompaniment, and with the notes of a chord at the same time.
fn theirs(tune: &CorpusTune, directory: &Path) -> Vec<Sound> {
    let (header, body) = split_after_key(&tune.text);
    let text = format!("{header}%%MIDI gchordoff\n%%MIDI chordattack 0\n{body}\n");
    let (input, output) = (directory.join("tune.abc"), directory.join("tune.mid"));
    std::fs::write(&input, text).unwrap();
    Command::new("abc2midi").arg(&input).arg("-o").arg(&output).output().expect(
        "`abc2midi` is missing: run `cargo xtask prepare`, or install the Debian package abcmidi",
    );
    if !output.exists() {
        return Vec::new(); // it refused the tune
    }
    let sequence = Sequence::read(&std::fs::read(&output).unwrap()).unwrap();
    std::fs::remove_file(&output).unwrap();
    sounds(&sequence, 1)
}

fn split_after_key(text: &str) -> (String, String) {
    let key_line = text.lines().position(|line| line.starts_with("K:")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    (lines[..=key_line].join("\n") + "\n", lines[key_line + 1..].join("\n"))
}

/// Returns the notes of a file by onset and key; `late` ticks are subtracted from every onset.
fn sounds(sequence: &Sequence, late: i64) -> Vec<Sound> {
    let Timing::PerQuarter(per_quarter) = sequence.timing else { panic!("film time") };
    let scale = |tick: i64| (tick * 480 + i64::from(per_quarter) / 2) / i64::from(per_quarter);
    let mut sounds = Vec::new();
    for track in &sequence.tracks {
        let mut open: Vec<(u8, u8, i64)> = Vec::new();
        for event in track {
            let tick = event.tick as i64;
            if let Message::NoteOn { channel, key, .. } = event.message {
                open.push((channel, key, (tick - late).max(0)));
            }
            if let Message::NoteOff { channel, key } = event.message
                && let Some(at) = open.iter().position(|(c, k, _)| (*c, *k) == (channel, key))
            {
                let (_, _, on) = open.remove(at);
                sounds.push((scale(on), scale(tick) - scale(on), key));
            }
        }
    }
    // Onsets a few ticks apart are the same moment: the key decides.
    sounds.sort_by_key(|(on, duration, key)| ((on + 5) / 12, *key, *duration));
    sounds
}
