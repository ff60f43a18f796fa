//! Many boxes, and boxes that are dropped.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use ringback_sandbox::{Confined, Limits, Network, Sandbox, SandboxSettings, SandboxSpec};
use rustix::process::test_kill_process;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinSet;

use crate::bench::{Bench, User, groups, marker, mentioning, sleepers, wait_for};

/// Sandboxes at once.
const N_BOXES: usize = 50;

pub(crate) fn sandbox(bench: &Bench) -> Sandbox {
    Sandbox::open(SandboxSettings::in_dir(bench.path("state"))).unwrap()
}

pub(crate) fn spec(bench: &Bench, script: &str) -> SandboxSpec {
    let is_root = rustix::process::geteuid().is_root();
    SandboxSpec {
        program: "/bin/sh".into(),
        args: vec!["-c".into(), script.into()],
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        workspace: bench.path("workspace"),
        home: Some(bench.path("home")),
        session_dir: Some(bench.path("session")),
        inside: None,
        read_only: Vec::new(),
        limits: if is_root { Limits::default() } else { Limits::none() },
        network: Network::None,
    }
}

fn mounts() -> usize {
    fs::read_to_string("/proc/self/mountinfo").unwrap().lines().count()
}

/// Says something, waits for an answer, and ends.
async fn converse(mut confined: Confined) {
    let mut said = String::new();
    let mut stdin = confined.child.stdin.take().unwrap();
    stdin.write_all(b"hello\n").await.unwrap();
    drop(stdin);
    confined.child.stdout.take().unwrap().read_to_string(&mut said).await.unwrap();
    assert_eq!(said, "ready\nhello\n");
    assert!(confined.child.wait().await.unwrap().success());
    confined.hold.gone().await;
}

/// Rule: 50 sandboxes start and end concurrently and leave no process, mount, control group or file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_boxes_at_once_leave_nothing() {
    let bench = Bench::new(User::Me);
    let sandbox = sandbox(&bench);
    let n_mounts = mounts();
    let mut starting = JoinSet::new();
    for _ in 0..N_BOXES {
        let (sandbox, spec) = (sandbox.clone(), spec(&bench, "echo ready; head -n 1"));
        starting.spawn(async move { sandbox.start(spec).await.unwrap() });
    }
    let confined = starting.join_all().await;
    let firsts: Vec<_> = confined.iter().map(|confined| confined.hold.group()).collect();
    let made = groups(&bench.path("state"));
    if rustix::process::geteuid().is_root() {
        assert_eq!(made.len() % N_BOXES, 0, "{}", made.len());
        assert!(!made.is_empty() && made.iter().all(|group| group.exists()));
    }
    let ending: JoinSet<()> = confined.into_iter().map(converse).collect();
    ending.join_all().await;
    assert!(made.iter().all(|group| !group.exists()));
    assert_eq!(groups(&bench.path("state")), Vec::<PathBuf>::new());
    assert_eq!(fs::read_dir(bench.path("state/boxes")).unwrap().count(), 0);
    assert_eq!(mounts(), n_mounts);
    wait_for("no process is left", || {
        firsts.iter().all(|first| test_kill_process(*first).is_err())
    });
}

/// Rule: however much a box says, nobody has to keep it; and a box that is dropped ends at once.
#[tokio::test]
async fn endless_output_is_bounded_by_who_reads() {
    let bench = Bench::new(User::Me);
    let sandbox = sandbox(&bench);
    let mut confined = sandbox.start(spec(&bench, "yes & yes >&2")).await.unwrap();
    let first = confined.hold.group();
    let mut read = vec![0; 1 << 20];
    let stdout = confined.child.stdout.as_mut().unwrap();
    for _ in 0..16 {
        stdout.read_exact(&mut read).await.unwrap();
    }
    drop(confined);
    wait_for("it is gone", || test_kill_process(first).is_err());
    drop(sandbox);
    assert_eq!(fs::read_dir(bench.path("state/boxes")).unwrap().count(), 0);
}

/// Rule: a start that nobody waits for any more leaves nothing.
#[test]
fn a_start_that_is_given_up_leaves_nothing() {
    let bench = Bench::new(User::Me);
    let (part, sum) = marker();
    let sandbox = sandbox(&bench);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        for _ in 0..20 {
            let spec = spec(&bench, &format!("sleep $(({part} + 12345))"));
            // It is under way on another thread, and nobody is there for what comes of it.
            let asked = tokio::time::timeout(Duration::ZERO, sandbox.start(spec)).await;
            assert!(asked.is_err());
        }
    });
    // Waits for what is under way.
    drop(runtime);
    drop(sandbox);
    assert_eq!(fs::read_dir(bench.path("state/boxes")).unwrap().count(), 0);
    assert_eq!(sleepers(sum), Vec::<u32>::new());
    wait_for("no bubblewrap is left", || mentioning(&format!("{part} + 12345")).is_empty());
}
