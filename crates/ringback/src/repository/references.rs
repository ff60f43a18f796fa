//! Branches and tags of a repository, read and written as files.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::discovery::{Repository, line};
use super::git::{RepositoryError, is_id};

/// References that are copied; more are left out.
const REFERENCES_MAX: usize = 10_000;
/// The file of those that rarely change.
const PACKED: &str = "packed-refs";
/// What a copy has: neither remote branches nor what other programs keep.
const KEPT: &[&str] = &["refs/heads", "refs/tags"];
/// Longer than any that `git` accepts.
const NAME_BYTES_MAX: usize = 250;

/// The references of a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct References {
    /// The branch that `HEAD` names.
    pub(super) branch: Option<String>,
    /// The commit of `HEAD`; `None` before the first commit.
    pub(super) head: Option<String>,
    /// Branches and tags by their full name.
    pub(super) all: BTreeMap<String, String>,
}

impl References {
    pub(super) fn of(repository: &Repository) -> Self {
        let mut all = packed(&repository.common_dir.join(PACKED));
        for kept in KEPT {
            loose(&repository.common_dir, kept, &mut all);
        }
        let head = line(&repository.git_dir.join("HEAD")).unwrap_or_default();
        let branch = head.strip_prefix("ref: ").filter(|name| is_name(name)).map(str::to_owned);
        let head = match &branch {
            Some(branch) => all.get(branch).cloned(),
            None => Some(head).filter(|head| is_id(head)),
        };
        let named = branch.clone().and_then(|name| Some((name, head.clone()?)));
        let mut all: BTreeMap<_, _> = all.into_iter().take(REFERENCES_MAX).collect();
        all.extend(named);
        Self { branch, head, all }
    }

    /// Writes them into a repository directory that has none.
    pub(super) fn write(&self, dir: &Path) -> Result<(), RepositoryError> {
        let mut text = "# pack-refs with: sorted\n".to_owned();
        for (name, id) in &self.all {
            text.push_str(&format!("{id} {name}\n"));
        }
        let head = match (&self.branch, &self.head) {
            (Some(branch), _) => format!("ref: {branch}\n"),
            (None, Some(head)) => format!("{head}\n"),
            (None, None) => "ref: refs/heads/main\n".to_owned(),
        };
        for (name, text) in [(PACKED, text), ("HEAD", head)] {
            let path = dir.join(name);
            fs::write(&path, text).map_err(RepositoryError::on("write", &path))?;
        }
        Ok(())
    }
}

/// Returns whether a text is the full name of a branch or a tag, as `git` accepts it.
pub(super) fn is_name(name: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty()
            && !part.starts_with(['.', '-'])
            && !part.ends_with(['.'])
            && !part.ends_with(".lock")
    };
    let is_odd = |c: char| c.is_control() || c.is_whitespace() || "~^:?*[\\".contains(c);
    KEPT.iter().any(|kept| name.strip_prefix(kept).is_some_and(|rest| rest.starts_with('/')))
        && name.len() <= NAME_BYTES_MAX
        && name.split('/').all(is_part)
        && !name.contains(is_odd)
        && !name.contains("..")
        && !name.contains("@{")
}

fn packed(path: &Path) -> BTreeMap<String, String> {
    let is_file = fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    let text = if is_file { fs::read(path).unwrap_or_default() } else { Vec::new() };
    let text = String::from_utf8_lossy(&text);
    let known = text.lines().filter_map(|line| line.split_once(' '));
    let known = known.filter(|(id, name)| is_id(id) && is_name(name));
    known.map(|(id, name)| (name.to_owned(), id.to_owned())).collect()
}

/// Reads the references below a name that are files of their own. A link is left out.
fn loose(dir: &Path, name: &str, all: &mut BTreeMap<String, String>) {
    let mut waiting = vec![name.to_owned()];
    while let Some(name) = waiting.pop() {
        let Ok(entries) = fs::read_dir(dir.join(&name)) else { continue };
        for entry in entries.flatten().take(REFERENCES_MAX) {
            let Ok(part) = entry.file_name().into_string() else { continue };
            let name = format!("{name}/{part}");
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && name.len() < NAME_BYTES_MAX => waiting.push(name),
                Ok(kind) if kind.is_file() && is_name(&name) => {
                    all.extend(line(&entry.path()).filter(|id| is_id(id)).map(|id| (name, id)));
                }
                Ok(_) | Err(_) => {}
            }
        }
    }
}

/// Creates a branch. No hook of the repository hears of it.
pub(super) fn create(repository: &Repository, name: &str, id: &str) -> Result<(), RepositoryError> {
    let path = repository.common_dir.join(name);
    let lock = PathBuf::from(format!("{}.lock", path.display()));
    let make = || -> io::Result<()> {
        let mut dir = repository.common_dir.clone();
        for part in Path::new(name).parent().into_iter().flat_map(Path::components) {
            dir.push(part);
            match fs::create_dir(&dir) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                Ok(()) | Err(_) if fs::symlink_metadata(&dir)?.is_dir() => {}
                Ok(()) | Err(_) => return Err(io::ErrorKind::NotADirectory.into()),
            }
        }
        let mut file = fs::OpenOptions::new().write(true).create_new(true).open(&lock)?;
        file.write_all(format!("{id}\n").as_bytes())?;
        fs::rename(&lock, &path)
    };
    make().map_err(RepositoryError::on("create the branch", &path))
}

/// Checks that a branch can be created.
pub(super) fn check_free(references: &References, name: &str) -> Result<(), RepositoryError> {
    let refuse = |why: String| Err(RepositoryError::Refused(why));
    let short = name.trim_start_matches("refs/heads/");
    if !is_name(name) {
        return refuse(format!("`{short}` is not a name for a branch"));
    }
    let is_around = |other: &str| {
        let within = |a: &str, b: &str| a.strip_prefix(b).is_some_and(|rest| rest.starts_with('/'));
        other == name || within(other, name) || within(name, other)
    };
    let taken = references.all.keys().chain(&references.branch).find(|other| is_around(other));
    match taken {
        Some(taken) => refuse(format!(
            "there is already a branch `{}`; choose another name with `--branch`",
            taken.trim_start_matches("refs/heads/")
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_nowhere_else() {
        for name in ["refs/heads/main", "refs/tags/v1.0", "refs/heads/a/b-c"] {
            assert!(is_name(name), "{name}");
        }
        for name in [
            "main",
            "refs/heads/",
            "refs/heads/../../config",
            "refs/heads/a..b",
            "refs/heads/.hidden",
            "refs/heads/-x",
            "refs/heads/x.lock",
            "refs/heads/a b",
            "refs/heads/a\n",
            "refs/heads/@{x}",
            "refs/stash",
            "refs/remotes/origin/main",
        ] {
            assert!(!is_name(name), "{name}");
        }
    }
}
