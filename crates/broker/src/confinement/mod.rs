//! Sandboxes for agents, tool servers, containers and commands. They isolate them from this machine
//! and from each other.
//!
//! * `confiner`: the sandboxes of agents.
//! * `boxes`: the sandboxes of everything else.

mod boxes;
mod confiner;

use std::error::Error as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ringback_proto::record::ProjectRecord;
use ringback_proto::{Certainty, Error, ErrorKind, Result};
use ringback_sandbox::{BackendChoice, Layer, Sandbox, StartError};

pub(crate) use self::boxes::Boxes;
pub(crate) use self::confiner::{BoxLauncher, BoxProcess, Confiner, Equipment, VisiblePaths};
pub use self::confiner::{Confinement, SandboxRules};
use crate::failure;
use crate::kernel::Kernel;
use crate::sessions::ELSEWHERE;

/// Added to the error where an agent cannot be confined: the last resort.
const OR_ELSE: &str = "or set `sandbox.backend = \"none\"`, which runs agents unconfined";

/// The factory of sandboxes.
#[derive(Debug)]
pub(crate) struct Sandboxes {
    kernel: Arc<Kernel>,
    /// `None` if nothing is confined.
    pub(crate) confiner: Option<Arc<Confiner>>,
}

impl Sandboxes {
    pub(crate) fn new(kernel: Arc<Kernel>) -> Self {
        let confiner = Confiner::new(&kernel.config.sessions.confinement);
        Self { kernel, confiner }
    }

    /// Returns whether an agent is confined here. An agent that runs elsewhere is not.
    pub(crate) fn confines(&self, agent: &str) -> bool {
        self.confiner.is_some() && agent != ELSEWHERE
    }

    /// Returns the sandbox backend for `what`, which is refused where nothing is confined.
    /// [`Self::check_boxes`] checks whether the sandboxes are complete.
    pub(crate) async fn boxes(&self, what: &str) -> Result<Boxes> {
        let confiner = self.confiner.clone().ok_or_else(|| unconfined(what))?;
        let rules = confiner.rules().clone();
        if rules.backend == BackendChoice::Auto {
            // Selects the backend. A missing layer may not be needed.
            self.missing_layer(&confiner, true).await?;
        }
        Ok(Boxes { sandbox: self.open_sandbox(&confiner).await?, rules })
    }

    /// Checks that sandboxes for a project are complete. Otherwise none is created.
    pub(crate) async fn check_boxes(&self, project: &ProjectRecord) -> Result<()> {
        let confiner = self.confiner.clone().ok_or_else(|| unconfined("a sandbox"))?;
        let missing = self.missing_layer(&confiner, project.image.is_some()).await?;
        missing.map_or(Ok(()), |missing| {
            let message = format!("cannot create a sandbox: {}", failure::chain(&missing));
            Err(Error::new(ErrorKind::ToolFailed, message).with_certainty(Certainty::NotStarted))
        })
    }

    /// Checks that agents can be fully confined. Otherwise none is started. A project with its own
    /// image does not need the default one.
    pub(crate) async fn check_confinement(&self, has_image: bool) -> Result<()> {
        let Some(confiner) = self.confiner.clone() else { return Ok(()) };
        match self.missing_layer(&confiner, has_image).await? {
            None => Ok(()),
            Some(missing) => Err(refused(&missing)),
        }
    }

    /// Returns the first missing layer of confinement, if any.
    async fn missing_layer(
        &self,
        confiner: &Arc<Confiner>,
        has_image: bool,
    ) -> Result<Option<StartError>> {
        if confiner.is_complete.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let sandbox = self.open_sandbox(confiner).await?;
        let missing = sandbox.probe(&confiner.rules().limits).await.first_missing();
        match missing {
            // A missing layer may be installed at any time; a present one stays.
            None => confiner.is_complete.store(true, Ordering::Relaxed),
            Some(StartError::Layer { layer: Layer::Image, .. }) if has_image => return Ok(None),
            Some(_) => {}
        }
        Ok(missing)
    }

    /// Ends agents that outlived a killed daemon. Opening the sandbox does it.
    pub(crate) async fn end_leftover_agents(&self) {
        if let Some(confiner) = self.confiner.clone()
            && let Err(error) = self.open_sandbox(&confiner).await
        {
            tracing::error!(%error, "cannot confine agents; none will start");
        }
    }

    async fn open_sandbox(&self, confiner: &Arc<Confiner>) -> Result<Sandbox> {
        let confiner = Arc::clone(confiner);
        self.kernel
            .blocking(move || {
                confiner.open().cloned().map_err(|error| {
                    let message = told(&error, error.source());
                    Error::new(ErrorKind::Internal, message).with_source(error)
                })
            })
            .await
    }
}

fn unconfined(what: &str) -> Error {
    let message = format!(
        "agents are not confined here (sandbox.backend = \"none\"), so {what} is not available; \
         set `sandbox.backend` to `bubblewrap` or `docker`"
    );
    Error::new(ErrorKind::Conflict, message)
}

fn refused(missing: &StartError) -> Error {
    let why = told(missing, missing.source());
    let message = format!("agents cannot be confined here, so none is started: {why}; {OR_ELSE}");
    Error::new(ErrorKind::ToolFailed, message).with_certainty(Certainty::NotStarted)
}

fn told(
    error: &dyn std::error::Error,
    source: Option<&(dyn std::error::Error + 'static)>,
) -> String {
    let cause = source.map(|cause| format!(": {cause}"));
    format!("{error}{}", cause.unwrap_or_default())
}
