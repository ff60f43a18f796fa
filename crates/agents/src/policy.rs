//! Answers to permission requests by the name of the tool.

use std::sync::{Arc, Mutex};

use globset::{Glob, GlobMatcher};
use ringback_sync::lock;

use crate::permission::Permissions;

/// A list of rules, of which the first match counts, and a default.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    rules: Vec<(GlobMatcher, Permissions)>,
    otherwise: Permissions,
}

/// A policy that may be replaced while an agent is running; it applies to the next request.
#[derive(Debug, Clone, Default)]
pub struct SharedPolicy(Arc<Mutex<Policy>>);

/// An invalid pattern.
#[derive(Debug, thiserror::Error)]
#[error("`{pattern}` is not a valid pattern for tool names")]
pub struct PatternError {
    pattern: String,
    #[source]
    source: globset::Error,
}

impl Policy {
    /// Returns a policy of rules, each a pattern (`*` is anything, `?` one character) and its
    /// answer.
    ///
    /// # Errors
    /// If a pattern is invalid.
    pub fn new<'a>(
        otherwise: Permissions,
        rules: impl IntoIterator<Item = (&'a str, Permissions)>,
    ) -> Result<Self, PatternError> {
        let rule = |(pattern, answer): (&'a str, Permissions)| {
            let glob = Glob::new(pattern)
                .map_err(|source| PatternError { pattern: pattern.to_owned(), source })?;
            Ok((glob.compile_matcher(), answer))
        };
        Ok(Self { rules: rules.into_iter().map(rule).collect::<Result<_, _>>()?, otherwise })
    }

    /// Returns the answer for a tool.
    #[must_use]
    pub fn of(&self, tool: &str) -> Permissions {
        let found = self.rules.iter().find(|(pattern, _)| pattern.is_match(tool));
        found.map_or(self.otherwise, |(_, answer)| *answer)
    }

    /// Returns the answer for every tool; `Ask` if it varies. It decides how an agent is started
    /// that cannot or need not ask.
    #[must_use]
    pub fn overall(&self) -> Permissions {
        let is_same = self.rules.iter().all(|(_, answer)| *answer == self.otherwise);
        if is_same { self.otherwise } else { Permissions::Ask }
    }
}

impl From<Permissions> for Policy {
    fn from(otherwise: Permissions) -> Self {
        Self { rules: Vec::new(), otherwise }
    }
}

impl SharedPolicy {
    /// Replaces the policy.
    pub fn set(&self, policy: Policy) {
        *lock(&self.0) = policy;
    }

    /// Returns the current answer for a tool.
    #[must_use]
    pub fn of(&self, tool: &str) -> Permissions {
        lock(&self.0).of(tool)
    }
}

impl From<Permissions> for SharedPolicy {
    fn from(permissions: Permissions) -> Self {
        Self(Arc::new(Mutex::new(permissions.into())))
    }
}

#[cfg(test)]
mod tests {
    use super::Permissions::{Allow, Ask, Deny};
    use super::*;

    /// Rule: the first matching rule counts, otherwise the default.
    #[test]
    fn the_first_rule_that_fits_counts() {
        let rules = [("bash: ls*", Allow), ("bash*", Deny), ("read ?", Allow)];
        let policy = Policy::new(Ask, rules).unwrap();
        for (tool, expected) in [
            ("bash: ls -l /tmp", Allow),
            ("bash: rm -rf /\nls", Deny),
            ("bash", Deny),
            ("read x", Allow),
            ("read xy", Ask),
            ("Bash", Ask),
            ("", Ask),
        ] {
            assert_eq!(policy.of(tool), expected, "{tool}");
        }
        assert!(Policy::new(Ask, [("[", Deny)]).unwrap_err().to_string().contains("`[`"));
    }

    /// Rule: an agent is started without permission requests only if every answer would be the
    /// same.
    #[test]
    fn what_holds_overall_is_what_holds_for_every_tool() {
        for (otherwise, rule, expected) in
            [(Allow, Allow, Allow), (Allow, Deny, Ask), (Deny, Deny, Deny), (Ask, Allow, Ask)]
        {
            assert_eq!(Policy::new(otherwise, [("x", rule)]).unwrap().overall(), expected);
        }
        assert_eq!(Policy::from(Allow).overall(), Allow);
    }
}
