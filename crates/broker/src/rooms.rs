//! The rooms of the broker. Each owns its table and what is done with it; what it needs of another is a
//! field, so that the types show which locks can meet. The kernel stands under all of them.

use std::sync::{Arc, OnceLock, Weak};

use ringback_core::policy::Sight;
use ringback_models::Models;
use ringback_proto::Error;
use ringback_proto::record::TokenRecord;
use ringback_store::Visible;
use ringback_store::journal::Journal;

use crate::call::Calls;
use crate::confinement::Sandboxes;
use crate::containers::{Containers, Images};
use crate::disk::DiskGuard;
use crate::handlers::{Facts, Studio};
use crate::identity::Identity;
use crate::jobs::Jobs;
use crate::kernel::Kernel;
use crate::lines::{Callers, Lines};
use crate::sessions::{
    Budgets, Conversations, Networks, Offers, Register, Sessions, Sockets, UrlTokens,
};
use crate::workspaces::Workspaces;

/// Everything the broker owns.
#[derive(Debug)]
pub(crate) struct Rooms {
    pub(crate) kernel: Arc<Kernel>,
    pub(crate) identity: Arc<Identity>,
    pub(crate) calls: Arc<Calls>,
    pub(crate) lines: Arc<Lines>,
    pub(crate) callers: Callers,
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) register: Arc<Register>,
    pub(crate) conversations: Arc<Conversations>,
    pub(crate) workspaces: Arc<Workspaces>,
    pub(crate) sandboxes: Arc<Sandboxes>,
    pub(crate) images: Arc<Images>,
    pub(crate) disk: Arc<DiskGuard>,
    pub(crate) containers: Arc<Containers>,
    pub(crate) sockets: Arc<Sockets>,
    pub(crate) budgets: Arc<Budgets>,
    pub(crate) networks: Arc<Networks>,
    pub(crate) url_tokens: Arc<UrlTokens>,
    pub(crate) offers: Arc<Offers>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) facts: Facts,
    pub(crate) studio: Studio,
}

/// What rooms find on the disk when they are built.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) tokens: Vec<TokenRecord>,
    pub(crate) journal: Journal,
}

impl Rooms {
    /// Builds every room on a kernel, from the inside out.
    pub(crate) fn build(kernel: Kernel, found: Found) -> Arc<Self> {
        Arc::new_cyclic(|rooms| Self::on(Arc::new(kernel), found, rooms))
    }

    fn on(kernel: Arc<Kernel>, found: Found, rooms: &Weak<Self>) -> Self {
        let k = || Arc::clone(&kernel);
        let identity = Arc::new(Identity::new(k(), found.tokens));
        let calls = Arc::new(Calls::new(k()));
        let lines = Arc::new(Lines::new(k(), calls.clone()));
        let callers = Callers::on(&lines);
        let jobs = Arc::new(Jobs::new(k(), identity.clone(), calls.clone(), rooms.clone()));
        let register = Arc::new(Register::new(k()));
        let conversations = Arc::new(Conversations::new(k(), register.clone(), found.journal));
        let workspaces = Arc::new(Workspaces::new(k(), register.clone()));
        let sandboxes = Arc::new(Sandboxes::new(k()));
        let images = Arc::new(Images::new(k(), workspaces.clone(), sandboxes.clone()));
        let disk = Arc::new(DiskGuard::new(k(), workspaces.clone(), conversations.clone()));
        let containers = Arc::new(Containers::new(
            k(),
            workspaces.clone(),
            sandboxes.clone(),
            images.clone(),
            disk.clone(),
        ));
        let sockets = Arc::new(Sockets::default());
        let budgets = Arc::new(Budgets {
            kernel: k(),
            register: register.clone(),
            conversations: conversations.clone(),
            sockets: sockets.clone(),
        });
        let networks = Arc::new(Networks {
            kernel: k(),
            register: register.clone(),
            conversations: conversations.clone(),
            sandboxes: sandboxes.clone(),
            sockets: sockets.clone(),
        });
        let url_tokens = Arc::new(UrlTokens {
            kernel: k(),
            identity: identity.clone(),
            register: register.clone(),
            url: OnceLock::new(),
        });
        let offers = Arc::new(Offers {
            kernel: k(),
            identity: identity.clone(),
            register: register.clone(),
            callers: callers.clone(),
            workspaces: workspaces.clone(),
            sandboxes: sandboxes.clone(),
            images: images.clone(),
            disk: disk.clone(),
            sockets: sockets.clone(),
        });
        let sessions = Arc::new(Sessions {
            kernel: k(),
            identity: identity.clone(),
            register: register.clone(),
            conversations: conversations.clone(),
            workspaces: workspaces.clone(),
            sandboxes: sandboxes.clone(),
            images: images.clone(),
            disk: disk.clone(),
            budgets: budgets.clone(),
            networks: networks.clone(),
            url_tokens: url_tokens.clone(),
            offers: offers.clone(),
        });
        let models = Arc::new(Models::new(kernel.config.studio.models.clone()));
        Self {
            facts: Facts::new(&kernel.config, Arc::clone(&models), kernel.now()),
            studio: Studio::new(kernel.config.studio.clone(), models),
            kernel,
            identity,
            calls,
            lines,
            callers,
            jobs,
            register,
            conversations,
            workspaces,
            sandboxes,
            images,
            disk,
            containers,
            sockets,
            budgets,
            networks,
            url_tokens,
            offers,
            sessions,
        }
    }
}

/// Whose rows the store may show.
pub(crate) fn visible(sight: Sight) -> Visible {
    match sight {
        Sight::All => Visible::All,
        Sight::Own { owner, projects } => Visible::Owner { owner, projects },
    }
}

/// The outcome of a job or call, shared by whoever waits for it.
pub(crate) type Outcome = Arc<Result<ringback_proto::ToolResponse, Error>>;
