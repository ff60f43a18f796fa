//! Boxes for what is not an agent: containers, commands and builds of images.

use ringback_proto::record::ProjectRecord;
use ringback_proto::{Certainty, Error, ErrorKind, Result};
use ringback_sandbox::{BackendChoice, BackendKind, Network, ReadOnly, Sandbox, SandboxSpec};

use super::SandboxRules;
use crate::failure;
use crate::shared::Shared;

/// What makes boxes here, and what they are like.
#[derive(Debug)]
pub(crate) struct Boxes {
    pub(crate) sandbox: Sandbox,
    rules: SandboxRules,
}

impl Boxes {
    /// The name of what makes them.
    pub(crate) fn backend(&self) -> &'static str {
        match self.sandbox.backend() {
            BackendKind::Bubblewrap => "bubblewrap",
            BackendKind::Docker => "docker",
        }
    }

    /// Whether they are made of images.
    pub(crate) fn has_images(&self) -> bool {
        match self.sandbox.backend() {
            BackendKind::Bubblewrap => false,
            BackendKind::Docker => true,
        }
    }

    /// The image of those that name none.
    pub(crate) fn default_image(&self) -> Option<String> {
        self.rules.docker.image.clone().filter(|_| self.has_images())
    }

    /// Whether one that runs takes a further command.
    pub(crate) fn takes_commands(&self) -> bool {
        self.has_images()
    }

    /// A box with the walls and limits of an agent's, and nothing in it yet.
    pub(crate) fn plain(&self) -> SandboxSpec {
        SandboxSpec {
            program: Default::default(),
            args: Vec::new(),
            env: Vec::new(),
            workspace: Default::default(),
            home: None,
            working_dir: None,
            session_dir: None,
            inside: None,
            read_only: self.rules.read_only.iter().map(ReadOnly::same).collect(),
            limits: self.rules.limits,
            network: Network::None,
            image: None,
        }
    }
}

impl Shared {
    /// What makes boxes here, for something that is refused where nothing does. Whether they are complete
    /// is for [`Self::check_boxes`] to say.
    pub(crate) async fn boxes(&self, what: &str) -> Result<Boxes> {
        let confiner = self.sessions.confiner.clone().ok_or_else(|| unconfined(what))?;
        let rules = confiner.rules().clone();
        if rules.backend == BackendChoice::Auto {
            // Decides what makes them. What is missing may not be needed.
            self.missing_layer(&confiner, true).await?;
        }
        Ok(Boxes { sandbox: self.open_sandbox(&confiner).await?, rules })
    }

    /// Whether boxes for a project are complete; if they cannot be, none is made.
    pub(crate) async fn check_boxes(&self, project: &ProjectRecord) -> Result<()> {
        let confiner = self.sessions.confiner.clone().ok_or_else(|| unconfined("a sandbox"))?;
        let missing = self.missing_layer(&confiner, project.image.is_some()).await?;
        missing.map_or(Ok(()), |missing| {
            let message = format!("no sandbox is made: {}", failure::causes(&missing));
            Err(Error::new(ErrorKind::ToolFailed, message).with_certainty(Certainty::NotStarted))
        })
    }
}

fn unconfined(what: &str) -> Error {
    let message = format!(
        "nothing confines agents here (sandbox.backend = \"none\"), so {what} cannot be had; set \
         `sandbox.backend` to `bubblewrap` or `docker`"
    );
    Error::new(ErrorKind::Conflict, message)
}
