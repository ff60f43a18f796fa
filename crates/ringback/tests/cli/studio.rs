//! Music without a daemon.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::support::{Run, file, ringback};

const TUNE: &[u8] = b"X:1\nT:Scale\nM:4/4\nL:1/4\nK:D\n|:DEFG|ABcd:|\n";

/// REQ: `ringback studio abc check FILE` shows errors, their places and fixes.
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

/// REQ: `ringback studio abc midi FILE` writes a MIDI file, or nothing.
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
    assert!(run.stderr.contains("no tune 2 in this text"), "{run:?}");
}

/// REQ: `ringback studio abc midi --all FILE` writes a MIDI file for every tune, or nothing.
#[test]
fn a_midi_file_is_made_of_every_tune() {
    let dir = tempfile::tempdir().unwrap();
    let tune = String::from_utf8_lossy(TUNE);
    let second = "X:2\nT:t\nM:2/4\nL:1/4\nK:C\nCDE|FG|\n";
    let book = file(dir.path(), "book.abc", format!("{tune}\n{second}").as_bytes());
    let all = ["studio", "abc", "midi", "--all", "--tempo", "60"];
    let run = Run::of(ringback(dir.path()).args(all).arg(&book)).done();
    assert!(run.stdout.contains("book-1.mid: 16 notes, 16.0 s\n"), "{run:?}");
    assert!(run.stdout.contains("book-2.mid: 5 notes, 5.0 s\n"), "{run:?}");
    assert!(run.stderr.contains("    CDE|FG|\n       ^ correct"), "{run:?}");
    Run::of(ringback(dir.path()).args(["studio", "abc", "midi", "--tempo", "60"]).arg(&book))
        .done();
    let made = |name: &str| std::fs::read(dir.path().join(name)).unwrap();
    assert_eq!(made("book-1.mid"), made("book.mid"));
    let bad = file(dir.path(), "bad.abc", format!("{tune}\nX:2\nT:t\nK:C\n[CE\n").as_bytes());
    let run = Run::of(ringback(dir.path()).args(all).arg(&bad));
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stderr.contains("nothing was produced"), "{run:?}");
    assert!(!dir.path().join("bad-1.mid").exists());
}

/// REQ: `ringback studio abc svg FILE` draws a tune as a piano roll, under its title.
#[test]
fn a_tune_is_drawn() {
    let dir = tempfile::tempdir().unwrap();
    let tune = file(dir.path(), "tune.abc", TUNE);
    let run = Run::of(ringback(dir.path()).args(["studio", "abc", "svg"]).arg(&tune));
    assert!(run.line().ends_with("tune.svg"));
    let svg = std::fs::read_to_string(tune.with_extension("svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("Scale"), "{svg}");
    let drawn = dir.path().join("other.svg");
    let arguments = ["studio", "--json", "abc", "svg", "--transpose", "12", "-o"];
    let run = Run::of(ringback(dir.path()).args(arguments).args([&drawn, &tune]));
    assert_eq!(run.json()["file"], drawn.to_str().unwrap());
    assert_ne!(std::fs::read_to_string(&drawn).unwrap(), svg, "an octave higher");
}

/// Creates a directory with a program, which is a shell script.
fn program(dir: &Path, name: &str, script: &str) -> PathBuf {
    let bin = dir.join(format!("bin-{name}"));
    std::fs::create_dir(&bin).unwrap();
    let path = file(&bin, name, format!("#!/bin/sh\n{script}\n").as_bytes());
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    bin
}

/// REQ: `ringback studio abc play FILE` plays with the first installed player; without one the
/// error names what to install.
#[test]
fn a_tune_is_played_by_the_first_player_that_is_here() {
    let dir = tempfile::tempdir().unwrap();
    let tune = file(dir.path(), "tune.abc", TUNE);
    let play = |path: &OsStr| {
        let mut command = ringback(dir.path());
        command.env("PATH", path).env("RINGBACK_TOKEN", "secret");
        Run::of(command.args(["studio", "--json", "abc", "play"]).arg(&tune))
    };
    let empty = dir.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let run = play(empty.as_os_str());
    assert_eq!(run.code, 1, "{run:?}");
    for part in ["pw-play", "paplay", "aplay", "pipewire-bin", "pulseaudio-utils", "alsa-utils"] {
        assert!(run.stderr.contains(part), "{part}: {run:?}");
    }
    let heard = dir.path().join("heard");
    let script = format!(
        "for name; do :; done; /bin/cat \"$name\" > {0}.wav; echo \"$* ${{RINGBACK_TOKEN-none}}\" > {0}",
        heard.display()
    );
    let alsa = program(dir.path(), "aplay", &script);
    let run = play(alsa.as_os_str());
    assert_eq!(run.json()["player"], "aplay");
    assert_eq!(std::fs::read_to_string(&heard).unwrap(), "-q /dev/stdin none\n");
    assert!(std::fs::read(heard.with_extension("wav")).unwrap().starts_with(b"RIFF"));
    let broken = program(dir.path(), "pw-play", "exit 3");
    let run = play(&std::env::join_paths([alsa, broken]).unwrap());
    assert_eq!(run.code, 1, "the best one comes first: {run:?}");
    assert!(run.stderr.contains("`pw-play` could not play the tune"), "{run:?}");
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
    assert!(run.stderr.contains("not a valid MIDI file"), "{run:?}");
    assert!(!bad.with_extension("wav").exists());
    let tune = file(dir.path(), "tune.abc", TUNE);
    Run::of(ringback(dir.path()).args(["studio", "abc", "midi"]).arg(&tune)).done();
    let midi = tune.with_extension("mid");
    let run = Run::of(ringback(dir.path()).args(["studio", "render", "-s", "none.sf2"]).arg(&midi));
    assert!(run.stderr.contains("cannot read `none.sf2`"), "{run:?}");
    let mut configured = ringback(dir.path());
    configured.env("RINGBACK_STUDIO__SOUNDFONT", "/other.sf2").args(["studio", "render"]);
    let run = Run::of(configured.arg(&midi));
    assert!(run.stderr.contains("`/other.sf2`, which `studio.soundfont` names"), "{run:?}");
    assert!(!midi.with_extension("wav").exists());
}
