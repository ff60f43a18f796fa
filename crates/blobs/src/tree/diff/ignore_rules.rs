//! The rules of `.gitignore` files, which keep build output out of diffs. They are read from the
//! earlier state, so that an agent cannot hide its changes.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::snapshot::Snapshot;

/// Name of a file with rules.
const RULES: &str = ".gitignore";
/// The directory of the repository itself, which is always ignored.
const GIT: &str = ".git";
/// Maximum length of a `.gitignore`; more than any real one has.
const RULES_BYTES_MAX: u64 = 1 << 20;

/// The rules, by directory.
#[derive(Debug)]
pub(super) struct IgnoreRules(BTreeMap<PathBuf, Gitignore>);

impl IgnoreRules {
    pub(super) fn at(start: &Snapshot) -> io::Result<Self> {
        let mut rules = BTreeMap::new();
        for (path, before) in &start.files {
            if path.file_name().is_none_or(|name| name != RULES) {
                continue;
            }
            let mut bytes = Vec::new();
            start.content(before)?.take(RULES_BYTES_MAX).read_to_end(&mut bytes)?;
            let dir = path.parent().unwrap_or(Path::new(""));
            let mut builder = GitignoreBuilder::new(dir);
            for line in String::from_utf8_lossy(&bytes).lines() {
                if let Err(error) = builder.add_line(None, line) {
                    tracing::debug!(%error, "skipping an invalid rule in a .gitignore");
                }
            }
            rules.extend(builder.build().map(|built| (dir.to_owned(), built)));
        }
        Ok(Self(rules))
    }

    /// Returns whether a path is ignored, directly or through a parent directory.
    pub(super) fn has(&self, path: &Path, is_dir: bool) -> bool {
        if path.file_name().is_some_and(|name| name == GIT) {
            return true;
        }
        // The nearest matching rule wins.
        let said = path.ancestors().skip(1).find_map(|dir| {
            let said = self.0.get(dir)?.matched_path_or_any_parents(path, is_dir);
            (!said.is_none()).then(|| said.is_ignore())
        });
        said.unwrap_or(false)
    }
}
