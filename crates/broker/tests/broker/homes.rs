//! Homes of agents: beside the workspace, and not part of its changes.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use ringback_broker::{AgentCommand, AgentProtocol, Config, Credential};
use ringback_proto::ids::{ProjectId, WorkspaceId};
use ringback_proto::request::{
    AckResponse, ProjectDeleteRequest, SessionMessagedResponse, WorkspaceDeleteRequest,
    WorkspaceDiffRequest, WorkspaceDiffResponse,
};
use ringback_testkit::{GRACE, shell_agent};

use crate::common::{World, start_with};
use crate::confinement::{SHELL, with_shell};
use crate::sessions::{call, end, is_idle, project, said, say, to_project, to_session, until};

fn unconfined(config: &mut Config) {
    config.sessions.agents.insert("shell".to_owned(), shell_agent(SHELL));
    config.sessions.agent_default = "shell".to_owned();
}

fn home(fixture: &World, workspace: WorkspaceId) -> PathBuf {
    fixture.dir().join("data/homes").join(workspace.to_string())
}

async fn told(fixture: &World, project: ProjectId, text: &str) -> SessionMessagedResponse {
    let who = Credential::local();
    let started = say(fixture, &who, to_project(project, text)).await;
    until(fixture, &who, started.session_id, started.last_event_index, is_idle).await;
    started
}

async fn changed(fixture: &World, project_id: ProjectId, workspace: WorkspaceId) -> Vec<String> {
    let request = WorkspaceDiffRequest { project_id, workspace_id: workspace, path: None };
    let diff: WorkspaceDiffResponse = call(fixture, &Credential::local(), request).await;
    diff.changes.into_iter().map(|change| change.path).collect()
}

/// Rule: files in an agent's home are no change of its workspace, confined or not; no other user
/// may read the home, and it is deleted with the workspace.
#[tokio::test]
async fn what_an_agent_keeps_in_its_home_is_no_change_of_its_workspace() {
    for setting in [with_shell, unconfined] {
        let fixture = start_with(setting).await;
        let who = Credential::local();
        let project = project(&fixture, &who).await;
        let text =
            "mkdir -p ~/.local/share/goose; echo x > ~/.local/share/goose/log; echo x > made";
        let answer = told(&fixture, project, text).await;
        let workspace = answer.workspace_id;
        assert_eq!(changed(&fixture, project, workspace).await, ["made"]);
        let home = home(&fixture, workspace);
        assert!(home.join(".local/share/goose/log").exists());
        assert_eq!(home.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        end(&fixture, &who, answer.session_id).await;
        let delete = WorkspaceDeleteRequest { project_id: project, workspace_id: workspace };
        drop(call::<AckResponse>(&fixture, &who, delete).await);
        assert!(!home.exists());
    }
}

/// Rule: a home survives a restart, because conversations are stored there; each workspace has its
/// own, and a project's homes are deleted with it.
#[tokio::test]
async fn a_home_outlives_the_daemon_and_is_not_shared() {
    let fixture = start_with(unconfined).await;
    let who = Credential::local();
    let made = project(&fixture, &who).await;
    let answer = told(&fixture, made, "echo kept > ~/conversation").await;
    let other = project(&fixture, &who).await;
    let apart = told(&fixture, other, "true").await;
    assert!(!home(&fixture, apart.workspace_id).join("conversation").exists());

    let fixture = fixture.restart(GRACE).await;
    let asked = say(&fixture, &who, to_session(answer.session_id, "cat ~/conversation")).await;
    let (session, since) = (asked.session_id, asked.last_event_index);
    let events = until(&fixture, &who, session, since, is_idle).await;
    assert_eq!(said(&events), ["kept "]);
    end(&fixture, &who, session).await;
    let delete = ProjectDeleteRequest { project_id: made };
    drop(call::<AckResponse>(&fixture, &who, delete).await);
    assert!(!home(&fixture, answer.workspace_id).exists());
    assert!(home(&fixture, apart.workspace_id).exists());
}

/// Rule: the files of a preset are found by its agent, and are no change of the workspace.
#[tokio::test]
async fn the_files_of_a_preset_are_in_the_home() {
    for (preset, file) in [("claude", "$3"), ("codex", "$HOME/.codex/config.toml")] {
        let fixture = start_with(|config| {
            let script = format!("cat > read; grep -q ringback \"{file}\" && echo found");
            let agent = AgentCommand {
                command: ["/bin/sh", "-c", &script, preset].map(str::to_owned).to_vec(),
                protocol: AgentProtocol::Preset(preset.to_owned()),
                ..AgentCommand::default()
            };
            with_shell(config);
            config.sessions.agents.insert("shell".to_owned(), agent);
        })
        .await;
        let who = Credential::local();
        let project = project(&fixture, &who).await;
        let answer = say(&fixture, &who, to_project(project, "hello")).await;
        let (session, since) = (answer.session_id, answer.last_event_index);
        let events = until(&fixture, &who, session, since, is_idle).await;
        assert_eq!(said(&events), ["found"], "{preset}: {events:?}");
        assert_eq!(changed(&fixture, project, answer.workspace_id).await, ["read"], "{preset}");
    }
}
