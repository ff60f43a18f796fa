//! Music on this machine.

use crate::support::{Run, file, ringback};

const TUNE: &[u8] = b"X:1\nT:Scale\nM:4/4\nL:1/4\nK:D\n|:DEFG|ABcd:|\n";

/// REQ: `ringback studio abc check FILE` shows what is wrong, where, and what to do.
#[test]
fn a_check_shows_the_place_and_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let good = file(dir.path(), "good.abc", TUNE);
    let run = Run::of(ringback(dir.path()).args(["studio", "abc", "check"]).arg(&good)).done();
    assert_eq!(run.stdout, "valid: 1 tune, 0 errors, 0 warnings\n");
    let bad = file(dir.path(), "bad.abc", b"X:1\nT:t\nL:1/4\nK:C\nCD [CE\n");
    let run = Run::of(ringback(dir.path()).args(["studio", "abc", "check"]).arg(&bad));
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stdout.contains("bad.abc:5:4: error: a chord is not closed"), "{run:?}");
    assert!(run.stdout.contains("    CD [CE\n       ^ close it with `]`"), "{run:?}");
    assert!(run.stderr.contains("is not valid ABC"), "{run:?}");
    let json = Run::of(ringback(dir.path()).args(["studio", "--json", "abc", "check"]).arg(&good));
    assert_eq!(json.json()["valid"], true);
}

/// REQ: `ringback studio abc midi FILE` makes a MIDI file, or nothing.
#[test]
fn a_midi_file_is_made_of_a_tune() {
    let dir = tempfile::tempdir().unwrap();
    let tune = file(dir.path(), "tune.abc", TUNE);
    let arguments = ["studio", "abc", "midi", "--tempo", "60", "--transpose", "-2"];
    let run = Run::of(ringback(dir.path()).args(arguments).arg(&tune)).done();
    assert!(run.stdout.contains("tune.mid: 16 notes, 16.0 s"), "{run:?}");
    assert!(std::fs::read(tune.with_extension("mid")).unwrap().starts_with(b"MThd"));
    let bad = file(dir.path(), "bad.abc", b"hello world");
    let run = Run::of(ringback(dir.path()).args(["studio", "abc", "midi"]).arg(&bad));
    assert_eq!(run.code, 1, "{run:?}");
    assert!(!bad.with_extension("mid").exists());
    let missing = dir.path().join("missing.abc");
    let run = Run::of(ringback(dir.path()).args(["studio", "abc", "midi"]).arg(missing));
    assert!(run.stderr.contains("cannot read"), "{run:?}");
    let run =
        Run::of(ringback(dir.path()).args(["studio", "abc", "midi", "--tune", "2"]).arg(&tune));
    assert!(run.stderr.contains("there is no tune"), "{run:?}");
}

/// REQ: `ringback studio render FILE.mid -o OUT.wav`, `beats FILE` and `picture FILE`.
#[test]
fn a_tune_is_rendered_heard_and_drawn() {
    let dir = tempfile::tempdir().unwrap();
    let tune = file(dir.path(), "tune.abc", TUNE);
    Run::of(ringback(dir.path()).args(["studio", "abc", "midi"]).arg(&tune)).done();
    let (midi, wav) = (tune.with_extension("mid"), dir.path().join("out.wav"));
    let arguments = ["studio", "render", "--format", "s24", "-o"];
    let run = Run::of(ringback(dir.path()).args(arguments).args([&wav, &midi])).done();
    assert!(run.stdout.contains("out.wav: "), "{run:?}");
    assert!(std::fs::read(&wav).unwrap().starts_with(b"RIFF"));
    let run = Run::of(ringback(dir.path()).args(["studio", "--json", "beats"]).arg(&wav));
    let found = run.json();
    assert!(found["beats"].as_array().unwrap().len() >= 8, "{found}");
    assert!(found["backend"].as_str().unwrap().starts_with("embedded"), "{found}");
    for picture in [&midi, &wav] {
        Run::of(ringback(dir.path()).args(["studio", "picture"]).arg(picture)).done();
        let svg = std::fs::read_to_string(picture.with_extension("svg")).unwrap();
        assert!(svg.ends_with("</svg>\n"));
    }
}

#[test]
fn what_cannot_be_rendered_leaves_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let bad = file(dir.path(), "bad.mid", b"MThd\0\0");
    let run = Run::of(ringback(dir.path()).args(["studio", "render"]).arg(&bad));
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stderr.contains("not a whole MIDI file"), "{run:?}");
    assert!(!bad.with_extension("wav").exists());
    let run = Run::of(ringback(dir.path()).args(["studio", "render", "-s", "none.sf2"]).arg(&bad));
    assert_eq!(run.code, 1, "{run:?}");
}
