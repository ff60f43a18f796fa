//! Boxes for what is not an agent: containers, commands and builds of images.

use ringback_proto::{Error, ErrorKind, Result};
use ringback_sandbox::{BackendChoice, BackendKind, Network, ReadOnly, Sandbox, SandboxSpec};

use super::SandboxRules;
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
    /// is for [`Self::check_confinement`] to say.
    pub(crate) async fn boxes(&self, what: &str) -> Result<Boxes> {
        let Some(confiner) = self.sessions.confiner.clone() else {
            let message = format!(
                "nothing confines agents here (sandbox.backend = \"none\"), so {what} cannot be had; \
                 set `sandbox.backend` to `bubblewrap` or `docker`"
            );
            return Err(Error::new(ErrorKind::Conflict, message));
        };
        let rules = confiner.rules().clone();
        if rules.backend == BackendChoice::Auto {
            // Decides what makes them. Something may be missing that is not needed, such as an image.
            if let Err(error) = self.check_confinement().await {
                tracing::debug!(%error, "sandboxes are not complete");
            }
        }
        Ok(Boxes { sandbox: self.open_sandbox(&confiner).await?, rules })
    }
}
