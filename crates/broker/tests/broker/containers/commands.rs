//! Commands: in a container, and in sandboxes of their own.

use std::time::Duration;

use ringback_proto::envelope::ResponseEnvelope;
use ringback_proto::request::{
    AckResponse, ContainerExecRequest, JobCancelRequest, JobCancelledResponse,
    ProjectDeleteRequest, WorkspaceDeleteRequest,
};
use ringback_testkit::{pass, wait_for};

use super::on_each_backend;
use super::place::{Place, executes, n_running, unique_seconds};
use crate::common::{call as plain, reply};
use crate::sessions::{call, refused};

on_each_backend! {
    /// REQ: "container_start|stop|logs|exec work on both where they make sense".
    a_command_tells_its_exit_code_and_what_it_said
    /// Rule: the kept part of a command's output has a limit, and the answer says when it is
    /// truncated.
    what_is_kept_of_its_output_has_a_limit
    /// Rule: a command that takes too long is ended, with everything it started.
    a_command_that_takes_too_long_is_ended
    /// Rule: cancelling the job of a command ends it.
    a_command_that_is_cancelled_is_ended
    /// Rule: a command with a workspace has its own sandbox, with that workspace and nothing else.
    a_command_of_a_workspace_has_a_box_of_its_own
    /// Rule: a command works on the directory of its project's container.
    a_command_works_on_the_directory_of_the_container
    /// Rule: deleting a project ends the commands that run in it.
    deleting_a_project_ends_its_commands
}

/// A container that waits, where commands need one.
async fn ready(place: &Place) -> ringback_proto::ids::ProjectId {
    let project = place.project().await;
    if place.is_docker() {
        place.start(project, "echo up; while :; do sleep 0.05; done").await;
        place.until_it_wrote(project, "up").await;
    }
    project
}

async fn a_command_tells_its_exit_code_and_what_it_said(place: Place) {
    let project = ready(&place).await;
    let done = place.exec(executes(project, "echo out; echo err >&2; exit 7")).await.unwrap();
    assert_eq!((done.exit_code, done.stdout.as_str(), done.stderr.as_str()), (7, "out\n", "err\n"));
    assert!(!done.truncated);
    let killed = place.exec(executes(project, "kill -9 $$")).await.unwrap();
    assert_eq!(killed.exit_code, 137);
    let words = ["/bin/echo", "$HOME", "a  b", ""].map(str::to_owned).into();
    let plain = ContainerExecRequest { command: words, ..executes(project, "") };
    assert_eq!(place.exec(plain).await.unwrap().stdout, "$HOME a  b \n", "no shell interprets it");
    place.says(project, "mkdir -p deep/er").await;
    let below = ContainerExecRequest {
        working_dir: Some("/workspace/deep/er".to_owned()),
        ..executes(project, "pwd")
    };
    assert_eq!(place.exec(below).await.unwrap().stdout, "/workspace/deep/er\n");
    for (wrong, field) in [
        (ContainerExecRequest { command: vec![], ..executes(project, "") }, "program"),
        (
            ContainerExecRequest { working_dir: Some("x".to_owned()), ..executes(project, "") },
            "path",
        ),
        (ContainerExecRequest { timeout_ms: Some(0), ..executes(project, "") }, "at least 1"),
    ] {
        let error = place.exec(wrong).await.unwrap_err();
        assert_eq!(error.code, "invalid_params");
        assert!(error.message.contains(field), "{error:?}");
    }
}

async fn what_is_kept_of_its_output_has_a_limit(place: Place) {
    let project = ready(&place).await;
    let script = "head -c 3000000 /dev/zero | tr '\\0' a; echo end >&2; exit 5";
    let done = place.exec(executes(project, script)).await.unwrap();
    assert!(done.truncated && done.stdout.len() == 1 << 20, "{}", done.stdout.len());
    assert_eq!((done.exit_code, done.stderr.as_str()), (5, "end\n"), "it ran to completion");
}

async fn a_command_that_takes_too_long_is_ended(place: Place) {
    let project = ready(&place).await;
    let seconds = unique_seconds();
    // An engine has a thread and a clock of its own.
    let limit = Duration::from_millis(if place.is_docker() { 1500 } else { 20_000 });
    let long = ContainerExecRequest {
        timeout_ms: u64::try_from(limit.as_millis()).ok(),
        ..executes(project, &format!("echo started > started; sleep {seconds}"))
    };
    let (ended, ()) = tokio::join!(place.exec(long), async {
        wait_for("it runs", async || n_running(&["sleep", &seconds]) == 1).await;
        if !place.is_docker() {
            pass(limit).await;
        }
    });
    let error = ended.unwrap_err();
    assert_eq!(error.code, "timeout", "{error:?}");
    wait_for("it is gone", async || n_running(&["sleep", &seconds]) == 0).await;
    assert_eq!(place.says(project, "cat started").await, "started\n", "it had started");
}

async fn a_command_that_is_cancelled_is_ended(place: Place) {
    let project = ready(&place).await;
    let seconds = unique_seconds();
    let long = executes(project, &format!("exec sleep {seconds}"));
    let ResponseEnvelope::JobStarted { job_id, .. } =
        reply(&place.fixture.broker, plain(&place.who, long)).await
    else {
        panic!("not a job");
    };
    wait_for("it runs", async || n_running(&["sleep", &seconds]) == 1).await;
    let _: JobCancelledResponse =
        call(&place.fixture, &place.who, JobCancelRequest { job_id }).await;
    wait_for("it is gone", async || n_running(&["sleep", &seconds]) == 0).await;
}

async fn a_command_of_a_workspace_has_a_box_of_its_own(place: Place) {
    let project = ready(&place).await;
    place.says(project, "echo container > whose").await;
    let workspace = place.workspace(project).await;
    let in_workspace = |script: &str| ContainerExecRequest {
        workspace_id: Some(workspace),
        ..executes(project, script)
    };
    let made = place.exec(in_workspace("cat whose 2>/dev/null; echo workspace > whose")).await;
    assert_eq!(made.unwrap().stdout, "");
    let read = place.exec(in_workspace("cat /workspace/whose")).await.unwrap();
    assert_eq!(read.stdout, "workspace\n");
    assert_eq!(place.says(project, "cat whose").await, "container\n");
    let host = place.fixture.dir().join("data/workspaces").join(workspace.to_string());
    assert_eq!(std::fs::read_to_string(host.join("whose")).unwrap(), "workspace\n");

    let other = place.project().await;
    let strange = ContainerExecRequest { project_id: other, ..in_workspace("true") };
    assert_eq!(
        place.exec(strange).await.unwrap_err().code,
        "not_found",
        "it belongs to another project"
    );
    let seconds = unique_seconds();
    let long = in_workspace(&format!("exec sleep {seconds}"));
    let running = reply(&place.fixture.broker, plain(&place.who, long)).await;
    let ResponseEnvelope::JobStarted { job_id, .. } = running else { panic!("{running:?}") };
    wait_for("it runs", async || n_running(&["sleep", &seconds]) == 1).await;
    let delete = WorkspaceDeleteRequest { project_id: project, workspace_id: workspace };
    assert_eq!(refused(&place.fixture, &place.who, delete).await.0, "conflict");
    let _: JobCancelledResponse =
        call(&place.fixture, &place.who, JobCancelRequest { job_id }).await;
}

async fn a_command_works_on_the_directory_of_the_container(place: Place) {
    let project = place.project().await;
    place.start(project, "echo from the program > a; echo up; sleep 1000").await;
    place.until_it_wrote(project, "up").await;
    assert_eq!(place.says(project, "cat a; echo from a command > b").await, "from the program\n");
    place.stop(project).await;
    if place.is_docker() {
        let error = place.exec(executes(project, "true")).await.unwrap_err();
        assert_eq!(error.code, "conflict");
        assert!(error.message.contains("container_start"), "{error:?}");
    }
    place.start(project, "cat b; sleep 1000").await;
    place.until_it_wrote(project, "from a command").await;
}

async fn deleting_a_project_ends_its_commands(place: Place) {
    let project = ready(&place).await;
    let seconds = unique_seconds();
    let long = executes(project, &format!("exec sleep {seconds}"));
    let running = reply(&place.fixture.broker, plain(&place.who, long)).await;
    assert!(matches!(running, ResponseEnvelope::JobStarted { .. }), "{running:?}");
    wait_for("it runs", async || n_running(&["sleep", &seconds]) == 1).await;
    let delete = ProjectDeleteRequest { project_id: project };
    drop(call::<AckResponse>(&place.fixture, &place.who, delete).await);
    wait_for("it is gone", async || n_running(&["sleep", &seconds]) == 0).await;
    assert!(!place.has_dir(project));
}
