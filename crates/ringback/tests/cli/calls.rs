//! Calls, jobs, events and explanations of calls.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use ringback_client::{Config, Credentials, Worker, WorkerTools};
use ringback_proto::Error;
use ringback_proto::ready::OfferedTool;
use ringback_proto::secret::Secret;
use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Daemon, ended, ringback, send, wait_for};

#[test]
fn a_call_answers_people_and_programs() {
    let daemon = Daemon::start();
    assert!(daemon.run(&["call", "ping"]).done().stdout.contains("version"));
    let pong = daemon.run(&["call", "ping", "--output", "json"]).json();
    assert_eq!(pong["type"], "pong");
    let input = daemon
        .run_with(&["call", "job_list", "--args-file", "-", "--output", "json"], b"{\"limit\": 1}");
    assert_eq!(input.json()["total"], 0);
    let get = daemon.run(&[
        "call",
        "config_get",
        "section=limits",
        "key=jobs_running",
        "--output",
        "json",
    ]);
    assert_eq!(get.json()["value"], 256);
}

#[test]
fn an_error_of_a_tool_exits_with_1_and_says_whether_it_ran() {
    let daemon = Daemon::start();
    let missing = format!("job_id=job_{}", "0".repeat(32));
    let run = daemon.run(&["call", "job_status", &missing]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stderr.contains("no such job") && run.stderr.contains("nothing was done"));
    let late = daemon.run(&["call", "job_sleep", "milliseconds=60000", "--deadline", "50"]);
    assert_eq!(late.code, 1, "{late:?}");
    assert!(late.stderr.contains("50 ms"), "{late:?}");
}

#[test]
fn a_job_is_waited_for_handed_over_or_streamed() {
    let daemon = Daemon::start();
    let sleep = ["call", "job_sleep", "milliseconds=150", "--output", "json"];
    assert_eq!(daemon.run(&sleep).json()["milliseconds"], 150);

    let handed =
        daemon.run(&["call", "job_sleep", "milliseconds=150", "--no-wait", "--output", "json"]);
    let job = handed.json()["job"]["job_id"].as_str().unwrap().to_owned();
    let watched = daemon.run(&["jobs", "watch", &job, "--json"]).done();
    let last: Value = serde_json::from_str(watched.stdout.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&last["status"], &last["result"]["milliseconds"]),
        (&"complete".into(), &150.into())
    );
    let impatient = daemon.run(&["call", "job_sleep", "milliseconds=60000", "--wait", "10"]).line();
    assert!(impatient.starts_with("job_"));

    let streamed = daemon.run(&[&sleep[..], &["--stream"]].concat()).done();
    let lines: Vec<Value> =
        streamed.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines[0]["started"]["job_id"].is_string(), "{lines:?}");
    assert_eq!(lines[1]["chunk"]["type"], "progress");
    assert_eq!(lines.last().unwrap()["result"]["milliseconds"], 150);
}

#[test]
fn jobs_are_listed_shown_cancelled_and_explained() {
    let daemon = Daemon::start();
    let job = daemon.run(&["call", "job_sleep", "milliseconds=3600000", "--no-wait"]).line();
    let running = daemon.run(&["jobs", "--status", "running", "--json"]).json();
    assert_eq!(running["jobs"][0]["job_id"], job);
    assert!(daemon.run(&["jobs"]).done().stdout.contains(&job));
    assert!(daemon.run(&["jobs", "cancel", &job]).line().ends_with("is cancelled"));
    assert_eq!(daemon.run(&["jobs", &job, "--json"]).json()["status"], "cancelled");
    let watch = daemon.run(&["jobs", "watch", &job]);
    assert_eq!(watch.code, 1, "a cancelled job is not a success: {watch:?}");

    let why = daemon.run(&["why", &job, "--json"]).json();
    assert_eq!((&why["tool"], &why["job_status"]), (&"job_sleep".into(), &"cancelled".into()));
    assert!(daemon.run(&["why", &job]).done().stdout.contains("admitted"));
    assert_eq!(daemon.run(&["why", "nothing"]).code, 1);
}

/// Rule: Ctrl-C cancels the call, so that no unneeded work continues.
#[test]
fn ctrl_c_cancels_the_work_and_exits_with_130() {
    let daemon = Daemon::start();
    for stream in [&["--stream"][..], &[]] {
        let mut command = daemon.client(&["call", "job_sleep", "milliseconds=3600000"]);
        let mut child =
            command.args(stream).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let running = || daemon.run(&["jobs", "--status", "running", "--json"]).json();
        let job =
            wait_for("the job", || running()["jobs"][0]["job_id"].as_str().map(str::to_owned));
        send(child.id(), Signal::INT);
        assert_eq!(ended(&mut child).code(), Some(130));
        wait_for("the job to be cancelled", || {
            (daemon.run(&["jobs", &job, "--json"]).json()["status"] == "cancelled").then_some(())
        });
    }
}

/// Rule: a cancel takes effect even if the caller disconnects immediately.
#[test]
fn work_whose_output_nobody_reads_any_more_is_cancelled() {
    let daemon = Daemon::start();
    let mut call = daemon.client(&["call", "job_sleep", "milliseconds=5000", "--stream"]);
    call.args(["--output", "json"]).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = call.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let started: Value = serde_json::from_str(&line).unwrap();
    let job = started["started"]["job_id"].as_str().unwrap();
    assert_eq!(ended(&mut child).code(), Some(0));
    let watched = daemon.run(&["jobs", "watch", job]);
    assert!(watched.stderr.contains("cancelled"), "{watched:?}");
}

#[test]
fn tools_are_listed_by_prefix_and_shown_with_their_fields() {
    let daemon = Daemon::start();
    let tools = daemon.run(&["tools", "--json"]).json();
    assert!(tools["tools"].as_array().unwrap().len() > 20);
    let some = daemon.run(&["tools", "token_"]).done().stdout;
    assert!(some.contains("token_create") && !some.contains("ping"));
    assert!(daemon.run(&["tools", "job_poll"]).done().stdout.contains("any|all"));
}

#[test]
fn events_are_kept_and_can_be_gone_on_with() {
    let daemon = Daemon::start();
    daemon.run(&["call", "job_sleep", "milliseconds=0"]).done();
    let kept = daemon.run(&["events", "--json"]).json();
    let events = kept["events"].as_array().unwrap();
    assert_eq!(events.last().unwrap()["event"]["state"], "complete");
    let after =
        daemon.run(&["events", "--json", "--after", kept["cursor"].as_str().unwrap()]).json();
    assert_eq!(after["events"].as_array().unwrap().len(), 0);
    let last = daemon.run(&["events", "--limit", "1", "--type", "job.state_changed"]).line();
    assert!(last.contains("complete"), "{last}");
}

#[test]
fn events_are_followed_by_socket_and_by_port() {
    let daemon = Daemon::start();
    let (hoot, iopub) = (daemon.told("hoot"), daemon.told("iopub"));
    let by_port = ["--daemon", hoot, "--iopub", iopub];
    for connection in [&[][..], &by_port] {
        let mut follow =
            daemon.client(&["events", "--follow", "--json", "--type", "job.state_changed"]);
        let mut child =
            follow.args(connection).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (told, heard) = std::sync::mpsc::channel();
        // Read to the end: closing the pipe early would end the command.
        let reader = std::thread::spawn(move || {
            lines.by_ref().for_each(|line| drop(told.send(line.unwrap())));
        });
        // A subscription takes a moment to arrive; events are made until one is received.
        let line = wait_for("an event", || {
            daemon.run(&["call", "job_sleep", "milliseconds=0"]).done();
            heard.try_recv().ok()
        });
        let event: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(event["event"]["type"], "job.state_changed");
        send(child.id(), Signal::INT);
        assert_eq!(ended(&mut child).code(), Some(130));
        reader.join().unwrap();
    }
}

#[test]
fn the_demonstration_does_what_it_says_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let output = ringback(dir.path()).env("TMPDIR", dir.path()).arg("demo").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("All steps were checked"), "{text}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// REQ: `ringback call` for any tool: one from a worker, over HOOT01 in both directions.
#[test]
fn a_tool_of_a_worker_is_called_like_any_other() {
    type Numbers = BTreeMap<String, i64>;
    let daemon = Daemon::start();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let tools = WorkerTools::new("studio")
        .tool(OfferedTool::Name("add".to_owned()), |numbers: Numbers, _| async move {
            Ok(BTreeMap::from([("sum", numbers.values().sum::<i64>())]))
        })
        .tool(OfferedTool::Name("fail".to_owned()), |_: Numbers, _| async {
            Err::<(), _>(Error::invalid("nothing to add"))
        });
    let token = Credentials::Token(Secret::new(daemon.token()));
    let serving = Worker::serve(Config::new(daemon.told("hoot"), token), tools);
    let worker = runtime.block_on(serving).unwrap();
    let listed = daemon.run(&["tools", "--json"]).done().stdout;
    assert!(listed.contains("studio_add"), "{listed}");
    let added = daemon.run(&["call", "studio_add", "a=2", "b=40", "--output", "json"]);
    assert_eq!(added.json(), serde_json::json!({"sum": 42}));
    let failed = daemon.run(&["call", "studio_fail"]);
    assert_eq!(failed.code, 1, "{failed:?}");
    assert!(failed.stderr.contains("nothing to add"), "{failed:?}");
    runtime.block_on(worker.close());
    let gone = daemon.run(&["call", "studio_add", "a=1"]);
    assert_eq!(gone.code, 2, "{gone:?}");
}
