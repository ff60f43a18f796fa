//! Sandboxes for containers, commands, tool servers and image builds.

use ringback_sandbox::{BackendKind, Network, ReadOnly, Sandbox, SandboxSpec};

use super::SandboxRules;

/// The sandbox backend with its rules.
#[derive(Debug)]
pub(crate) struct Boxes {
    pub(crate) sandbox: Sandbox,
    pub(super) rules: SandboxRules,
}

impl Boxes {
    /// Returns the name of the backend.
    pub(crate) fn backend(&self) -> &'static str {
        match self.sandbox.backend() {
            BackendKind::Bubblewrap => "bubblewrap",
            BackendKind::Docker => "docker",
        }
    }

    /// Returns whether the backend uses images.
    pub(crate) fn has_images(&self) -> bool {
        match self.sandbox.backend() {
            BackendKind::Bubblewrap => false,
            BackendKind::Docker => true,
        }
    }

    /// Returns the image of sandboxes that name none.
    pub(crate) fn default_image(&self) -> Option<String> {
        self.rules.docker.image.clone().filter(|_| self.has_images())
    }

    /// Returns whether a running sandbox can run further commands.
    pub(crate) fn takes_commands(&self) -> bool {
        self.has_images()
    }

    /// Returns an empty sandbox with the isolation and limits of an agent's.
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
            masked: Vec::new(),
            cache: None,
            network: Network::None,
            image: None,
        }
    }
}
