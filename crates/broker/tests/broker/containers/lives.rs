//! The start, the output and the end of containers.

use std::time::Duration;

use ringback_proto::request::{
    AckResponse, ContainerLogsRequest, ContainerStartRequest, ContainerStateResponse,
    ContainerStatus, ProjectDeleteRequest,
};
use ringback_sandbox::BackendChoice;
use ringback_testkit::{engine, until, wait_for};

use super::on_each_backend;
use super::place::{Place, executes, n_running, runs, unique_seconds};
use crate::common::result;
use crate::sessions::{call, refused};

on_each_backend! {
    /// REQ: "container_start|stop|logs|exec work on both where they make sense".
    a_container_runs_until_it_is_stopped
    /// Rule: a container without a command waits.
    a_container_without_a_command_waits
    /// Rule: a program that ends on its own is reported with its exit code and its last output.
    a_program_that_ends_is_told
    /// Rule: the directory of a container is kept as long as its project.
    its_directory_is_kept_and_goes_with_the_project
    /// Rule: a container ends with the daemon, and leaves nothing.
    a_container_ends_with_the_daemon
    /// Rule: a container that ignores the request to end is killed, with everything it started.
    what_will_not_end_is_killed
    /// Rule: a container has no network, no session, and no access to the rest of this machine.
    a_container_is_confined
    /// Rule: the output of a container takes a bounded part of memory.
    what_is_kept_of_its_output_has_a_limit
}

async fn a_container_runs_until_it_is_stopped(place: Place) {
    let project = place.project().await;
    assert_eq!(place.shown(project).await.container, None);
    let script = "echo one; echo two >&2; while :; do sleep 0.05; done";
    let started = place.start(project, script).await;
    let backend = if place.is_docker() { "docker" } else { "bubblewrap" };
    assert_eq!((started.status, started.backend.as_str()), (ContainerStatus::Running, backend));
    assert_eq!(started.image.as_deref(), place.is_docker().then_some(engine::IMAGE));
    let logs = until("it says so", async || {
        let logs = place.logs(project).await;
        (logs.text.contains("one\n") && logs.text.contains("two\n")).then_some(logs)
    })
    .await;
    assert!(!logs.truncated, "{logs:?}");
    let shown = place.shown(project).await.container.unwrap();
    assert_eq!((shown.status, Some(shown.since)), (ContainerStatus::Running, started.since));

    let again = place.start(project, script).await;
    assert_eq!(again, started, "it is already running");
    let (code, message) = refused(&place.fixture, &place.who, runs(project, "echo another")).await;
    assert_eq!(code, "conflict");
    assert!(message.contains("container_stop"), "{message}");

    let stopped = place.stop(project).await;
    assert_eq!(stopped.status, ContainerStatus::Stopped);
    assert!(stopped.exit_code.is_some() && stopped.since >= started.since, "{stopped:?}");
    assert_eq!(place.stop(project).await, stopped, "and it stays stopped");
    assert!(place.logs(project).await.text.contains("two\n"), "its output is kept");
    let last = ContainerLogsRequest { project_id: project, lines: Some(1) };
    let last: ringback_proto::request::ContainerLogsResponse =
        call(&place.fixture, &place.who, last).await;
    assert!(last.truncated && last.text.lines().count() == 1, "{last:?}");
}

async fn a_container_without_a_command_waits(place: Place) {
    let project = place.project().await;
    let stopped = place.stop(project).await;
    assert_eq!((stopped.status, stopped.since), (ContainerStatus::Stopped, None));
    let (code, message) = refused(
        &place.fixture,
        &place.who,
        ContainerLogsRequest { project_id: project, lines: None },
    )
    .await;
    assert_eq!(code, "not_found");
    assert!(message.contains("container_start"), "{message}");
    let request = ContainerStartRequest { project_id: project, command: None };
    drop(call::<ContainerStateResponse>(&place.fixture, &place.who, request).await);
    place.until_it_wrote(project, "waits").await;
    assert_eq!(place.stop(project).await.exit_code, Some(0), "it ends on request");
}

async fn a_program_that_ends_is_told(place: Place) {
    let project = place.project().await;
    place.start(project, "echo last words; exit 3").await;
    let ended = until("it says so", async || {
        let container = place.shown(project).await.container?;
        (container.status == ContainerStatus::Stopped).then_some(container)
    })
    .await;
    assert_eq!(ended.exit_code, Some(3));
    assert_eq!(place.logs(project).await.text, "last words\n");
    place.start(project, "echo again; exit 0").await;
    let logs = place.until_it_wrote(project, "again").await;
    assert_eq!(logs, "again\n", "a new container has its own log");
}

async fn its_directory_is_kept_and_goes_with_the_project(place: Place) {
    let project = place.project().await;
    place.start(project, "pwd; echo kept > kept; echo done; sleep 1000").await;
    place.until_it_wrote(project, "/workspace\ndone\n").await;
    let place = place.restarted().await;
    assert_eq!(place.shown(project).await.container, None);
    place.start(project, "cat /workspace/kept; sleep 1000").await;
    place.until_it_wrote(project, "kept\n").await;
    assert!(place.has_dir(project));
    let deleted: AckResponse =
        call(&place.fixture, &place.who, ProjectDeleteRequest { project_id: project }).await;
    assert!(deleted.message.contains("is deleted"));
    assert!(!place.has_dir(project));
    assert_eq!(n_left(&place), 0, "its container went with it");
}

async fn a_container_ends_with_the_daemon(place: Place) {
    let project = place.project().await;
    let seconds = unique_seconds();
    place.start(project, &format!("echo up; exec sleep {seconds}")).await;
    place.until_it_wrote(project, "up").await;
    wait_for("it runs", async || n_running(&["sleep", &seconds]) == 1).await;
    place.fixture.broker.stop(Duration::from_secs(5)).await;
    assert_eq!(n_running(&["sleep", &seconds]), 0);
    assert_eq!(n_left(&place), 0);
}

async fn what_will_not_end_is_killed(place: Place) {
    let project = place.project().await;
    let seconds = unique_seconds();
    let script =
        format!("trap '' TERM; setsid sleep {seconds} & echo up; while :; do sleep 0.05; done");
    place.start(project, &script).await;
    place.until_it_wrote(project, "up").await;
    wait_for("it runs", async || n_running(&["sleep", &seconds]) == 1).await;
    let stopped = place.stop(project).await;
    assert_eq!(stopped.exit_code, Some(137), "{stopped:?}");
    assert_eq!(n_running(&["sleep", &seconds]), 0);
}

async fn a_container_is_confined(place: Place) {
    let project = place.project().await;
    let dir = place.fixture.dir().display().to_string();
    let script = format!(
        "ls -d {dir} {dir}/data /mcp/relay.sock 2>/dev/null; cat /proc/net/dev | grep -v 'lo:\\||' ; \
         env | sort; touch /made 2>/dev/null && echo writes; echo end; sleep 1000"
    );
    place.start(project, &script).await;
    let said = place.until_it_wrote(project, "end\n").await;
    for line in said.lines() {
        let is_known = ["HOME=/workspace", "LANG=C.UTF-8", "PWD=/workspace", "end"].contains(&line)
            || ["PATH=", "OLDPWD=", "SHLVL=", "_=", "HOSTNAME="]
                .iter()
                .any(|name| line.starts_with(name));
        assert!(is_known, "{line}: {said}");
    }
}

async fn what_is_kept_of_its_output_has_a_limit(place: Place) {
    let project = place.project().await;
    let script = "head -c 1000000 /dev/zero | tr '\\0' a; echo; echo end; sleep 1000";
    place.start(project, script).await;
    place.until_it_wrote(project, "end\n").await;
    let logs = place.logs(project).await;
    assert!(logs.truncated && logs.text.len() <= 256 << 10, "{}", logs.text.len());
}

/// Returns what the sandbox has left behind: sandboxes that were not cleaned up.
fn n_left(place: &Place) -> usize {
    let state = place.fixture.dir().join("data/sandbox");
    if place.is_docker() {
        return engine::containers(&state).len();
    }
    std::fs::read_dir(state.join("boxes")).unwrap().count()
}

/// Rule: there are at most `sandbox.containers_max` containers; one more is busy, and the error
/// says what to do.
#[tokio::test]
async fn one_container_more_than_there_may_be_is_busy() {
    let one = |config: &mut ringback_broker::Config| config.containers.containers_max = 1;
    let place = Place::with(BackendChoice::Bubblewrap, one).await;
    let (first, second) = (place.project().await, place.project().await);
    place.start(first, "sleep 1000").await;
    let refusal = refused(&place.fixture, &place.who, runs(second, "sleep 1000")).await;
    assert_eq!(refusal.0, "busy");
    assert!(refusal.1.contains("sandbox.containers_max"), "{refusal:?}");
    place.stop(first).await;
    place.start(second, "sleep 1000").await;
}

/// Rule: without a sandbox backend there are no containers.
#[tokio::test]
async fn without_a_sandbox_there_are_no_containers() {
    let none = |config: &mut ringback_broker::Config| {
        config.sessions.confinement = ringback_broker::Confinement::Unconfined;
    };
    let place = Place::with(BackendChoice::Bubblewrap, none).await;
    let project = place.project().await;
    let refusals = [
        refused(&place.fixture, &place.who, runs(project, "true")).await,
        refused(&place.fixture, &place.who, executes(project, "true")).await,
    ];
    for (code, message) in refusals {
        assert_eq!(code, "conflict");
        assert!(message.contains("sandbox.backend"), "{message}");
    }
}

/// Rule: a start that fails leaves nothing, and frees its place.
#[tokio::test]
async fn a_start_that_fails_leaves_its_place() {
    let one = |config: &mut ringback_broker::Config| {
        config.containers.containers_max = 1;
        config.sessions.inside = None;
    };
    let place = Place::with(BackendChoice::Bubblewrap, one).await;
    let (first, second) = (place.project().await, place.project().await);
    let request = ContainerStartRequest { project_id: first, command: None };
    let error = result(&place.fixture.broker, &place.who, request).await.unwrap_err();
    assert!(error.message.contains("set `command`"), "{error:?}");
    place.start(second, "sleep 1000").await;
}

/// Writes forever, in files of 4 MiB.
const WRITER: &str =
    "n=0; while head -c 4194304 /dev/zero > file$n; do n=$((n+1)); sleep 0.02; done; sleep 1000";

/// Rule: containers and commands are watched like agents: one that exceeds its disk limit is ended,
/// and the error says why.
#[tokio::test(flavor = "multi_thread")]
async fn a_container_or_command_that_fills_the_disk_is_ended() {
    let place = Place::with(BackendChoice::Bubblewrap, |config| {
        config.sessions.disk.workspace_bytes = Some(16 << 20);
    })
    .await;
    let project = place.project().await;
    let error = place.exec(executes(project, WRITER)).await.unwrap_err();
    assert!(error.message.contains("sandbox.workspace"), "{error:?}");
    let other = place.project().await;
    place.start(other, WRITER).await;
    let stopped = until("it says so", async || {
        let container = place.shown(other).await.container;
        container.filter(|container| container.status == ContainerStatus::Stopped)
    });
    stopped.await;
    let logs = place.logs(other).await.text;
    assert!(logs.contains("sandbox.workspace"), "{logs}");
}
