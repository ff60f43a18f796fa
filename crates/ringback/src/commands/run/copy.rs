//! A copy of a directory for an agent: the files `git` would see, in an archive.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::path::{Path, PathBuf};

use ignore::WalkBuilder;
use ringback_blobs::Tree;
use ringback_blobs::tree::{ArchiveSummary, Entry, TreeError, pack};
use ringback_broker::START_LIMITS;
use ringback_proto::chain;

use crate::failure::Failure;

/// The repository directory, which can be large and can hold secrets.
const GIT: &str = ".git";

/// A directory, packed.
#[derive(Debug)]
pub(super) struct DirCopy {
    dir: PathBuf,
    archive: File,
    packed: ArchiveSummary,
    left_out: Vec<PathBuf>,
}

impl DirCopy {
    /// Packs a directory without private files, or refuses it if it is too large. Runs before
    /// anything else is started.
    pub(super) fn of(dir: &Path, private: &[PathBuf]) -> Result<Self, Failure> {
        let failed = |source| Failure::File { action: "open", path: dir.to_owned(), source };
        let dir = dir.canonicalize().map_err(failed)?;
        if !dir.is_dir() {
            let text = format!("`{}` is not a directory; choose one with `--dir`", dir.display());
            return Err(Failure::Usage(text));
        }
        // Paths that do not exist cannot be copied.
        let private: Vec<_> = private.iter().filter_map(|path| path.canonicalize().ok()).collect();
        if let Some(private) = private.iter().find(|private| dir.starts_with(private)) {
            let (dir, private) = (dir.display(), private.display());
            let text = format!(
                "cannot copy `{dir}`: `{private}` is hidden from agents; choose another directory with `--dir`"
            );
            return Err(Failure::Usage(text));
        }
        let refused = |error: TreeError| {
            let is_large =
                matches!(error, TreeError::TooManyEntries { .. } | TreeError::TooManyBytes { .. });
            let hint = "; list files the agent does not need in `.gitignore`, or choose another directory with `--dir`";
            let hint = if is_large { hint } else { "" };
            let dir = dir.display();
            Failure::Wrong(format!("cannot copy `{dir}`: {}{hint}", chain(&error)))
        };
        let tree = Tree::open(&dir).map_err(refused)?;
        let entries = entries(&tree, &dir, &private).map_err(refused)?;
        let archive = tempfile::tempfile()
            .map_err(|source| Failure::System { action: "create a temporary file", source })?;
        let packed = pack(&tree, &entries, &archive).map_err(refused)?;
        if let Some(skipped) = packed.skipped.first() {
            let (path, why) = (dir.join(&skipped.path), skipped.why.as_str());
            let text = format!(
                "cannot copy `{}`: {why}; list it in `.gitignore`, or choose another directory with \
                 `--dir`",
                path.display()
            );
            return Err(Failure::Wrong(text));
        }
        let left_out = private.into_iter().filter(|path| path.starts_with(&dir)).collect();
        Ok(Self { dir, archive, packed, left_out })
    }

    /// Returns the copied directory.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the size of the copy.
    pub(super) const fn packed(&self) -> &ArchiveSummary {
        &self.packed
    }

    /// Returns the private paths that were left out.
    pub(super) fn left_out(&self) -> &[PathBuf] {
        &self.left_out
    }

    /// Returns the whole archive, unless it is longer than `bytes_max`.
    pub(super) fn bytes(&self, bytes_max: u64) -> Result<Option<Vec<u8>>, Failure> {
        let mut bytes = Vec::new();
        let read = self.archive()?.take(bytes_max + 1).read_to_end(&mut bytes);
        read.map_err(|source| Failure::System { action: "read a temporary file", source })?;
        Ok((bytes.len() as u64 <= bytes_max).then_some(bytes))
    }

    /// Returns the archive, positioned at its start.
    pub(super) fn archive(&self) -> Result<File, Failure> {
        let failed = |source| Failure::System { action: "read a temporary file", source };
        let mut archive = self.archive.try_clone().map_err(failed)?;
        archive.rewind().map_err(failed)?;
        Ok(archive)
    }
}

/// Lists the entries to copy, in order.
fn entries(tree: &Tree, dir: &Path, private: &[PathBuf]) -> Result<Vec<Entry>, TreeError> {
    let private = private.to_vec();
    let walk = WalkBuilder::new(dir)
        .hidden(false)
        .require_git(false)
        .follow_links(false)
        .filter_entry(move |entry| {
            entry.file_name() != GIT && !private.iter().any(|private| entry.path() == private)
        })
        .sort_by_file_name(Ord::cmp)
        .build();
    let (mut entries, mut n_bytes) = (Vec::new(), 0_u64);
    for found in walk {
        let found = found.map_err(|error| TreeError::File {
            action: "read",
            path: dir.to_owned(),
            source: std::io::Error::other(error),
        })?;
        let Some(path) = found.path().strip_prefix(dir).ok().filter(|path| *path != Path::new(""))
        else {
            continue;
        };
        let entry = match tree.entry(path) {
            // Deleted since it was listed.
            Err(TreeError::NotFound { .. }) => continue,
            entry => entry?,
        };
        n_bytes = n_bytes.saturating_add(entry.size);
        if n_bytes > START_LIMITS.bytes_max {
            return Err(TreeError::TooManyBytes { max: START_LIMITS.bytes_max });
        }
        if entries.len() == START_LIMITS.entries_max {
            return Err(TreeError::TooManyEntries { max: START_LIMITS.entries_max });
        }
        entries.push(entry);
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

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
        let entries = entries(&tree, &dir, &[]).unwrap();
        let mut paths: Vec<_> =
            entries.iter().map(|entry| entry.path.to_str().unwrap().to_owned()).collect();
        paths.sort_unstable();
        assert_eq!(paths, [".gitignore", ".hidden", "link", "src", "src/main.rs"]);
        assert_eq!(DirCopy::of(&dir, &[]).unwrap().packed().files, 4);
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
        let copy = DirCopy::of(dir.path(), &private).unwrap();
        // The link itself counts: it dangles in the copy.
        assert_eq!((copy.packed().files, copy.left_out().len()), (2, 2));
        for inside in ["share/data", "share/data/secrets"] {
            let refused = DirCopy::of(&dir.path().join(inside), &private).unwrap_err();
            assert!(matches!(refused, Failure::Usage(_)), "{refused}");
        }
    }

    #[test]
    fn a_directory_that_is_too_large_is_refused_by_its_limit() {
        let dir = tempfile::tempdir().unwrap();
        let large = File::create(dir.path().join("large")).unwrap();
        large.set_len(START_LIMITS.bytes_max + 1).unwrap();
        let refused = DirCopy::of(dir.path(), &[]).unwrap_err().to_string();
        assert!(refused.contains("268435456 bytes") && refused.contains(".gitignore"), "{refused}");
    }
}
