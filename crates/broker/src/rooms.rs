//! The rooms of the broker. Each owns its table and the work on it; a dependency on another room is
//! a field, so that the types show which locks can meet. The kernel lies below all of them.

use std::sync::{Arc, Weak};

use ringback_core::policy::{self, Provenance, Visibility};
use ringback_proto::Error;
use ringback_proto::principal::Principal;
use ringback_proto::record::TokenRecord;
use ringback_store::RowVisibility;
use ringback_store::journal::Journal;

use crate::call::Calls;
use crate::confinement::Sandboxes;
use crate::containers::{Containers, Images};
use crate::disk::DiskGuard;
use crate::garden::Garden;
use crate::handlers::Facts;
use crate::identity::Identity;
use crate::jobs::Jobs;
use crate::kernel::Kernel;
use crate::lines::{Callers, Lines};
use crate::queries::Queries;
use crate::sessions::{Budgets, Conversations, Networks, Offers, Register, Sessions, UrlTokens};
use crate::workspaces::Workspaces;

/// Everything that the broker owns.
#[derive(Debug)]
pub(crate) struct Rooms {
    pub(crate) kernel: Arc<Kernel>,
    pub(crate) identity: Arc<Identity>,
    pub(crate) calls: Arc<Calls>,
    pub(crate) lines: Arc<Lines>,
    pub(crate) callers: Callers,
    pub(crate) garden: Arc<Garden>,
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) queries: Queries,
    pub(crate) register: Arc<Register>,
    pub(crate) conversations: Arc<Conversations>,
    pub(crate) workspaces: Arc<Workspaces>,
    pub(crate) sandboxes: Arc<Sandboxes>,
    pub(crate) images: Arc<Images>,
    pub(crate) disk: Arc<DiskGuard>,
    pub(crate) containers: Arc<Containers>,
    pub(crate) budgets: Arc<Budgets>,
    pub(crate) networks: Arc<Networks>,
    pub(crate) url_tokens: Arc<UrlTokens>,
    pub(crate) offers: Arc<Offers>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) facts: Facts,
}

/// The state that rooms load from the disk when they are built.
#[derive(Debug)]
pub(crate) struct LoadedState {
    pub(crate) tokens: Vec<TokenRecord>,
    pub(crate) journal: Journal,
}

impl Rooms {
    /// Builds every room on a kernel, dependencies first.
    pub(crate) fn build(kernel: Kernel, found: LoadedState) -> Arc<Self> {
        Arc::new_cyclic(|rooms| Self::on(Arc::new(kernel), found, rooms))
    }

    /// Returns where a call of a principal comes from.
    pub(crate) fn provenance(&self, principal: &Principal) -> Provenance {
        let session = principal.held_by.map(|holder| holder.session);
        let view = session.and_then(|session| self.register.view(session));
        policy::provenance(principal, view.map(|view| view.project))
    }

    fn on(kernel: Arc<Kernel>, found: LoadedState, rooms: &Weak<Self>) -> Self {
        let identity = Arc::new(Identity::new(Arc::clone(&kernel), found.tokens));
        let calls = Arc::new(Calls::new(Arc::clone(&kernel)));
        let lines = Arc::new(Lines::new(Arc::clone(&kernel), Arc::clone(&calls)));
        let jobs = Jobs::new(
            Arc::clone(&kernel),
            Arc::clone(&identity),
            Arc::clone(&calls),
            rooms.clone(),
        );
        let callers = Callers::on(&lines);
        let garden = Arc::new(Garden::new(Arc::clone(&kernel), Arc::clone(&lines)));
        let shared_rooms =
            SharedRooms::new(kernel, identity, callers, found.journal, rooms.clone());
        let containers = Arc::new(Containers::new(&shared_rooms));
        let sessions = Arc::new(Sessions::new(&shared_rooms));
        let SharedRooms { kernel, identity, register, conversations, callers, .. } =
            shared_rooms.clone();
        let SharedRooms { workspaces, sandboxes, images, disk, .. } = shared_rooms;
        Self {
            facts: Facts::new(&kernel.config, kernel.now()),
            budgets: Arc::clone(&sessions.budgets),
            networks: Arc::clone(&sessions.networks),
            url_tokens: Arc::clone(&sessions.url_tokens),
            offers: Arc::clone(&sessions.offers),
            jobs: Arc::new(jobs),
            queries: Queries::new(Arc::clone(&kernel)),
            kernel,
            identity,
            calls,
            lines,
            callers,
            garden,
            register,
            conversations,
            workspaces,
            sandboxes,
            images,
            disk,
            containers,
            sessions,
        }
    }
}

/// The parts that sessions and containers depend on.
#[derive(Debug, Clone)]
pub(crate) struct SharedRooms {
    pub(crate) kernel: Arc<Kernel>,
    pub(crate) identity: Arc<Identity>,
    pub(crate) callers: Callers,
    pub(crate) register: Arc<Register>,
    pub(crate) conversations: Arc<Conversations>,
    pub(crate) workspaces: Arc<Workspaces>,
    pub(crate) sandboxes: Arc<Sandboxes>,
    pub(crate) images: Arc<Images>,
    pub(crate) disk: Arc<DiskGuard>,
    /// The whole broker, which serves the sockets of sessions.
    pub(crate) rooms: Weak<Rooms>,
}

impl SharedRooms {
    fn new(
        kernel: Arc<Kernel>,
        identity: Arc<Identity>,
        callers: Callers,
        journal: Journal,
        rooms: Weak<Rooms>,
    ) -> Self {
        let k = || Arc::clone(&kernel);
        let register = Arc::new(Register::new(k()));
        let conversations = Arc::new(Conversations::new(k(), Arc::clone(&register), journal));
        let workspaces = Arc::new(Workspaces::new(k(), Arc::clone(&register)));
        let sandboxes = Arc::new(Sandboxes::new(k()));
        let images = Images::new(k(), Arc::clone(&workspaces), Arc::clone(&sandboxes));
        let disk = DiskGuard::new(k(), Arc::clone(&workspaces), Arc::clone(&conversations));
        Self {
            images: Arc::new(images),
            disk: Arc::new(disk),
            kernel,
            identity,
            callers,
            register,
            conversations,
            workspaces,
            sandboxes,
            rooms,
        }
    }
}

/// Converts a principal's sight to the rows that the store may show.
pub(crate) fn visible(sight: Visibility) -> RowVisibility {
    match sight {
        Visibility::All => RowVisibility::All,
        Visibility::Own { owner, projects } => RowVisibility::Owner { owner, projects },
        Visibility::Tree { owner, session } => RowVisibility::Tree { owner, session },
    }
}

/// The outcome of a job or call, shared by all that wait for it.
pub(crate) type Outcome = Arc<Result<ringback_proto::ToolResponse, Error>>;
