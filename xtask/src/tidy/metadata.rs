//! The part of `cargo metadata` that the rules use.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use serde::Deserialize;

/// The packages of this workspace.
#[derive(Debug, Deserialize)]
pub(crate) struct Workspace {
    pub(crate) packages: Vec<Package>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) manifest_path: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// Absent for an ordinary dependency, else `dev` or `build`.
    pub(crate) kind: Option<String>,
    /// Present for a crate of this workspace.
    pub(crate) path: Option<String>,
}

impl Workspace {
    /// Runs `metadata` in `root`; returns manifest paths relative to it.
    pub(crate) fn read(mut metadata: Command, root: &Path) -> anyhow::Result<Self> {
        let output = metadata.current_dir(root).output().context("cannot run `cargo metadata`")?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "`cargo metadata` failed: {complaint}");
        let mut workspace: Self = serde_json::from_slice(&output.stdout)
            .context("cannot parse the output of `cargo metadata`")?;
        for package in &mut workspace.packages {
            if let Ok(relative) = Path::new(&package.manifest_path).strip_prefix(root) {
                package.manifest_path = relative.to_string_lossy().into_owned();
            }
        }
        Ok(workspace)
    }
}

impl Dependency {
    /// Returns whether only tests use it.
    pub(crate) fn is_dev(&self) -> bool {
        self.kind.as_deref() == Some("dev")
    }
}
