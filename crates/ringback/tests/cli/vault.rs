//! `ringback secret`: stored sealed, used by the next request, and visible nowhere else.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::spending::{Model, agent};
use crate::support::{Daemon, Run, file, ringback, run_with, serve};

const KEY: &str = "sk-sealed-0123456789abcdef";
const OTHER: &str = "sk-other-0123456789abcdef";

fn secret(home: &Path, words: &[&str]) -> Command {
    let mut command = ringback(home);
    command.arg("secret").args(words);
    command
}

fn set(home: &Path, words: &[&str], input: &str) -> Run {
    run_with(secret(home, &[&["set"], words].concat()).stdin(Stdio::piped()), input.as_bytes())
}

/// Runs a client of a daemon with this data directory.
fn client(daemon: &Daemon, data: &str, words: &[&str]) -> Run {
    Run::of(daemon.client(words).env("RINGBACK_DATA_DIR", data).env("PATH", "/usr/bin:/bin"))
}

/// Whether a text is in any file below a directory.
fn is_in_files(dir: &Path, text: &str) -> bool {
    std::fs::read_dir(dir).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        let Ok(metadata) = path.symlink_metadata() else { return false };
        if metadata.is_dir() {
            return is_in_files(&path, text);
        }
        let bytes = if metadata.is_file() { std::fs::read(&path).unwrap() } else { Vec::new() };
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    })
}

/// Whether a text is in the command line or the environment of any process.
fn is_in_processes(text: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let numbered = processes.filter(|it| it.file_name().to_string_lossy().parse::<u32>().is_ok());
    numbered.flat_map(|it| ["cmdline", "environ"].map(|name| it.path().join(name))).any(|path| {
        let bytes = std::fs::read(path).unwrap_or_default();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    })
}

/// REQ: "`ringback secret set anthropic`: a value, a file or a command; kept sealed in the data
/// directory, 0600": the provider gets it, and it is in no file, log, event, answer or process.
#[test]
fn a_secret_reaches_the_provider_and_nobody_else() {
    let model = Model::start(&[10]);
    let dir = tempfile::tempdir().unwrap();
    let config = agent(dir.path(), &model.url, "secret = 'mine'");
    let daemon_home = tempfile::tempdir().unwrap();
    let refused = Run::of(serve(daemon_home.path()).args(["--config", &config]));
    assert_eq!(refused.code, 64, "{refused:?}");
    assert!(refused.stderr.contains("ringback secret set mine"), "{refused:?}");

    let data = dir.path().join("data");
    let data = data.to_str().unwrap();
    let kept = set(dir.path(), &["mine", "--data-dir", data, "--json"], &format!("{KEY}\n"));
    assert!(kept.json()["kind"] == "value");
    let daemon = Daemon::start_with(&["--config", &config, "--data-dir", data]);
    let start = ["session", "start", "one", "--agent", "asks", "--json"];
    let first = client(&daemon, data, &start).done();
    assert!(model.heads()[0].contains(&format!("authorization: Bearer {KEY}\r\n")), "{first:?}");

    // A new secret is used by the next request, without a restart, and also after the daemon was
    // killed.
    set(dir.path(), &["mine", "--data-dir", data], OTHER).done();
    client(&daemon, data, &start).done();
    assert!(model.heads()[1].contains(OTHER));
    let listed = Run::of(&mut secret(dir.path(), &["list", "--data-dir", data])).done();
    assert!(listed.stdout.contains("mine") && listed.stdout.contains("value"), "{listed:?}");
    let checked = Run::of(&mut secret(dir.path(), &["check", "mine", "--data-dir", data])).done();
    let shown = client(&daemon, data, &["call", "config_get", "--output", "json"]).done();
    let texts = [first.stdout, first.stderr, listed.stdout, checked.stdout, shown.stdout];
    for text in texts.into_iter().chain([daemon.log()]) {
        assert!(!text.contains(KEY) && !text.contains(OTHER), "{text}");
    }
    for key in [KEY, OTHER] {
        assert!(!is_in_files(dir.path(), key) && !is_in_files(daemon.home(), key));
        assert!(!is_in_processes(key));
    }
    for name in ["", "sealing.key", "mine.sealed"] {
        let path = Path::new(data).join("secrets").join(name);
        let expected = if name.is_empty() { 0o700 } else { 0o600 };
        assert_eq!(std::fs::metadata(path).unwrap().mode() & 0o777, expected, "{name}");
    }
}

/// Rule: a stored secret survives a kill of the daemon, and the next daemon uses it.
#[test]
fn a_secret_outlives_a_daemon_that_is_killed() {
    let model = Model::start(&[10]);
    let dir = tempfile::tempdir().unwrap();
    let config = agent(dir.path(), &model.url, "secret = 'mine'");
    let data = dir.path().join("data");
    let data = data.to_str().unwrap();
    set(dir.path(), &["mine", "--data-dir", data], KEY).done();
    let mut killed = Daemon::start_with(&["--config", &config, "--data-dir", data]);
    set(dir.path(), &["mine", "--data-dir", data], OTHER).done();
    killed.signal(Signal::KILL);
    killed.ended();
    let daemon = Daemon::start_with(&["--config", &config, "--data-dir", data]);
    client(&daemon, data, &["session", "start", "one", "--agent", "asks", "--json"]).done();
    assert!(model.heads()[0].contains(OTHER));
}

/// REQ: a value is typed or read, a file is referenced, a command runs without a shell unless
/// requested; each can be checked, listed and removed without being shown.
#[test]
fn a_secret_is_a_value_a_file_or_a_command() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let path = file(home, "key", format!("{KEY}\n").as_bytes());
    let key = path.to_str().unwrap();
    set(home, &["copied", "--file", key], "").done();
    set(home, &["referred", "--from-file", key], "").done();
    set(home, &["printed", "--command", &format!("cat '{key}'")], "").done();
    set(home, &["piped", "--command", &format!("cat '{key}' | tr a-z A-Z"), "--shell"], "").done();
    set(home, &["plain", "--command", &format!("cat '{key}' | tr a-z A-Z")], "").done();
    let check = |name: &str| Run::of(&mut secret(home, &["check", name]));
    for name in ["copied", "printed", "piped"] {
        assert!(!check(name).done().stdout.contains(KEY));
    }
    let exposed = check("referred");
    assert!(exposed.code == 1 && exposed.stderr.contains("chmod 600"), "{exposed:?}");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    check("referred").done();
    let plain = check("plain");
    assert!(plain.code == 1 && plain.stderr.contains("failed (exit status: 1)"), "{plain:?}");
    let listed = Run::of(&mut secret(home, &["list", "--json"])).json();
    let kinds: Vec<_> =
        listed["secrets"].as_array().unwrap().iter().map(|it| &it["kind"]).collect();
    assert_eq!(kinds, ["value", "command", "command", "command", "file"]);
    Run::of(&mut secret(home, &["remove", "copied"])).done();
    let gone = check("copied");
    assert!(gone.code == 1 && gone.stderr.contains("ringback secret set copied"), "{gone:?}");
    for (words, input) in [
        (&["bad", "--command", "'open"][..], ""),
        (&["bad", "--command", ""], ""),
        (&["bad"], "two words"),
        (&["bad"], ""),
        (&["../bad"], KEY),
        (&["bad", "--file", "a", "--command", "b"], ""),
        (&["bad", "--shell"], KEY),
        // Not the key of these tests: another test searches all processes for that one.
        (&["bad", "sk-on-a-command-line"], ""),
    ] {
        let refused = set(home, words, input);
        assert_eq!(refused.code, 2, "{words:?}: {refused:?}");
    }
}

/// REQ: "`ringback secret set anthropic`" and `provider = "anthropic"` are enough, without a
/// `[providers]` section.
#[test]
fn a_known_provider_needs_its_secret_alone() {
    let home = tempfile::tempdir().unwrap();
    let text = b"[sessions.agents.asks]\ncommand = ['/bin/true']\nprovider = 'anthropic'\n";
    let path = file(home.path(), "config.toml", text);
    let doctor = || {
        let mut command = ringback(home.path());
        Run::of(command.env("RINGBACK_CONFIG", &path).args(["doctor", "--json"]))
    };
    let missing = doctor();
    assert!(missing.stdout.contains("ringback secret set anthropic"), "{missing:?}");
    let refused = Run::of(serve(home.path()).arg("--config").arg(&path));
    assert_eq!(refused.code, 64, "{refused:?}");
    assert!(refused.stderr.contains("ringback secret set anthropic"), "{refused:?}");
    set(home.path(), &["anthropic"], KEY).done();
    let good = doctor();
    assert!(good.stdout.contains("https://api.anthropic.com, with its key"), "{good:?}");
}
