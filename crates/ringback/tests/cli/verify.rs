//! The conformance kit, against one correct program and several flawed ones.

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use bytes::Bytes;
use ringback_client::line::{
    Line, LineCall, LineConfig, LineEvent, LineParty, LineResult, LineTool,
};
use ringback_client::{Config, Credentials, Worker, WorkerCall, WorkerTools};
use ringback_proto::data::Data;
use ringback_proto::ready::OfferedTool;
use ringback_proto::secret::Secret;
use ringback_proto::{Error, ErrorKind, StreamChunk};
use serde_json::Value;
use tokio::task::{AbortHandle, JoinSet};

use crate::support::{ended, ringback};

/// The flaws of a candidate.
#[derive(Debug, Clone, Copy, Default)]
struct Flaws {
    parses_input: bool,
    ignores_cancel: bool,
    runs_repeats: bool,
    answers_failure_with_success: bool,
    has_no_grace: bool,
}

/// Returns the checks that a candidate fails.
fn failed<C>(
    kit: &[&str],
    n_checks: usize,
    candidate: impl FnOnce(String, Secret) -> C,
) -> Vec<String>
where
    C: Future<Output = ()> + Send + 'static,
{
    let dir = tempfile::tempdir().unwrap();
    let mut command = ringback(dir.path());
    command.env("TMPDIR", dir.path()).arg("verify").args(kit).args(["--json", "--wait", "20"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut json = || -> Option<Value> {
        lines.next().map(|line| serde_json::from_str(&line.unwrap()).unwrap())
    };
    let told = json().unwrap();
    let token = std::fs::read_to_string(told["token_file"].as_str().unwrap()).unwrap();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.unwrap();
    let mut running = JoinSet::new();
    let (url, secret) =
        (told["url"].as_str().unwrap().to_owned(), Secret::new(token.trim().to_owned()));
    running.spawn_on(candidate(url, secret), runtime.handle());
    let checks: Vec<Value> = std::iter::from_fn(json).collect();
    assert_eq!(checks.len(), n_checks, "{checks:?}");
    let failed: Vec<String> = checks
        .iter()
        .filter(|check| check["passed"] == false)
        .map(|check| check["check"].as_str().unwrap().to_owned())
        .collect();
    let code = ended(&mut child).code();
    assert_eq!(code, Some(i32::from(!failed.is_empty())), "{checks:?}");
    failed
}

/// Returns the checks that a client with these flaws fails.
fn client_failed(flaws: Flaws) -> Vec<String> {
    failed(&["client-tools"], 8, |url, token| hold(url, token, flaws))
}

async fn hold(url: String, token: Secret, flaws: Flaws) {
    let address = url.strip_prefix("http://").unwrap().to_owned();
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
    // The kit may already have ended.
    drop(party.answer(&call.request_id, &result).await);
}

/// REQ: a black-box kit that checks any program that offers tools on a line.
#[test]
fn a_good_candidate_passes() {
    assert_eq!(client_failed(Flaws::default()), Vec::<String>::new());
}

#[test]
fn a_candidate_that_parses_input_and_ignores_cancels_is_found_out() {
    let flaws = Flaws { parses_input: true, ignores_cancel: true, ..Flaws::default() };
    assert_eq!(client_failed(flaws), ["returns the input byte for byte", "heeds tool-cancel"]);
}

#[test]
fn a_candidate_that_runs_repeats_and_hides_failures_is_found_out() {
    let flaws =
        Flaws { runs_repeats: true, answers_failure_with_success: true, ..Flaws::default() };
    let expected = ["answers a failure with an error", "reconnects after a cut and answers once"];
    assert_eq!(client_failed(flaws), expected);
}

#[test]
fn a_candidate_without_grace_is_found_out() {
    let flaws = Flaws { has_no_grace: true, ..Flaws::default() };
    assert_eq!(client_failed(flaws), ["reconnects after a cut and answers once"]);
}

/// The flaws of a worker.
#[derive(Debug, Clone, Copy, Default)]
struct WorkerFlaws {
    is_silent: bool,
    takes_one_at_a_time: bool,
    tells_no_progress: bool,
    answers_failure_with_success: bool,
}

#[derive(serde::Deserialize)]
struct SlowInput {
    #[serde(default)]
    ms: u64,
}

#[derive(serde::Deserialize)]
struct PourInput {
    bytes: usize,
}

/// Returns the checks that a worker with these flaws fails.
fn worker_failed(flaws: WorkerFlaws) -> Vec<String> {
    failed(&["worker", "--silence", "3"], 12, move |url, token| serve(url, token, flaws))
}

async fn serve(url: String, token: Secret, flaws: WorkerFlaws) {
    let mut config = Config::new(url, Credentials::Token(token));
    config.heartbeat_interval = Duration::from_secs(if flaws.is_silent { 600 } else { 1 });
    let named = |name: &str| OfferedTool::Name(name.to_owned());
    let echo = |call: &WorkerCall| Ok::<Bytes, Error>(call.arguments().clone());
    let tools = WorkerTools::new("candidate")
        .concurrency(if flaws.takes_one_at_a_time { 1 } else { 8 })
        .raw_tool(named("echo"), move |call: WorkerCall| async move { echo(&call) })
        .raw_tool(named("slow"), move |call: WorkerCall| async move {
            let ms = call.decode::<SlowInput>()?.ms;
            if !flaws.tells_no_progress {
                call.progress(0.0, "waiting").await;
            }
            tokio::select! {
                () = call.cancelled().cancelled() => Err(Error::cancelled("as asked")),
                () = tokio::time::sleep(Duration::from_millis(ms)) => echo(&call),
            }
        })
        .raw_tool(named("pour"), move |call: WorkerCall| async move {
            let mut left = call.decode::<PourInput>()?.bytes;
            while left > 0 {
                let data = Data::from(vec![7; left.min(100_000)]);
                left -= data.0.len();
                let mime_type = "application/octet-stream".to_owned();
                call.send(StreamChunk::PartialContent { data, mime_type }).await;
            }
            echo(&call)
        })
        .raw_tool(named("fail"), move |call: WorkerCall| async move {
            if flaws.answers_failure_with_success {
                return echo(&call);
            }
            Err(Error::new(ErrorKind::ToolFailed, "on purpose"))
        });
    let worker = Worker::serve(config, tools).await.unwrap();
    std::future::pending::<()>().await;
    drop(worker);
}

/// REQ: `ringback verify worker`: checks a worker in any language.
#[test]
fn a_good_worker_passes() {
    assert_eq!(worker_failed(WorkerFlaws::default()), Vec::<String>::new());
}

#[test]
fn a_worker_that_works_off_a_queue_and_hides_failures_is_found_out() {
    let flaws = WorkerFlaws {
        takes_one_at_a_time: true,
        answers_failure_with_success: true,
        ..WorkerFlaws::default()
    };
    let expected =
        ["runs two calls at once", "answers a failure with an error", "waits for credit"];
    assert_eq!(worker_failed(flaws), expected);
}

#[test]
fn a_worker_that_is_silent_when_idle_is_found_out() {
    let flaws = WorkerFlaws { is_silent: true, ..WorkerFlaws::default() };
    assert_eq!(worker_failed(flaws), ["gives a sign of life when idle"]);
}

#[test]
fn a_worker_that_tells_no_progress_is_found_out() {
    let flaws = WorkerFlaws { tells_no_progress: true, ..WorkerFlaws::default() };
    let failed = worker_failed(flaws);
    assert!(failed.contains(&"reports progress before it answers".to_owned()), "{failed:?}");
}
