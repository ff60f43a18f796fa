//! A daemon that goes away and comes back.

use tokio::net::UnixListener;

use crate::support::{CONFIG, Daemon, Rig};

/// REQ: seed 001 "Caller disconnected before response", one hop nearer: the daemon goes.
#[tokio::test]
async fn calls_end_truthfully_when_the_daemon_goes_and_work_when_it_is_back() {
    let (mut rig, listener, daemon) = Rig::ready().await;
    let mut daemon = daemon;
    rig.call(1, "{}").await;
    daemon.hear().await;
    drop((daemon, listener));
    std::fs::remove_file(rig.socket()).unwrap();
    let lost = rig.hear().await;
    assert!(lost.contains(r#""id":1"#) && lost.contains(r#""isError":true"#), "{lost}");
    assert!(lost.contains(r#""kind":"gone","retryable":true,"certainty":"may_have_run""#));
    rig.call(2, "{}").await;
    let refused = rig.hear().await;
    assert!(refused.contains(r#""certainty":"not_started""#), "{refused}");
    assert!(rig.ask(r#""id":3,"method":"tools/list""#).await.contains("ant_send"));

    let listener = UnixListener::bind(rig.socket()).unwrap();
    let mut daemon = Daemon::accept(&listener).await;
    daemon.say(&CONFIG.replace("send", "other")).await;
    assert!(rig.hear().await.contains("notifications/tools/list_changed"));
    assert!(rig.ask(r#""id":4,"method":"tools/list""#).await.contains("ant_other"));
}

/// Rule: an agent whose daemon is not running yet is answered, and served when it starts.
#[tokio::test]
async fn a_daemon_that_comes_later_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let mut rig = Rig::start_in(directory, None);
    rig.shake_hands().await;
    assert!(rig.ask(r#""id":1,"method":"tools/list""#).await.contains(r#""tools":[]"#));
    let listener = UnixListener::bind(rig.socket()).unwrap();
    Daemon::accept(&listener).await.say(CONFIG).await;
    assert!(rig.hear().await.contains("list_changed"));
    let (_, log, status) = rig.end().await;
    assert_eq!(log.matches("cannot connect to the daemon at").count(), 1, "{log}");
    assert!(status.success());
}

/// Rule: garbage from the daemon ends the connection, not the program, and every call is answered.
#[tokio::test]
async fn garbage_of_the_daemon_ends_the_connection_alone() {
    let (mut rig, listener, mut daemon) = Rig::ready().await;
    rig.call(1, "{}").await;
    daemon.hear().await;
    daemon.say("\u{0}garbage").await;
    assert!(rig.hear().await.contains("may_have_run"));
    assert!(daemon.is_left().await);
    let mut daemon = Daemon::accept(&listener).await;
    daemon.say(CONFIG).await;
    // The list is the same, so nothing is announced; the next line is the answer.
    rig.call(2, "{}").await;
    let asked = daemon.hear().await;
    assert!(asked.contains("caller_tool"), "{asked}");
    daemon.say(r#"{"id":2,"result":"ok"}"#).await;
    assert!(rig.hear().await.contains(r#""text":"ok""#));
    daemon.say(r#"{"id":null,"error":{"code":-32600,"message":"wrong\nproject"}}"#).await;
    drop(daemon);
    Daemon::accept(&listener).await;
    let (_, log, _) = rig.end().await;
    assert!(log.contains("wrong project"), "{log}");
}
