//! Files that are committed and compared, or rewritten on request.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Set by `cargo xtask golden`.
const UPDATE: &str = "RINGBACK_UPDATE_GOLDEN";

/// Compares files of the repository with their expected text. Complaints are collected, so that one
/// run shows them all.
pub(crate) struct Committed {
    root: PathBuf,
    seen: BTreeSet<PathBuf>,
    complaints: Vec<String>,
    updates: bool,
}

impl Committed {
    pub(crate) fn new() -> Self {
        Self {
            root: Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."),
            seen: BTreeSet::new(),
            complaints: Vec::new(),
            updates: env::var_os(UPDATE).is_some_and(|value| value == "1"),
        }
    }

    /// Compares one file, or writes it.
    pub(crate) fn compare(&mut self, path: &str, wanted: &str) -> &mut Self {
        let file = self.root.join(path);
        self.seen.insert(file.clone());
        if self.updates {
            fs::create_dir_all(file.parent().expect("a file in the repository"))
                .and_then(|()| fs::write(&file, wanted))
                .unwrap_or_else(|error| panic!("cannot write `{path}`: {error}"));
            return self;
        }
        match fs::read_to_string(&file) {
            Ok(found) => self.complaints.extend(first_difference(path, &found, wanted)),
            Err(error) => self.complaints.push(format!("cannot read `{path}`: {error}")),
        }
        self
    }

    /// Complains about files in a directory that were not compared, or removes them.
    pub(crate) fn nothing_else_in(&mut self, directory: &str) -> &mut Self {
        let entries = fs::read_dir(self.root.join(directory))
            .unwrap_or_else(|error| panic!("cannot read `{directory}`: {error}"));
        for file in entries.map(|entry| entry.expect("a readable directory").path()) {
            if self.seen.contains(&file) {
                continue;
            }
            if self.updates {
                fs::remove_file(&file)
                    .unwrap_or_else(|error| panic!("cannot remove `{}`: {error}", file.display()));
            } else {
                let name = file.file_name().unwrap_or_default().display();
                self.complaints.push(format!("`{directory}/{name}` belongs to no row"));
            }
        }
        self
    }

    /// Fails if anything differed.
    pub(crate) fn finish(&self) {
        assert!(
            self.complaints.is_empty(),
            "{}\n\nIf this change is intended, run cargo xtask golden and look at the diff.",
            self.complaints.join("\n")
        );
    }
}

/// Returns the first line of text that differs, cut to a length that a terminal shows.
fn first_difference(path: &str, found: &str, wanted: &str) -> Option<String> {
    const CHARS_MAX: usize = 300;
    if found == wanted {
        return None;
    }
    let n_same = found.lines().zip(wanted.lines()).take_while(|(a, b)| a == b).count();
    let line_of = |text: &str| -> String {
        text.lines().nth(n_same).unwrap_or("(the end)").chars().take(CHARS_MAX).collect()
    };
    Some(format!(
        "`{path}` differs from line {}:\n  committed: {}\n  this build: {}",
        n_same + 1,
        line_of(found),
        line_of(wanted)
    ))
}
