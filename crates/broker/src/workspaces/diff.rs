//! Changes in a workspace since its initial state.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use ringback_blobs::Tree;
use ringback_blobs::tree::{Entry, EntryKind, SkipReason, Skipped, TreeError, Walked};
use ringback_proto::ids::BlobHash;
use ringback_proto::request::{ChangeKind, FileKind, FileState, WorkspaceChange, WorkspaceSkipped};
use ringback_proto::{Error, ErrorKind, Result};
use tokio_util::sync::CancellationToken;

use super::ignored::Ignored;
use super::start::{Before, Start};
use super::unified::{self, Side};
use super::{NOW_LIMITS, SKIPPED_MAX, kind, told};
use crate::failure;

/// Changed files that are listed: more than anyone reads, and few enough for one message.
const CHANGES_MAX: usize = 10_000;
/// Files longer than this are named, but not shown.
const TEXT_BYTES_MAX: u64 = 1 << 20;
/// Maximum length of a diff; files after that are only listed.
const DIFF_BYTES_MAX: usize = 4 << 20;

/// The changes.
#[derive(Debug, Default)]
pub(crate) struct Compared {
    pub(crate) diff: String,
    pub(crate) changes: Vec<WorkspaceChange>,
    /// Whether the diff is incomplete.
    pub(crate) truncated: bool,
    /// Files that could not be compared.
    pub(crate) skipped: Vec<WorkspaceSkipped>,
}

/// Compares a workspace with its initial state, at or below a path.
pub(crate) fn compare(
    tree: &Tree,
    start: &Start,
    below: &Path,
    stop: &CancellationToken,
) -> Result<Compared> {
    let ignored = Ignored::at(start).map_err(failure::internal)?;
    let Present { files: mut now, skipped } = present(tree, start, &ignored, below)?;
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
        tree.entry(below).map_err(failure::tree)?;
    }
    let mut compared = Compared { skipped: told(&skipped), ..Compared::default() };
    for path in paths {
        if stop.is_cancelled() {
            return Err(Error::cancelled("the comparison was stopped"));
        }
        let (before, after) = (start.files.get(path), now.remove(path));
        compared.add(tree, start, path, before, after.as_ref())?;
    }
    Ok(compared)
}

/// The current files.
struct Present {
    files: BTreeMap<PathBuf, Entry>,
    skipped: Vec<Skipped>,
}

/// Returns the files and symlinks at or below a path, without ignored ones unless they were in the
/// initial state.
fn present(tree: &Tree, start: &Start, ignored: &Ignored, below: &Path) -> Result<Present> {
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
        Ok(entry) if entry.kind == EntryKind::Directory => {
            tree.walk(below, NOW_LIMITS, keep).map_err(failure::tree)?
        }
        Ok(entry) if keep(&entry) => Walked { entries: vec![entry], skipped: Vec::new() },
        // A missing path may be in the initial state.
        Ok(_) | Err(TreeError::NotFound { .. }) => Walked::default(),
        Err(error) => return Err(failure::tree(error)),
    };
    let files = walked.entries.into_iter().filter(|entry| entry.kind != EntryKind::Directory);
    let files = files.map(|entry| (entry.path.clone(), entry)).collect();
    Ok(Present { files, skipped: walked.skipped })
}

impl Compared {
    fn add(
        &mut self,
        tree: &Tree,
        start: &Start,
        path: &Path,
        before: Option<&Before>,
        after: Option<&Entry>,
    ) -> Result<()> {
        let old = before.map(|before| start.state(before)).transpose();
        let old = old.map_err(failure::internal)?;
        let new = match after.map(|entry| state(tree, entry)).transpose() {
            Err(TreeError::File { source, .. })
                if source.kind() == io::ErrorKind::PermissionDenied =>
            {
                let why = SkipReason::Unreadable;
                self.skipped.extend(told(&[Skipped { path: path.to_owned(), why }]));
                self.skipped.truncate(SKIPPED_MAX);
                return Ok(());
            }
            new => new.map_err(failure::tree)?,
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
            let message = format!("more than {CHANGES_MAX} files changed; compare one directory");
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        self.show(path, (&old, || start.content_of(before)), (&new, || content(tree, after)))?;
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
    ) -> Result<()> {
        if self.diff.len() >= DIFF_BYTES_MAX {
            self.truncated = true;
            return Ok(());
        }
        let is_long = |state: &Option<FileState>| {
            state.as_ref().is_some_and(|state| state.size > TEXT_BYTES_MAX)
        };
        let is_long = is_long(old) || is_long(new);
        self.truncated |= is_long;
        let read = |content: io::Result<Vec<u8>>| content.map(text).map_err(failure::internal);
        let (old_text, new_text) =
            if is_long { (None, None) } else { (read(old_content())?, read(new_content())?) };
        let old = old.as_ref().map(|state| Side { state, text: old_text.as_deref() });
        let new = new.as_ref().map(|state| Side { state, text: new_text.as_deref() });
        unified::write(&mut self.diff, path, old, new);
        Ok(())
    }
}

impl Start {
    fn content_of(&self, before: Option<&Before>) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        if let Some(before) = before {
            self.content(before)?.read_to_end(&mut bytes)?;
        }
        Ok(bytes)
    }
}

/// Returns the current state of a file or symlink; `None` if it is gone, or changed its kind.
fn state(tree: &Tree, entry: &Entry) -> Result<Option<FileState>, TreeError> {
    let hashed = match entry.kind {
        EntryKind::File => tree.hash(&entry.path).map(|hash| (hash, entry.size)),
        EntryKind::Symlink => tree.read_link(&entry.path).map(|target| {
            let text = target.as_os_str().as_encoded_bytes();
            (BlobHash::from_bytes(*blake3::hash(text).as_bytes()), text.len() as u64)
        }),
        EntryKind::Directory | EntryKind::Other => return Ok(None),
    };
    match hashed {
        Ok((hash, size)) => {
            let (kind, executable) = (kind(entry.kind), entry.executable);
            Ok(Some(FileState { kind, size, executable, hash }))
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
    if kind(entry.kind) == FileKind::Symlink {
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
