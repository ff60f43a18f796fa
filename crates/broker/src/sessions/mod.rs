//! Sessions of agents: started in a workspace, told messages, followed, ended with everything they
//! started.
//!
//! Every live session has a *keeper*, a task that owns its agent. Orders reach it through a queue;
//! what the agent says goes into the session's ring and its journal. The rules (who may start how
//! many, when a session is idle for too long) are core's.

mod api;
mod budget;
mod conversation;
mod lifecycle;
mod offers;
mod reach;
mod register;
mod url_token;

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use ringback_agents::{Permissions, SharedPolicy};
use ringback_core::sessions::{KeptEvents, SessionLimits};
use ringback_proto::ids::SessionId;
use ringback_proto::request::{CallerServer, ModelUsage, ProjectLimits, SpendLimits};
use tokio::sync::{mpsc, watch};

pub use self::api::{SessionFollower, SessionView};
use self::budget::Account;
pub(crate) use self::budget::Budgets;
pub use self::budget::Spent;
pub(crate) use self::conversation::events::{Conversations, event};
pub(crate) use self::conversation::message::offered;
pub use self::lifecycle::agent::AgentProtocol;
use self::lifecycle::keeper::Order;
use self::lifecycle::key::Key;
pub(crate) use self::lifecycle::remote::ELSEWHERE;
pub(crate) use self::lifecycle::start::{Origin, StartSession};
pub(crate) use self::offers::Offers;
pub(crate) use self::reach::Networks;
pub(crate) use self::reach::check_network;
use self::reach::{Doors, Reach};
pub use self::reach::{NetworkConnection, NetworkDoor, NetworkOutcome};
pub(crate) use self::register::{Outside, Register};
use self::url_token::Bearer;
pub use self::url_token::SessionPass;
pub(crate) use self::url_token::UrlTokens;
use crate::Broker;
use crate::confinement::{Confinement, Sandboxes};
use crate::containers::Images;
use crate::disk::{DiskGuard, DiskLimits};
use crate::identity::Identity;
use crate::kernel::Kernel;
use crate::rooms::Ground;
use crate::sync::lock;
use crate::workspaces::Workspaces;

/// How sessions are run.
#[derive(Debug, Clone)]
pub struct SessionSettings {
    /// Where the sockets of sessions are made. Short: a socket's path has about 100 bytes.
    pub run_dir: Utf8PathBuf,
    /// The agents there are, by name.
    pub agents: BTreeMap<String, AgentCommand>,
    /// The directories that programs of agents are looked for in, as `PATH` has them.
    pub path: OsString,
    /// The agent of a project that names none.
    pub agent_default: String,
    /// How far sessions may go where their project says nothing.
    pub limits: SessionLimits,
    /// What sessions said that is kept in memory; the journal has more.
    pub events_kept: KeptEvents,
    /// How long an agent may take to end by itself.
    pub end_grace: Duration,
    /// Who answers an agent that asks for permission, if the agent's own settings do not say.
    pub permissions: Permissions,
    /// What `{inside}` in an agent's command stands for.
    pub inside: Option<Arc<dyn InsideProgram>>,
    /// Opens the sockets by which agents reach others.
    pub doors: SessionDoors,
    /// What keeps agents from the rest of this machine.
    pub confinement: Confinement,
    /// What sessions may spend where neither they nor their project say anything.
    pub spending: SpendLimits,
    /// How long somebody who is asked at a limit may take to answer.
    pub limit_wait: Duration,
    /// How much room they have on the disk.
    pub disk: DiskLimits,
}

impl SessionSettings {
    /// The usual settings for sockets in this directory, without any agent.
    #[must_use]
    pub fn in_dir(run_dir: Utf8PathBuf) -> Self {
        Self {
            run_dir,
            agents: BTreeMap::new(),
            path: lifecycle::agent::PATH.into(),
            agent_default: "scripted".to_owned(),
            limits: SessionLimits::default(),
            events_kept: KeptEvents {
                events_max: 2000,
                bytes_max: 16 << 20,
                total_bytes_max: 64 << 20,
            },
            end_grace: Duration::from_secs(3),
            permissions: Permissions::Ask,
            inside: None,
            doors: SessionDoors::default(),
            confinement: Confinement::Unconfined,
            spending: SpendLimits::default(),
            limit_wait: Duration::from_secs(5 * 60),
            disk: DiskLimits::default(),
        }
    }

    pub(crate) fn limits_of(&self, project: &ProjectLimits) -> SessionLimits {
        let usual = self.limits;
        SessionLimits {
            depth_max: project.max_depth.unwrap_or(usual.depth_max),
            agents_max: project.max_agents.unwrap_or(usual.agents_max),
            live_max: project.max_sessions.unwrap_or(usual.live_max),
            idle_ms: project.idle_ms.unwrap_or(usual.idle_ms),
        }
    }
}

/// Opens the sockets by which agents reach others, and says where sessions have URLs.
#[derive(Debug, Clone, Default)]
pub struct SessionDoors {
    /// Opens the socket on which an agent calls back.
    pub relay: Option<Arc<dyn RelayDoor>>,
    /// Opens the model proxy.
    pub models: Option<Arc<dyn ModelDoor>>,
    /// Opens the network proxy.
    pub network: Option<Arc<dyn NetworkDoor>>,
    /// Where the daemon is reached, such as `http://127.0.0.1:7180`: the URLs of sessions start
    /// with it. Without a listener, sessions have no URL.
    pub url: Option<String>,
}

/// How an agent is started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentCommand {
    /// The program and its arguments; the word `{inside}` stands for the MCP server of the session,
    /// and `{message}` for the message to an agent that is started for each. Of a preset it is what
    /// its arguments are added to; its own program if empty.
    pub command: Vec<String>,
    /// What its environment has besides what every agent's has.
    pub env: BTreeMap<String, String>,
    /// How it is talked to.
    pub protocol: AgentProtocol,
    /// Who answers when it asks for permission; as for all sessions if `None`.
    pub permissions: Option<Permissions>,
    /// The provider whose models it may ask, by name. `{model}` in its arguments and environment is
    /// where.
    pub provider: Option<String>,
    /// Which of the provider's models a preset is pointed at.
    pub model: Option<String>,
}

/// The program that agents start as their MCP server.
pub trait InsideProgram: Send + Sync + std::fmt::Debug {
    /// Where it is. Asked before an agent is started, so that the file need not be there, nor in
    /// memory, before somebody needs it. May block.
    ///
    /// # Errors
    /// When it cannot be made.
    fn path(&self) -> std::io::Result<Utf8PathBuf>;
}

/// Opens the socket of a session, on which its agent calls back.
pub trait RelayDoor: Send + Sync + std::fmt::Debug {
    /// Binds `relay.sock` in this directory and serves it as this session until the guard is dropped.
    ///
    /// # Errors
    /// When it cannot be bound.
    fn open(
        &self,
        broker: Broker,
        session: SessionId,
        dir: &Utf8Path,
    ) -> std::io::Result<Box<dyn std::any::Any + Send + Sync>>;
}

/// Opens the door of a session to a model.
pub trait ModelDoor: Send + Sync + std::fmt::Debug {
    /// Binds `model.sock` in this directory and passes what is asked there to this model, for this
    /// session, until the guard is dropped.
    ///
    /// # Errors
    /// When there is no such model, or the socket cannot be bound.
    fn open(
        &self,
        broker: Broker,
        session: SessionId,
        dir: &Utf8Path,
        model: &str,
    ) -> std::io::Result<Box<dyn std::any::Any + Send + Sync>>;

    /// Whether there are prices of this model's provider.
    fn has_prices(&self, model: &str) -> bool;
}

/// A request that a session made of its model: neither what was asked nor what was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelRequest {
    /// Which model, by its name in the configuration.
    pub model: String,
    /// The method.
    pub method: String,
    /// The path, without a query.
    pub path: String,
    /// What was answered; nothing if the agent left before.
    pub status: Option<u16>,
    /// Whether the answer passed to its end.
    pub is_whole: bool,
    /// From its head to the last byte of its answer.
    pub duration: Duration,
    /// The model that answered, by its provider's name for it.
    pub answered_by: Option<String>,
    /// What it took.
    pub usage: ModelUsage,
}

impl std::fmt::Display for ModelRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { method, path, usage, .. } = self;
        let ModelUsage { input_tokens, output_tokens, bytes_up, bytes_down, .. } = usage;
        write!(f, "{method} {path}: ")?;
        match self.status {
            Some(status) => write!(f, "{status}")?,
            None => f.write_str("given up")?,
        }
        if self.status.is_some() && !self.is_whole {
            f.write_str(", cut short")?;
        }
        write!(f, ", {} ms", self.duration.as_millis())?;
        if usage.tokens() > 0 {
            let about = if usage.estimated { "about " } else { "" };
            write!(f, ", {about}{input_tokens} tokens read, {output_tokens} written")?;
        }
        write!(f, ", {bytes_up} bytes sent, {bytes_down} received")
    }
}

/// The life of sessions: how they start, work and end.
#[derive(Debug)]
pub(crate) struct Sessions {
    pub(crate) kernel: Arc<Kernel>,
    pub(crate) identity: Arc<Identity>,
    pub(crate) register: Arc<Register>,
    pub(crate) conversations: Arc<Conversations>,
    pub(crate) workspaces: Arc<Workspaces>,
    pub(crate) sandboxes: Arc<Sandboxes>,
    pub(crate) images: Arc<Images>,
    pub(crate) disk: Arc<DiskGuard>,
    pub(crate) budgets: Arc<Budgets>,
    pub(crate) networks: Arc<Networks>,
    pub(crate) url_tokens: Arc<UrlTokens>,
    pub(crate) offers: Arc<Offers>,
}

impl Sessions {
    pub(crate) fn new(ground: &Ground) -> Self {
        Self {
            kernel: ground.kernel.clone(),
            identity: ground.identity.clone(),
            register: ground.register.clone(),
            conversations: ground.conversations.clone(),
            workspaces: ground.workspaces.clone(),
            sandboxes: ground.sandboxes.clone(),
            images: ground.images.clone(),
            disk: ground.disk.clone(),
            budgets: Arc::new(Budgets::new(ground)),
            networks: Arc::new(Networks::new(ground)),
            url_tokens: Arc::new(UrlTokens::new(ground)),
            offers: Arc::new(Offers::new(ground)),
        }
    }
}

/// A live session's running parts.
#[derive(Debug)]
pub(crate) struct Live {
    orders: mpsc::Sender<Order>,
    /// True once its keeper has ended, and with it its agent.
    over: watch::Receiver<bool>,
    key: Option<Key>,
    /// The agent it runs.
    agent: String,
    /// The directory of its sockets.
    dir: Utf8PathBuf,
    /// Gone when the session ends: then nobody is behind them.
    doors: Mutex<Option<Doors>>,
    /// What it may reach, if that is ours to say.
    reach: Option<Reach>,
    /// What it has spent, and from what.
    account: Account,
    /// What its agent is answered that asks for permission.
    permissions: SharedPolicy,
    /// What opens the session's URL.
    bearer: Bearer,
    /// The servers that are its callers, by what they are called.
    servers: Mutex<HashMap<String, CallerServer>>,
}

impl Live {
    /// Whether a tool server is one of its callers.
    pub(crate) fn has_server(&self) -> bool {
        !lock(&self.servers).is_empty()
    }
}
