//! Clients that stall, tear and vanish: every call ends, and nothing is left.

use std::process::Command;
use std::time::Duration;

use ringback_testkit::pass;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::execute::{WaitingCall, succeed};
use crate::register::register;
use crate::support::{Agent, Options, World, code};

/// Set when the test runs in its own network namespace.
const ALONE: &str = "RINGBACK_TEST_ALONE";

/// Switches the loopback device of this network namespace.
fn switch_loopback(to: &str) {
    let switched = Command::new("ip").args(["link", "set", "lo", to]).status().unwrap();
    assert!(switched.success(), "`ip link set lo {to}` failed");
}

/// Runs one test of this file again in its own network namespace, where it may pull the plug.
fn in_a_network_of_its_own(test: &str) {
    let program = std::env::current_exe().unwrap();
    let run = Command::new("unshare")
        .args(["--map-root-user", "--net", "--"])
        .arg(program)
        .args(["--exact", test, "--nocapture"])
        .env(ALONE, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    let is_run = run.status.success() && said.contains("1 passed");
    assert!(is_run, "{said}{}", String::from_utf8_lossy(&run.stderr));
}

/// Sends the head of a request and only `body` of what it announces.
async fn torn(agent: &Agent, line: &str, n_announced: usize, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(agent.addr).await.unwrap();
    let head = format!(
        "{line} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
         Content-Length: {n_announced}\r\n\r\n{body}",
        agent.token
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

/// Rule: one slow peer delays no other, and a stall ends with the deadline of each call.
#[tokio::test]
async fn a_stream_that_nobody_reads_costs_its_own_calls_alone() {
    let world = World::start().await;
    register(&world.admin, "stalled", &["t"]).await;
    register(&world.admin, "lively", &["t"]).await;
    let mut stalled = torn(&world.admin, "GET /client-tools/pending/stalled", 0, "").await;
    stalled.read_exact(&mut [0; 12]).await.unwrap();
    let mut lively = world.admin.stream("/client-tools/pending/lively").await;
    let large = "x".repeat(700_000);
    let mut calls: Vec<_> = (0..16)
        .map(|_| {
            let input = json!({"text": large});
            let body = json!({"toolID": "client_stalled_t", "input": input, "timeout": 10_000});
            WaitingCall::call(&world.admin, body)
        })
        .collect();
    for number in ["1", "2", "3"] {
        let body = json!({"toolID": "client_lively_t", "requestID": number});
        let mut call = WaitingCall::call(&world.admin, body);
        assert_eq!(lively.named("tool-request").await.json()["requestID"], number);
        assert_eq!(succeed(&world.admin, &json!(number), "o").await.0, 200);
        assert_eq!(call.answer().await.0, 200);
    }
    world.settled(|broker| broker.under_way().lines.2 == 16).await;
    pass(Duration::from_secs(10)).await;
    for call in &mut calls {
        let (status, answer) = call.answer().await;
        assert_eq!((status, code(&answer)), (504, "TIMEOUT"));
    }
    drop(stalled);
    world.settled(|broker| broker.under_way().lines == (1, 1, 0)).await;
    world.settled(|broker| broker.under_way().n_calls == 0).await;
}

/// Rule: a client that vanishes without a FIN is detected by missing acknowledgements, and its
/// calls fail long before their deadline.
#[test]
fn a_party_that_vanishes_without_a_fin_is_missed() {
    if std::env::var_os(ALONE).is_none() {
        in_a_network_of_its_own("faults::a_party_that_vanishes_without_a_fin_is_missed");
        return;
    }
    switch_loopback("up");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let world = World::start_with(Options {
            keepalive: Duration::from_millis(100),
            unread_patience: Duration::from_secs(1),
            call_ms_default: 3_000_000,
            ..Options::default()
        });
        let world = world.await;
        register(&world.admin, "c", &["t"]).await;
        let mut stream = world.admin.stream("/client-tools/pending/c").await;
        let call =
            WaitingCall::call(&world.admin, json!({"toolID": "client_c_t", "requestID": "r"}));
        stream.named("tool-request").await;
        let under_way = world.broker.under_way();
        assert_eq!((under_way.lines, under_way.n_calls), ((1, 1, 1), 1));
        switch_loopback("down");
        world.settled(|broker| broker.under_way().lines == (0, 0, 0)).await;
        world.settled(|broker| broker.under_way().n_calls == 0).await;
        drop(call);
    });
}

#[tokio::test]
async fn a_result_that_breaks_off_changes_nothing() {
    let world = World::start().await;
    register(&world.admin, "c", &["t"]).await;
    let mut stream = world.admin.stream("/client-tools/pending/c").await;
    let mut call =
        WaitingCall::call(&world.admin, json!({"toolID": "client_c_t", "requestID": "r"}));
    stream.named("tool-request").await;
    let body = r#"{"requestID":"r","status":"success"}"#;
    drop(torn(&world.admin, "POST /client-tools/result", body.len() + 1, body).await);
    assert_eq!(succeed(&world.admin, &json!("x"), "o").await.0, 404);
    assert!(call.is_waiting());
    assert_eq!(succeed(&world.admin, &json!("r"), "whole").await.0, 200);
    assert_eq!(call.answer().await.1["output"], "whole");
}

/// Rule: clients and callers come and go, and every call has exactly one outcome.
#[tokio::test]
async fn calls_end_once_while_streams_come_and_go() {
    let world = World::start().await;
    register(&world.admin, "c", &["t"]).await;
    let mut keeper = world.admin.stream("/client-tools/pending/c").await;
    let mut calls = Vec::new();
    for number in 0..40 {
        let body = json!({"toolID": "client_c_t", "requestID": number.to_string()});
        let call = WaitingCall::call(&world.admin, body);
        if number % 4 == 0 {
            drop(world.admin.stream("/client-tools/pending/c").await);
        }
        if number % 5 == 0 {
            call.leave().await;
        } else {
            calls.push(call);
        }
    }
    // Those that a vanished stream had fail; the others go to the one that stayed.
    let agent = world.admin.clone();
    let mut answering = tokio::task::JoinSet::new();
    answering.spawn(async move {
        loop {
            let id = keeper.named("tool-request").await.json()["requestID"].clone();
            succeed(&agent, &id, "o").await;
        }
    });
    for call in &mut calls {
        let (status, answer) = call.answer().await;
        assert!([200, 503].contains(&status), "{status} {answer}");
    }
    world.settled(|broker| broker.under_way().n_calls == 0).await;
    world.settled(|broker| broker.under_way().lines.2 == 0).await;
    answering.shutdown().await;
}
