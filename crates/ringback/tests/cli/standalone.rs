//! Commands that need no daemon.

use clap::CommandFactory;
use ringback::cli::Cli;

use crate::support::{Run, file, ringback};

fn run(arguments: &[&str]) -> Run {
    let dir = tempfile::tempdir().unwrap();
    Run::of(ringback(dir.path()).args(arguments))
}

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn wrong_usage_exits_with_2_and_says_what_is_right() {
    for (arguments, expected) in [
        (&["fly"][..], "unrecognized subcommand"),
        (&["call"], "<TOOL>"),
        // Must not reach a daemon that another user runs here.
        (&["call", "pign", "--daemon", "tcp://127.0.0.1:1"], "did you mean `ping`?"),
        (&["call", "job_sleep", "milliseconds=soon"], "takes integer"),
        (&["call", "job_sleep"], "missing field `milliseconds`"),
        (&["call", "ping", "--json", "[]"], "not an object"),
        (&["events", "--type", "job.progres"], "did you mean `job.progress`?"),
        (&["jobs", "job_1z"], "32 hex digits"),
        (&["token", "create", "x", "--scope", "all"], "[possible values: read, write, admin]"),
        (&["token", "create", "x", "--scope", "read", "--expires-in", "soon"], "such as 90s"),
        (&["tools", "--daemon", "carrier-pigeon"], "carrier-pigeon"),
    ] {
        let run = run(arguments);
        assert_eq!(run.code, 2, "{arguments:?}: {run:?}");
        assert!(run.stderr.contains(expected), "{arguments:?}: {run:?}");
        assert_eq!(run.stdout, "", "{arguments:?}");
    }
}

#[test]
fn a_bad_configuration_exits_with_64_and_names_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), "bad.toml", b"[http]\nlisen = \"127.0.0.1:1\"\n");
    let path = path.to_str().unwrap();
    for command in [&["serve"][..], &["config", "check"], &["config", "show"], &["call", "ping"]] {
        let run = Run::of(ringback(dir.path()).args(command).args(["--config", path]));
        assert_eq!(run.code, 64, "{command:?}: {run:?}");
        assert!(run.stderr.contains("line 2"), "{run:?}");
        assert!(run.stderr.contains("did you mean `http.listen`?"), "{run:?}");
    }
    let open = Run::of(ringback(dir.path()).args(["serve", "--open", "--http", "0.0.0.0:0"]));
    assert_eq!(open.code, 64, "{open:?}");
}

#[test]
fn without_a_daemon_every_client_command_exits_with_69_and_says_how_to_start_one() {
    let closed = ["--daemon", "tcp://127.0.0.1:9"];
    for command in [&["call", "ping"][..], &["jobs"], &["events", "--follow"]] {
        let dir = tempfile::tempdir().unwrap();
        let run = Run::of(ringback(dir.path()).args(command).args(closed));
        assert_eq!(run.code, 69, "{command:?}: {run:?}");
        assert!(run.stderr.contains("ringback serve"), "{run:?}");
    }
}

#[test]
fn programs_can_read_errors_too() {
    let run = run(&["jobs", "--json", "--daemon", "tcp://127.0.0.1:9"]);
    let report: serde_json::Value = serde_json::from_str(&run.stderr).unwrap();
    assert_eq!(report["error"]["code"], "unavailable");
    assert_eq!(report["error"]["certainty"], "not_started");
}

#[test]
fn configuration_can_be_shown_checked_and_found() {
    let shown = run(&["config", "show", "--json"]).json();
    assert_eq!(shown["http"]["listen"], "127.0.0.1:7180");
    assert!(run(&["config", "show"]).done().stdout.contains("[hoot]"));
    assert_eq!(run(&["config", "check", "--json"]).json()["ok"], true);
    assert!(run(&["config", "path"]).line().contains(".config/ringback/config.toml"));
}

/// Rule: a configuration that a daemon would refuse for any reason is not valid.
#[test]
fn a_configuration_is_checked_as_a_daemon_does() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.toml");
    std::fs::write(&path, "[providers.mine]\nurl = 'http://127.0.0.1:1'\nsecret = 'none'\n")
        .unwrap();
    for command in [&["config", "check"][..], &["serve"]] {
        let refused = run(&[command, &["--config", path.to_str().unwrap()]].concat());
        assert!(
            refused.code == 64 && refused.stderr.contains("no such secret: `none`"),
            "{refused:?}"
        );
    }
}

/// Rule: an old name of a key is accepted with a warning that names the new one, wherever the
/// configuration is looked at.
#[test]
fn an_old_name_of_a_key_is_accepted_with_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.toml");
    std::fs::write(&path, "[sandbox]\nkeepFree = 0\n").unwrap();
    let config = ["--config", path.to_str().unwrap()];
    let warning = "line 2: `sandbox.keepFree` is now `sandbox.keep_free`";
    for command in [["config", "show"], ["config", "check"]] {
        let run = run(&[command, config].concat());
        assert!(run.code == 0 && run.stderr.contains(warning), "{run:?}");
    }
    let checked = run(&[&["config", "check", "--json"][..], &config].concat()).json();
    assert!(checked["warnings"][0].as_str().unwrap().contains(warning), "{checked}");
    let findings = run(&[&["doctor"][..], &config].concat());
    assert!(findings.stdout.contains(warning), "{findings:?}");
}

#[test]
fn completions_exist_for_every_shell_and_name_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let script = run(&["completions", shell]).done().stdout;
        for command in Cli::command().get_subcommands() {
            assert!(script.contains(command.get_name()), "{shell} lacks {}", command.get_name());
        }
    }
}

/// Rule: a token is never an argument, which every user of the machine could read.
#[test]
fn no_flag_takes_a_token() {
    let cli = Cli::command();
    let mut commands: Vec<_> = vec![&cli];
    while let Some(command) = commands.pop() {
        commands.extend(command.get_subcommands());
        for argument in command.get_arguments() {
            let long = argument.get_long().unwrap_or_default();
            assert!(
                !matches!(long, "token" | "secret" | "password"),
                "{} --{long}",
                command.get_name()
            );
        }
    }
}

#[test]
fn the_page_names_every_command_and_every_exit_code() {
    let page = include_str!("../../../../docs/cli.md");
    for command in Cli::command().get_subcommands() {
        let name = format!("`ringback {}", command.get_name());
        assert!(page.contains(&name), "docs/cli.md should mention {name}`");
        for action in command.get_subcommands() {
            let name = format!("`ringback {} {}", command.get_name(), action.get_name());
            assert!(page.contains(&name), "docs/cli.md should mention {name}`");
        }
    }
    for code in [0, 1, 2, 64, 69, 77, 130] {
        assert!(page.contains(&format!("| {code} |")), "docs/cli.md should mention code {code}");
    }
}

#[test]
fn help_of_every_command_has_examples_or_says_what_it_needs() {
    for command in Cli::command().get_subcommands() {
        let help = run(&[command.get_name(), "--help"]).done().stdout;
        let more = help.contains("Examples:") || help.contains("It needs nothing");
        assert!(more, "{}: {help}", command.get_name());
    }
}

/// REQ: "`ringback agents list|check`".
#[test]
fn agents_that_are_known_are_listed_and_looked_for() {
    use std::os::unix::fs::PermissionsExt as _;

    let dir = tempfile::tempdir().unwrap();
    let agents = |arguments: &[&str]| {
        let path = format!("{}:/usr/bin:/bin", dir.path().display());
        Run::of(ringback(dir.path()).arg("agents").args(arguments).env("PATH", path))
    };
    let missing = agents(&["check", "goose"]);
    assert_eq!(missing.code, 1, "{missing:?}");
    assert!(missing.stderr.contains("npm install -g @aaif/goose"), "{missing:?}");
    let unknown = agents(&["check", "hal"]);
    assert_eq!(unknown.code, 2, "{unknown:?}");
    assert!(unknown.stderr.contains("goose, opencode, claude, codex, gemini"), "{unknown:?}");

    let program = file(dir.path(), "goose", b"#!/bin/sh\necho 1.2.3\n");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let found = agents(&["check", "goose", "--json"]).json();
    assert_eq!((&found["version"], &found["protocol"]), (&"1.2.3".into(), &"acp".into()));
    let listed = agents(&["list", "--json"]).json();
    let here: Vec<_> = listed["agents"].as_array().unwrap().iter().map(|it| &it["found"]).collect();
    assert_eq!(here[0], true, "{listed}");
    assert_eq!(here.len(), 5);
    for arguments in [&["list"][..], &["check"]] {
        let shown = agents(arguments).done();
        assert!(shown.stdout.contains("Claude Code"), "{shown:?}");
    }
}
