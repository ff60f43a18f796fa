//! `ringback session`: agent sessions, with this terminal as their caller.

mod apply;
pub(super) mod caller;
pub(super) mod changes;
mod follow;
pub(super) mod keyboard;
mod links;
pub(super) mod origin;
pub(super) mod start;

use clap::{Args, Subcommand, ValueEnum};
use ringback_client::Client;
use ringback_proto::ids::{ProjectId, SessionId};
use ringback_proto::network::{HostRule, NetworkMode};
use ringback_proto::record::SessionState;
use ringback_proto::request::{
    ModelUsage, PermissionAnswer, SessionCleanupRequest, SessionEndRequest, SessionGetRequest,
    SessionListRequest, SessionListResponse, SessionMessageRequest, SessionNetworkRequest,
    SessionPause, SessionResponse,
};
use ringback_proto::tool::tools::{
    SessionCleanup, SessionEnd, SessionGet, SessionList, SessionMessage, SessionNetwork,
};

use self::keyboard::Keyboard;
use super::network::policy;
use super::spending::limited;
use crate::config::Environment;
use crate::connection::ConnectArgs;
use crate::failure::Failure;
use crate::screen::{Screen, maybe_moment, moment, span};

/// `ringback session`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ringback session start \"Say hello.\" --tool notify=./notify.sh\n  ringback session \
                  message gogol_… \"And now in French.\"\n  ringback session watch gogol_…\n  ringback session \
                  list\n  ringback session answer gogol_… p4711-1 once\n  ringback session network gogol_… \
                  allow example.org:443\n  ringback session diff gogol_…\n  ringback session apply gogol_… \
                  --dry-run\n  ringback session end gogol_…\n\nA tool's command reads its input as JSON on standard \
                  input and prints the result."
)]
pub struct SessionArgs {
    /// What to do
    #[command(subcommand)]
    pub action: SessionAction,
    /// Print JSON: one document, or one object per event
    #[arg(long, global = true)]
    pub json: bool,
    /// The daemon.
    #[command(flatten)]
    pub connect: ConnectArgs,
}

/// Actions on sessions.
#[derive(Debug, Subcommand)]
pub enum SessionAction {
    /// Start an agent with local commands as its tools, and show what it does
    Start(Box<start::StartArgs>),
    /// Apply an agent's changes to the directory that `ringback run` copied
    Apply(apply::ApplyArgs),
    /// Everything else
    #[command(flatten)]
    Other(SessionRequest),
}

/// Actions that need only a few requests.
#[derive(Debug, Subcommand)]
pub enum SessionRequest {
    /// Send a message to an agent
    Message {
        /// The session
        id: SessionId,
        /// The message
        message: String,
    },
    /// Answer an agent's permission request
    Answer {
        /// The session
        id: SessionId,
        /// Id of the request, from its event
        request: String,
        /// One of the offered options; without one the request is withdrawn
        option: Option<String>,
    },
    /// Stop an agent's current work; the session stays open
    Abort {
        /// The session
        id: SessionId,
    },
    /// Show what an agent has done, and follow what it does
    Watch {
        /// The session
        id: SessionId,
        /// Stop when the agent is idle
        #[arg(long)]
        until_idle: bool,
    },
    /// Watch an agent, answer its questions, and send each typed line as a message
    Attach {
        /// The session
        id: SessionId,
    },
    /// Show an agent's changes to its workspace as a unified diff
    Diff {
        /// The session
        id: SessionId,
        /// Only changes at or below this path
        path: Option<String>,
    },
    /// List sessions, newest first
    List {
        /// Only sessions of this project
        #[arg(long, value_name = "ID")]
        project: Option<ProjectId>,
        /// Only sessions in this state
        #[arg(long)]
        status: Option<SessionStateArg>,
        /// Maximum number of results
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: u32,
    },
    /// Show a session
    Show {
        /// The session
        id: SessionId,
    },
    /// Change the network policy of a live session
    Network {
        /// The session
        id: SessionId,
        /// `none`, `model`, `allow` or `full`; more access than before needs an admin token
        mode: NetworkMode,
        /// For `allow`: the complete list of hosts, such as `example.org:443`
        #[arg(value_name = "HOST:PORT")]
        places: Vec<HostRule>,
    },
    /// End a session, its agent and everything the agent started
    End {
        /// The session
        id: SessionId,
    },
    /// Delete sessions that have ended
    Cleanup {
        /// Only sessions that ended more than N hours ago
        #[arg(long, value_name = "N")]
        max_age_hours: Option<u64>,
        /// Only sessions of this project
        #[arg(long, value_name = "ID")]
        project: Option<ProjectId>,
    },
}

/// The state of a session.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum SessionStateArg {
    /// Being created
    Starting,
    /// The agent is working
    Running,
    /// The agent waits for a message
    Idle,
    /// Ended
    Ended,
    /// Could not continue
    Failed,
    /// Interrupted by a restart of the daemon
    Interrupted,
}

impl From<SessionStateArg> for SessionState {
    fn from(standing: SessionStateArg) -> Self {
        match standing {
            SessionStateArg::Starting => Self::Starting,
            SessionStateArg::Running => Self::Running,
            SessionStateArg::Idle => Self::Idle,
            SessionStateArg::Ended => Self::Ended,
            SessionStateArg::Failed => Self::Failed,
            SessionStateArg::Interrupted => Self::Interrupted,
        }
    }
}

pub(crate) async fn run(args: SessionArgs, environment: &Environment) -> Result<(), Failure> {
    let screen = Screen::new(args.json);
    let target = if matches!(args.action, SessionAction::Start(_)) {
        args.connect.target_or_start(environment).await?
    } else {
        args.connect.target(environment)?
    };
    let request = match args.action {
        SessionAction::Start(start) => {
            return start::run(*start, &target, environment, screen).await;
        }
        SessionAction::Apply(apply) => {
            return apply::run(apply, &target, screen, environment).await;
        }
        SessionAction::Other(request) => request,
    };
    target.run(async |client| request.carry_out(client, screen).await).await
}

impl SessionRequest {
    async fn carry_out(self, client: &Client, screen: Screen) -> Result<(), Failure> {
        match self {
            Self::Message { id, message } => {
                let request =
                    SessionMessageRequest { session_id: Some(id), message, ..Default::default() };
                let sent = client.call::<SessionMessage>(request).await?;
                screen.answer(&sent, |sent| {
                    let id = sent.session_id;
                    format!("sent; follow the agent with `ringback session watch {id}`")
                })
            }
            Self::Answer { id, request, option } => {
                let answer = Some(Box::new(PermissionAnswer { request_id: request, option }));
                let request =
                    SessionMessageRequest { session_id: Some(id), answer, ..Default::default() };
                let sent = client.call::<SessionMessage>(request).await?;
                screen.answer(&sent, |_| "answered".to_owned())
            }
            Self::Abort { id } => {
                let session_id = Some(id);
                let request =
                    SessionMessageRequest { session_id, abort: true, ..Default::default() };
                let sent = client.call::<SessionMessage>(request).await?;
                screen.answer(&sent, |_| "stopping".to_owned())
            }
            Self::Watch { id, until_idle } => {
                let mut keyboard = Keyboard::answering(screen);
                follow::follow(client, screen, id, until_idle, &mut keyboard).await.map(drop)
            }
            Self::Attach { id } => {
                let mut keyboard = Keyboard::talking(screen, id)?;
                screen.remark("each line is a message; Ctrl-C detaches now, Ctrl-D (end of input) detaches when the agent is idle; the session stays open");
                follow::follow(client, screen, id, false, &mut keyboard).await.map(drop)
            }
            Self::Diff { id, path } => changes::show(client, screen, id, path).await,
            Self::List { project, status, limit } => {
                let request = SessionListRequest {
                    project_id: project,
                    status: status.map(Into::into),
                    limit: Some(limit),
                    cursor: None,
                };
                let listed = client.call::<SessionList>(request).await?;
                screen.answer(&listed, |listed| table(screen, listed))
            }
            Self::Show { id } => {
                let session =
                    client.call::<SessionGet>(SessionGetRequest { session_id: id }).await?;
                screen.answer(&session, |session| shown(screen, session))
            }
            Self::Network { id, mode, places } => {
                let network = policy(mode, places)?;
                let request = SessionNetworkRequest { session_id: id, network };
                let session = client.call::<SessionNetwork>(request).await?;
                screen.answer(&session, |session| reached(session).unwrap_or_default())
            }
            Self::End { id } => {
                let done = client.call::<SessionEnd>(SessionEndRequest { session_id: id }).await?;
                screen.answer(&done, |done| done.message.clone())
            }
            Self::Cleanup { max_age_hours, project } => {
                let request = SessionCleanupRequest { max_age_hours, project_id: project };
                let done = client.call::<SessionCleanup>(request).await?;
                screen.answer(&done, |done| format!("deleted {}", done.deleted))
            }
        }
    }
}

fn table(screen: Screen, listed: &SessionListResponse) -> String {
    let rows = listed.sessions.iter().map(|session| {
        [
            session.session_id.to_string(),
            session.agent.clone(),
            standing(session),
            moment(session.created_at),
            maybe_moment(session.ended_at),
        ]
    });
    let none = "no sessions; start one with `ringback session start`";
    screen.table(["SESSION", "AGENT", "STATUS", "CREATED", "ENDED"], rows, none)
}

/// Formats the network policy of a session, if the daemon enforces one.
fn reached(session: &SessionResponse) -> Option<String> {
    session.network.as_ref().map(ToString::to_string)
}

/// Formats the state of a session, and whether it waits for an answer.
fn standing(session: &SessionResponse) -> String {
    let status = session.status.as_str();
    if session.paused.is_some() { format!("{status}, paused") } else { status.to_owned() }
}

fn shown(screen: Screen, session: &SessionResponse) -> String {
    let mut pairs = vec![
        ("session", session.session_id.to_string()),
        ("project", session.project_id.to_string()),
        ("agent", session.agent.clone()),
        ("status", standing(session)),
        ("workspace", session.workspace_path.clone()),
        ("created", moment(session.created_at)),
        ("ended", maybe_moment(session.ended_at)),
    ];
    pairs.extend(session.parent_id.map(|parent| ("started by", parent.to_string())));
    pairs.extend(reached(session).map(|network| ("network", network)));
    pairs.extend(session.model_usage.map(|usage| {
        let ModelUsage { refused, bytes_up, bytes_down, .. } = usage;
        let text =
            format!("{usage}, {refused} refused, {bytes_up} bytes sent, {bytes_down} received");
        ("model", text)
    }));
    pairs.extend(session.limits.map(|limits| ("limits", limited(&limits))));
    if session.working_ms > 0 {
        pairs.push(("working time", span(session.working_ms)));
    }
    pairs.extend(session.paused.as_ref().map(|pause| {
        let SessionPause { limit, request_id, until_ms } = pause;
        let (id, until) = (session.session_id, moment(*until_ms));
        let text = format!(
            "reached {limit} and waits until {until}; answer with `ringback session answer {id} \
             {request_id} more`, or `end`"
        );
        ("paused", text)
    }));
    pairs.extend(session.notice.as_ref().map(|notice| ("note", notice.clone())));
    screen.pairs(&pairs)
}
