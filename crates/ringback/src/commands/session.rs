//! `ringback session`: agent sessions, with this terminal as their caller.

mod apply;
mod attach;
mod branch;
pub(super) mod caller;
pub(super) mod changes;
mod follow;
pub(super) mod keyboard;
mod links;
mod list;
pub(super) mod origin;
pub(super) mod start;
pub(super) mod transcript;

use clap::{Args, Subcommand, ValueEnum};
use ringback_client::Client;
use ringback_proto::ids::ProjectId;
use ringback_proto::network::{HostRule, NetworkMode};
use ringback_proto::record::SessionState;
use ringback_proto::request::{
    ModelUsage, PermissionAnswer, SessionCleanupRequest, SessionEndRequest, SessionGetRequest,
    SessionListRequest, SessionMessageRequest, SessionNetworkRequest, SessionPause,
    SessionResponse,
};
use ringback_proto::tool::tools::{
    SessionCleanup, SessionEnd, SessionGet, SessionMessage, SessionNetwork,
};

use self::caller::CallerArgs;
use self::keyboard::Keyboard;
use self::origin::Origins;
use self::transcript::Transcript;
use super::network::policy;
use super::spending::limited;
use crate::config::Environment;
use crate::connection::ConnectArgs;
use crate::failure::Failure;
use crate::pick::SessionArg;
use crate::screen::{Screen, maybe_moment, moment, size, span};

/// `ringback session`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ringback session start \"Say hello.\" --tool notify=./notify.sh\n  ringback session \
                  message gogol_… \"And now in French.\"\n  ringback session watch gogol_…\n  ringback session \
                  list\n  ringback session attach last --tool notify=./notify.sh\n  ringback session answer gogol_… p4711-1 once\n  ringback session network gogol_… \
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
        /// The session: its id, the start of it, or `last`
        id: SessionArg,
        /// The message
        message: String,
    },
    /// Answer an agent's permission request
    Answer {
        /// The session: its id, the start of it, or `last`
        id: SessionArg,
        /// Id of the request, from its event
        request: String,
        /// One of the offered options; without one the request is withdrawn
        option: Option<String>,
    },
    /// Stop an agent's current work; the session stays open
    Abort {
        /// The session: its id, the start of it, or `last`
        id: SessionArg,
    },
    /// Show what an agent has done, and follow what it does
    Watch {
        /// The session: its id, the start of it, or `last`
        id: SessionArg,
        /// Stop when the agent is idle
        #[arg(long)]
        until_idle: bool,
    },
    /// Watch an agent, answer its questions, and send each typed line as a message
    Attach {
        /// The session: its id, the start of it, or `last`
        id: SessionArg,
        /// Tools for the agent.
        #[command(flatten)]
        caller: CallerArgs,
    },
    /// Show an agent's changes to its workspace as a unified diff
    Diff {
        /// The session: its id, the start of it, or `last`
        id: SessionArg,
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
        /// The session: its id, the start of it, or `last`
        id: SessionArg,
    },
    /// Change the network policy of a live session
    Network {
        /// The session: its id, the start of it, or `last`
        id: SessionArg,
        /// `none`, `model`, `allow` or `full`; more access than before needs an admin token
        mode: NetworkMode,
        /// For `allow`: the complete list of hosts, such as `example.org:443`
        #[arg(value_name = "HOST:PORT")]
        places: Vec<HostRule>,
    },
    /// End a session, its agent and everything the agent started
    End {
        /// The session: its id, the start of it, or `last`
        id: SessionArg,
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
    let origins = Origins::of(environment);
    target.run(async |client| Box::pin(request.carry_out(client, screen, &origins)).await).await
}

impl SessionRequest {
    async fn carry_out(
        self,
        client: &Client,
        screen: Screen,
        origins: &Origins,
    ) -> Result<(), Failure> {
        match self {
            Self::Message { .. } | Self::Answer { .. } | Self::Abort { .. } => {
                self.tell(client, screen).await
            }
            Self::Watch { id, until_idle } => {
                let id = id.find(client).await?;
                let transcript = Transcript::new(screen, id, &[]);
                let mut keyboard = Keyboard::answering(screen, &transcript);
                follow::follow(client, &transcript, id, until_idle, &mut keyboard).await?;
                follow::show_totals(client, &transcript, id).await
            }
            Self::Attach { id, caller } => {
                attach::run(client, screen, id.find(client).await?, &caller).await
            }
            Self::Diff { id, path } => {
                changes::show(client, screen, id.find(client).await?, path).await
            }
            Self::List { project, status, limit } => {
                let request = SessionListRequest {
                    project_id: project,
                    status: status.map(Into::into),
                    limit: Some(limit),
                    cursor: None,
                };
                list::show(client, screen, origins, request).await
            }
            Self::Show { id } => {
                let session_id = id.find(client).await?;
                let session = client.call::<SessionGet>(SessionGetRequest { session_id }).await?;
                screen.answer(&session, |session| shown(screen, origins, session))
            }
            Self::Network { id, mode, places } => {
                let session_id = id.find(client).await?;
                let request = SessionNetworkRequest { session_id, network: policy(mode, places)? };
                let session = client.call::<SessionNetwork>(request).await?;
                screen.answer(&session, |session| reached(session).unwrap_or_default())
            }
            Self::End { id } => {
                let session_id = id.find(client).await?;
                let done = client.call::<SessionEnd>(SessionEndRequest { session_id }).await?;
                screen.answer(&done, |done| done.message.clone())
            }
            Self::Cleanup { max_age_hours, project } => {
                let request = SessionCleanupRequest { max_age_hours, project_id: project };
                let done = client.call::<SessionCleanup>(request).await?;
                screen.answer(&done, |done| format!("deleted {}", done.deleted))
            }
        }
    }

    /// Sends a message, an answer or an abort.
    async fn tell(self, client: &Client, screen: Screen) -> Result<(), Failure> {
        let (request, done) = match self {
            Self::Message { id, message } => {
                let session_id = Some(id.find(client).await?);
                let request = SessionMessageRequest { session_id, message, ..Default::default() };
                (request, "sent")
            }
            Self::Answer { id, request, option } => {
                let session_id = Some(id.find(client).await?);
                let answer = Some(Box::new(PermissionAnswer { request_id: request, option }));
                let request = SessionMessageRequest { session_id, answer, ..Default::default() };
                (request, "answered")
            }
            Self::Abort { id } => {
                let session_id = Some(id.find(client).await?);
                let request =
                    SessionMessageRequest { session_id, abort: true, ..Default::default() };
                (request, "stopping")
            }
            Self::Watch { .. }
            | Self::Attach { .. }
            | Self::Diff { .. }
            | Self::List { .. }
            | Self::Show { .. }
            | Self::Network { .. }
            | Self::End { .. }
            | Self::Cleanup { .. } => return Ok(()),
        };
        let sent = client.call::<SessionMessage>(request).await?;
        screen.answer(&sent, |sent| match done {
            "sent" => {
                let id = sent.session_id;
                format!("sent; follow the agent with `ringback session watch {id}`")
            }
            done => done.to_owned(),
        })
    }
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

fn shown(screen: Screen, origins: &Origins, session: &SessionResponse) -> String {
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
    let origin = origins.find(session.session_id);
    pairs.extend(origin.map(|it| ("copied from", it.dir.display().to_string())));
    pairs.extend(reached(session).map(|network| ("network", network)));
    pairs.extend(session.model_usage.map(|usage| {
        let ModelUsage { refused, bytes_up, bytes_down, .. } = usage;
        let text = format!(
            "{usage}, {refused} refused, {} sent, {} received",
            size(bytes_up),
            size(bytes_down)
        );
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
