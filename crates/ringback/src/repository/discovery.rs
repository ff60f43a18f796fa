//! Finds the repository of a directory.
//!
//! A directory may come from anywhere, and its `.git` may be written to lead to another repository
//! of the user, whose history would then be copied. So a `.git` that leads elsewhere counts only if
//! that place leads back, as those of working trees and submodules do.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::git::RepositoryError;

/// More than any path.
const FILE_BYTES_MAX: u64 = 8192;
/// Submodules within submodules, and directories above.
const DEPTH_MAX: usize = 8;

/// A repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Repository {
    /// Its working tree.
    pub(crate) root: PathBuf,
    /// The directory of its `HEAD` and index.
    pub(super) git_dir: PathBuf,
    /// The directory of its objects and branches.
    pub(super) common_dir: PathBuf,
}

impl Repository {
    /// Finds the repository that a directory without links is in.
    pub(crate) fn of(dir: &Path) -> Result<Option<Self>, RepositoryError> {
        find(dir, DEPTH_MAX)
    }

    /// Returns the repository of a submodule at `root`, if it has one.
    pub(super) fn submodule(root: &Path) -> Result<Option<Self>, RepositoryError> {
        match fs::symlink_metadata(root.join(".git")) {
            Ok(_) => Self::of(root).map(|found| found.filter(|found| found.root == root)),
            Err(_) => Ok(None),
        }
    }

    pub(super) fn objects(&self) -> PathBuf {
        self.common_dir.join("objects")
    }
}

fn find(dir: &Path, depth: usize) -> Result<Option<Repository>, RepositoryError> {
    for root in dir.ancestors() {
        let place = root.join(".git");
        let Ok(found) = fs::symlink_metadata(&place) else { continue };
        let repository = if found.is_dir() {
            Repository { root: root.into(), git_dir: place.clone(), common_dir: place.clone() }
        } else if found.is_file() && depth > 0 {
            linked(root, &place, depth - 1)?
        } else {
            return Err(refused(&place, "is neither a directory nor a file"));
        };
        check(&repository)?;
        return Ok(Some(repository));
    }
    Ok(None)
}

/// Follows the file `.git` of a working tree or a submodule.
fn linked(root: &Path, place: &Path, depth: usize) -> Result<Repository, RepositoryError> {
    let elsewhere = || refused(place, "leads to a repository that does not lead back");
    let named = line(place).and_then(|line| line.strip_prefix("gitdir: ").map(str::to_owned));
    let git_dir = named.ok_or_else(|| refused(place, "does not name a repository"))?;
    let git_dir = fs::canonicalize(root.join(git_dir)).map_err(|_| elsewhere())?;
    if let Some(common) = line(&git_dir.join("commondir")) {
        let common_dir = fs::canonicalize(git_dir.join(common)).map_err(|_| elsewhere())?;
        let back = line(&git_dir.join("gitdir")).map(|back| git_dir.join(back));
        let leads_back = back.and_then(|back| fs::canonicalize(back).ok()).as_deref()
            == Some(place)
            && git_dir.parent() == Some(&*common_dir.join("worktrees"));
        return if leads_back {
            Ok(Repository { root: root.to_owned(), git_dir, common_dir })
        } else {
            Err(elsewhere())
        };
    }
    let above = root.parent().map(|above| find(above, depth)).transpose()?.flatten();
    let is_within = |above: &Repository| {
        let dirs = [&above.git_dir, &above.common_dir];
        dirs.into_iter().any(|dir| git_dir.starts_with(dir.join("modules")))
    };
    match above {
        Some(above) if is_within(&above) => {
            Ok(Repository { root: root.to_owned(), common_dir: git_dir.clone(), git_dir })
        }
        Some(_) | None => Err(elsewhere()),
    }
}

/// Checks that a repository has what is read of it in itself.
fn check(repository: &Repository) -> Result<(), RepositoryError> {
    let Repository { git_dir, common_dir, .. } = repository;
    for dir in ["objects", "refs"].map(|name| common_dir.join(name)) {
        if !fs::symlink_metadata(&dir).is_ok_and(|found| found.is_dir()) {
            return Err(refused(&dir, "is not a directory"));
        }
    }
    let head = git_dir.join("HEAD");
    if !fs::symlink_metadata(&head).is_ok_and(|found| found.is_file()) {
        return Err(refused(&head, "is not a file"));
    }
    if common_dir.join("reftable").exists() {
        return Err(refused(common_dir, "keeps its references in a table"));
    }
    Ok(())
}

fn refused(path: &Path, why: &str) -> RepositoryError {
    RepositoryError::Refused(format!("`{}` {why}", path.display()))
}

/// Returns the one line of a file that is no link.
pub(super) fn line(path: &Path) -> Option<String> {
    if !fs::symlink_metadata(path).ok()?.is_file() {
        return None;
    }
    let mut text = Vec::new();
    File::open(path).ok()?.take(FILE_BYTES_MAX).read_to_end(&mut text).ok()?;
    let text = text.strip_suffix(b"\n").unwrap_or(&text);
    let path = std::ffi::OsStr::from_bytes(text);
    path.to_str().filter(|line| !line.contains(['\n', '\0'])).map(str::to_owned)
}
