//! A copy of a directory for an agent: the files `git` would see and those that the user names, with
//! a private repository.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Seek as _;
use std::path::{Path, PathBuf};

use ignore::WalkBuilder;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ringback_blobs::Tree;
use ringback_blobs::tree::{
    ArchiveSummary, Entry, EntryKind, TreeError, TreeLimits, TreeListing, copy_all, pack_all,
};
use ringback_broker::START_LIMITS;
use ringback_proto::chain;
use tempfile::TempDir;

use super::selection::CopyArgs;
use crate::failure::Failure;
use crate::repository::{PrivateCopy, Repository, RepositoryError};

/// The repository directory, which can be large and can hold secrets.
const GIT: &str = ".git";

/// A directory that is about to be copied.
#[derive(Debug)]
pub(super) struct DirCopy {
    dir: PathBuf,
    tree: Tree,
    entries: Vec<Entry>,
    /// The private repository.
    own: Option<OwnFiles>,
    left_out: Vec<PathBuf>,
    base: Option<String>,
    remark: Option<String>,
}

/// Files that are made for the copy.
#[derive(Debug)]
struct OwnFiles {
    tree: Tree,
    entries: Vec<Entry>,
    /// Removed with this.
    _temp: TempDir,
}

/// What to copy, and what to keep out whatever is named.
#[derive(Debug)]
struct Selection<'a> {
    tree: &'a Tree,
    dir: &'a Path,
    private: &'a [PathBuf],
    excluded: Gitignore,
    entries: BTreeMap<PathBuf, Entry>,
    n_bytes: u64,
}

/// A private repository in a temporary directory.
#[derive(Debug)]
struct History {
    temp: TempDir,
    copy: PrivateCopy,
}

impl DirCopy {
    /// Chooses what of a directory is copied, without private files, or refuses it if it is too
    /// large. Runs before anything else is started.
    pub(super) fn of(
        dir: &Path,
        private: &[PathBuf],
        args: &CopyArgs,
        path: Option<&OsStr>,
    ) -> Result<Self, Failure> {
        let dir = directory(dir)?;
        // Paths that do not exist cannot be copied.
        let private: Vec<_> = private.iter().filter_map(|path| path.canonicalize().ok()).collect();
        check_not_private(&dir, &private)?;
        let refused = |error: TreeError| cannot_copy(&dir, &error);
        let history = if args.no_git { Ok(None) } else { History::of(&dir, path) };
        let (history, mut remark) = match history {
            Ok(history) => (history, None),
            Err(error) => {
                (None, Some(format!("the history of the repository is left out: {error}")))
            }
        };
        let tree = Tree::open(&dir).map_err(refused)?;
        let mut selection = Selection::new(&tree, &dir, &private, args)?;
        selection.add_unignored().map_err(refused)?;
        let tracked = history.as_ref().map_or(&[][..], |history| &history.copy.tracked);
        let left = selection.add_tracked(tracked).map_err(refused)?;
        selection.add_included(&args.include)?;
        let entries = selection.entries.into_values().collect();
        let base = history.as_ref().and_then(|history| history.copy.base.clone());
        if history.as_ref().is_some_and(|history| history.copy.is_part) {
            remark = Some("only the newest commits are in the copy".to_owned());
        }
        let own = history.map(|history| history.files(&left)).transpose()?;
        let left_out = private.into_iter().filter(|path| path.starts_with(&dir)).collect();
        Ok(Self { dir, tree, entries, own, left_out, base, remark })
    }

    /// Returns the copied directory.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the number of files and links, without those of the repository.
    pub(super) fn files(&self) -> usize {
        let is_file = |entry: &&Entry| match entry.kind {
            EntryKind::File | EntryKind::Symlink => true,
            EntryKind::Directory | EntryKind::Other => false,
        };
        self.entries.iter().filter(is_file).count()
    }

    /// Returns the size of these files.
    pub(super) fn bytes(&self) -> u64 {
        self.entries.iter().map(|entry| entry.size).sum()
    }

    /// Returns the private paths that were left out.
    pub(super) fn left_out(&self) -> &[PathBuf] {
        &self.left_out
    }

    /// Returns the commit that the copy was made at.
    pub(super) fn base(&self) -> Option<&str> {
        self.base.as_deref()
    }

    /// Returns what is to be said about the history.
    pub(super) fn remark(&self) -> Option<&str> {
        self.remark.as_deref()
    }

    /// Packs the copy into a temporary file, positioned at its start. Blocks.
    pub(super) fn pack(&self) -> Result<File, Failure> {
        let failed = |source| Failure::System { action: "write a temporary file", source };
        let mut archive = tempfile::tempfile().map_err(failed)?;
        let packed = pack_all(&self.sources(), &archive);
        self.check(&packed.map_err(|error| cannot_copy(&self.dir, &error))?)?;
        archive.rewind().map_err(failed)?;
        Ok(archive)
    }

    /// Copies everything into an empty directory that no one else writes in. Blocks.
    pub(super) fn copy_to(&self, to: &Tree) -> Result<(), Failure> {
        let copied = copy_all(&self.sources(), to);
        self.check(&copied.map_err(|error| cannot_copy(&self.dir, &error))?)
    }

    fn sources(&self) -> Vec<(&Tree, &[Entry])> {
        let own = self.own.iter().map(|own| (&own.tree, &*own.entries));
        [(&self.tree, &*self.entries)].into_iter().chain(own).collect()
    }

    /// Checks that everything could be read.
    fn check(&self, copied: &ArchiveSummary) -> Result<(), Failure> {
        let Some(skipped) = copied.skipped.first() else { return Ok(()) };
        let (path, why) = (self.dir.join(&skipped.path), skipped.why.as_str());
        let text = format!(
            "cannot copy `{}`: {why}; leave it out with `--exclude`, or choose another directory with \
             `--dir`",
            path.display()
        );
        Err(Failure::Wrong(text))
    }
}

fn directory(dir: &Path) -> Result<PathBuf, Failure> {
    let failed = |source| Failure::File { action: "open", path: dir.to_owned(), source };
    let dir = dir.canonicalize().map_err(failed)?;
    if dir.is_dir() {
        return Ok(dir);
    }
    let text = format!("`{}` is not a directory; choose one with `--dir`", dir.display());
    Err(Failure::Usage(text))
}

fn check_not_private(dir: &Path, private: &[PathBuf]) -> Result<(), Failure> {
    let Some(private) = private.iter().find(|private| dir.starts_with(private)) else {
        return Ok(());
    };
    let (dir, private) = (dir.display(), private.display());
    let text = format!(
        "cannot copy `{dir}`: `{private}` is hidden from agents; choose another directory with `--dir`"
    );
    Err(Failure::Usage(text))
}

/// The directory of the copy within a temporary one, and that of an empty working tree.
const COPY: &str = "copy";
const NOWHERE: &str = "nowhere";

impl History {
    /// Makes the private repository of a directory, if that is in one and has tracked files.
    fn of(dir: &Path, path: Option<&OsStr>) -> Result<Option<Self>, RepositoryError> {
        let Some(repository) = Repository::of(dir)? else { return Ok(None) };
        let failed = |source| RepositoryError::File {
            action: "create a directory in",
            path: std::env::temp_dir(),
            source,
        };
        let temp = tempfile::tempdir().map_err(failed)?;
        let (to, nowhere) = (temp.path().join(COPY), temp.path().join(NOWHERE));
        for dir in [&to, &nowhere] {
            fs::create_dir(dir).map_err(failed)?;
        }
        let copy = PrivateCopy::make(&repository, dir, &to, &nowhere, path)?;
        let is_of_dir = repository.root == dir || !copy.tracked.is_empty();
        Ok(is_of_dir.then_some(Self { temp, copy }))
    }

    /// Returns the files of the repository, in which these do not count as deleted.
    fn files(self, left_out: &[PathBuf]) -> Result<OwnFiles, Failure> {
        let left = self.copy.leave_out(left_out);
        left.map_err(|error| Failure::Wrong(error.to_string()))?;
        let at = self.temp.path().join(COPY);
        let refused = |error: TreeError| cannot_copy(&at, &error);
        let tree = Tree::open(&at).map_err(refused)?;
        let limits = TreeLimits { bytes_max: u64::MAX, ..START_LIMITS };
        let TreeListing { entries, .. } =
            tree.walk(Path::new(""), limits, |_| true).map_err(refused)?;
        Ok(OwnFiles { tree, entries, _temp: self.temp })
    }
}

impl<'a> Selection<'a> {
    fn new(
        tree: &'a Tree,
        dir: &'a Path,
        private: &'a [PathBuf],
        args: &CopyArgs,
    ) -> Result<Self, Failure> {
        let mut excluded = GitignoreBuilder::new(dir);
        for pattern in &args.exclude {
            excluded.add_line(None, pattern).map_err(|error| {
                Failure::Usage(format!("`{pattern}` is not a pattern for `--exclude`: {error}"))
            })?;
        }
        let excluded = excluded.build().map_err(|error| Failure::Usage(error.to_string()))?;
        Ok(Self { tree, dir, private, excluded, entries: BTreeMap::new(), n_bytes: 0 })
    }

    /// Adds what no `.gitignore` names.
    fn add_unignored(&mut self) -> Result<(), TreeError> {
        self.add_walked(self.dir, WalkBuilder::new(self.dir).require_git(false))
    }

    /// Adds the tracked files that are there, even if they are ignored. Returns those that are there
    /// and left out all the same.
    fn add_tracked(&mut self, tracked: &[PathBuf]) -> Result<Vec<PathBuf>, TreeError> {
        let mut left = Vec::new();
        for path in tracked.iter().filter(|path| !path.as_os_str().is_empty()) {
            if self.entries.contains_key(path) {
                continue;
            }
            // What is behind a link is not there.
            let Ok(entry) = self.tree.entry(path) else { continue };
            if self.is_kept(path, false) && entry.kind != EntryKind::Directory {
                self.add(entry)?;
            } else {
                left.push(path.clone());
            }
        }
        Ok(left)
    }

    /// Adds what the user names, ignored or not.
    fn add_included(&mut self, included: &[PathBuf]) -> Result<(), Failure> {
        for named in included {
            let outside = || {
                let text = format!(
                    "`--include {}` is not below the directory `{}`",
                    named.display(),
                    self.dir.display()
                );
                Failure::Usage(text)
            };
            let at = self.dir.join(named);
            let below = at.strip_prefix(self.dir).map_err(|_| outside())?;
            let entry = self.tree.entry(below).map_err(|error| {
                Failure::Usage(format!("`--include {}`: {error}", named.display()))
            })?;
            if !self.is_kept(&entry.path, entry.kind == EntryKind::Directory) {
                let text = format!("`--include {}` names what no copy has", named.display());
                return Err(Failure::Usage(text));
            }
            let dir = self.dir;
            let refused = |error: TreeError| cannot_copy(dir, &error);
            if entry.kind != EntryKind::Directory {
                self.add(entry).map_err(refused)?;
                continue;
            }
            self.add_walked(&at, WalkBuilder::new(&at).standard_filters(false)).map_err(refused)?;
        }
        Ok(())
    }

    fn add_walked(&mut self, root: &Path, walk: &mut WalkBuilder) -> Result<(), TreeError> {
        let (private, excluded) = (self.private.to_vec(), self.excluded.clone());
        let dir = self.dir.to_owned();
        let walk = walk
            .hidden(false)
            .follow_links(false)
            .filter_entry(move |entry| {
                let is_dir = entry.file_type().is_some_and(|kind| kind.is_dir());
                is_kept(&dir, &private, &excluded, entry.path(), is_dir)
            })
            .sort_by_file_name(Ord::cmp)
            .build();
        for found in walk {
            let found = found.map_err(|error| TreeError::File {
                action: "read",
                path: root.to_owned(),
                source: std::io::Error::other(error),
            })?;
            let path = found.path().strip_prefix(self.dir).ok();
            let Some(path) = path.filter(|path| *path != Path::new("")) else { continue };
            match self.tree.entry(path) {
                // Deleted since it was listed.
                Err(TreeError::NotFound { .. }) => {}
                entry => self.add(entry?)?,
            }
        }
        Ok(())
    }

    fn is_kept(&self, path: &Path, is_dir: bool) -> bool {
        let at = self.dir.join(path);
        // Also what is in a directory that is left out.
        let above = at.ancestors().skip(1).take_while(|above| above.starts_with(self.dir));
        let mut above = above.filter(|above| *above != self.dir);
        is_kept(self.dir, self.private, &self.excluded, &at, is_dir)
            && above.all(|above| is_kept(self.dir, self.private, &self.excluded, above, true))
    }

    fn add(&mut self, entry: Entry) -> Result<(), TreeError> {
        if self.entries.contains_key(&entry.path) {
            return Ok(());
        }
        self.n_bytes = self.n_bytes.saturating_add(entry.size);
        if self.n_bytes > START_LIMITS.bytes_max {
            return Err(TreeError::TooManyBytes { max: START_LIMITS.bytes_max });
        }
        if self.entries.len() == START_LIMITS.entries_max {
            return Err(TreeError::TooManyEntries { max: START_LIMITS.entries_max });
        }
        self.entries.insert(entry.path.clone(), entry);
        Ok(())
    }
}

/// Returns whether a path may be copied: neither part of a repository nor private nor excluded.
fn is_kept(dir: &Path, private: &[PathBuf], excluded: &Gitignore, at: &Path, is_dir: bool) -> bool {
    at == dir
        || (at.file_name() != Some(OsStr::new(GIT))
            && !private.iter().any(|private| at == private)
            && !excluded.matched(at, is_dir).is_ignore())
}

fn cannot_copy(dir: &Path, error: &TreeError) -> Failure {
    let is_large =
        matches!(error, TreeError::TooManyEntries { .. } | TreeError::TooManyBytes { .. });
    let hint = "; leave out what the agent does not need with `--exclude`, or choose another \
                directory with `--dir`";
    let hint = if is_large { hint } else { "" };
    Failure::Wrong(format!("cannot copy `{}`: {}{hint}", dir.display(), chain(error)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn copied(dir: &Path, private: &[PathBuf]) -> Result<DirCopy, Failure> {
        DirCopy::of(dir, private, &CopyArgs::default(), None)
    }

    /// Rule: a copy has what `git` would see: no repository, no ignored files, links as links.
    #[test]
    fn a_copy_has_what_git_would_see() {
        let dir = tempfile::tempdir().unwrap();
        for name in [".git", "target", "src"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        for (name, text) in [
            (".git/config", "secret"),
            (".gitignore", "target/\n*.key\n"),
            ("target/built", "x"),
            ("src/main.rs", "fn main() {}"),
            ("src/my.key", "secret"),
            (".hidden", "seen"),
        ] {
            fs::write(dir.path().join(name), text).unwrap();
        }
        std::os::unix::fs::symlink("/etc", dir.path().join("link")).unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let tree = Tree::open(&dir).unwrap();
        let mut selection = Selection::new(&tree, &dir, &[], &CopyArgs::default()).unwrap();
        selection.add_unignored().unwrap();
        let paths: Vec<_> = selection.entries.keys().map(|path| path.to_str().unwrap()).collect();
        assert_eq!(paths, [".gitignore", ".hidden", "link", "src", "src/main.rs"]);
        assert_eq!(copied(&dir, &[]).unwrap().files(), 4);
    }

    /// Rule: private paths are never copied, neither under another name nor as the directory
    /// itself.
    #[test]
    fn what_is_private_is_in_no_copy() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("share/data/secrets")).unwrap();
        for name in ["share/data/token", "share/data/secrets/sealing.key", "share/config", "seen"] {
            fs::write(dir.path().join(name), "x").unwrap();
        }
        std::os::unix::fs::symlink("share/data", dir.path().join("data")).unwrap();
        let private = ["data", "share/config", "nowhere"].map(|name| dir.path().join(name));
        let copy = copied(dir.path(), &private).unwrap();
        // The link itself counts: it dangles in the copy.
        assert_eq!((copy.files(), copy.left_out().len()), (2, 2));
        for inside in ["share/data", "share/data/secrets"] {
            let refused = copied(&dir.path().join(inside), &private).unwrap_err();
            assert!(matches!(refused, Failure::Usage(_)), "{refused}");
        }
    }

    #[test]
    fn a_directory_that_is_too_large_is_refused_by_its_limit() {
        let dir = tempfile::tempdir().unwrap();
        let large = File::create(dir.path().join("large")).unwrap();
        large.set_len(START_LIMITS.bytes_max + 1).unwrap();
        let refused = copied(dir.path(), &[]).unwrap_err().to_string();
        assert!(refused.contains("8 GiB") && refused.contains("--exclude"), "{refused}");
    }
}
