//! `tidy-exceptions.toml`: places where a rule is broken on purpose, and why.

use std::fs;
use std::path::Path;

use anyhow::Context;
use serde::Deserialize;

use super::Finding;

const RULE: &str = "exception";

const FILE: &str = "tidy-exceptions.toml";

/// A shorter reason is not a sentence.
const REASON_CHARS_MIN: usize = 15;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Exceptions {
    #[serde(default, rename = "exception")]
    exceptions: Vec<Exception>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Exception {
    rule: String,
    /// Relative to the workspace root.
    path: String,
    /// Part of the message, to except one place of several.
    #[serde(default)]
    about: String,
    reason: String,
}

impl Exceptions {
    pub(crate) fn read(root: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(root.join(FILE))
            .with_context(|| format!("cannot read `{FILE}`; an empty file is fine"))?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        toml::from_str(text).with_context(|| format!("cannot parse `{FILE}`"))
    }

    /// Returns the findings that no exception covers, and the exceptions that cover nothing.
    pub(crate) fn apply(&self, findings: &[Finding]) -> Vec<Finding> {
        let mut left = findings.to_vec();
        left.retain(|finding| !self.exceptions.iter().any(|exception| exception.covers(finding)));
        for exception in &self.exceptions {
            if !findings.iter().any(|finding| exception.covers(finding)) {
                left.push(exception.complain("covers nothing any more: remove it"));
            }
            if exception.reason.trim().chars().count() < REASON_CHARS_MIN {
                left.push(exception.complain("has no proper reason"));
            }
        }
        left
    }
}

impl Exception {
    fn covers(&self, finding: &Finding) -> bool {
        self.rule == finding.rule
            && self.path == finding.path
            && finding.message.contains(&self.about)
    }

    fn complain(&self, what: &str) -> Finding {
        let message = format!("the exception of {} for `{}` {what}", self.path, self.rule);
        Finding { rule: RULE, path: FILE.to_owned(), line: 0, message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: &str =
        "[[exception]]\nrule = \"long\"\npath = \"a.rs\"\nreason = \"a table reads best whole\"\n";

    fn finding(rule: &'static str) -> Finding {
        Finding { rule, path: "a.rs".to_owned(), line: 3, message: "`f` is long".to_owned() }
    }

    #[test]
    fn an_exception_covers_its_rule_and_path_only() {
        let exceptions = Exceptions::parse(LONG).unwrap();
        let left = exceptions.apply(&[finding("long"), finding("other")]);
        assert_eq!(left, [finding("other")]);
    }

    #[test]
    fn an_exception_may_name_one_place_of_a_file() {
        let text = format!("{LONG}about = \"`g`\"\n");
        let left = Exceptions::parse(&text).unwrap().apply(&[finding("long")]);
        assert!(left.contains(&finding("long")));
    }

    #[test]
    fn an_exception_that_covers_nothing_is_found() {
        let left = Exceptions::parse(LONG).unwrap().apply(&[]);
        assert_eq!(left.iter().map(|finding| finding.rule).collect::<Vec<_>>(), [RULE]);
    }

    #[test]
    fn an_exception_without_a_reason_is_found() {
        let text = LONG.replace("a table reads best whole", "ok");
        let left = Exceptions::parse(&text).unwrap().apply(&[finding("long")]);
        assert_eq!(left.iter().map(|finding| finding.rule).collect::<Vec<_>>(), [RULE]);
        Exceptions::parse("[[exception]]\nrule = \"long\"\npath = \"a.rs\"\n").unwrap_err();
    }
}
