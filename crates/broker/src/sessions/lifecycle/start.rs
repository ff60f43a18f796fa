//! Starting a session: its entry in the table, its workspace, key, sockets and supervisor. A failed
//! step undoes the steps before it.

use std::os::unix::fs::DirBuilderExt as _;
use std::sync::{Arc, Mutex};

use camino::{Utf8Path, Utf8PathBuf};
use ringback_agents::SharedPolicy;
use ringback_core::sessions::{NewSession, SessionPlace};
use ringback_proto::ids::{SessionId, WorkspaceId};
use ringback_proto::network::{NetworkMode, NetworkPolicy};
use ringback_proto::principal::Principal;
use ringback_proto::record::{ProjectRecord, Record, SessionRecord, SessionState, WorkspaceRecord};
use ringback_proto::request::{SessionToolchains, SpendLimits};
use ringback_proto::secret::Secret;
use ringback_proto::{Error, ErrorKind, Result};
use tokio::sync::{mpsc, watch};

use crate::sessions::lifecycle::choice::{ChosenAgent, StartChoice};
use crate::sessions::lifecycle::keeper::{Keeper, ORDERS_MAX, SupervisorSettings};
use crate::sessions::reach::{Doors, Holder, Reach};
use crate::sessions::{Account, Bearer, ELSEWHERE, Key, LiveSession, Sessions};
use crate::sync::lock;
use crate::workspaces::remove;

/// The origin of a session.
#[derive(Debug)]
pub(crate) enum Origin {
    /// Started by a caller, or by the agent of another session.
    New {
        /// The session whose agent started it.
        parent: Option<SessionId>,
    },
    /// Continued after an earlier run.
    Again(Box<SessionRecord>),
}

impl Origin {
    /// Returns the origin of a session that a principal starts. If an agent starts it, on its
    /// socket or with any key, the parent is that agent's session.
    pub(crate) fn of(principal: &Principal) -> Self {
        Self::New { parent: principal.held_by.map(|held_by| held_by.session) }
    }

    /// Returns the session whose agent starts it.
    pub(in crate::sessions) const fn parent(&self) -> Option<SessionId> {
        match self {
            Self::New { parent } => *parent,
            Self::Again(_) => None,
        }
    }
}

/// A session to start.
#[derive(Debug)]
pub(crate) struct StartSession {
    /// The principal that starts it.
    pub(crate) principal: Arc<Principal>,
    /// Its project.
    pub(crate) project: ProjectRecord,
    /// Its workspace; a new one if absent.
    pub(crate) workspace: Option<WorkspaceRecord>,
    /// Its agent; the project's if absent.
    pub(crate) agent: Option<String>,
    /// The token that its session key acts as; if absent, the project decides on the key.
    pub(crate) key: Option<Secret>,
    /// Its origin.
    pub(crate) origin: Origin,
    /// Its network policy; the project's if absent.
    pub(crate) network: Option<NetworkPolicy>,
    /// Its spending limits; the project's where absent.
    pub(crate) limits: Option<SpendLimits>,
    /// The user's toolchains; those of its workspace if absent.
    pub(crate) toolchains: Option<SessionToolchains>,
    /// What is chosen for its agent instead of what is configured.
    pub(crate) choice: StartChoice,
}

impl Sessions {
    /// Starts a session. Its first message starts the agent.
    pub(crate) async fn start_session(
        self: &Arc<Self>,
        start: StartSession,
    ) -> Result<SessionRecord> {
        let settings = &self.kernel.config.sessions;
        let agent = start
            .agent
            .clone()
            .or_else(|| match &start.origin {
                Origin::Again(record) => Some(record.agent.clone()),
                Origin::New { .. } => start.project.agent.clone(),
            })
            .unwrap_or_else(|| settings.agent_default.clone());
        let chosen = self.choices.choose(&start, &agent)?;
        if agent != ELSEWHERE {
            self.sandboxes.check_confinement(start.project.image.is_some()).await?;
            self.images.check_image(&start.project).await?;
            self.disk.check_disk().await?;
        }
        let network = self.networks.network_of(&start, &chosen)?;
        if network.as_ref().is_none_or(|network| network.mode >= NetworkMode::Model) {
            self.choices.check_model(&chosen, &start.choice).await?;
        }
        let now = self.kernel.now().unix;
        let workspace = start.workspace.clone().unwrap_or_else(|| WorkspaceRecord {
            id: WorkspaceId::from_random(self.kernel.entropy.bytes()),
            project: start.project.id,
            created_at: now,
            last_session_at: Some(now),
        });
        let (id, next_index) = match &start.origin {
            Origin::New { .. } => (SessionId::from_random(self.kernel.entropy.bytes()), 0),
            Origin::Again(record) => (record.id, self.next_index(record.id).await?),
        };
        let parent = start.origin.parent();
        let account = self.budgets.account_of(&start, &chosen, id)?;
        let place = lock(&self.register.table).start(NewSession {
            id,
            project: start.project.id,
            workspace: workspace.id,
            owner: start.principal.id,
            parent,
            limits: settings.limits_of(&start.project.limits),
            next_index,
        })?;
        let equipped = SessionChoices { chosen, network, account };
        let made = self.equip(&start, equipped, &workspace, place).await;
        if made.is_err() {
            let mut table = lock(&self.register.table);
            table.end(id, SessionState::Failed);
            table.forget(id);
        }
        if let Some(parent) = parent {
            self.networks.narrow_to(parent, id);
        }
        made
    }

    /// Returns the next event index of a continued session.
    async fn next_index(self: &Arc<Self>, session: SessionId) -> Result<u64> {
        let conversations = Arc::clone(&self.conversations);
        self.kernel.blocking(move || conversations.next_journaled(session)).await
    }

    /// Creates everything a session needs once it is in the table.
    async fn equip(
        self: &Arc<Self>,
        start: &StartSession,
        SessionChoices { chosen, network, account }: SessionChoices,
        workspace: &WorkspaceRecord,
        place: SessionPlace,
    ) -> Result<SessionRecord> {
        let now = self.kernel.now().unix;
        let made = self.session_key(start, place.id, place.owner)?;
        let dir = self.make_dirs(workspace.id).await?;
        if let Some(toolchains) = &start.toolchains {
            self.workspaces.keep_toolchains(workspace, toolchains).await?;
        }
        let reach = network.clone().map(Reach::new);
        let holder = Holder { id: place.id, dir: &dir, chosen: &chosen, reach: reach.as_ref() };
        let doors = self.networks.open_doors(holder)?;
        let mut records = Vec::new();
        if start.workspace.is_none() {
            records.push(Record::WorkspaceCreated(workspace.clone()));
        } else {
            records.push(Record::WorkspaceUsed { id: workspace.id, at: now });
        }
        let record = SessionRecord {
            id: place.id,
            project: place.project,
            workspace: place.workspace,
            owner: place.owner,
            parent: place.parent,
            root: place.root,
            depth: place.depth,
            agent: chosen.name.clone(),
            state: SessionState::Starting,
            created_at: now,
            updated_at: now,
            ended_at: None,
            key: made.as_ref().map(|made| made.key.id),
            network,
            spending: account.record(place.id),
            choice: chosen.choice.clone(),
        };
        match &start.origin {
            Origin::New { .. } => records.push(Record::SessionCreated(Box::new(record.clone()))),
            Origin::Again(_) => {
                let state = SessionState::Starting;
                records.push(Record::SessionChanged { id: place.id, state, at: now });
            }
        }
        records.extend(made.as_ref().map(|made| Record::TokenCreated(made.record.clone())));
        if let Err(error) = self.kernel.commit(records).await {
            drop(doors);
            self.take_dirs_back(start, workspace.id, dir).await;
            return Err(error);
        }
        let key = made.map(|made| {
            self.identity.tokens.insert_token(Arc::new(made.token));
            made.key
        });
        let is_new = matches!(start.origin, Origin::New { .. });
        self.keep(place, Parts { is_new, chosen, dir, doors, reach, account, key });
        Ok(record)
    }

    /// Removes the directories of a session that failed to start, and those of its workspace if it
    /// is new.
    async fn take_dirs_back(&self, start: &StartSession, workspace: WorkspaceId, dir: Utf8PathBuf) {
        let mut removed = self.kernel.blocking(move || remove(&dir)).await;
        if start.workspace.is_none() {
            removed = self.workspaces.remove_workspace_dirs(workspace).await.and(removed);
        }
        if let Err(error) = removed {
            tracing::warn!(%error, "cannot remove a directory of a session that failed to start");
        }
    }

    /// Hands a session to its supervisor.
    fn keep(self: &Arc<Self>, place: SessionPlace, parts: Parts) {
        let Parts { is_new, chosen, dir, doors, reach, account, key } = parts;
        let (orders, inbox) = mpsc::channel(ORDERS_MAX);
        let (done, over) = watch::channel(false);
        // Children use the tools of their root.
        let root = self.register.live(place.root);
        let permissions =
            root.map_or_else(SharedPolicy::default, |root| root.permissions.with_same_tools());
        let live = Arc::new(LiveSession {
            orders,
            over,
            key: key.clone(),
            chosen: chosen.clone(),
            model: Mutex::default(),
            dir: dir.clone(),
            doors: Mutex::new(Some(doors)),
            reach,
            account,
            permissions: permissions.clone(),
            bearer: Bearer::default(),
            servers: Mutex::default(),
        });
        lock(&self.register.live).insert(place.id, live);
        self.conversations.say_state(place.id, SessionState::Starting, None);
        let kept = SupervisorSettings { is_new, dir, key, permissions };
        let keeper = Keeper::new(Arc::clone(self), place, chosen, kept, done);
        drop(self.kernel.tasks.spawn(keeper.run(inbox)));
    }

    /// Creates the directories of the workspace, the home and the sockets, accessible to this user
    /// only.
    async fn make_dirs(&self, workspace: WorkspaceId) -> Result<Utf8PathBuf> {
        let (workspace, home) =
            (self.workspaces.workspace_path(workspace), self.workspaces.home_path(workspace));
        let digits = blake3::Hash::from_bytes(self.kernel.entropy.bytes()).to_hex();
        let dir = self.kernel.config.sessions.run_dir.join("s").join(&digits[..12]);
        let made = dir.clone();
        self.kernel
            .blocking(move || {
                private_dir(&workspace).map_err(|error| not_made("a workspace", error))?;
                private_dir(&home).map_err(|error| not_made("the home of an agent", error))?;
                private_dir(&made).map_err(|error| not_made("the directory of a session", error))
            })
            .await?;
        Ok(dir)
    }
}

/// The choices made for a session before it is set up.
struct SessionChoices {
    chosen: ChosenAgent,
    network: Option<NetworkPolicy>,
    account: Account,
}

/// The parts of a live session besides its table entry.
struct Parts {
    is_new: bool,
    chosen: ChosenAgent,
    dir: Utf8PathBuf,
    doors: Doors,
    reach: Option<Reach>,
    account: Account,
    key: Option<Key>,
}

pub(in crate::sessions) fn private_dir(path: &Utf8Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

pub(in crate::sessions) fn not_made(what: &str, error: std::io::Error) -> Error {
    let message = format!("cannot create {what}: {error}");
    Error::new(ErrorKind::Internal, message).with_source(error)
}
