//! `ringback project`: projects, which group agent sessions.

use clap::{Args, Subcommand, ValueEnum};
use ringback_proto::ids::{ProjectId, WorkspaceId};
use ringback_proto::principal::KeyLevel;
use ringback_proto::request::{
    ProjectCreateRequest, ProjectDeleteRequest, ProjectGetRequest, ProjectLimits,
    ProjectListRequest, ProjectListResponse, ProjectResponse, ProjectUpdateRequest, SpendLimits,
    WorkspaceDeleteRequest, WorkspaceListRequest, WorkspaceListResponse,
};
use ringback_proto::tool::tools::{
    ProjectCreate, ProjectDelete, ProjectGet, ProjectList, ProjectUpdate, WorkspaceDelete,
    WorkspaceList,
};

use super::network::NetworkArgs;
use super::permissions::{self, PermissionArgs};
use super::spending::SpendArgs;
use crate::config::Environment;
use crate::connection::ConnectArgs;
use crate::failure::Failure;
use crate::screen::{Screen, maybe_moment, moment};

/// `ringback project`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ringback project create notes\n  ringback project create robot --key read   its \
                  agents may also read through the daemon's own tools\n  ringback project create careful --permissions ask --permission 'bash*=deny'\n  ringback \
                  project update proj_… --permissions allow\n  ringback project list\n  ringback project \
                  workspaces proj_…\n  ringback project delete proj_…"
)]
pub struct ProjectArgs {
    /// What to do
    #[command(subcommand)]
    pub action: ProjectAction,
    /// Print one JSON document
    #[arg(long, global = true)]
    pub json: bool,
    /// The daemon.
    #[command(flatten)]
    pub connect: ConnectArgs,
}

/// The scope of an agent's session key.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum KeyScope {
    /// No key
    None,
    /// Read only
    Read,
    /// Read and write
    Write,
}

impl From<KeyScope> for KeyLevel {
    fn from(scope: KeyScope) -> Self {
        match scope {
            KeyScope::None => Self::None,
            KeyScope::Read => Self::Read,
            KeyScope::Write => Self::Write,
        }
    }
}

/// A new project.
#[derive(Debug, Args)]
pub struct CreateArgs {
    /// Name of the project
    pub name: String,
    /// Purpose of the project
    #[arg(long)]
    pub description: Option<String>,
    /// Agent of its sessions
    #[arg(long)]
    pub agent: Option<String>,
    /// Scope of the key that its agents get for the daemon's own tools: none, read or write; needs
    /// an admin token
    #[arg(long, value_name = "LEVEL", hide_possible_values = true)]
    pub key: Option<KeyScope>,
    /// Maximum number of live sessions
    #[arg(long, value_name = "N")]
    pub max_sessions: Option<u32>,
    /// Maximum depth of sessions started by sessions
    #[arg(long, value_name = "N")]
    pub max_depth: Option<u32>,
    /// Image for its agents and its container: a configured one by name (`ringback image list`), or
    /// any other the engine has, which needs an admin token
    #[arg(long)]
    pub image: Option<String>,
    /// The network policy of its agents.
    #[command(flatten)]
    pub network: NetworkArgs,
    /// The spending limits of each session.
    #[command(flatten)]
    pub spending: SpendArgs,
    /// The answer to its agents' permission requests.
    #[command(flatten)]
    pub permissions: PermissionArgs,
}

/// Actions on projects.
#[derive(Debug, Subcommand)]
pub enum ProjectAction {
    /// Create a project and print its id
    Create(Box<CreateArgs>),
    /// Change a project's permission policy; without options, reset it to the agent's settings
    Update {
        /// The project
        id: ProjectId,
        /// The new policy; without options, the agent's settings apply.
        #[command(flatten)]
        permissions: PermissionArgs,
    },
    /// List projects, newest first
    List {
        /// Only projects whose name contains this
        #[arg(long, value_name = "TEXT")]
        name: Option<String>,
        /// Maximum number of results
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: u32,
    },
    /// Show a project
    Show {
        /// The project
        id: ProjectId,
    },
    /// List a project's workspaces
    Workspaces {
        /// The project
        id: ProjectId,
    },
    /// Delete a workspace and its files
    DeleteWorkspace {
        /// The project
        id: ProjectId,
        /// The workspace
        workspace: WorkspaceId,
    },
    /// Delete a project and its workspaces
    Delete {
        /// The project
        id: ProjectId,
    },
}

impl CreateArgs {
    fn request(self) -> Result<ProjectCreateRequest, Failure> {
        let SpendLimits { max_tokens, max_time_ms, max_micro_usd } =
            self.spending.limits().unwrap_or_default();
        let limits = ProjectLimits {
            max_sessions: self.max_sessions,
            max_depth: self.max_depth,
            max_tokens,
            max_time_ms,
            max_micro_usd,
            ..ProjectLimits::default()
        };
        Ok(ProjectCreateRequest {
            name: self.name,
            description: self.description,
            limits: (limits != ProjectLimits::default()).then_some(limits),
            agent: self.agent,
            key_level: self.key.map(KeyLevel::from),
            network: self.network.policy()?,
            image: self.image,
            permissions: self.permissions.policy()?,
        })
    }
}

pub(crate) async fn run(args: ProjectArgs, environment: &Environment) -> Result<(), Failure> {
    let screen = Screen::new(args.json);
    let target = args.connect.target(environment)?;
    target
        .run(async |client| match args.action {
            ProjectAction::Create(args) => {
                let made = client.call::<ProjectCreate>(args.request()?).await?;
                screen.answer(&made, |made| made.project_id.to_string())
            }
            ProjectAction::Update { id, permissions } => {
                let permissions = Some(permissions.policy()?.unwrap_or_default());
                let request = ProjectUpdateRequest { project_id: id, permissions };
                let project = client.call::<ProjectUpdate>(request).await?;
                screen.answer(&project, |project| shown(screen, project))
            }
            ProjectAction::List { name, limit } => {
                let request =
                    ProjectListRequest { name_contains: name, limit: Some(limit), cursor: None };
                let listed = client.call::<ProjectList>(request).await?;
                screen.answer(&listed, |listed| projects(screen, listed))
            }
            ProjectAction::Show { id } => {
                let request = ProjectGetRequest { project_id: id };
                let project = client.call::<ProjectGet>(request).await?;
                screen.answer(&project, |project| shown(screen, project))
            }
            ProjectAction::Workspaces { id } => {
                let request = WorkspaceListRequest { project_id: id };
                let listed = client.call::<WorkspaceList>(request).await?;
                screen.answer(&listed, |listed| workspaces(screen, listed))
            }
            ProjectAction::DeleteWorkspace { id, workspace } => {
                let request = WorkspaceDeleteRequest { project_id: id, workspace_id: workspace };
                let done = client.call::<WorkspaceDelete>(request).await?;
                screen.answer(&done, |done| done.message.clone())
            }
            ProjectAction::Delete { id } => {
                let request = ProjectDeleteRequest { project_id: id };
                let done = client.call::<ProjectDelete>(request).await?;
                screen.answer(&done, |done| done.message.clone())
            }
        })
        .await
}

fn projects(screen: Screen, listed: &ProjectListResponse) -> String {
    let rows = listed.projects.iter().map(|project| {
        let agent = project.agent.clone().unwrap_or_else(|| "-".to_owned());
        let key = project.key_level.map_or_else(|| "-".to_owned(), |level| level.to_string());
        [
            project.project_id.to_string(),
            project.name.clone(),
            agent,
            key,
            moment(project.created_at),
        ]
    });
    let none = "no projects; create one with `ringback project create NAME`";
    screen.table(["PROJECT", "NAME", "AGENT", "KEY", "CREATED"], rows, none)
}

fn shown(screen: Screen, project: &ProjectResponse) -> String {
    let mut pairs = vec![
        ("project", project.project_id.to_string()),
        ("name", project.name.clone()),
        ("created", moment(project.created_at)),
    ];
    pairs.extend(project.description.as_ref().map(|text| ("description", text.clone())));
    pairs.extend(project.agent.as_ref().map(|agent| ("agent", agent.clone())));
    pairs.extend(project.key_level.map(|level| ("key", level.to_string())));
    pairs.extend(project.network.as_ref().map(|network| ("network", network.to_string())));
    pairs.extend(project.image.as_ref().map(|image| ("image", image.clone())));
    pairs.extend(project.container.as_ref().map(|container| {
        let (status, since) = (container.status.as_str(), moment(container.since));
        ("container", format!("{status} since {since} ({})", container.backend))
    }));
    pairs.extend(project.permissions.as_ref().map(|it| ("permissions", permissions::shown(it))));
    screen.pairs(&pairs)
}

fn workspaces(screen: Screen, listed: &WorkspaceListResponse) -> String {
    let rows = listed.workspaces.iter().map(|workspace| {
        let used = maybe_moment(workspace.last_session_at);
        [workspace.workspace_id.to_string(), moment(workspace.created_at), used]
    });
    screen.table(["WORKSPACE", "CREATED", "LAST SESSION"], rows, "no workspaces")
}
