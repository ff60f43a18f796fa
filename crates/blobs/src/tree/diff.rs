//! Changes in a tree since an earlier state of it.
//!
//! * `snapshot`: the earlier state; `ignored`: its `.gitignore` rules.
//! * `unified`: a change as a unified diff.

mod ignore_rules;
mod snapshot;
mod unified_diff;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use ringback_proto::ids::BlobHash;
use ringback_proto::request::{ChangeKind, FileKind, FileState, WorkspaceChange};

use self::ignore_rules::IgnoreRules;
pub use self::snapshot::Snapshot;
use self::snapshot::SnapshotEntry;
use self::unified_diff::Side;
use super::{Entry, EntryKind, SkipReason, Skipped, Tree, TreeError, TreeLimits, TreeListing};

/// Changed files that are listed: more than anyone reads, and few enough for one message.
const CHANGES_MAX: usize = 10_000;
/// Files longer than this are named, but not shown.
const TEXT_BYTES_MAX: u64 = 1 << 20;
/// Maximum length of a diff; files after that are only listed.
const DIFF_BYTES_MAX: usize = 4 << 20;

/// The changes.
#[derive(Debug, Default)]
pub struct Diff {
    /// The changes as a unified diff, in the format of `git apply`.
    pub text: String,
    /// Every changed file.
    pub changes: Vec<WorkspaceChange>,
    /// Whether the text is incomplete.
    pub truncated: bool,
    /// Files that could not be compared.
    pub skipped: Vec<Skipped>,
}

/// The reason why a tree was not compared.
#[derive(Debug, thiserror::Error)]
pub enum DiffError {
    /// The tree cannot be read.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// The content of a file cannot be read.
    #[error("cannot read a file to compare")]
    Content(#[source] io::Error),
    /// Too many files changed.
    #[error("more than {max} files changed; compare one directory")]
    TooManyChanges {
        /// The limit.
        max: usize,
    },
    /// The caller stopped the comparison.
    #[error("the comparison was stopped")]
    Stopped,
}

/// Compares a tree with an earlier state, at or below a path. Files that the earlier state's
/// `.gitignore` ignores are left out. `go_on` is asked before each file.
///
/// # Errors
/// When the path is in neither state, and as listed in [`DiffError`].
pub fn compare(
    tree: &Tree,
    start: &Snapshot,
    below: &Path,
    limits: TreeLimits,
    go_on: &dyn Fn() -> bool,
) -> Result<Diff, DiffError> {
    let ignored = IgnoreRules::at(start).map_err(DiffError::Content)?;
    let CurrentFiles { files: mut now, skipped } = present(tree, start, &ignored, below, limits)?;
    // The state of the files below a skipped path is unknown.
    let unknown: BTreeSet<&Path> = skipped.iter().map(|skipped| skipped.path.as_path()).collect();
    let mut paths: Vec<&PathBuf> = start.files.keys().collect();
    let new: Vec<PathBuf> =
        now.keys().filter(|path| !start.files.contains_key(*path)).cloned().collect();
    paths.extend(&new);
    paths.sort_unstable();
    paths.retain(|path| {
        path.starts_with(below) && !path.ancestors().any(|above| unknown.contains(above))
    });
    if paths.is_empty() && below != Path::new("") {
        // An existing path without changes is unchanged; a missing one is an error.
        tree.entry(below)?;
    }
    let mut diff = Diff { skipped, ..Diff::default() };
    for path in paths {
        if !go_on() {
            return Err(DiffError::Stopped);
        }
        let (before, after) = (start.files.get(path), now.remove(path));
        diff.add(tree, start, path, before, after.as_ref())?;
    }
    Ok(diff)
}

/// The current files.
struct CurrentFiles {
    files: BTreeMap<PathBuf, Entry>,
    skipped: Vec<Skipped>,
}

/// Returns the files and symlinks at or below a path, without ignored ones unless they were in the
/// earlier state.
fn present(
    tree: &Tree,
    start: &Snapshot,
    ignored: &IgnoreRules,
    below: &Path,
    limits: TreeLimits,
) -> Result<CurrentFiles, TreeError> {
    let is_known = |entry: &Entry| match entry.kind {
        EntryKind::Directory => {
            let first = start.files.range(entry.path.clone()..).next();
            first.is_some_and(|(path, _)| path.starts_with(&entry.path))
        }
        EntryKind::File | EntryKind::Symlink => start.files.contains_key(&entry.path),
        EntryKind::Other => false,
    };
    let keep = |entry: &Entry| {
        let is_dir = entry.kind == EntryKind::Directory;
        entry.kind != EntryKind::Other && (is_known(entry) || !ignored.has(&entry.path, is_dir))
    };
    let walked = match tree.entry(below) {
        Ok(entry) if entry.kind == EntryKind::Directory => tree.walk(below, limits, keep)?,
        Ok(entry) if keep(&entry) => TreeListing { entries: vec![entry], skipped: Vec::new() },
        // A missing path may be in the earlier state.
        Ok(_) | Err(TreeError::NotFound { .. }) => TreeListing::default(),
        Err(error) => return Err(error),
    };
    let files = walked.entries.into_iter().filter(|entry| entry.kind != EntryKind::Directory);
    let files = files.map(|entry| (entry.path.clone(), entry)).collect();
    Ok(CurrentFiles { files, skipped: walked.skipped })
}

impl Diff {
    fn add(
        &mut self,
        tree: &Tree,
        start: &Snapshot,
        path: &Path,
        before: Option<&SnapshotEntry>,
        after: Option<&Entry>,
    ) -> Result<(), DiffError> {
        let old = before.map(|before| start.state(before)).transpose();
        let old = old.map_err(DiffError::Content)?;
        let new = match after.map(|entry| state(tree, entry)).transpose() {
            Err(TreeError::File { source, .. })
                if source.kind() == io::ErrorKind::PermissionDenied =>
            {
                let why = SkipReason::Unreadable;
                self.skipped.push(Skipped { path: path.to_owned(), why });
                return Ok(());
            }
            new => new?,
        };
        // A file deleted since the listing counts as removed.
        let new = new.flatten();
        let change = match (&old, &new) {
            (Some(old), Some(new)) if old == new => return Ok(()),
            (None, None) => return Ok(()),
            (Some(_), Some(_)) => ChangeKind::Modified,
            (None, Some(_)) => ChangeKind::Added,
            (Some(_), None) => ChangeKind::Removed,
        };
        if self.changes.len() == CHANGES_MAX {
            return Err(DiffError::TooManyChanges { max: CHANGES_MAX });
        }
        self.show(path, (&old, || start.content_of(before)), (&new, || content(tree, after)))
            .map_err(DiffError::Content)?;
        self.changes.push(WorkspaceChange {
            path: path.to_string_lossy().into_owned(),
            change,
            before: old,
            after: new,
            lossy: path.to_str().is_none(),
        });
        Ok(())
    }

    /// Appends a change to the diff, if there is room.
    fn show(
        &mut self,
        path: &Path,
        (old, old_content): (&Option<FileState>, impl FnOnce() -> io::Result<Vec<u8>>),
        (new, new_content): (&Option<FileState>, impl FnOnce() -> io::Result<Vec<u8>>),
    ) -> io::Result<()> {
        if self.text.len() >= DIFF_BYTES_MAX {
            self.truncated = true;
            return Ok(());
        }
        let is_long = |state: &Option<FileState>| {
            state.as_ref().is_some_and(|state| state.size > TEXT_BYTES_MAX)
        };
        let is_long = is_long(old) || is_long(new);
        self.truncated |= is_long;
        let (old_text, new_text) =
            if is_long { (None, None) } else { (text(old_content()?), text(new_content()?)) };
        let old = old.as_ref().map(|state| Side { state, text: old_text.as_deref() });
        let new = new.as_ref().map(|state| Side { state, text: new_text.as_deref() });
        unified_diff::write(&mut self.text, path, old, new);
        Ok(())
    }
}

/// Returns the current state of a file or symlink; `None` if it is gone, or changed its kind.
fn state(tree: &Tree, entry: &Entry) -> Result<Option<FileState>, TreeError> {
    let hashed = match entry.kind {
        EntryKind::File => tree.hash(&entry.path).map(|hash| (FileKind::File, hash, entry.size)),
        EntryKind::Symlink => tree.read_link(&entry.path).map(|target| {
            let text = target.as_os_str().as_encoded_bytes();
            let hash = BlobHash::from_bytes(*blake3::hash(text).as_bytes());
            (FileKind::Symlink, hash, text.len() as u64)
        }),
        EntryKind::Directory | EntryKind::Other => return Ok(None),
    };
    match hashed {
        Ok((kind, hash, size)) => {
            Ok(Some(FileState { kind, size, executable: entry.executable, hash }))
        }
        Err(TreeError::NotFound { .. } | TreeError::NotAFile { .. } | TreeError::Link { .. }) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Returns the content of a file or the target of a symlink; empty if it is gone.
fn content(tree: &Tree, entry: Option<&Entry>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let Some(entry) = entry else { return Ok(bytes) };
    if entry.kind == EntryKind::Symlink {
        let target = tree.read_link(&entry.path).unwrap_or_default();
        return Ok(target.into_os_string().into_encoded_bytes());
    }
    if let Ok(file) = tree.open_file(&entry.path) {
        // It may have grown since the listing.
        file.take(TEXT_BYTES_MAX).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// Returns the content as text, if it is text.
fn text(bytes: Vec<u8>) -> Option<String> {
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}
