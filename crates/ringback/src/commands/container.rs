//! `ringback container`: a project's container, and commands in it.

use std::io::Write as _;

use clap::{Args, Subcommand};
use futures_util::StreamExt as _;
use ringback_client::{Client, StreamItem};
use ringback_proto::ids::{ProjectId, WorkspaceId};
use ringback_proto::request::{
    ContainerExecRequest, ContainerInfo, ContainerLogsRequest, ContainerStartRequest,
    ContainerStateResponse, ContainerStopRequest, ExecResultResponse, ProjectListRequest,
};
use ringback_proto::tool::tools::{
    ContainerExec, ContainerLogs, ContainerStart, ContainerStop, ProjectList,
};
use serde::Serialize;

use crate::config::Environment;
use crate::connection::ConnectArgs;
use crate::failure::Failure;
use crate::screen::{Screen, moment, on_stderr};

/// The largest page size.
const PAGE: u32 = 500;

/// `ringback container`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ringback container start proj_…\n  ringback container start proj_… -- python3 -m \
                  http.server    run a program until it is stopped\n  ringback container exec proj_… -- make \
                  test\n  ringback container exec proj_… --workspace ws_… -- git log\n  ringback container logs \
                  proj_… --lines 50\n  ringback container stop proj_…"
)]
pub struct ContainerArgs {
    /// What to do
    #[command(subcommand)]
    pub action: ContainerAction,
    /// Print one JSON document
    #[arg(long, global = true)]
    pub json: bool,
    /// The daemon.
    #[command(flatten)]
    pub connect: ConnectArgs,
}

/// Actions on containers.
#[derive(Debug, Subcommand)]
pub enum ContainerAction {
    /// Start a project's container, unless it is running
    Start {
        /// The project
        project: ProjectId,
        /// Program to run until the container is stopped [default: one that waits]
        #[arg(last = true, value_name = "COMMAND")]
        command: Vec<String>,
    },
    /// Stop a project's container and everything running in it
    Stop {
        /// The project
        project: ProjectId,
    },
    /// Show the last output of a container's program
    Logs {
        /// The project
        project: ProjectId,
        /// Maximum number of lines
        #[arg(long, value_name = "N")]
        lines: Option<u32>,
    },
    /// Run a command in a project's container and exit with its exit code
    Exec {
        /// The project
        project: ProjectId,
        /// Working directory, such as `/workspace/src`
        #[arg(long, value_name = "DIR")]
        dir: Option<String>,
        /// Milliseconds after which the command is stopped [default: 120000]
        #[arg(long, value_name = "MS")]
        timeout: Option<u64>,
        /// Run it in a separate sandbox with this workspace instead of the container
        #[arg(long, value_name = "WORKSPACE")]
        workspace: Option<WorkspaceId>,
        /// The command
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<String>,
    },
    /// List containers
    List,
}

/// All containers.
#[derive(Debug, Serialize)]
struct ContainerList {
    containers: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    project_id: ProjectId,
    name: String,
    #[serde(flatten)]
    container: ContainerInfo,
}

pub(crate) async fn run(args: ContainerArgs, environment: &Environment) -> Result<(), Failure> {
    let screen = Screen::new(args.json);
    let target = args.connect.target(environment)?;
    target
        .run(async |client| match args.action {
            ContainerAction::Start { project, command } => {
                let command = (!command.is_empty()).then_some(command);
                let request = ContainerStartRequest { project_id: project, command };
                let started = client.call::<ContainerStart>(request).await?;
                screen.answer(&started, |state| shown(screen, state))
            }
            ContainerAction::Stop { project } => {
                let request = ContainerStopRequest { project_id: project };
                let stopped = client.call::<ContainerStop>(request).await?;
                screen.answer(&stopped, |state| shown(screen, state))
            }
            ContainerAction::Logs { project, lines } => {
                let request = ContainerLogsRequest { project_id: project, lines };
                let logs = client.call::<ContainerLogs>(request).await?;
                if logs.truncated {
                    screen.remark(
                        "earlier output was cut; `--lines` shows more of what is still kept",
                    );
                }
                let text = |text: &str| screen.printable(text.trim_end_matches('\n'));
                screen.answer(&logs, |logs| text(&logs.text))
            }
            ContainerAction::Exec { project, dir, timeout, workspace, command } => {
                let request = ContainerExecRequest {
                    project_id: project,
                    command,
                    working_dir: dir,
                    timeout_ms: timeout,
                    workspace_id: workspace,
                };
                ended(screen, &exec(client, request).await?)
            }
            ContainerAction::List => {
                let listed = list(client).await?;
                screen.answer(&listed, |listed| table(screen, listed))
            }
        })
        .await
}

/// Runs a command and waits until it ends.
async fn exec(
    client: &Client,
    request: ContainerExecRequest,
) -> Result<ExecResultResponse, Failure> {
    let mut items = client.stream::<ContainerExec>(request)?;
    while let Some(item) = items.next().await {
        match item? {
            StreamItem::Started { .. } | StreamItem::Chunk(_) => {}
            StreamItem::End(Some(response)) => return Ok(response),
            StreamItem::End(None) => break,
        }
    }
    Err(Failure::Wrong("the command ended without an answer".to_owned()))
}

/// Copies a command's output to the same streams, and fails with its exit code.
fn ended(screen: Screen, result: &ExecResultResponse) -> Result<(), Failure> {
    if screen.is_json() {
        screen.json_document(result)?;
    } else {
        let said = |mut to: Box<dyn std::io::Write>, text: String| {
            to.write_all(text.as_bytes()).and_then(|()| to.flush())
        };
        let (stdout, stderr) = (screen.printable(&result.stdout), on_stderr(&result.stderr));
        said(Box::new(std::io::stdout()), stdout).map_err(Failure::Output)?;
        said(Box::new(std::io::stderr()), stderr).map_err(Failure::Output)?;
        if result.truncated {
            screen.remark("the output was cut; the command wrote more");
        }
    }
    match result.exit_code {
        0 => Ok(()),
        code => Err(Failure::Command { code: u8::try_from(code).unwrap_or(u8::MAX) }),
    }
}

/// Lists all projects that have a container.
async fn list(client: &Client) -> Result<ContainerList, Failure> {
    let (mut containers, mut cursor) = (Vec::new(), None);
    loop {
        let request = ProjectListRequest { name_contains: None, limit: Some(PAGE), cursor };
        let page = client.call::<ProjectList>(request).await?;
        containers.extend(page.projects.into_iter().filter_map(|project| {
            let (project_id, name) = (project.project_id, project.name);
            project.container.map(|container| Row { project_id, name, container })
        }));
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(ContainerList { containers });
        }
    }
}

fn table(screen: Screen, listed: &ContainerList) -> String {
    let rows = listed.containers.iter().map(|row| {
        let image = row.container.image.clone().unwrap_or_else(|| "-".to_owned());
        [
            row.project_id.to_string(),
            row.name.clone(),
            row.container.status.as_str().to_owned(),
            moment(row.container.since),
            row.container.backend.clone(),
            image,
        ]
    });
    let none = "no containers; start one with `ringback container start PROJECT`";
    screen.table(["PROJECT", "NAME", "STATUS", "SINCE", "BACKEND", "IMAGE"], rows, none)
}

fn shown(screen: Screen, state: &ContainerStateResponse) -> String {
    let mut pairs = vec![
        ("project", state.project_id.to_string()),
        ("status", state.status.as_str().to_owned()),
        ("backend", state.backend.clone()),
    ];
    pairs.extend(state.image.as_ref().map(|image| ("image", image.clone())));
    pairs.extend(state.since.map(|since| ("since", moment(since))));
    pairs.extend(state.exit_code.map(|code| ("exit code", code.to_string())));
    screen.pairs(&pairs)
}
