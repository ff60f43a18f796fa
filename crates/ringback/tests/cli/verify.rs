//! The kit for holders of lines, against one that is good and several that are not.

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use ringback_client::line::{
    Line, LineCall, LineConfig, LineEvent, LineParty, LineResult, LineTool,
};
use ringback_proto::secret::Secret;
use serde_json::Value;
use tokio::task::{AbortHandle, JoinSet};

use crate::support::{ended, ringback};

/// What a candidate does wrong.
#[derive(Debug, Clone, Copy, Default)]
struct Flaws {
    parses_input: bool,
    ignores_cancel: bool,
    runs_repeats: bool,
    answers_failure_with_success: bool,
    has_no_grace: bool,
}

/// The checks that such a candidate does not pass.
fn failed(flaws: Flaws) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let mut kit = ringback(dir.path());
    kit.env("TMPDIR", dir.path()).args(["verify", "client-tools", "--json", "--wait", "20"]);
    let mut child = kit.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut json = || -> Option<Value> {
        lines.next().map(|line| serde_json::from_str(&line.unwrap()).unwrap())
    };
    let told = json().unwrap();
    let token = std::fs::read_to_string(told["token_file"].as_str().unwrap()).unwrap();
    let address = told["url"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.unwrap();
    let mut candidate = JoinSet::new();
    let secret = Secret::new(token.trim().to_owned());
    candidate.spawn_on(hold(address, secret, flaws), runtime.handle());
    let checks: Vec<Value> = std::iter::from_fn(json).collect();
    assert_eq!(checks.len(), 8, "{checks:?}");
    let failed: Vec<String> = checks
        .iter()
        .filter(|check| check["passed"] == false)
        .map(|check| check["check"].as_str().unwrap().to_owned())
        .collect();
    let code = ended(&mut child).code();
    assert_eq!(code, Some(i32::from(!failed.is_empty())), "{checks:?}");
    failed
}

async fn hold(address: String, token: Secret, flaws: Flaws) {
    let tool = |id: &str| LineTool {
        id: id.to_owned(),
        description: String::new(),
        parameters: None,
        timeout_ms: None,
    };
    let mut config = LineConfig::new(address, "candidate");
    config.token = Some(token);
    config.grace = Duration::from_secs(if flaws.has_no_grace { 0 } else { 10 });
    config.tools = ["echo", "slow", "fail"].map(tool).to_vec();
    let mut line = Line::open(config).await.unwrap();
    let (mut tasks, mut running) = (JoinSet::new(), Vec::<(String, AbortHandle)>::new());
    let mut seen = HashSet::new();
    while let Ok(event) = line.next().await {
        match event {
            LineEvent::Call(call) if flaws.runs_repeats || seen.insert(call.request_id.clone()) => {
                let (id, party) = (call.request_id.clone(), line.party());
                running.push((id, tasks.spawn(answer(call, party, flaws))));
            }
            LineEvent::Cancel { request_id, .. } if !flaws.ignores_cancel => {
                let cancelled = running.iter().filter(|(id, _)| *id == request_id);
                cancelled.for_each(|(_, task)| task.abort());
            }
            LineEvent::Call(_)
            | LineEvent::Cancel { .. }
            | LineEvent::Lost { .. }
            | LineEvent::Back { .. } => {}
        }
    }
}

async fn answer(call: LineCall, party: LineParty, flaws: Flaws) {
    let input: Value = serde_json::from_str(call.input.get()).unwrap();
    if let Some(ms) = input["ms"].as_u64() {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
    let is_failure = call.tool.ends_with("_fail") && !flaws.answers_failure_with_success;
    let result = if is_failure {
        LineResult::Error { error: "on purpose".to_owned() }
    } else {
        let output =
            if flaws.parses_input { input.to_string() } else { call.input.get().to_owned() };
        LineResult::Success { title: String::new(), output }
    };
    // The kit may have ended meanwhile.
    drop(party.answer(&call.request_id, &result).await);
}

/// REQ: a black-box kit with which anyone's line holder can prove itself.
#[test]
fn a_good_candidate_passes() {
    assert_eq!(failed(Flaws::default()), Vec::<String>::new());
}

#[test]
fn a_candidate_that_parses_input_and_ignores_cancels_is_found_out() {
    let flaws = Flaws { parses_input: true, ignores_cancel: true, ..Flaws::default() };
    assert_eq!(failed(flaws), ["returns the input byte for byte", "heeds tool-cancel"]);
}

#[test]
fn a_candidate_that_runs_repeats_and_hides_failures_is_found_out() {
    let flaws =
        Flaws { runs_repeats: true, answers_failure_with_success: true, ..Flaws::default() };
    let expected = ["answers a failure with an error", "comes back after a cut and answers once"];
    assert_eq!(failed(flaws), expected);
}

#[test]
fn a_candidate_without_grace_is_found_out() {
    let flaws = Flaws { has_no_grace: true, ..Flaws::default() };
    assert_eq!(failed(flaws), ["comes back after a cut and answers once"]);
}
