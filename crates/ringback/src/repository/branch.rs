//! A commit on a new branch of the user's repository, without its working tree.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::discovery::Repository;
use super::git::{Git, RepositoryError, is_id, own_setting, quoted};
use super::references::{self, References};

/// The author of what an agent did.
const AUTHOR: &str = "agent@ringback.invalid";
/// The committer, if the user has no name in the own settings of `git`.
const NAME: &str = "Ringback";
/// The branch in the temporary repository.
const TEMPORARY: &str = "refs/heads/made";

/// A file of the new commit.
#[derive(Debug)]
pub(crate) struct BranchChange {
    /// Its path, relative to the directory that was copied.
    pub(crate) path: PathBuf,
    /// Its content; `None` if it was removed.
    pub(crate) content: Option<Content>,
}

/// The content of a file.
#[derive(Debug)]
pub(crate) enum Content {
    /// A file.
    File {
        /// Its bytes.
        bytes: Vec<u8>,
        /// Whether it can be run.
        executable: bool,
    },
    /// A symbolic link, with its target.
    Link(Vec<u8>),
}

/// The commit to make.
#[derive(Debug)]
pub(crate) struct BranchCommit<'a> {
    /// The name of the branch.
    pub(crate) branch: &'a str,
    /// The commit that the copy was made at.
    pub(crate) base: &'a str,
    /// The message.
    pub(crate) message: &'a str,
    /// The name of the agent.
    pub(crate) agent: &'a str,
    /// Seconds since the Unix epoch.
    pub(crate) at: u64,
    /// The user's `PATH` and home.
    pub(crate) path: Option<&'a OsStr>,
    pub(crate) home: Option<&'a Path>,
}

impl BranchCommit<'_> {
    /// Checks that the branch can be made, before anything is fetched.
    pub(crate) fn check(&self, repository: &Repository) -> Result<(), RepositoryError> {
        references::check_free(&References::of(repository), &self.name())?;
        if is_id(self.base) {
            return Ok(());
        }
        Err(RepositoryError::Refused("the copy was made before the first commit".to_owned()))
    }

    /// Makes the commit and the branch. Neither index nor working tree change, and no hook runs.
    /// Returns the id of the commit. Blocks.
    pub(crate) fn make(
        &self,
        repository: &Repository,
        dir: &Path,
        changes: &[BranchChange],
    ) -> Result<String, RepositoryError> {
        self.check(repository)?;
        let temp = tempfile::tempdir().map_err(RepositoryError::on("create", Path::new("/tmp")))?;
        let (at, nowhere) = (temp.path().join("git"), temp.path().join("nowhere"));
        for dir in [at.join("objects"), at.join("refs/heads"), nowhere.clone()] {
            fs::create_dir_all(&dir).map_err(RepositoryError::on("create", &dir))?;
        }
        let is_long = self.base.len() > 40;
        let format = if is_long { "[extensions]\n\tobjectformat = sha256\n" } else { "" };
        let config = format!("[core]\n\trepositoryformatversion = {}\n{format}", u8::from(is_long));
        for (name, text) in [("HEAD", format!("ref: {TEMPORARY}\n")), ("config", config)] {
            let path = at.join(name);
            fs::write(&path, text).map_err(RepositoryError::on("write", &path))?;
        }
        let git = Git::new(self.path, &at, &nowhere, &repository.objects())?;
        let below = dir.strip_prefix(&repository.root).unwrap_or(Path::new(""));
        git.run(&["fast-import", "--quiet"], &self.stream(below, changes))?;
        let made = git.run(&["rev-parse", "--verify", TEMPORARY], &[])?;
        let made = String::from_utf8_lossy(&made).trim().to_owned();
        if !is_id(&made) {
            let why = format!("`git` named the commit `{made}`");
            return Err(RepositoryError::Refused(why));
        }
        let wanted = format!("{made}\n^{}\n", self.base);
        let pack = git.run(&["pack-objects", "--revs", "--stdout", "-q"], wanted.as_bytes())?;
        let objects = repository.objects();
        git.run_in(&["unpack-objects", "-q", "--strict"], &pack, Some(&objects))?;
        references::create(repository, &self.name(), &made)?;
        Ok(made)
    }

    fn name(&self) -> String {
        format!("refs/heads/{}", self.branch)
    }

    /// Returns the commit as `git fast-import` reads it.
    fn stream(&self, below: &Path, changes: &[BranchChange]) -> Vec<u8> {
        let own = |key: &str| own_setting(self.path, self.home, key);
        let name = own("user.name").unwrap_or_else(|| NAME.to_owned());
        let email = own("user.email").unwrap_or_else(|| AUTHOR.to_owned());
        let plain = |c: &char| !c.is_control() && !matches!(c, '<' | '>');
        let agent: String = self.agent.chars().filter(plain).collect();
        let (at, message) = (self.at, self.message);
        let mut stream = format!(
            "commit {TEMPORARY}\nauthor {agent} <{AUTHOR}> {at} +0000\n\
             committer {name} <{email}> {at} +0000\ndata {}\n{message}\nfrom {}\n",
            message.len(),
            self.base
        )
        .into_bytes();
        // Removals first: a directory may have become a file, or a file a directory.
        for removed in changes.iter().filter(|change| change.content.is_none()) {
            stream.extend_from_slice(b"D ");
            line(&mut stream, &below.join(&removed.path));
        }
        for change in changes {
            let (mode, bytes) = match &change.content {
                None => continue,
                Some(Content::File { bytes, executable: false }) => ("100644", bytes),
                Some(Content::File { bytes, executable: true }) => ("100755", bytes),
                Some(Content::Link(target)) => ("120000", target),
            };
            stream.extend(format!("M {mode} inline ").into_bytes());
            line(&mut stream, &below.join(&change.path));
            stream.extend(format!("data {}\n", bytes.len()).into_bytes());
            stream.extend_from_slice(bytes);
            stream.push(b'\n');
        }
        stream
    }
}

fn line(stream: &mut Vec<u8>, path: &Path) {
    stream.extend(quoted(path).into_encoded_bytes());
    stream.push(b'\n');
}
