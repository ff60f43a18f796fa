//! Where the links of a directory will lead once an agent's changes are applied.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use ringback_blobs::Tree;
use ringback_blobs::tree::{EntryKind, TreeError, TreeLimits};

/// The number of links the kernel follows for one path.
const HOPS_MAX: usize = 40;
/// Limits on the search for existing links.
const LIMITS: TreeLimits = TreeLimits { entries_max: 2_000_000, bytes_max: u64::MAX };

/// A directory with changes that are not applied yet.
#[derive(Debug)]
pub(super) struct Links<'a> {
    tree: &'a Tree,
    /// The changed paths, with their targets if they become links.
    changes: BTreeMap<PathBuf, Option<PathBuf>>,
}

/// Where a link leads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct LinkTarget {
    leads_out: bool,
    /// Whether a changed link is on it.
    is_changed: bool,
}

impl<'a> Links<'a> {
    pub(super) const fn new(tree: &'a Tree, changes: BTreeMap<PathBuf, Option<PathBuf>>) -> Self {
        Self { tree, changes }
    }

    /// Returns a link that would lead out of the directory, and its target: a new link, or an
    /// existing one that leads out because of a new one.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub(super) fn leading_out(&self) -> Result<Option<(PathBuf, PathBuf)>, TreeError> {
        let new = self.changes.iter().filter_map(|(link, to)| Some((link, to.as_ref()?)));
        for (link, target) in new.clone() {
            if self.way(link, target).leads_out {
                return Ok(Some((link.clone(), target.clone())));
            }
        }
        if new.count() == 0 {
            return Ok(None);
        }
        let not_git = |entry: &ringback_blobs::tree::Entry| {
            entry.path.file_name().is_none_or(|name| name != ".git")
        };
        let entries = self.tree.walk(Path::new(""), LIMITS, not_git)?.entries;
        for entry in entries.into_iter().filter(|entry| entry.kind == EntryKind::Symlink) {
            if self.changes.contains_key(&entry.path) {
                continue;
            }
            let target = self.tree.read_link(&entry.path)?;
            let way = self.way(&entry.path, &target);
            if way.leads_out && way.is_changed {
                return Ok(Some((entry.path, target)));
            }
        }
        Ok(None)
    }

    /// Follows a link name by name, as the kernel will.
    fn way(&self, link: &Path, target: &Path) -> LinkTarget {
        let mut at: Vec<OsString> =
            link.parent().into_iter().flatten().map(ToOwned::to_owned).collect();
        let mut way = LinkTarget::default();
        let out = |way: LinkTarget| LinkTarget { leads_out: true, ..way };
        // In reverse order: the next part is popped from the end.
        let mut rest = parts(target);
        let mut n_hops = 0;
        while let Some(part) = rest.pop() {
            match part {
                Part::Top => return out(way),
                Part::Up if at.pop().is_none() => return out(way),
                Part::Up => {}
                Part::Down(name) => {
                    at.push(name);
                    let path: PathBuf = at.iter().collect();
                    let Some(target) = self.link_at(&path, &mut way) else { continue };
                    n_hops += 1;
                    // A loop leads nowhere and is of no use.
                    if n_hops > HOPS_MAX {
                        return out(way);
                    }
                    at.pop();
                    rest.extend(parts(&target));
                }
            }
        }
        way
    }

    /// Returns the target of a path that will be a link.
    fn link_at(&self, path: &Path, way: &mut LinkTarget) -> Option<PathBuf> {
        if let Some(changed) = self.changes.get(path) {
            way.is_changed |= changed.is_some();
            return changed.clone();
        }
        let is_link = self.tree.entry(path).is_ok_and(|entry| entry.kind == EntryKind::Symlink);
        if is_link { self.tree.read_link(path).ok() } else { None }
    }
}

/// A step of a path.
enum Part {
    Top,
    Up,
    Down(OsString),
}

/// Returns the steps of a path in reverse order.
fn parts(path: &Path) -> Vec<Part> {
    let part = |part: Component<'_>| match part {
        Component::Normal(name) => Some(Part::Down(name.to_owned())),
        Component::CurDir => None,
        Component::ParentDir => Some(Part::Up),
        Component::RootDir | Component::Prefix(_) => Some(Part::Top),
    };
    path.components().rev().filter_map(part).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Returns the link that leads out with these changes.
    fn out(tree: &Path, changes: &[(&str, Option<&str>)]) -> Option<String> {
        let tree = Tree::open(tree).unwrap();
        let changes =
            changes.iter().map(|(path, to)| (PathBuf::from(path), to.map(PathBuf::from))).collect();
        let found = Links::new(&tree, changes).leading_out().unwrap();
        found.map(|(link, _)| link.to_str().unwrap().to_owned())
    }

    #[test]
    fn links_out_of_a_directory_are_seen_as_such() {
        let dir = tempfile::tempdir().unwrap();
        for (link, target) in
            [("link", "/etc/passwd"), ("link", ".."), ("link", "a/../.."), ("a/link", "../../x")]
        {
            assert_eq!(out(dir.path(), &[(link, Some(target))]).as_deref(), Some(link), "{target}");
        }
        for (link, target) in [("link", "file"), ("a/link", "../b"), ("a/b/link", "./../../c")] {
            assert_eq!(out(dir.path(), &[(link, Some(target))]), None, "{link} {target}");
        }
    }

    /// Rule: a link is followed through others, new and old, in any order.
    #[test]
    fn links_that_lead_out_through_others_are_seen_as_such() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("a/b/c")).unwrap();
        let (up, through) = (("a/b/c/d", Some("../../..")), ("a/b/c/e", Some("d/../victim")));
        assert_eq!(out(dir.path(), &[up]), None, "the top itself is inside");
        assert_eq!(out(dir.path(), &[through]), None, "as long as `d` is not a link");
        assert_eq!(out(dir.path(), &[up, through]).as_deref(), Some("a/b/c/e"));
        // The followed link comes after the one that follows it.
        let (first, last) = (("a/b/c/a", Some("z/../victim")), ("a/b/c/z", Some("../../..")));
        assert_eq!(out(dir.path(), &[first, last]).as_deref(), Some("a/b/c/a"));
        let chain = [("x", Some("y/../../v")), ("y", Some("w")), ("w", Some("a/b"))];
        assert_eq!(out(dir.path(), &chain), None);
        let chain = [("x", Some("y/../../v")), ("y", Some("w")), ("w", Some("a"))];
        assert_eq!(out(dir.path(), &chain).as_deref(), Some("x"));
        let round = [("r", Some("s")), ("s", Some("r"))];
        assert!(out(dir.path(), &round).is_some());
    }

    /// Rule: existing links count: as parts of a path, and as links that a change leads out.
    #[test]
    fn links_that_were_there_are_followed_and_looked_at() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("a/b")).unwrap();
        symlink("..", dir.path().join("a/up")).unwrap();
        assert_eq!(out(dir.path(), &[("new", Some("a/up/../x"))]).as_deref(), Some("new"));
        symlink("b/../../safe", dir.path().join("a/old")).unwrap();
        symlink("/etc", dir.path().join("own")).unwrap();
        assert_eq!(out(dir.path(), &[("a/b", None)]), None, "existing links out are the owner's");
        assert_eq!(out(dir.path(), &[("a/b", Some(".."))]).as_deref(), Some("a/old"));
    }
}
