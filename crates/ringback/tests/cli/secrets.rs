//! Tokens: what they allow, and where they never appear.

use crate::support::Daemon;

/// Rule: a secret never appears in a log, an event or `ps`.
#[test]
fn a_token_is_in_no_log_no_event_and_no_command_line() {
    let daemon = Daemon::start_with(&[]);
    let first = daemon.token();
    let made = daemon.run(&["token", "create", "ci", "--scope", "read"]).line();
    daemon.run_as(&made, &["call", "ping"]).done();
    daemon.run_as(&first, &["call", "job_sleep", "milliseconds=1"]).done();
    let refused = daemon.run_as(&made, &["call", "job_sleep", "milliseconds=1"]);
    let wrong = daemon.run_as(&format!("oub_{}", "5".repeat(64)), &["call", "ping"]);

    let of_process = |what: &str| {
        let bytes = std::fs::read(format!("/proc/{}/{what}", daemon.pid())).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let events = daemon.run(&["events", "--json"]).done().stdout;
    let config = daemon.run(&["call", "config_get", "--output", "json"]).done().stdout;
    let listed = daemon.run(&["token", "list", "--json"]).done().stdout;
    let texts = [
        daemon.log(),
        of_process("cmdline"),
        of_process("environ"),
        events,
        config,
        listed,
        daemon.listening.to_string(),
        refused.stderr,
        wrong.stderr,
    ];
    for text in texts {
        assert!(!text.contains(&first) && !text.contains(&made), "a secret shows in: {text}");
        assert!(!text.contains(&"5".repeat(64)), "even a wrong one: {text}");
    }
}

#[test]
fn a_new_token_is_printed_once_and_alone() {
    let daemon = Daemon::start();
    let create = ["token", "create", "ci", "--scope", "write", "--expires-in", "30d"];
    let run = daemon.run(&create).done();
    assert!(run.stdout.starts_with("oub_") && run.stdout.lines().count() == 1, "{run:?}");
    assert!(run.stderr.contains("token revoke tok_"), "{run:?}");
    let json = daemon.run(&[&create[..], &["--json"]].concat()).json();
    assert!(json["token"].as_str().unwrap().starts_with("oub_"));
    assert!(json["expires_at"].is_u64());
    let listed = daemon.run(&["token", "list"]).done().stdout;
    assert_eq!(listed.lines().count(), 1 + 3, "{listed}");
}

#[test]
fn what_a_token_may_not_do_exits_with_77() {
    let daemon = Daemon::start();
    let reader = daemon.run(&["token", "create", "looks", "--scope", "read"]).line();
    daemon.run_as(&reader, &["jobs"]).done();
    let write = daemon.run_as(&reader, &["call", "job_sleep", "milliseconds=1"]);
    assert_eq!(write.code, 77, "{write:?}");
    assert!(write.stderr.contains("write"), "it says what was missing: {write:?}");
    assert_eq!(daemon.run_as(&reader, &["token", "list"]).code, 77);
    let tools = daemon.run_as(&reader, &["tools"]).done().stdout;
    assert!(tools.contains("ping") && !tools.contains("token_create"));
}

/// Rule: a revoked token is refused from the next call on.
#[test]
fn a_revoked_or_unknown_token_exits_with_77_and_says_where_it_came_from() {
    let daemon = Daemon::start();
    let made = daemon.run(&["token", "create", "ci", "--scope", "read", "--json"]).json();
    let secret = made["token"].as_str().unwrap();
    daemon.run_as(secret, &["call", "ping"]).done();
    daemon.run(&["token", "revoke", made["token_id"].as_str().unwrap()]).done();
    for token in [secret, &format!("oub_{}", "0".repeat(64)), "not a token"] {
        let run = daemon.run_as(token, &["call", "ping"]);
        assert_eq!(run.code, 77, "{run:?}");
        assert!(run.stderr.contains("RINGBACK_TOKEN"), "{run:?}");
    }
    let missing = daemon.run(&["call", "ping", "--token-file", "/nonexistent"]);
    assert_eq!(missing.code, 77, "{missing:?}");
}
