//! The private repository in the copy of a directory: history, index and branches, and nothing that
//! runs or leads elsewhere.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::discovery::Repository;
use super::git::{Git, RepositoryError, is_id};
use super::references::References;
use super::subdirectory;

/// The whole configuration of a copy.
const CONFIG: &str = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\
    \tlogallrefupdates = true\n[user]\n\tname = Agent\n\temail = agent@ringback.invalid\n[submodule]\n\tactive = .\n";
/// The same for a repository whose ids are longer.
const CONFIG_OF_SHA256: &str = "[core]\n\trepositoryformatversion = 1\n\tfilemode = true\n\
    \tbare = false\n\tlogallrefupdates = true\n[extensions]\n\tobjectformat = sha256\n\
    [user]\n\tname = Agent\n\temail = agent@ringback.invalid\n[submodule]\n\tactive = .\n";
/// The length of their ids.
const SHA256_DIGITS: usize = 64;
/// A history beyond this is copied only in part.
const HISTORY_BYTES_MAX: u64 = 512 << 20;
/// The commits of such a part.
const COMMITS_OF_PART: &str = "--max-count=200";
/// Rules of files that are not tracked, which the user alone has.
const EXCLUDED: &str = "info/exclude";
const EXCLUDED_BYTES_MAX: u64 = 1 << 20;
/// Submodules of a repository, and within each other.
const SUBMODULES_MAX: usize = 100;
const DEPTH_MAX: usize = 5;
/// The mode of a submodule in an index.
const SUBMODULE_MODE: &[u8] = b"160000";
/// Marks an entry of an index whose file is left out on purpose.
const SKIPPED: &[u8] = b"S ";

/// A private repository, and those of its submodules.
#[derive(Debug)]
pub(crate) struct PrivateCopy {
    git: Git,
    /// The commit it starts at; `None` before the first one.
    pub(crate) base: Option<String>,
    /// The tracked files, relative to the copied directory.
    pub(crate) tracked: Vec<PathBuf>,
    /// Whether older commits were left out.
    pub(crate) is_part: bool,
}

/// An entry of an index.
struct IndexEntry<'a> {
    is_skipped: bool,
    /// Its mode, id and stage.
    state: &'a [u8],
    path: &'a [u8],
}

impl PrivateCopy {
    /// Makes the private repository of `dir`, which is in `repository`, at `to`/.git. Runs nothing
    /// of the repository. `to` is an empty directory of ours; so is `nowhere`. Blocks.
    pub(crate) fn make(
        repository: &Repository,
        dir: &Path,
        to: &Path,
        nowhere: &Path,
        path: Option<&OsStr>,
    ) -> Result<Self, RepositoryError> {
        make(repository, dir, to, &Surroundings { nowhere, path }, DEPTH_MAX)
    }

    /// Marks tracked files as left out on purpose, so that they do not count as deleted.
    pub(crate) fn leave_out(&self, paths: &[PathBuf]) -> Result<(), RepositoryError> {
        if paths.is_empty() {
            return Ok(());
        }
        let bytes = paths.iter().map(|path| path.as_os_str().as_bytes());
        skip(&self.git, bytes)
    }
}

struct Surroundings<'a> {
    nowhere: &'a Path,
    path: Option<&'a OsStr>,
}

fn make(
    repository: &Repository,
    dir: &Path,
    to: &Path,
    around: &Surroundings<'_>,
    depth: usize,
) -> Result<PrivateCopy, RepositoryError> {
    let at = to.join(".git");
    let git = Git::new(around.path, &at, around.nowhere, &repository.objects())?;
    let below = dir.strip_prefix(&repository.root).unwrap_or(Path::new(""));
    let mut references = References::of(repository);
    let base = references.head.clone();
    write_dirs(repository, &references, &at)?;
    let listed = index_of(repository, &git)?;
    let entries: Vec<_> = entries(&listed, below).collect();
    put_index(&git, &entries)?;
    keep_known(&git, &mut references)?;
    let mut is_part = copy_if_there(&repository.common_dir, &at, "shallow")?;
    if below.as_os_str().is_empty() {
        is_part |= keep_recent(repository, &git, &mut references)?;
    } else {
        is_part |= subdirectory::keep(&git, below, &mut references)?;
    }
    references.write(&at)?;
    pack(&git, &references)?;
    let submodules = entries.iter().filter(|entry| entry.state.starts_with(SUBMODULE_MODE));
    for entry in submodules.take(SUBMODULES_MAX).filter(|_| depth > 0) {
        let below = Path::new(OsStr::from_bytes(entry.path));
        let root = dir.join(below);
        // What a path leads to by a link is not part of the directory.
        if fs::canonicalize(&root).ok().as_deref() != Some(&*root) {
            continue;
        }
        if let Some(submodule) = Repository::submodule(&root)? {
            make(&submodule, &root, &to.join(below), around, depth - 1)?;
        }
    }
    let path = |entry: &IndexEntry<'_>| PathBuf::from(OsStr::from_bytes(entry.path));
    let files = entries.iter().filter(|entry| !entry.state.starts_with(SUBMODULE_MODE));
    Ok(PrivateCopy { base, tracked: files.map(path).collect(), is_part, git })
}

/// Writes a repository directory without references and objects.
fn write_dirs(
    repository: &Repository,
    references: &References,
    at: &Path,
) -> Result<(), RepositoryError> {
    for name in ["objects/pack", "objects/info", "refs/heads", "refs/tags", "info"] {
        let dir = at.join(name);
        fs::create_dir_all(&dir).map_err(RepositoryError::on("create", &dir))?;
    }
    let mut ids = references.all.values().chain(&references.head);
    let config = if ids.any(|id| id.len() == SHA256_DIGITS) { CONFIG_OF_SHA256 } else { CONFIG };
    for (name, text) in [("config", config), ("HEAD", "ref: refs/heads/main\n")] {
        let path = at.join(name);
        fs::write(&path, text).map_err(RepositoryError::on("write", &path))?;
    }
    copy_if_there(&repository.common_dir, at, EXCLUDED).map(drop)
}

/// Copies a small file, unless it is a link. Returns whether there is one.
fn copy_if_there(from: &Path, to: &Path, name: &str) -> Result<bool, RepositoryError> {
    let from = from.join(name);
    let is_there = fs::symlink_metadata(&from)
        .is_ok_and(|found| found.is_file() && found.len() <= EXCLUDED_BYTES_MAX);
    if is_there {
        fs::copy(&from, to.join(name)).map_err(RepositoryError::on("copy", &from))?;
    }
    Ok(is_there)
}

/// Lists the index of a repository: `git` reads a copy of it.
fn index_of(repository: &Repository, git: &Git) -> Result<Vec<u8>, RepositoryError> {
    let (from, copy) = (repository.git_dir.join("index"), git.dir().join("index.of-user"));
    if !fs::symlink_metadata(&from).is_ok_and(|found| found.is_file()) {
        return Ok(Vec::new());
    }
    let mut copied = vec![copy.clone()];
    fs::copy(&from, &copy).map_err(RepositoryError::on("copy", &from))?;
    for entry in fs::read_dir(&repository.git_dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_shared = name.as_bytes().starts_with(b"sharedindex.");
        if is_shared && entry.file_type().is_ok_and(|kind| kind.is_file()) {
            let to = git.dir().join(&name);
            fs::copy(entry.path(), &to).map_err(RepositoryError::on("copy", &entry.path()))?;
            copied.push(to);
        }
    }
    let listed = git.with_index(&copy).run(&["ls-files", "--stage", "-t", "-z"], &[]);
    for path in copied {
        fs::remove_file(&path).map_err(RepositoryError::on("remove", &path))?;
    }
    listed
}

/// Returns the entries below a directory, relative to it.
fn entries<'a>(listed: &'a [u8], below: &'a Path) -> impl Iterator<Item = IndexEntry<'a>> {
    let below = below.as_os_str().as_bytes();
    listed.split(|byte| *byte == 0).filter_map(move |line| {
        let tab = line.iter().position(|byte| *byte == b'\t')?;
        let (state, path) = (line.get(2..tab)?, line.get(tab + 1..)?);
        let path = match below {
            b"" => path,
            below => path.strip_prefix(below)?.strip_prefix(b"/")?,
        };
        Some(IndexEntry { is_skipped: line.starts_with(SKIPPED), state, path })
    })
}

fn put_index(git: &Git, entries: &[IndexEntry<'_>]) -> Result<(), RepositoryError> {
    let mut input = Vec::new();
    for entry in entries {
        for part in [entry.state, b"\t", entry.path, b"\0"] {
            input.extend_from_slice(part);
        }
    }
    git.run(&["update-index", "-z", "--index-info"], &input)?;
    skip(git, entries.iter().filter(|entry| entry.is_skipped).map(|entry| entry.path))
}

fn skip<'a>(git: &Git, paths: impl Iterator<Item = &'a [u8]>) -> Result<(), RepositoryError> {
    let input: Vec<u8> = paths.flat_map(|path| path.iter().copied().chain([0])).collect();
    if !input.is_empty() {
        git.run(&["update-index", "-z", "--skip-worktree", "--stdin"], &input)?;
    }
    Ok(())
}

/// Leaves out references to objects that are not there.
fn keep_known(git: &Git, references: &mut References) -> Result<(), RepositoryError> {
    let ids = references.all.values().chain(&references.head);
    let input: String = ids.map(|id| format!("{id}\n")).collect();
    let listed = git.run(&["cat-file", "--batch-check=%(objectname)"], input.as_bytes())?;
    let listed = String::from_utf8_lossy(&listed);
    let known: std::collections::BTreeSet<_> = listed.lines().filter(|line| is_id(line)).collect();
    references.all.retain(|_, id| known.contains(id.as_str()));
    references.head = references.head.take().filter(|id| known.contains(id.as_str()));
    Ok(())
}

/// Keeps only the newest commits of a large history. Returns whether it is one.
fn keep_recent(
    repository: &Repository,
    git: &Git,
    references: &mut References,
) -> Result<bool, RepositoryError> {
    let packs = fs::read_dir(repository.objects().join("pack")).into_iter().flatten().flatten();
    let sizes = packs.filter_map(|pack| pack.metadata().ok()).map(|pack| pack.len());
    let Some(head) = references.head.clone() else { return Ok(false) };
    if sizes.sum::<u64>() <= HISTORY_BYTES_MAX {
        return Ok(false);
    }
    let listed = git.run(&["rev-list", "--parents", COMMITS_OF_PART, &head], &[])?;
    let listed = String::from_utf8_lossy(&listed).into_owned();
    let commits: Vec<Vec<_>> = listed.lines().map(|line| line.split(' ').collect()).collect();
    let kept: std::collections::BTreeSet<_> =
        commits.iter().filter_map(|ids| ids.first().copied()).collect();
    let is_edge = |ids: &&Vec<&str>| ids.iter().skip(1).any(|parent| !kept.contains(parent));
    let edges = commits.iter().filter(is_edge).filter_map(|ids| ids.first());
    let shallow: String = edges.map(|id| format!("{id}\n")).collect();
    let path = git.dir().join("shallow");
    fs::write(&path, shallow).map_err(RepositoryError::on("write", &path))?;
    let branch = references.branch.clone();
    references.all.retain(|name, _| Some(name) == branch.as_ref());
    Ok(true)
}

/// Copies the objects that references and index need, and no others.
fn pack(git: &Git, references: &References) -> Result<(), RepositoryError> {
    let ids = references.all.values().chain(&references.head);
    let input: String = ids.map(|id| format!("{id}\n")).collect();
    let base = git.dir().join("objects/pack/pack");
    let base = base.to_str().ok_or_else(|| {
        RepositoryError::Refused("the temporary directory has no name in UTF-8".to_owned())
    })?;
    let options =
        ["pack-objects", "--revs", "--indexed-objects", "--delta-base-offset", "-q", base];
    git.run(&options, input.as_bytes()).map(drop)
}
