//! The garden's commands in a terminal: the real daemon, and the process that it starts.

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{Daemon, file, wait_for};

/// Two seconds of one channel, 16 bits: four beats.
fn wav() -> Vec<u8> {
    const RATE: u32 = 48_000;
    let samples = (0..2 * RATE).flat_map(|at| ((at % 200) as i16 * 50).to_le_bytes());
    let data: Vec<u8> = samples.collect();
    let length = u32::try_from(data.len()).unwrap();
    let mut file = Vec::new();
    file.extend(b"RIFF");
    file.extend((36 + length).to_le_bytes());
    file.extend(b"WAVEfmt ");
    file.extend([16, 0, 0, 0, 1, 0, 1, 0]);
    file.extend(RATE.to_le_bytes());
    file.extend((2 * RATE).to_le_bytes());
    file.extend([2, 0, 16, 0]);
    file.extend(b"data");
    file.extend(length.to_le_bytes());
    file.extend(data);
    file
}

/// Returns a daemon with a region of four beats, and the id of that.
fn with_region() -> (Daemon, String) {
    let daemon = Daemon::start();
    let path = file(daemon.home(), "drums.wav", &wav());
    let hash = daemon.run(&["cas", "put", path.to_str().unwrap()]).line();
    // The first command starts the process.
    let add = ["garden", "add", &hash, "--at", "4.0001", "--name", "drums", "--json"];
    let added = daemon.run(&add).json();
    assert_eq!((&added["position"], &added["duration"]), (&4.0.into(), &4.0.into()));
    assert_eq!(added["rounded"], serde_json::json!(["position"]));
    let region_id = added["region_id"].as_str().unwrap().to_owned();
    (daemon, region_id)
}

fn status(daemon: &Daemon) -> Value {
    daemon.run(&["garden", "status", "--json"]).json()
}

#[test]
fn a_region_is_placed_listed_played_and_stopped() {
    let (daemon, region_id) = with_region();
    let listed = daemon.run(&["garden", "regions"]).done().stdout;
    for part in [region_id.as_str(), "ready", "audio/wav", "drums", "1 region, revision 1"] {
        assert!(listed.contains(part), "{part} in {listed}");
    }
    let nowhere = daemon.run(&["garden", "regions", "--start", "9", "--json"]).json();
    assert_eq!(nowhere["count"], 0);
    let tempo = daemon.run(&["garden", "tempo", "90", "--signature", "3/4"]).line();
    assert!(tempo.contains("90 quarter notes per minute in 3/4 from beat 0 (job_"), "{tempo}");
    let looped = daemon.run(&["garden", "loop", "0", "8"]).line();
    assert!(looped.contains("beats 0 to 8 are repeated"), "{looped}");
    let played = daemon.run(&["garden", "play"]).line();
    assert!(played.contains("playing at beat") && played.contains("(job_"), "{played}");
    wait_for("sound", || (status(&daemon)["counters"]["frames"].as_u64()? > 0).then_some(()));
    let shown = daemon.run(&["garden", "status"]).done().stdout;
    for part in ["playing", "90 in 3/4", "beats 0 to 8", "1, revision 3", "underruns"] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    let sought = daemon.run(&["garden", "seek", "2", "--at", "next_bar"]).line();
    assert!(sought.contains("accepted; playing"), "{sought}");
    assert!(daemon.run(&["garden", "pause"]).line().contains("paused"));
    assert!(daemon.run(&["garden", "stop"]).line().contains("stopped at beat 0"));
    assert!(daemon.run(&["garden", "reject", &region_id]).line().contains("is rejected"));
    let refused = daemon.run(&["garden", "play"]);
    assert!(refused.code != 0 && refused.stderr.contains("nothing to play"), "{refused:?}");
}

#[test]
fn a_timeline_becomes_a_file_and_a_picture() {
    let (daemon, _) = with_region();
    let song = daemon.home().join("song.wav");
    let export = ["garden", "export", song.to_str().unwrap(), "--format", "f32"];
    daemon.run(&export).done();
    let written = std::fs::read(&song).unwrap();
    assert!(written.starts_with(b"RIFF"));
    // Four beats of silence and four of sound, left and right as floats; then a fade of 5 ms.
    let n_bytes = (2 * 96_000 + 240) * 8;
    assert!((n_bytes..n_bytes + 200).contains(&written.len()), "{}", written.len());
    let svg = daemon.run(&["garden", "picture", "-"]).done().stdout;
    assert!(svg.starts_with("<svg") && svg.contains("drums"), "{svg}");
    let path = daemon.home().join("part.svg");
    let part = ["garden", "picture", path.to_str().unwrap(), "--start", "8", "--end", "12"];
    daemon.run(&part).done();
    assert!(!std::fs::read_to_string(path).unwrap().contains("drums"), "it lies before");
}

#[test]
fn watching_needs_a_terminal_and_ends_with_ctrl_c() {
    let (daemon, _) = with_region();
    let refused = daemon.run(&["garden", "watch"]);
    assert!(refused.code != 0 && refused.stderr.contains("needs a terminal"), "{refused:?}");
    let watch = daemon.client(&["garden", "watch"]);
    let mut command = Command::new("script");
    let program = watch.get_program().to_str().unwrap();
    command.args(["-q", "-e", "-c", &format!("exec {program} garden watch"), "/dev/null"]);
    command.env_clear().envs(watch.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("TERM", "xterm").env("SHELL", "/bin/sh");
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut terminal = command.spawn().unwrap();
    let mut screen = terminal.stdout.take().unwrap();
    let mut seen = Vec::new();
    let has = |seen: &[u8], text: &str| String::from_utf8_lossy(seen).contains(text);
    while !(has(&seen, "stopped") && has(&seen, "drums")) {
        let mut piece = [0; 4096];
        let n_bytes = screen.read(&mut piece).unwrap();
        assert!(n_bytes > 0, "{}", String::from_utf8_lossy(&seen));
        seen.extend(&piece[..n_bytes]);
    }
    terminal.stdin.as_mut().unwrap().write_all(b"\x03").unwrap();
    let mut rest = Vec::new();
    screen.read_to_end(&mut rest).unwrap();
    assert!(terminal.wait().unwrap().success(), "Ctrl-C is how watching ends");
    let left = rest.ends_with(b"\x1b[?25h\x1b[?1049l");
    assert!(left, "the terminal is given back: {}", String::from_utf8_lossy(&rest));
}
