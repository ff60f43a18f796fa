//! Boxes for what is not an agent: containers, commands and builds of images.

use ringback_sandbox::{BackendKind, Network, ReadOnly, Sandbox, SandboxSpec};

use super::SandboxRules;

/// What makes boxes here, and what they are like.
#[derive(Debug)]
pub(crate) struct Boxes {
    pub(crate) sandbox: Sandbox,
    pub(super) rules: SandboxRules,
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
