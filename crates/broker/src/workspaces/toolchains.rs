//! The toolchains that the user of a workspace has, and the caches of its project.
//!
//! What the user said is kept beside the workspace, and looked up again before each start of an
//! agent: what may be shown is decided then, by what is there then.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};

use camino::{Utf8Path, Utf8PathBuf};
use ringback_proto::ids::{ProjectId, WorkspaceId};
use ringback_proto::record::WorkspaceRecord;
use ringback_proto::request::SessionToolchains;
use ringback_proto::{Error, ErrorKind, Result};
use ringback_sandbox::UserPath;

use super::{Workspaces, remove};
use crate::failure;

/// The longest `PATH` or directory; the system accepts no longer argument.
const TEXT_BYTES_MAX: usize = 64 << 10;
/// Variables that are kept: there are fewer toolchains.
const VARIABLES_MAX: usize = 50;
/// Digits of the hash that names the caches of a directory.
const CACHE_DIGITS: usize = 32;

/// What a sandbox of a workspace gets besides its files.
#[derive(Debug)]
pub(crate) struct Tooling {
    /// Where the user has toolchains.
    pub(crate) user: UserPath,
    /// The caches that its project has for this directory. They exist.
    pub(crate) cache: Option<Utf8PathBuf>,
}

impl Workspaces {
    pub(super) fn toolchains_path(&self, workspace: WorkspaceId) -> Utf8PathBuf {
        self.kernel.config.data_dir.join("toolchains").join(workspace.to_string())
    }

    /// Returns the directory with the caches of a project.
    fn caches_path(&self, project: ProjectId) -> Utf8PathBuf {
        self.kernel.config.data_dir.join("caches").join(project.to_string())
    }

    /// Keeps what a user said about toolchains, for the agents of a workspace.
    pub(crate) async fn keep_toolchains(
        &self,
        workspace: &WorkspaceRecord,
        toolchains: &SessionToolchains,
    ) -> Result<()> {
        check(toolchains)?;
        let path = self.toolchains_path(workspace.id);
        let cache = toolchains.directory.as_deref().map(|dir| {
            let digits = blake3::hash(dir.as_bytes()).to_hex();
            self.caches_path(workspace.project).join(&digits[..CACHE_DIGITS])
        });
        let bytes = rmp_serde::to_vec_named(toolchains).map_err(failure::internal)?;
        self.kernel
            .blocking(move || {
                let dirs = path.parent().into_iter().chain(cache.as_deref());
                let mut private = fs::DirBuilder::new();
                private.recursive(true).mode(0o700);
                dirs.map(Utf8Path::to_owned)
                    .try_for_each(|dir| private.create(dir))
                    .and_then(|()| write(&path, &bytes))
                    .map_err(failure::internal)
            })
            .await
    }

    /// Returns what the user of a workspace has; `None` if that was never said.
    pub(crate) async fn tooling(
        &self,
        project: ProjectId,
        workspace: WorkspaceId,
    ) -> Result<Option<Tooling>> {
        let (path, caches) = (self.toolchains_path(workspace), self.caches_path(project));
        self.kernel
            .blocking(move || {
                let bytes = match fs::read(&path) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                    read => read.map_err(failure::internal)?,
                };
                let kept: SessionToolchains =
                    rmp_serde::from_slice(&bytes).map_err(failure::internal)?;
                let cache = kept.directory.map(|dir| {
                    let digits = blake3::hash(dir.as_bytes()).to_hex();
                    caches.join(&digits[..CACHE_DIGITS])
                });
                let variables =
                    kept.variables.into_iter().map(|(name, value)| (name, value.into()));
                let user = UserPath { path: kept.path.into(), variables: variables.collect() };
                Ok(Some(Tooling { user, cache: cache.filter(|cache| cache.is_dir()) }))
            })
            .await
    }

    /// Removes the caches of a project. Blocks no one: no session of it is live.
    pub(crate) async fn remove_caches(&self, project: ProjectId) -> Result<()> {
        let caches = self.caches_path(project);
        self.kernel.blocking(move || remove(&caches)).await
    }
}

/// Checks what a user says about toolchains before it is kept.
fn check(toolchains: &SessionToolchains) -> Result<()> {
    let SessionToolchains { path, variables, directory } = toolchains;
    if variables.len() > VARIABLES_MAX {
        let message = format!("at most {VARIABLES_MAX} variables can name toolchains");
        return Err(Error::new(ErrorKind::TooLarge, message));
    }
    let named = variables.iter().flat_map(|(name, value)| [name, value]);
    let mut texts = [path].into_iter().chain(directory).chain(named);
    if texts.any(|text| text.len() > TEXT_BYTES_MAX || text.contains('\0')) {
        let message = format!("a path has at most {TEXT_BYTES_MAX} bytes, and no zero byte");
        return Err(Error::invalid_field("toolchains", message));
    }
    Ok(())
}

fn write(path: &Utf8Path, bytes: &[u8]) -> io::Result<()> {
    let mut private = fs::OpenOptions::new();
    private.write(true).create(true).truncate(true).mode(0o600);
    io::Write::write_all(&mut private.open(path)?, bytes)
}

/// Removes what a user said about toolchains. May block.
pub(super) fn forget_toolchains(path: &Utf8Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
