//! Programs that run once for each message.

use std::time::Duration;

use ringback_agents::{AgentHandle, ConfigFile, Driver, OneShot, Protocol};
use ringback_testkit::soon;

use crate::support::{spec, until};

const COMPLETION: &str = r#""type":"completion""#;

fn shell(script: &str, shot: OneShot, files: Vec<ConfigFile>) -> (Driver, AgentHandle, Home) {
    let home = tempfile::tempdir().unwrap();
    let mut spec = spec("/bin/sh", &["-c", script, "agent"]);
    spec.env.push(("HOME".into(), home.path().into()));
    spec.home = home.path().to_owned();
    let (driver, handle) = Driver::start(spec, Protocol::OneShot(shot), files).unwrap();
    (driver, handle, home)
}

type Home = tempfile::TempDir;

fn words(args: &[&str]) -> Vec<String> {
    args.iter().map(|&arg| arg.to_owned()).collect()
}

/// REQ: "one-shot as a command template with its MCP config file written into the sandbox, for
/// agents without ACP", and follow-ups by the agent's own way to continue.
#[tokio::test]
async fn a_message_is_a_run_and_the_next_one_continues() {
    let shot = OneShot {
        args: words(&["--message", "{message}"]),
        args_again: words(&["--continue", "--message={message}"]),
        has_started: false,
    };
    let file = ConfigFile { path: "conf/mcp.json".into(), text: "{\"a\":1}".to_owned() };
    let script = r#"cat $HOME/conf/mcp.json; echo; printf '%s.' "$@"; cat"#;
    let (mut driver, handle, _home) = shell(script, shot, vec![file]);
    handle.send("say {inside}").unwrap();
    let told = until(&mut driver, COMPLETION).await;
    assert_eq!(
        told,
        [
            r#"{"type":"message","text":"{\"a\":1}\n--message.say {inside}."}"#,
            r#"{"type":"conversation","id":"last","is_resumed":false}"#,
            r#"{"type":"completion","stop":"end_turn","usage":null}"#
        ]
    );
    handle.send("more").unwrap();
    let told = until(&mut driver, COMPLETION).await;
    assert!(told[0].contains("--continue.--message=more."), "{told:?}");
    drop(handle);
    let told = until(&mut driver, "agent_exited").await;
    assert_eq!(told.len(), 1);
    assert!(soon(driver.next()).await.is_none());
}

/// Rule: without a placeholder in the arguments, the message is the program's input.
#[tokio::test]
async fn a_message_may_be_what_a_program_reads() {
    let (mut driver, handle, _home) = shell("cat; exit 0", OneShot::default(), Vec::new());
    handle.send("one\ntwo").unwrap();
    let told = until(&mut driver, COMPLETION).await;
    assert_eq!(told[0], r#"{"type":"message","text":"one\ntwo"}"#);
}

/// Rule: a run that fails is an error with the end of its error output, and the next message is
/// another run.
#[tokio::test]
async fn a_run_that_fails_is_told_and_the_next_one_is_another() {
    let script = r#"read -r line; echo "$line"; test "$line" = good || { echo why >&2; exit 4; }"#;
    let (mut driver, handle, _home) = shell(script, OneShot::default(), Vec::new());
    handle.send("bad").unwrap();
    let told = until(&mut driver, r#""type":"error""#).await;
    assert!(told.last().unwrap().contains("with code 4\\nwhy"), "{told:?}");
    handle.send("good").unwrap();
    until(&mut driver, COMPLETION).await;
}

/// Rule: an abort ends the run and takes back unseen messages; the agent stays.
#[tokio::test]
async fn an_abort_ends_the_run_and_takes_messages_back() {
    let script = "read -r line; echo \"$line\"; test \"$line\" = short || exec sleep 1000";
    let (mut driver, handle, _home) = shell(script, OneShot::default(), Vec::new());
    handle.send("long").unwrap();
    handle.send("never").unwrap();
    let told = until(&mut driver, "message").await;
    assert!(told[0].contains("long"), "{told:?}");
    handle.abort().unwrap();
    for _ in 0..2 {
        let told = until(&mut driver, COMPLETION).await;
        assert!(told.last().unwrap().contains("cancelled"), "{told:?}");
    }
    handle.send("short").unwrap();
    let told = until(&mut driver, COMPLETION).await;
    assert!(told.concat().contains("end_turn"), "{told:?}");
}

/// Rule: the end is reported exactly once, with or without a run.
#[tokio::test]
async fn an_agent_is_ended_with_its_run() {
    let script = "echo started; exec sleep 1000";
    let (mut driver, handle, _home) = shell(script, OneShot::default(), Vec::new());
    handle.send("go").unwrap();
    until(&mut driver, "started").await;
    handle.terminate(Duration::from_secs(10));
    let told = until(&mut driver, "agent_exited").await;
    assert!(told.len() == 1 && told[0].contains(r#""signal":15"#), "{told:?}");
    assert!(soon(driver.next()).await.is_none());
    let (mut driver, handle, _home) = shell("exit 0", OneShot::default(), Vec::new());
    handle.terminate(Duration::from_secs(10));
    let told = until(&mut driver, "agent_exited").await;
    assert_eq!(told.len(), 1);
}

/// Rule: output without a line break, or without an end, is bounded.
#[tokio::test]
async fn a_flood_of_output_is_bounded() {
    let script = "head -c 3000000 /dev/zero | tr '\\0' x; echo; echo end";
    let (mut driver, handle, _home) = shell(script, OneShot::default(), Vec::new());
    handle.send("go").unwrap();
    let told = until(&mut driver, COMPLETION).await;
    assert!(told.len() < 10, "{}", told.len());
    assert!(told.concat().contains("agent_garbage") && told.concat().contains("end"));
}
