//! The rooms of the broker.

use std::sync::Arc;

use ringback_core::policy::Sight;
use ringback_proto::Error;
use ringback_store::Visible;

use crate::call::Calls;
use crate::containers::Containers;
use crate::handlers::{Facts, Studio};
use crate::identity::Tokens;
use crate::jobs::Jobs;
use crate::kernel::Kernel;
use crate::lines::{Callers, Lines};
use crate::sessions::Sessions;

/// Everything the broker owns.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) kernel: Arc<Kernel>,
    pub(crate) facts: Facts,
    pub(crate) tokens: Tokens,
    pub(crate) calls: Arc<Calls>,
    pub(crate) jobs: Jobs,
    pub(crate) lines: Arc<Lines>,
    pub(crate) callers: Callers,
    pub(crate) studio: Studio,
    pub(crate) sessions: Sessions,
    pub(crate) containers: Containers,
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
