//! Agent sessions: a session starts in a workspace, takes messages, emits events, and ends with
//! everything it started.
//!
//! A supervisor task (`lifecycle::keeper`) owns the agent of each live session. Orders reach it
//! through a queue; the agent's output goes to the session's ring and journal. Limits, such as the
//! number of sessions and the idle time, are decided in core.
//!
//! * `lifecycle`: starting, running and ending a session.
//! * `conversation`: messages, events, permission requests and their answers.
//! * `offers`: the tools that callers and tool servers offer a session.
//! * `reach`: network policy, model proxy and network proxy.
//! * `budget`: spending and its limits; `progress`: whether a model answers at all.
//! * `register`: all sessions of this run.
//! * `url_token`: session URLs; `api`: the entry point for edges.

mod api;
mod budget;
mod conversation;
mod lifecycle;
mod offers;
mod progress;
mod reach;
mod register;
mod url_token;

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use ringback_agents::{Permissions, SharedPolicy};
use ringback_core::sessions::{EventLimits, SessionLimits};
use ringback_proto::ids::SessionId;
use ringback_proto::request::{CallerServer, ModelUsage, ProjectLimits, SpendLimits};
use ringback_proto::secret::Secret;
use tokio::sync::{mpsc, watch};

pub use self::api::{SessionFollower, SessionView};
use self::budget::Account;
pub(crate) use self::budget::Budgets;
pub use self::budget::LimitReached;
pub(crate) use self::conversation::events::{Conversations, event};
pub(crate) use self::conversation::message::offered;
pub use self::lifecycle::agent::AgentProtocol;
pub(crate) use self::lifecycle::choice::StartChoice;
use self::lifecycle::choice::{Choices, ChosenAgent};
use self::lifecycle::keeper::Order;
use self::lifecycle::key::Key;
pub(crate) use self::lifecycle::remote::ELSEWHERE;
pub(crate) use self::lifecycle::start::{Origin, StartSession};
pub(crate) use self::offers::Offers;
use self::progress::ModelProgress;
pub(crate) use self::reach::Networks;
pub(crate) use self::reach::check_network;
use self::reach::{Doors, Reach};
pub use self::reach::{NetworkConnection, NetworkDoor, NetworkOutcome};
pub(crate) use self::register::{Register, SessionDetails};
use self::url_token::Bearer;
pub use self::url_token::SessionPass;
pub(crate) use self::url_token::UrlTokens;
use crate::Broker;
use crate::confinement::{Confinement, Sandboxes};
use crate::containers::Images;
use crate::disk::{DiskGuard, DiskLimits};
use crate::identity::Identity;
use crate::kernel::Kernel;
use crate::rooms::SharedRooms;
use crate::sync::lock;
use crate::workspaces::Workspaces;

/// Settings for all sessions.
#[derive(Debug, Clone)]
pub struct SessionSettings {
    /// Directory for session sockets. Keep it short: a socket path has about 100 bytes.
    pub run_dir: Utf8PathBuf,
    /// Configured agents, by name.
    pub agents: BTreeMap<String, AgentCommand>,
    /// Directories to search for agent programs, in the format of `PATH`.
    pub path: OsString,
    /// Agent of projects that do not name one.
    pub agent_default: String,
    /// Limits of sessions whose project sets none.
    pub limits: SessionLimits,
    /// Events kept in memory; the journal has more.
    pub events_kept: EventLimits,
    /// Time an agent gets to exit before it is killed.
    pub end_grace: Duration,
    /// Default answer to permission requests, for agents without their own setting.
    pub permissions: Permissions,
    /// The program that `{inside}` in an agent's command stands for.
    pub inside: Option<Arc<dyn InsideProgram>>,
    /// Sockets through which agents reach the outside.
    pub doors: SessionDoors,
    /// How agents are confined.
    pub confinement: Confinement,
    /// Spending limits where neither the session nor its project sets any.
    pub spending: SpendLimits,
    /// How long a question at a limit waits for an answer.
    pub limit_wait: Duration,
    /// Disk limits.
    pub disk: DiskLimits,
}

impl SessionSettings {
    /// Returns the default settings with sockets in this directory and no agents.
    #[must_use]
    pub fn in_dir(run_dir: Utf8PathBuf) -> Self {
        Self {
            run_dir,
            agents: BTreeMap::new(),
            path: lifecycle::agent::PATH.into(),
            agent_default: "scripted".to_owned(),
            limits: SessionLimits::default(),
            events_kept: EventLimits {
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

/// The sockets of sessions, and the base of their URLs.
#[derive(Debug, Clone, Default)]
pub struct SessionDoors {
    /// Opens the relay socket, on which an agent calls tools.
    pub relay: Option<Arc<dyn RelayDoor>>,
    /// Opens the model proxy.
    pub models: Option<Arc<dyn ModelDoor>>,
    /// Opens the network proxy.
    pub network: Option<Arc<dyn NetworkDoor>>,
    /// Base URL of the daemon, such as `http://127.0.0.1:7180`: session URLs start with it.
    /// Without a listener, sessions have no URL.
    pub url: Option<String>,
}

/// How to start an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentCommand {
    /// The program and its arguments. `{inside}` stands for the session's MCP server, `{message}`
    /// for the message, in agents that are started per message. A preset appends its arguments to
    /// this; if empty, it uses its own program.
    pub command: Vec<String>,
    /// Environment variables besides those of every agent.
    pub env: BTreeMap<String, String>,
    /// The protocol it speaks.
    pub protocol: AgentProtocol,
    /// The answer to its permission requests; the sessions' default if `None`.
    pub permissions: Option<Permissions>,
    /// Name of the provider whose models it may use. `{model}` in its arguments and environment
    /// stands for the address.
    pub provider: Option<String>,
    /// The provider's model that a preset uses.
    pub model: Option<String>,
}

/// The program that agents start as their MCP server.
pub trait InsideProgram: Send + Sync + std::fmt::Debug {
    /// Returns its path. Called before an agent starts, so that the file need not be on disk or in
    /// memory until it is needed. May block.
    ///
    /// # Errors
    /// When it cannot be created.
    fn path(&self) -> std::io::Result<Utf8PathBuf>;
}

/// Opens the relay socket of a session, on which its agent calls tools.
pub trait RelayDoor: Send + Sync + std::fmt::Debug {
    /// Binds `relay.sock` in this directory and serves it as this session until the guard is
    /// dropped.
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

/// Opens the model proxy of a session.
pub trait ModelDoor: Send + Sync + std::fmt::Debug {
    /// Checks that a session can use a provider, for an agent that speaks this API if it is known
    /// (`openai`, `anthropic` or `google`). Blocks.
    ///
    /// # Errors
    /// Why not, and what to do about it.
    fn check(&self, provider: &str, api: Option<&str>) -> Result<ProviderKey, String>;

    /// Binds `model.sock` in this directory and forwards its requests to this provider, for this
    /// session, until the guard is dropped. The session's own key is used if the provider's secret
    /// does not exist.
    ///
    /// # Errors
    /// When the provider is unknown, or the socket cannot be bound.
    fn open(
        &self,
        broker: Broker,
        session: SessionId,
        dir: &Utf8Path,
        provider: &str,
        key: SessionKey,
    ) -> std::io::Result<Box<dyn std::any::Any + Send + Sync>>;

    /// Returns whether prices are configured for this model's provider.
    fn has_prices(&self, model: &str) -> bool;
}

/// The key of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProviderKey {
    /// It needs none, or its own is stored.
    Ready,
    /// It needs one that is not stored; with what to do about it.
    Missing(String),
}

/// A session's own key of its provider, while it has one. In memory only.
#[derive(Debug, Clone, Default)]
pub struct SessionKey(Arc<Mutex<Option<Secret>>>);

impl SessionKey {
    /// Returns the key.
    #[must_use]
    pub fn get(&self) -> Option<Secret> {
        lock(&self.0).clone()
    }

    /// Sets the key, in place of an earlier one.
    pub fn set(&self, key: Secret) {
        *lock(&self.0) = Some(key);
    }
}

/// A session's request to its model, without the content of request and answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelRequest {
    /// Name of the model in the configuration.
    pub model: String,
    /// The method.
    pub method: String,
    /// The path, without a query.
    pub path: String,
    /// Status of the answer; `None` if the agent disconnected first.
    pub status: Option<u16>,
    /// Whether the whole answer was passed on.
    pub is_whole: bool,
    /// From the head of the request to the last byte of the answer.
    pub duration: Duration,
    /// The model that answered, by the provider's name.
    pub answered_by: Option<String>,
    /// Tokens, bytes and cost.
    pub usage: ModelUsage,
    /// Why the daemon answered instead of the provider.
    pub refusal: Option<String>,
    /// Where its key came from.
    pub key: Option<String>,
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

/// The service that starts, runs and ends sessions.
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
    pub(crate) choices: Choices,
}

impl Sessions {
    pub(crate) fn new(shared_rooms: &SharedRooms) -> Self {
        Self {
            kernel: shared_rooms.kernel.clone(),
            identity: shared_rooms.identity.clone(),
            register: shared_rooms.register.clone(),
            conversations: shared_rooms.conversations.clone(),
            workspaces: shared_rooms.workspaces.clone(),
            sandboxes: shared_rooms.sandboxes.clone(),
            images: shared_rooms.images.clone(),
            disk: shared_rooms.disk.clone(),
            budgets: Arc::new(Budgets::new(shared_rooms)),
            networks: Arc::new(Networks::new(shared_rooms)),
            url_tokens: Arc::new(UrlTokens::new(shared_rooms)),
            offers: Arc::new(Offers::new(shared_rooms)),
            choices: Choices::new(shared_rooms),
        }
    }
}

/// The running parts of a live session.
#[derive(Debug)]
pub(crate) struct LiveSession {
    orders: mpsc::Sender<Order>,
    /// True once its supervisor has ended, and with it the agent.
    over: watch::Receiver<bool>,
    key: Option<Key>,
    /// Its agent.
    chosen: ChosenAgent,
    /// How its model requests went since the last message.
    model: Mutex<ModelProgress>,
    /// The directory of its sockets.
    dir: Utf8PathBuf,
    /// Taken when the session ends, which closes the sockets.
    doors: Mutex<Option<Doors>>,
    /// What it may reach; `None` if it is not confined here.
    reach: Option<Reach>,
    /// What it has spent, and its budget.
    account: Account,
    /// The answers to its agent's permission requests.
    permissions: SharedPolicy,
    /// The token of the session's URL.
    bearer: Bearer,
    /// Its tool servers, by caller id.
    servers: Mutex<HashMap<String, CallerServer>>,
}

impl LiveSession {
    /// Returns whether one of its callers is a tool server.
    pub(crate) fn has_server(&self) -> bool {
        !lock(&self.servers).is_empty()
    }
}
