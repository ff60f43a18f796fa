//! Answers to permission requests by the name of the tool.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use globset::{Glob, GlobMatcher};
use ringback_sync::lock;

use crate::permission::Permissions;

/// The name of the agents' MCP server.
const SERVER: &str = "ringback";

/// A list of rules, of which the first match counts, and a default.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    rules: Vec<(GlobMatcher, Permissions)>,
    otherwise: Permissions,
    is_closed: bool,
}

/// A policy that may be replaced while an agent is running; it applies to the next request.
#[derive(Debug, Clone, Default)]
pub struct SharedPolicy {
    policy: Arc<Mutex<Policy>>,
    allowed: Arc<Mutex<AllowedTools>>,
}

/// Full names of tools that need no permission, by the caller that offers them, in a form in which
/// they compare.
type AllowedTools = BTreeMap<String, Vec<String>>;

/// What an agent asks permission for.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The agent's name for it.
    pub tool: &'a str,
    /// Whether it may be the tool of an MCP server: agents mark commands and edits as such, and
    /// what names those may be written by a model.
    pub may_be_served: bool,
}

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
        let rules = rules.into_iter().map(rule).collect::<Result<_, _>>()?;
        Ok(Self { rules, otherwise, is_closed: false })
    }

    /// Returns the policy without an exception for tools that are otherwise allowed.
    #[must_use]
    pub fn closed(self) -> Self {
        Self { is_closed: true, ..self }
    }

    /// Returns the answer for a tool.
    #[must_use]
    pub fn of(&self, tool: &str) -> Permissions {
        self.ruled(tool).unwrap_or(self.otherwise)
    }

    fn ruled(&self, tool: &str) -> Option<Permissions> {
        let found = self.rules.iter().find(|(pattern, _)| pattern.is_match(tool));
        found.map(|(_, answer)| *answer)
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
        Self { rules: Vec::new(), otherwise, is_closed: false }
    }
}

impl SharedPolicy {
    /// Replaces the policy.
    pub fn set(&self, policy: Policy) {
        *lock(&self.policy) = policy;
    }

    /// Replaces the tools of a caller that need no permission, by their full names.
    pub fn allow(&self, caller: &str, tools: &[String]) {
        let names = tools.iter().map(|tool| comparable(tool)).collect();
        lock(&self.allowed).insert(caller.to_owned(), names);
    }

    /// Returns a policy of its own with the same allowed tools.
    #[must_use]
    pub fn with_same_tools(&self) -> Self {
        Self { policy: Arc::default(), allowed: Arc::clone(&self.allowed) }
    }

    /// Returns the current answer. A rule comes before an allowed tool, and that before the rest.
    #[must_use]
    pub fn of(&self, asked: Asked<'_>) -> Permissions {
        let policy = lock(&self.policy).clone();
        if let Some(ruled) = policy.ruled(asked.tool) {
            return ruled;
        }
        if !policy.is_closed && asked.may_be_served && self.is_allowed(asked.tool) {
            return Permissions::Allow;
        }
        policy.otherwise
    }

    /// Agents name the tool of an MCP server in their own ways: `ringback_here_notify`,
    /// `mcp__ringback__here_notify`, `Ringback: Here Notify`.
    fn is_allowed(&self, tool: &str) -> bool {
        let tool = comparable(tool);
        let bare = tool.strip_prefix("mcp_").unwrap_or(&tool);
        let bare = bare.strip_prefix(SERVER).and_then(|rest| rest.strip_prefix('_'));
        let bare = bare.unwrap_or(&tool);
        lock(&self.allowed).values().flatten().any(|name| name == bare)
    }
}

/// Returns a name in lower case, with one `_` for everything between letters and digits.
fn comparable(name: &str) -> String {
    let words = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join("_")
}

impl From<Permissions> for SharedPolicy {
    fn from(permissions: Permissions) -> Self {
        Self { policy: Arc::new(Mutex::new(permissions.into())), allowed: Arc::default() }
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

    /// Rule: a tool that needs no permission is recognised under the names that agents give it, and
    /// under no other; a rule, a closed policy and a command that is called like it go first.
    #[test]
    fn an_allowed_tool_is_not_asked_about_and_nothing_else_is_let_through() {
        let shared = SharedPolicy::from(Ask);
        shared.allow("here", &["here_notify".to_owned(), "here_run-it".to_owned()]);
        let of = |tool: &str| shared.of(Asked { tool, may_be_served: true });
        for tool in [
            "here_notify",
            "ringback_here_notify",
            "ringback__here_notify",
            "mcp__ringback__here_notify",
            "Ringback: Here Notify",
            "ringback_here_run-it",
        ] {
            assert_eq!(of(tool), Allow, "{tool}");
        }
        for tool in ["", "notify", "here_notify x", "other_here_notify", "rm here_notify", "here"] {
            assert_eq!(of(tool), Ask, "{tool}");
        }
        assert_eq!(shared.of(Asked { tool: "here_notify", may_be_served: false }), Ask);
        let child = shared.with_same_tools();
        child.set(Deny.into());
        let asked = Asked { tool: "here_notify", may_be_served: true };
        assert_eq!(child.of(asked), Allow, "the tools of a tree are the same");
        child.set(Policy::from(Deny).closed());
        assert_eq!(child.of(asked), Deny);
        shared.set(Policy::new(Ask, [("*notify", Deny)]).unwrap());
        assert_eq!(shared.of(asked), Deny);
        shared.set(Ask.into());
        shared.allow("here", &[]);
        assert_eq!(of("here_notify"), Ask, "a later declaration replaces it");
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
