//! Network policy of sessions, and the sockets through which an agent reaches the daemon, its model
//! (model proxy) and the network (network proxy).

use std::any::Any;
use std::sync::{Arc, Weak};
use std::time::Duration;

use camino::Utf8Path;
use ringback_core::network::is_within;
use ringback_core::policy::{may_hold_back, may_loosen};
use ringback_core::sessions::SessionPlace;
use ringback_proto::ids::{CallId, SessionId};
use ringback_proto::network::{NetworkMode, NetworkPolicy};
use ringback_proto::principal::Principal;
use ringback_proto::record::{Record, SessionRecord};
use ringback_proto::request::{SessionEventInfo, SessionNetworkRequest};
use ringback_proto::{Error, ErrorKind, Result};
use tokio::sync::{Semaphore, watch};

use crate::Broker;
use crate::confinement::Sandboxes;
use crate::kernel::Kernel;
use crate::rooms::{Rooms, SharedRooms};
use crate::sessions::conversation::events::event;
use crate::sessions::lifecycle::choice::ChosenAgent;
use crate::sessions::lifecycle::start::{StartSession, not_made};
use crate::sessions::{Conversations, ELSEWHERE, LiveSession, Origin, Register};
use crate::sync::lock;

/// Added to the event when a running agent was started without a network.
const NEXT_START: &str = "an agent started without a network gets one at its next start";

/// Opens the network proxy of a session.
pub trait NetworkDoor: Send + Sync + std::fmt::Debug {
    /// Binds `network.sock` in this directory and forwards connections that the policy allows, for
    /// this session, until the guard is dropped. A changed policy applies immediately, also to open
    /// connections.
    ///
    /// # Errors
    /// When the socket cannot be bound.
    fn open(
        &self,
        broker: Broker,
        session: SessionId,
        dir: &Utf8Path,
        policy: watch::Receiver<Arc<NetworkPolicy>>,
    ) -> std::io::Result<Box<dyn Any + Send + Sync>>;
}

/// A connection that a session asked for, without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkConnection {
    /// The requested host, and the port.
    pub place: String,
    /// Its outcome.
    pub outcome: NetworkOutcome,
    /// From the request to the end.
    pub duration: Duration,
    /// Bytes that left the sandbox.
    pub bytes_up: u64,
    /// Bytes that came back.
    pub bytes_down: u64,
}

/// The outcome of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkOutcome {
    /// Established, and ended normally.
    Passed,
    /// Established, and closed because it is no longer allowed, or the session ended.
    Closed,
    /// Established, and closed after too long without traffic.
    Idle,
    /// The host is not allowed.
    HostRefused,
    /// No address of the host is allowed.
    AddressRefused,
    /// The host name does not resolve.
    Unresolved,
    /// The host does not answer.
    Unreachable,
    /// The agent disconnected before there was an answer.
    GivenUp,
}

impl NetworkOutcome {
    /// Returns its name in the audit log.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "success",
            Self::Closed => "closed",
            Self::Idle => "idle",
            Self::HostRefused => "host_refused",
            Self::AddressRefused => "address_refused",
            Self::Unresolved => "unresolved",
            Self::Unreachable => "unreachable",
            Self::GivenUp => "given_up",
        }
    }

    /// Returns the reason for the session's events, if it was refused.
    const fn told(self) -> Option<&'static str> {
        match self {
            Self::HostRefused => Some("not allowed"),
            Self::AddressRefused => Some("its address is neither public nor listed"),
            Self::Passed
            | Self::Closed
            | Self::Idle
            | Self::Unresolved
            | Self::Unreachable
            | Self::GivenUp => None,
        }
    }
}

/// The network policy of a live session.
#[derive(Debug)]
pub(super) struct Reach {
    policy: watch::Sender<Arc<NetworkPolicy>>,
    /// One change at a time, so that the stored policy is the active one.
    changing: Semaphore,
}

/// The open sockets of an agent.
#[derive(Debug, Default)]
pub(super) struct Doors {
    _relay: Option<Socket>,
    model: Option<Socket>,
    network: Option<Socket>,
}

/// The guard of a socket: dropping it closes the socket.
pub(super) struct Socket(
    #[expect(dead_code, reason = "held to be dropped")] pub(super) Box<dyn Any + Send + Sync>,
);

impl std::fmt::Debug for Socket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Socket")
    }
}

/// The session whose sockets are opened.
#[derive(Debug, Clone, Copy)]
pub(super) struct Holder<'a> {
    pub(super) id: SessionId,
    pub(super) dir: &'a Utf8Path,
    pub(super) chosen: &'a ChosenAgent,
    pub(super) reach: Option<&'a Reach>,
}

impl Reach {
    pub(super) fn new(policy: NetworkPolicy) -> Self {
        Self { policy: watch::Sender::new(Arc::new(policy)), changing: Semaphore::new(1) }
    }

    fn policy(&self) -> Arc<NetworkPolicy> {
        Arc::clone(&self.policy.borrow())
    }
}

impl LiveSession {
    /// Returns its network policy; `None` if it is not confined here.
    pub(super) fn network(&self) -> Option<Arc<NetworkPolicy>> {
        self.reach.as_ref().map(Reach::policy)
    }

    fn holder(&self, id: SessionId) -> Holder<'_> {
        Holder { id, dir: &self.dir, chosen: &self.chosen, reach: self.reach.as_ref() }
    }
}

/// Returns the default policy: an agent's model, if it has one.
fn usual_network(chosen: &ChosenAgent) -> NetworkPolicy {
    let has_model = chosen.provider().is_some();
    NetworkPolicy::of(if has_model { NetworkMode::Model } else { NetworkMode::None })
}

impl Broker {
    /// Records a connection in the audit log, and in the session's events if it was refused.
    pub fn network_asked(&self, session: SessionId, asked: &NetworkConnection) {
        let rooms = &self.0;
        let Some(view) = self.session_view(session) else { return };
        let call = CallId::from_random(rooms.kernel.entropy.bytes());
        rooms.kernel.auditor.network_requested(
            rooms.kernel.now(),
            call,
            (view.owner, session),
            asked,
        );
        if let Some(why) = asked.outcome.told() {
            let text = Some(format!("{}: {why}", asked.place));
            rooms.conversations.say(session, SessionEventInfo { text, ..event("network_refused") });
        }
    }
}

/// Network policies and proxies of sessions.
#[derive(Debug)]
pub(crate) struct Networks {
    kernel: Arc<Kernel>,
    register: Arc<Register>,
    conversations: Arc<Conversations>,
    sandboxes: Arc<Sandboxes>,
    rooms: Weak<Rooms>,
}

impl Networks {
    pub(crate) fn new(shared_rooms: &SharedRooms) -> Self {
        Self {
            kernel: shared_rooms.kernel.clone(),
            register: shared_rooms.register.clone(),
            conversations: shared_rooms.conversations.clone(),
            sandboxes: shared_rooms.sandboxes.clone(),
            rooms: shared_rooms.rooms.clone(),
        }
    }

    /// Returns the network policy of a session: the requested one, its project's, or only the model
    /// of its agent. `None` for an agent that is not confined.
    pub(super) fn network_of(
        &self,
        start: &StartSession,
        chosen: &ChosenAgent,
    ) -> Result<Option<NetworkPolicy>> {
        let agent = chosen.name.as_str();
        let asked = start.network.as_ref();
        if let Some(asked) = asked {
            check_network(asked)?;
        }
        if !self.sandboxes.confines(agent) {
            let said = asked.or(start.project.network.as_ref().filter(|_| agent != ELSEWHERE));
            return check_unconfined(agent, said).map(|()| None);
        }
        let before = match &start.origin {
            Origin::Again(record) => record.network.clone(),
            Origin::New { .. } => None,
        };
        // A session started by an agent reaches no further than that agent.
        let parent = start.origin.parent();
        let agents = parent.and_then(|parent| self.register.live(parent)?.network());
        let usual = match (before, agents) {
            (Some(before), Some(agents)) if !is_within(&before, &agents) => agents.as_ref().clone(),
            (Some(before), Some(_) | None) => before,
            (None, Some(agents)) => agents.as_ref().clone(),
            (None, None) => start.project.network.clone().unwrap_or_else(|| usual_network(chosen)),
        };
        let Some(asked) = asked else { return Ok(Some(usual)) };
        if !is_within(asked, &usual) {
            may_loosen(&start.principal, "a network beyond the project's own")?;
        }
        Ok(Some(asked.clone()))
    }

    /// Opens the sockets of an agent.
    pub(super) fn open_doors(&self, holder: Holder<'_>) -> Result<Doors> {
        let relay = self.kernel.config.sessions.doors.relay.as_ref();
        let relay = relay.map(|relay| relay.open(self.broker()?, holder.id, holder.dir));
        let relay = relay.transpose().map_err(|error| not_made("a session's socket", error))?;
        let mut doors = Doors { _relay: relay.map(Socket), ..Doors::default() };
        self.adjust(&mut doors, holder)?;
        Ok(doors)
    }

    /// Returns the broker, for the servers of a session's sockets.
    fn broker(&self) -> std::io::Result<Broker> {
        let rooms = self.rooms.upgrade().map(Broker);
        rooms.ok_or_else(|| std::io::Error::other("the daemon has stopped"))
    }

    /// Opens the proxies that the policy allows, and closes the others.
    fn adjust(&self, doors: &mut Doors, holder: Holder<'_>) -> Result<()> {
        let Holder { id, dir, chosen, reach } = holder;
        let mode = reach.map(|reach| reach.policy().mode);
        match chosen.provider().filter(|_| mode.is_none_or(|mode| mode >= NetworkMode::Model)) {
            None => doors.model = None,
            Some(_) if doors.model.is_some() => {}
            Some(model) => {
                let opened = match &self.kernel.config.sessions.doors.models {
                    Some(models) => self
                        .broker()
                        .and_then(|broker| models.open(broker, id, dir, model, chosen.key.clone())),
                    None => Err(std::io::Error::other("this daemon has no model proxy")),
                };
                let what = format!("the model proxy of agent `{}` for `{model}`", chosen.name);
                doors.model = Some(Socket(opened.map_err(|error| not_made(&what, error))?));
            }
        }
        match reach.filter(|reach| reach.policy().mode.has_door()) {
            None => doors.network = None,
            Some(_) if doors.network.is_some() => {}
            Some(reach) => {
                let opened = match &self.kernel.config.sessions.doors.network {
                    Some(networks) => self.broker().and_then(|broker| {
                        networks.open(broker, id, dir, reach.policy.subscribe())
                    }),
                    None => Err(std::io::Error::other("this daemon has no network proxy")),
                };
                let opened =
                    opened.map_err(|error| not_made("the network proxy of a session", error));
                doors.network = Some(Socket(opened?));
            }
        }
        Ok(())
    }

    /// Changes the network policy of a live session and of the sessions it started.
    pub(crate) async fn change_network(
        &self,
        principal: &Principal,
        request: SessionNetworkRequest,
    ) -> Result<SessionRecord> {
        let SessionNetworkRequest { session_id: id, network: policy } = request;
        check_network(&policy)?;
        let record = self.register.visible_session(principal, id).await?;
        may_hold_back(principal, record.owner)?;
        let live = self.register.live(id).ok_or_else(|| {
            let message = format!("session {id} is not live; send it a message to continue it");
            Error::new(ErrorKind::Conflict, message)
        })?;
        let Some(reach) = &live.reach else {
            check_unconfined(&live.chosen.name, Some(&policy))?;
            return Ok(record);
        };
        let changing = reach.changing.try_acquire();
        let changing = changing.map_err(|_| Error::busy("changing this session's network"))?;
        let before = reach.policy();
        let stored = [Record::SessionNetwork { id, network: policy.clone() }];
        if is_within(&policy, &before) {
            // A restriction applies immediately, even if it cannot be stored.
            self.apply(id, &live, &policy)?;
            self.narrow_children(id, &policy);
            self.kernel.commit_for_sure(&stored).await?;
        } else {
            may_loosen(principal, "a network beyond the session's own")?;
            self.kernel.commit_for_sure(&stored).await?;
            self.apply(id, &live, &policy)?;
        }
        drop(changing);
        let is_new = policy.mode.has_door() && !before.mode.has_door();
        let text = if is_new { format!("{policy}; {NEXT_START}") } else { policy.to_string() };
        self.conversations
            .say(id, SessionEventInfo { text: Some(text), ..event("network_changed") });
        Ok(SessionRecord { network: Some(policy), ..record })
    }

    /// Applies a policy; if its proxies cannot be opened, restores the previous one.
    fn apply(&self, id: SessionId, live: &LiveSession, policy: &NetworkPolicy) -> Result<()> {
        let Some(reach) = &live.reach else { return Ok(()) };
        let mut doors = lock(&live.doors);
        let Some(doors) = doors.as_mut() else {
            return Err(Error::new(ErrorKind::Conflict, format!("session {id} has ended")));
        };
        let before = reach.policy.send_replace(Arc::new(policy.clone()));
        self.adjust(doors, live.holder(id)).inspect_err(|_| drop(reach.policy.send_replace(before)))
    }

    /// Narrows the sessions that a session's agent started to the same policy.
    fn narrow_children(&self, of: SessionId, policy: &NetworkPolicy) {
        let live: Vec<_> = {
            let table = lock(&self.register.table);
            let ids = table.all_live().into_iter();
            ids.filter_map(|id| table.find(id)).map(|(place, _)| place).collect()
        };
        let mut narrowed = vec![of];
        let mut next = 0;
        while let Some(maker) = narrowed.get(next).copied() {
            next += 1;
            let is_made = |place: &&SessionPlace| {
                place.parent == Some(maker) && !narrowed.contains(&place.id)
            };
            let made: Vec<_> = live.iter().filter(is_made).map(|place| place.id).collect();
            made.iter().for_each(|id| self.narrow(*id, policy));
            narrowed.extend(made);
        }
    }

    /// Narrows a session that was just started, in case its parent's policy changed meanwhile.
    pub(super) fn narrow_to(&self, maker: SessionId, id: SessionId) {
        if let Some(policy) = self.register.live(maker).and_then(|live| live.network()) {
            self.narrow(id, &policy);
        }
    }

    fn narrow(&self, id: SessionId, policy: &NetworkPolicy) {
        let Some(live) = self.register.live(id) else { return };
        if live.network().is_none_or(|network| is_within(&network, policy)) {
            return;
        }
        match self.apply(id, &live, policy) {
            Ok(()) => {
                let text = Some(policy.to_string());
                self.conversations.say(id, SessionEventInfo { text, ..event("network_changed") });
            }
            Err(error) => {
                tracing::debug!(session = %id, %error, "session ended before its network changed");
            }
        }
    }
}

/// Checks that a policy is consistent.
pub(crate) fn check_network(policy: &NetworkPolicy) -> Result<()> {
    policy.check().map_err(|error| Error::invalid_field("network", error.to_string()))
}

/// Rejects a policy that cannot be enforced on an unconfined agent: anything but `full`.
fn check_unconfined(agent: &str, said: Option<&NetworkPolicy>) -> Result<()> {
    let Some(said) = said else { return Ok(()) };
    let message = if agent == ELSEWHERE {
        "an agent that runs elsewhere uses the network of its own machine; leave `network` out"
            .to_owned()
    } else if said.mode == NetworkMode::Full {
        return Ok(());
    } else {
        format!(
            "agent `{agent}` is not confined here and can reach everything, so `{}` cannot be \
             enforced; set `sandbox.backend = \"auto\"`, or use `full`",
            said.mode
        )
    };
    Err(Error::invalid_field("network", message))
}
