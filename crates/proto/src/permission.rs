//! The answers to an agent's permission requests: a policy, and its rules.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rules in one policy: a person has to read them all.
pub const RULES_MAX: usize = 64;
/// The maximum length of a pattern in bytes.
pub const PATTERN_BYTES_MAX: usize = 200;

/// The answer to an agent's permission request.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum PermissionMode {
    /// Deny the request.
    Deny,
    /// Ask the caller, or anyone who may decide for the session.
    Ask,
    /// Allow the request.
    Allow,
}

/// A rule for some tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PermissionRule {
    /// The agent's name for the action; `*` matches anything, `?` one character.
    pub tool: String,
    /// The answer.
    pub answer: PermissionMode,
}

/// The answers to an agent's permission requests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PermissionPolicy {
    /// The answer if no rule matches; if absent, the agent's settings or the daemon's decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub otherwise: Option<PermissionMode>,
    /// The rules; the first match counts. At most 64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<PermissionRule>>")]
    pub rules: Vec<PermissionRule>,
}

/// Why a text is not a policy, or not part of one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PermissionError {
    /// An unknown answer.
    #[error("`{0}` is not an answer; use `ask`, `allow` or `deny`")]
    Mode(String),
    /// A rule without an answer.
    #[error("`{0}` has no answer; write `{0}=deny`, `{0}=ask` or `{0}=allow`")]
    NoAnswer(String),
    /// A pattern that cannot match anything, or cannot be displayed.
    #[error("a pattern must have 1 to {PATTERN_BYTES_MAX} bytes and no line breaks")]
    Pattern,
    /// Too many rules for a person to read.
    #[error("a permission policy has at most {RULES_MAX} rules")]
    TooMany,
}

impl PermissionMode {
    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Ask => "ask",
            Self::Allow => "allow",
        }
    }
}

impl PermissionPolicy {
    /// Returns whether the policy answers nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns its most permissive answer, if any.
    #[must_use]
    pub fn most(&self) -> Option<PermissionMode> {
        self.rules.iter().map(|rule| rule.answer).chain(self.otherwise).max()
    }

    /// Checks that the policy can be stored.
    ///
    /// # Errors
    /// When it has too many rules, or an invalid pattern.
    pub fn check(&self) -> Result<(), PermissionError> {
        if self.rules.len() > RULES_MAX {
            return Err(PermissionError::TooMany);
        }
        let fits = |rule: &PermissionRule| {
            (1..=PATTERN_BYTES_MAX).contains(&rule.tool.len())
                && !rule.tool.contains(char::is_control)
        };
        if self.rules.iter().all(fits) { Ok(()) } else { Err(PermissionError::Pattern) }
    }
}

impl FromStr for PermissionMode {
    type Err = PermissionError;

    fn from_str(text: &str) -> Result<Self, PermissionError> {
        [Self::Deny, Self::Ask, Self::Allow]
            .into_iter()
            .find(|mode| mode.name() == text)
            .ok_or_else(|| PermissionError::Mode(text.to_owned()))
    }
}

/// `PATTERN=ANSWER`.
impl FromStr for PermissionRule {
    type Err = PermissionError;

    fn from_str(text: &str) -> Result<Self, PermissionError> {
        let (tool, answer) =
            text.rsplit_once('=').ok_or_else(|| PermissionError::NoAnswer(text.to_owned()))?;
        Ok(Self { tool: tool.to_owned(), answer: answer.parse()? })
    }
}

impl fmt::Display for PermissionRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.tool, self.answer.name())
    }
}

/// A line of text with the answer if no rule matches, or `-`, and one for each rule.
impl fmt::Display for PermissionPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.otherwise.map_or("-", PermissionMode::name))?;
        self.rules.iter().try_for_each(|rule| write!(f, "\n{rule}"))
    }
}

impl FromStr for PermissionPolicy {
    type Err = PermissionError;

    fn from_str(text: &str) -> Result<Self, PermissionError> {
        let mut lines = text.lines();
        let otherwise = match lines.next().unwrap_or("-") {
            "-" => None,
            mode => Some(mode.parse()?),
        };
        let policy = Self { otherwise, rules: lines.map(str::parse).collect::<Result<_, _>>()? };
        policy.check()?;
        Ok(policy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule: a policy round-trips through its text form.
    #[test]
    fn a_policy_is_the_same_after_a_text() {
        for text in ["-", "ask", "deny\nread*=allow\na=b=ask", "-\n*=deny"] {
            let policy: PermissionPolicy = text.parse().unwrap();
            assert_eq!(policy.to_string(), text);
        }
        let read: PermissionPolicy = "ask\nbash*=deny".parse().unwrap();
        assert_eq!(
            read.rules[0],
            PermissionRule { tool: "bash*".to_owned(), answer: PermissionMode::Deny }
        );
        assert_eq!(read.most(), Some(PermissionMode::Ask));
    }

    #[test]
    fn what_is_no_policy_is_refused_with_what_would_be() {
        for (text, part) in
            [("maybe", "`ask`, `allow`"), ("ask\nbash", "`bash=deny`"), ("ask\n=deny", "bytes")]
        {
            let error = text.parse::<PermissionPolicy>().unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        let rule = PermissionRule { tool: "x".to_owned(), answer: PermissionMode::Ask };
        let many = PermissionPolicy { otherwise: None, rules: vec![rule; RULES_MAX + 1] };
        assert_eq!(many.check(), Err(PermissionError::TooMany));
    }
}
