//! Who calls: a principal and what it may do.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{ParseIdError, ProjectId, SessionId, TokenId};

/// How much a principal may do; each level includes those before it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Look, change nothing.
    Read,
    /// Look and change.
    Write,
    /// Everything, tokens included.
    Admin,
}

impl Level {
    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How much the key of a session may do. An agent is never an administrator.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum KeyLevel {
    /// There is no key.
    #[default]
    None,
    /// Look, change nothing.
    Read,
    /// Look and change.
    Write,
}

impl KeyLevel {
    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Read => "read",
            Self::Write => "write",
        }
    }

    /// The level of the key, if there is one.
    #[must_use]
    pub const fn level(self) -> Option<Level> {
        match self {
            Self::None => None,
            Self::Read => Some(Level::Read),
            Self::Write => Some(Level::Write),
        }
    }
}

impl fmt::Display for KeyLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for KeyLevel {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        [Self::None, Self::Read, Self::Write].into_iter().find(|it| it.as_str() == text).ok_or_else(
            || {
                let why = if text == Level::Admin.as_str() {
                    "an agent is never an administrator"
                } else {
                    "there is no other level"
                };
                serde::de::Error::custom(format_args!(
                    "`key_level` is `none`, `read` or `write`: {why}"
                ))
            },
        )
    }
}

/// Who owns a job, an artifact or an upload: the public id of a token, or whoever reaches the
/// daemon in a way only its own user can (the runtime directory's sockets, `serve --open`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PrincipalId {
    /// The user the daemon runs as.
    Local,
    /// The holder of a token.
    Token(TokenId),
}

impl fmt::Display for PrincipalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => f.write_str("local"),
            Self::Token(id) => fmt::Display::fmt(id, f),
        }
    }
}

impl fmt::Debug for PrincipalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for PrincipalId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        if text == "local" { Ok(Self::Local) } else { text.parse().map(Self::Token) }
    }
}

/// Which projects a principal may touch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// All of them, and what belongs to none.
    Everything,
    /// These alone, and what is its own.
    Projects(Vec<ProjectId>),
}

/// The agent that holds a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldBy {
    /// Its session, with which the key ends.
    pub session: SessionId,
    /// Where the key comes from.
    pub key: AgentKey,
}

/// Where the key of an agent comes from, and with that what it opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AgentKey {
    /// It was made for the session: of the project it opens the session itself, the sessions that
    /// come from it, and their workspaces.
    Made,
    /// A user passed it: it opens what the user's token opens.
    Passed,
}

/// A principal: an identity, a level and a target. Made by an edge for each request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// Whose it is.
    pub id: PrincipalId,
    /// How much it may do.
    pub level: Level,
    /// Where.
    pub target: Target,
    /// The agent that holds the key, if one does.
    pub held_by: Option<HeldBy>,
}

impl Principal {
    /// The user the daemon runs as, who may do everything.
    #[must_use]
    pub const fn local() -> Self {
        let (id, level) = (PrincipalId::Local, Level::Admin);
        Self { id, level, target: Target::Everything, held_by: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_level_of_a_key_is_none_read_or_write() {
        for level in [KeyLevel::None, KeyLevel::Read, KeyLevel::Write] {
            let text = serde_json::to_string(&level).unwrap();
            assert_eq!(text, format!("\"{level}\""));
            assert_eq!(serde_json::from_str::<KeyLevel>(&text).unwrap(), level);
        }
        let refused = serde_json::from_str::<KeyLevel>("\"admin\"").unwrap_err().to_string();
        assert!(refused.contains("`none`, `read` or `write`"), "{refused}");
        assert!(refused.contains("never an administrator"), "{refused}");
        assert!(serde_json::from_str::<KeyLevel>("\"owner\"").is_err());
    }
}
