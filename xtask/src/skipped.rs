//! Tests that skip themselves because this machine lacks what they need. They are counted, and
//! continuous integration must not have any.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names the file to which tests that skip themselves add a line (`ringback_testkit::skipped`).
const RECORD: &str = "RINGBACK_TEST_SKIPPED";
/// Set in continuous integration, where a skipped test is a failure.
const CI: &str = "CI";

/// The record of one run.
#[derive(Debug)]
pub(crate) struct Skipped {
    path: PathBuf,
    is_allowed: bool,
}

impl Skipped {
    /// A new record in `target/`.
    pub(crate) fn in_workspace(root: &Path) -> Self {
        let is_allowed = std::env::var_os(CI).is_none_or(|value| value.is_empty());
        Self { path: root.join("target/skipped-tests"), is_allowed }
    }

    /// Lets a command that runs tests add to the record.
    pub(crate) fn record(&self, tests: &mut Command) {
        // Of the last run; there may not have been one.
        drop(std::fs::remove_file(&self.path));
        tests.env(RECORD, &self.path);
    }

    /// Prints the skipped tests.
    ///
    /// # Errors
    /// If there are some, in continuous integration.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let text = std::fs::read_to_string(&self.path).unwrap_or_default();
        let tests: BTreeSet<&str> = text.lines().collect();
        for test in &tests {
            println!("{test}");
        }
        println!("{} tests were skipped", tests.len());
        if !tests.is_empty() && !self.is_allowed {
            anyhow::bail!("no test may be skipped here, because {CI} is set");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_fine(record: Option<&str>, is_allowed: bool) -> bool {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("record");
        if let Some(record) = record {
            std::fs::write(&path, record).unwrap();
        }
        Skipped { path, is_allowed }.check().is_ok()
    }

    #[test]
    fn a_skipped_test_fails_the_run_in_continuous_integration_alone() {
        for is_allowed in [true, false] {
            assert!(is_fine(None, is_allowed));
            assert!(is_fine(Some(""), is_allowed));
        }
        let one = Some("ringback-sandbox escape::it: it needs root\n");
        assert!(is_fine(one, true));
        assert!(!is_fine(one, false));
    }

    #[test]
    fn the_record_of_the_last_run_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let skipped = Skipped { path: dir.path().join("record"), is_allowed: false };
        std::fs::write(&skipped.path, "one\n").unwrap();
        skipped.record(&mut Command::new("true"));
        skipped.check().unwrap();
    }
}
