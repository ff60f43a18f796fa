//! Copies entries of trees into another tree, on several threads. Where the file system can share
//! the content of two files, it does.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::num::NonZero;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use ringback_sync::lock;
use rustix::fs::{Mode, OFlags};

use super::{ArchiveSummary, Entry, EntryKind, Skipped, Tree, TreeError};

/// Entries that a thread takes at a time: neighbours, which mostly share a directory.
const ENTRIES_PER_TURN: usize = 128;
/// More threads would wait for the same disk.
const THREADS_MAX: usize = 8;

/// The work, shared by all threads.
struct Work<'a> {
    entries: Vec<(&'a Tree, &'a Entry)>,
    to: &'a Tree,
    next: AtomicUsize,
    /// Whether the file system was found to share no content.
    shares_nothing: AtomicBool,
    done: std::sync::Mutex<ArchiveSummary>,
}

/// The directories of the last file.
struct Places {
    below: PathBuf,
    from: OwnedFd,
    to: OwnedFd,
}

/// Copies entries of several trees into an empty one that no one else writes in. Entries that are
/// not a file, directory or link are left out, and so are those that have disappeared; those that
/// cannot be read are reported. Blocks.
///
/// # Errors
/// When something cannot be written, or reading a file fails half-way.
pub fn copy_all(sources: &[(&Tree, &[Entry])], to: &Tree) -> Result<ArchiveSummary, TreeError> {
    let all =
        || sources.iter().flat_map(|(tree, entries)| entries.iter().map(move |it| (*tree, it)));
    let mut dirs = BTreeSet::new();
    for (_, entry) in all() {
        let is_dir = entry.kind == EntryKind::Directory;
        dirs.extend(if is_dir { Some(&*entry.path) } else { entry.path.parent() });
    }
    dirs.into_iter().try_for_each(|dir| to.make_dir(dir))?;
    let entries = all().filter(|(_, entry)| entry.kind != EntryKind::Directory).collect();
    let (next, shares_nothing) = (AtomicUsize::new(0), AtomicBool::new(false));
    let work = Work { entries, to, next, shares_nothing, done: std::sync::Mutex::default() };
    let n_threads = std::thread::available_parallelism().map_or(1, NonZero::get).min(THREADS_MAX);
    let results: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..n_threads).map(|_| scope.spawn(|| work.run())).collect();
        let panicked = || Err(TreeError::on("copy", Path::new(""))(io::Error::other("a panic")));
        threads.into_iter().map(|it| it.join().unwrap_or_else(|_| panicked())).collect()
    });
    results.into_iter().collect::<Result<(), _>>()?;
    let mut done = std::mem::take(&mut *lock(&work.done));
    done.skipped.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(done)
}

impl Work<'_> {
    fn run(&self) -> Result<(), TreeError> {
        let mut done = ArchiveSummary::default();
        loop {
            let at = self.next.fetch_add(ENTRIES_PER_TURN, Ordering::Relaxed);
            let Some(rest) = self.entries.get(at..) else { break };
            if rest.is_empty() {
                break;
            }
            let mut places = None;
            for (tree, entry) in rest.iter().take(ENTRIES_PER_TURN) {
                match self.copy(tree, entry, &mut places) {
                    Ok(Some(n_bytes)) => {
                        done.files += 1;
                        done.bytes += n_bytes;
                    }
                    Ok(None) => {}
                    Err(error) if error.is_change() => {}
                    Err(error) => {
                        let why = error.skip_reason().ok_or(error)?;
                        done.skipped.push(Skipped { path: entry.path.clone(), why });
                    }
                }
            }
        }
        let mut all = lock(&self.done);
        all.files += done.files;
        all.bytes += done.bytes;
        all.skipped.extend(done.skipped);
        Ok(())
    }

    /// Copies an entry; returns the size of a file or a link.
    fn copy(
        &self,
        tree: &Tree,
        entry: &Entry,
        places: &mut Option<(usize, Places)>,
    ) -> Result<Option<u64>, TreeError> {
        match entry.kind {
            EntryKind::Directory | EntryKind::Other => Ok(None),
            EntryKind::Symlink => {
                self.to.link(&entry.path, &tree.read_link(&entry.path)?)?;
                Ok(Some(0))
            }
            EntryKind::File => self.copy_file(tree, entry, places).map(Some),
        }
    }

    fn copy_file(
        &self,
        tree: &Tree,
        entry: &Entry,
        places: &mut Option<(usize, Places)>,
    ) -> Result<u64, TreeError> {
        let failed = |action| move |errno| TreeError::of(errno, action, &entry.path);
        let below = entry.path.parent().unwrap_or(Path::new(""));
        let name = entry.path.file_name().unwrap_or_default();
        // Two trees may have the same directory.
        let of = std::ptr::from_ref(tree).addr();
        if !places.as_ref().is_some_and(|(known, places)| *known == of && places.below == below) {
            let here = if below.as_os_str().is_empty() { Path::new(".") } else { below };
            let dir = |tree: &Tree| tree.resolve(here, OFlags::PATH | OFlags::DIRECTORY);
            let (from, to) = (dir(tree)?, dir(self.to)?);
            *places = Some((of, Places { below: below.to_owned(), from, to }));
        }
        let Some((_, places)) = places else { return Ok(0) };
        // It was a file when it was listed; whatever it is now, opening it waits for nothing.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let from = super::open_beneath(places.from.as_fd(), name.as_ref(), flags);
        let mut from = File::from(from.map_err(failed("open"))?);
        if !from.metadata().is_ok_and(|metadata| metadata.is_file()) {
            return Err(TreeError::NotAFile { path: entry.path.clone() });
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let mode = Mode::from_raw_mode(if entry.executable { 0o755 } else { 0o644 });
        let to = rustix::fs::openat(&places.to, name, flags | OFlags::CLOEXEC, mode);
        let mut to = File::from(to.map_err(failed("write"))?);
        if entry.size > 0 && !self.shares_nothing.load(Ordering::Relaxed) {
            match rustix::fs::ioctl_ficlone(&to, &from) {
                Ok(()) => return Ok(entry.size),
                Err(_) => self.shares_nothing.store(true, Ordering::Relaxed),
            }
        }
        // What was appended since it was counted is beyond the limit. The kernel copies.
        let copied = io::copy(&mut from.by_ref().take(entry.size), &mut to);
        copied.map_err(TreeError::on("copy", &entry.path))
    }
}
