//! Many sandboxes, and dropped sandboxes.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use ringback_sandbox::{
    BackendChoice, ConfinedProgram, DockerSettings, Limits, Network, ReadOnly, Sandbox,
    SandboxSettings, SandboxSpec, Workspace,
};
use ringback_testkit::engine;
use rustix::process::{Pid, test_kill_process};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinSet;

use crate::bench::{
    Backend, Bench, User, groups, marker, mentioning, sleepers, system, wait_for, with_limits,
};

/// Concurrent sandboxes.
const N_BOXES: usize = 50;
/// Concurrent containers: each takes an engine several processes and a third of a second.
const N_CONTAINERS: usize = 20;

pub(crate) fn settings(bench: &Bench) -> SandboxSettings {
    let settings = SandboxSettings::in_dir(bench.path("state"));
    match bench.backend {
        Backend::Bubblewrap => SandboxSettings { backend: BackendChoice::Bubblewrap, ..settings },
        Backend::Docker => {
            let image = Some(engine::IMAGE.to_owned());
            let socket = engine::socket().unwrap().to_owned();
            let docker = DockerSettings { socket, image };
            SandboxSettings { backend: BackendChoice::Docker, docker, ..settings }
        }
    }
}

pub(crate) fn sandbox(bench: &Bench) -> Sandbox {
    Sandbox::open(settings(bench)).unwrap()
}

pub(crate) fn spec(bench: &Bench, script: &str) -> SandboxSpec {
    let is_root = rustix::process::geteuid().is_root();
    SandboxSpec {
        program: "/bin/sh".into(),
        args: vec!["-c".into(), script.into()],
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        workspace: Workspace::Write(bench.path("workspace")),
        working_dir: None,
        home: Some(bench.path("home")),
        session_dir: Some(bench.path("session")),
        inside: None,
        read_only: match bench.backend {
            Backend::Bubblewrap => Vec::new(),
            Backend::Docker => system().map(ReadOnly::same).collect(),
        },
        limits: if is_root { Limits::default() } else { Limits::none() },
        masked: Vec::new(),
        cache: None,
        network: Network::None,
        image: None,
    }
}

/// Returns the first process of a sandbox.
pub(crate) fn first(confined: &ConfinedProgram) -> Pid {
    Pid::from_raw(i32::try_from(confined.process.id().unwrap()).unwrap()).unwrap()
}

/// Counts the mounts of this machine, except those of the engine that other tests use.
fn mounts() -> usize {
    let all = fs::read_to_string("/proc/self/mountinfo").unwrap();
    all.lines().filter(|mount| !mount.contains("/ringback-engine-")).count()
}

/// Writes something, waits for an answer, and ends.
async fn converse(mut confined: ConfinedProgram) {
    let mut said = String::new();
    let mut pipes = confined.pipes;
    pipes.stdin.write_all(b"hello\n").await.unwrap();
    drop(pipes.stdin);
    pipes.stdout.read_to_string(&mut said).await.unwrap();
    assert_eq!(said, "ready\nhello\n");
    assert!(confined.process.wait().await.unwrap().success());
    confined.hold.gone().await;
}

/// Rule: 50 sandboxes start and end concurrently and leave no process, mount, cgroup or file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_boxes_at_once_leave_nothing() {
    at_once(&Bench::new(User::Me), N_BOXES).await;
}

/// Rule: 20 containers start and end concurrently and leave no process, mount, container or file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_containers_at_once_leave_nothing() {
    if let Some(bench) = Bench::docker(User::Me) {
        at_once(&bench, N_CONTAINERS).await;
    }
}

async fn at_once(bench: &Bench, n_boxes: usize) {
    let sandbox = sandbox(bench);
    let n_mounts = mounts();
    let mut starting = JoinSet::new();
    for _ in 0..n_boxes {
        let (sandbox, spec) = (sandbox.clone(), spec(bench, "echo ready; head -n 1"));
        starting.spawn(async move { sandbox.start(spec).await.unwrap() });
    }
    let confined = starting.join_all().await;
    let firsts: Vec<_> = confined.iter().map(first).collect();
    let made = groups(&bench.path("state"));
    match bench.backend {
        Backend::Bubblewrap if rustix::process::geteuid().is_root() => {
            assert_eq!(made.len() % n_boxes, 0, "{}", made.len());
            assert!(!made.is_empty() && made.iter().all(|group| group.exists()));
        }
        Backend::Bubblewrap => {}
        Backend::Docker => assert_eq!(bench.left().len(), n_boxes),
    }
    let ending: JoinSet<()> = confined.into_iter().map(converse).collect();
    ending.join_all().await;
    assert!(made.iter().all(|group| !group.exists()));
    assert_eq!(groups(&bench.path("state")), Vec::<PathBuf>::new());
    assert_eq!(bench.left(), Vec::<String>::new());
    let own = |state: &std::path::Path| fs::read_dir(state.join("boxes")).unwrap().count();
    assert_eq!(own(&bench.path("state")), 0);
    assert_eq!(mounts(), n_mounts);
    wait_for("no process is left", || {
        firsts.iter().all(|first| test_kill_process(*first).is_err())
    });
}

/// Rule: the output of a sandbox need not be stored, however large; and a dropped sandbox ends
/// immediately.
#[tokio::test]
async fn endless_output_is_bounded_by_who_reads() {
    read_some(&Bench::new(User::Me)).await;
}

/// Rule: the same holds for a container, and the engine stores nothing of it either.
#[tokio::test]
async fn endless_output_of_a_container_is_bounded_by_who_reads() {
    if let Some(bench) = Bench::docker(User::Me) {
        read_some(&bench).await;
    }
}

async fn read_some(bench: &Bench) {
    let sandbox = sandbox(bench);
    let mut confined = sandbox.start(spec(bench, "yes & yes >&2")).await.unwrap();
    let first = first(&confined);
    let mut read = vec![0; 1 << 20];
    for _ in 0..16 {
        confined.pipes.stdout.read_exact(&mut read).await.unwrap();
    }
    drop(confined);
    wait_for("it is gone", || test_kill_process(first).is_err());
    drop(sandbox);
    assert_eq!(bench.left(), Vec::<String>::new());
}

with_limits! {
    /// Rule: a dropped start leaves nothing.
    a_start_that_is_given_up_leaves_nothing
}
fn a_start_that_is_given_up_leaves_nothing(bench: &Bench) {
    let (part, sum) = marker();
    let sandbox = sandbox(bench);
    let n_starts = match bench.backend {
        Backend::Bubblewrap => 20,
        Backend::Docker => 5,
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        for _ in 0..n_starts {
            let spec = spec(bench, &format!("sleep $(({part} + 12345))"));
            // It is running on another thread, and its result is dropped.
            let asked = tokio::time::timeout(Duration::ZERO, sandbox.start(spec)).await;
            assert!(asked.is_err());
        }
    });
    // Waits for what is running.
    drop(runtime);
    drop(sandbox);
    assert_eq!(bench.left(), Vec::<String>::new());
    assert_eq!(sleepers(sum), Vec::<u32>::new());
    wait_for("no bubblewrap is left", || mentioning(&format!("{part} + 12345")).is_empty());
}
