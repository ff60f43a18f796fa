//! Content and artifacts.

use crate::support::{Daemon, file};

/// Two pieces of an upload and a bit.
const LARGE: usize = (8 << 20) + 3;

#[test]
fn content_comes_back_as_it_was_from_files_and_from_pipes() {
    let daemon = Daemon::start();
    let bytes: Vec<u8> = (0..=u8::MAX).cycle().take(LARGE).collect();
    let path = file(daemon.home(), "all.wav", &bytes);
    let put = daemon.run(&["cas", "put", path.to_str().unwrap(), "--json"]).json();
    assert_eq!((&put["size"], &put["mime_type"]), (&LARGE.into(), &"audio/wav".into()));
    let hash = put["hash"].as_str().unwrap();
    assert_eq!(daemon.run_with(&["cas", "put", "-"], &bytes).line(), hash, "the same content");

    let back = daemon.home().join("back.wav");
    let got = daemon.run(&["cas", "get", hash, "-o", back.to_str().unwrap(), "--json"]).json();
    assert_eq!(got["bytes"], LARGE);
    assert!(std::fs::read(&back).unwrap() == bytes, "the content changed");
    let part = ["cas", "get", hash, "--offset", "65", "--length", "26"];
    assert_eq!(daemon.run(&part).done().stdout, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    assert_eq!(daemon.run(&["cas", "stat", "--json"]).json()["blobs"], 1);
}

#[test]
fn content_can_be_looked_at_without_getting_it() {
    let daemon = Daemon::start();
    let hash = daemon.run_with(&["cas", "put", "-", "--mime", "text/plain"], b"a preview").line();
    let found = daemon.run(&["cas", "inspect", &hash, "--json"]).json();
    assert_eq!((&found["exists"], &found["preview"]), (&true.into(), &"a preview".into()));
    let missing = daemon.run(&["cas", "inspect", &"0".repeat(64)]);
    assert_eq!(missing.code, 1, "{missing:?}");
    assert_eq!(daemon.run(&["cas", "get", &"0".repeat(64)]).code, 1);
}

#[test]
fn a_get_that_fails_leaves_no_file() {
    let daemon = Daemon::start();
    let path = daemon.home().join("never");
    let run = daemon.run(&["cas", "get", &"0".repeat(64), "-o", path.to_str().unwrap()]);
    assert_eq!(run.code, 1);
    assert!(!path.exists());
    let hash = daemon.run_with(&["cas", "put", "-"], b"x").line();
    let nowhere = daemon.run(&["cas", "get", &hash, "-o", "/nonexistent/dir/file"]);
    assert_eq!(nowhere.code, 1);
    assert!(nowhere.stderr.contains("/nonexistent/dir/file"), "{nowhere:?}");
    assert_eq!(daemon.run(&["cas", "put", "/nonexistent"]).code, 1);
}

#[test]
fn artifacts_are_created_listed_shown_and_annotated() {
    let daemon = Daemon::start();
    assert_eq!(daemon.run(&["artifacts"]).line(), "no artifacts");
    let hash = daemon.run_with(&["cas", "put", "-"], b"take one").line();
    let first =
        daemon.run(&["artifacts", "create", &hash, "--tag", "take", "--creator", "ada"]).line();
    let metadata = ["--parent", &first, "--metadata", r#"{"bpm": 90}"#];
    let second = daemon.run(&[&["artifacts", "create", &hash][..], &metadata].concat()).line();
    let listed = daemon.run(&["artifacts", "list", "--json"]).json();
    assert_eq!(listed["artifacts"].as_array().unwrap().len(), 2);
    let tagged = daemon.run(&["artifacts", "list", "--tag", "take", "--json"]).json();
    assert_eq!(tagged["artifacts"][0]["id"], first);

    daemon.run(&["artifacts", "annotate", &second, "too loud", "--source", "ada"]).done();
    let shown = daemon.run(&["artifacts", "get", &second, "--json"]).json();
    assert_eq!(shown["parent_id"], first);
    assert_eq!(shown["metadata"]["bpm"], 90);
    assert_eq!(shown["annotations"][0]["message"], "too loud");
    assert!(daemon.run(&["artifacts", "get", &second]).done().stdout.contains("too loud (ada"));
}

#[test]
fn the_lineage_of_an_artifact_is_a_tree_or_a_drawing() {
    let daemon = Daemon::start();
    let hash = daemon.run_with(&["cas", "put", "-"], b"take one").line();
    let create =
        |more: &[&str]| daemon.run(&[&["artifacts", "create", &hash][..], more].concat()).line();
    let first = create(&["--creator", "ada\u{1b}[2J"]);
    let second = create(&[]);
    let third = create(&["--parent", &first]);
    let tree = daemon.run(&["artifacts", "lineage", &second]).done().stdout;
    assert!(tree.contains(&format!("└─ content {first}")), "{tree}");
    assert!(!tree.contains('\u{1b}'), "{tree}");
    let json = daemon.run(&["artifacts", "lineage", &first, "--json"]).json();
    let made = json["sources"].as_array().unwrap();
    let ids: Vec<_> = made.iter().filter(|it| it["source_id"] == first.as_str()).collect();
    assert_eq!(ids.len(), 2, "by its content, and as it is stated: {json}");
    assert!(json.to_string().contains(&third), "{json}");
    let drawing = daemon.run(&["artifacts", "lineage", &third, "--svg"]).done().stdout;
    assert!(drawing.starts_with("<svg ") && drawing.contains(&first), "{drawing}");
    let shown = daemon.run(&["artifacts", "get", &second]).done().stdout;
    assert!(shown.contains(&format!("content {first}")), "{shown}");
    assert!(shown.contains("artifact_create"), "{shown}");
}

#[test]
fn devices_are_named_and_found_and_a_context_is_printed() {
    let daemon = Daemon::start();
    let hints = ["--hint", "midi_name=JD-Xi", "--hint", "usb_serial=42@0.6"];
    let bind = [&["graph", "bind", "jdxi", "Roland JD-Xi"][..], &hints].concat();
    assert!(daemon.run(&bind).done().stdout.contains("usb_serial=42@0.6"));
    daemon.run(&["graph", "bind", "mixer", "Mixer\u{1b}[2J"]).done();
    assert!(daemon.run(&["graph", "tag", "jdxi", "role", "lead"]).done().stdout.contains("lead"));
    let connect = ["graph", "connect", "jdxi", "out", "mixer", "in 1", "--transport", "audio"];
    assert!(daemon.run(&connect).done().stdout.contains("mixer in 1"));
    let found = daemon.run(&["graph", "find", "--hint", "usb_serial=42"]).done().stdout;
    assert!(found.contains("jdxi") && found.contains("medium"), "{found}");
    assert!(!found.contains("mixer"), "{found}");
    let all = daemon.run(&["graph", "find"]).done().stdout;
    assert!(all.contains("Mixer\\u{1b}[2J") && !all.contains('\u{1b}'), "{all}");
    let json = daemon.run(&["graph", "find", "--name", "roland", "--json"]).json();
    assert_eq!(json["identities"][0]["id"], "jdxi");
    let told = daemon.run(&["graph", "context"]).done().stdout;
    assert!(told.contains("out -> mixer in 1 by audio"), "{told}");
    let unknown = daemon.run(&["graph", "bind", "x", "x", "--hint", "bluetooth=1"]);
    assert!(unknown.code != 0 && unknown.stderr.contains("pipewire_alsa_path"), "{unknown:?}");
    assert_eq!(daemon.run(&["graph", "tag", "nothing", "a", "b"]).code, 1);
}

/// REQ: `ringback graph query` prints a table, or JSON with `--json`; a variable is a number or text.
#[test]
fn a_query_prints_a_table_or_json() {
    let daemon = Daemon::start();
    for (id, name) in [("jdxi", "Roland JD-Xi"), ("mixer", "Mixer\u{1b}[2J")] {
        daemon.run(&["graph", "bind", id, name]).done();
    }
    let sql =
        "SELECT id, name, created_at > :since AS late FROM identities WHERE id <> :not ORDER BY id";
    let query = ["graph", "query", sql, "--var", "since=0", "--var"];
    let table = daemon.run(&[&query[..], &["not=jdxi"]].concat()).done().stdout;
    let lines: Vec<_> = table.lines().collect();
    assert_eq!(lines.len(), 2, "{table}");
    assert!(["id", "name", "late"].iter().all(|name| lines[0].contains(name)), "{table}");
    assert!(lines[1].contains("mixer") && lines[1].contains("Mixer\\u{1b}[2J"), "{table}");
    assert!(!table.contains('\u{1b}'), "{table}");
    let json = daemon.run(&[&query[..], &["not=none", "--limit", "1", "--json"]].concat()).json();
    assert_eq!((&json["count"], &json["truncated"]), (&1.into(), &true.into()), "{json}");
    assert_eq!(json["results"][0]["name"], "Roland JD-Xi");
    assert_eq!(json["results"][0]["late"], 1);
    let wrong = daemon.run(&["graph", "query", "SELECT nam FROM identities"]);
    assert!(wrong.code != 0 && wrong.stderr.contains("perhaps `name`"), "{wrong:?}");
}

/// Rule: `doctor --verify` finds damage, also while the daemon runs.
#[test]
fn doctor_finds_damaged_content() {
    let daemon = Daemon::start();
    let put = |content: &[u8]| daemon.run_with(&["cas", "put", "-"], content).line();
    let (sound, damaged) = (put(b"sound"), put(b"will be damaged"));
    let look = || daemon.run(&["doctor", "--verify"]);
    let said = look().stdout;
    assert!(said.contains("ok   content: 2 of 2 blobs match their hashes"), "{said}");

    let blobs = std::path::Path::new(daemon.told("data_dir")).join("blobs");
    let path = blobs.join(&damaged[..2]).join(&damaged[2..4]).join(&damaged);
    std::fs::write(&path, b"was damaged").unwrap();
    let found = look();
    assert_eq!(found.code, 1, "{found:?}");
    assert!(found.stdout.contains(&format!("BAD  content: {damaged} is damaged")), "{found:?}");
    assert!(!found.stdout.contains(&sound), "{found:?}");
    let got = daemon.run(&["cas", "get", &damaged]);
    assert_eq!((got.code, got.stdout.as_str()), (1, ""), "{got:?}");
    assert!(got.stderr.contains("damaged"), "{got:?}");

    assert_eq!(put(b"will be damaged"), damaged);
    assert!(look().stdout.contains("ok   content: 2 of 2 blobs"));
    assert_eq!(daemon.run(&["cas", "get", &damaged]).done().stdout, "will be damaged");
}
