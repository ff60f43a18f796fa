//! Who answers when an agent asks for permission: a policy, and the rules in it.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rules in one policy: a person reads them all.
pub const RULES_MAX: usize = 64;
/// Bytes of a pattern.
pub const PATTERN_BYTES_MAX: usize = 200;

/// Who answers an agent that asks for permission.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum PermissionMode {
    /// The answer is no.
    Deny,
    /// Whoever started the session, or may decide for it.
    Ask,
    /// The answer is yes.
    Allow,
}

/// What holds for some tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PermissionRule {
    /// What the agent calls what it wants to do; `*` stands for anything, `?` for one character.
    pub tool: String,
    /// What is answered.
    pub answer: PermissionMode,
}

/// What is answered when an agent asks for permission.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PermissionPolicy {
    /// Where no rule fits; if absent, as the agent's settings or the daemon's say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub otherwise: Option<PermissionMode>,
    /// Rules, of which the first that fits counts. At most 64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<PermissionRule>>")]
    pub rules: Vec<PermissionRule>,
}

/// Why a text is no policy, or no part of one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PermissionError {
    /// There is no such answer.
    #[error("`{0}` is no answer; there are `ask`, `allow` and `deny`")]
    Mode(String),
    /// A rule without an answer.
    #[error("`{0}` has no answer; say `{0}=deny`, `{0}=ask` or `{0}=allow`")]
    NoAnswer(String),
    /// A pattern that nothing can fit, or that cannot be shown.
    #[error("a pattern has 1 to {PATTERN_BYTES_MAX} bytes and no line ends")]
    Pattern,
    /// More rules than anybody reads.
    #[error("a policy has at most {RULES_MAX} rules")]
    TooMany,
}

impl PermissionMode {
    /// Its name.
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
    /// Whether it says nothing at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The most that it answers, if it answers anything.
    #[must_use]
    pub fn most(&self) -> Option<PermissionMode> {
        self.rules.iter().map(|rule| rule.answer).chain(self.otherwise).max()
    }

    /// Whether it is one that can be kept.
    ///
    /// # Errors
    /// When it has too many rules, or a pattern that is none.
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

/// A line for what holds where no rule fits, `-` if that is not said, and one for each rule.
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

    /// Rule: what was stored is what is read.
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
