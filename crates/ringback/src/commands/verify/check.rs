//! The results of checks.

use serde::Serialize;

use crate::failure::Failure;
use crate::screen::Screen;

/// The result of one check.
#[derive(Debug, Serialize)]
struct Check {
    check: &'static str,
    passed: bool,
    /// What went wrong, and what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// Whether a check passed, or why it failed.
pub(super) type Verdict = Result<(), String>;

/// Prints each result as soon as it is known.
#[derive(Debug)]
pub(super) struct Report {
    screen: Screen,
    n_checks: usize,
    n_failed: usize,
}

impl Report {
    pub(super) const fn new(screen: Screen) -> Self {
        Self { screen, n_checks: 0, n_failed: 0 }
    }

    pub(super) fn tell(&mut self, check: &'static str, verdict: Verdict) -> Result<(), Failure> {
        self.n_checks += 1;
        self.n_failed += usize::from(verdict.is_err());
        let check = Check { check, passed: verdict.is_ok(), reason: verdict.err() };
        self.screen.item(&check, |check| self.line(check))
    }

    /// Fails unless all checks passed.
    pub(super) fn conclude(self) -> Result<(), Failure> {
        match self.n_failed {
            0 => Ok(()),
            n => Err(Failure::Wrong(format!("{n} of {} checks failed", self.n_checks))),
        }
    }

    fn line(&self, check: &Check) -> String {
        match &check.reason {
            None => format!("pass  {}", check.check),
            Some(reason) => {
                format!("{}  {}\n      {reason}", self.screen.bold("FAIL"), check.check)
            }
        }
    }
}
