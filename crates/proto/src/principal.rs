//! Principals: who makes a call, and what they may do.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{ParseIdError, ProjectId, SessionId, TokenId};
use crate::wire_enum::wire_enum;

wire_enum! {
    /// The scope of a principal; each includes those before it.
    #[derive(PartialOrd, Ord)]
    Level {
        /// Read, change nothing.
        Read = "read",
        /// Read and change.
        Write = "write",
        /// Everything, tokens included.
        Admin = "admin",
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The scope of a session key. An agent is never an administrator.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum KeyLevel {
    /// No key.
    #[default]
    None,
    /// Read, change nothing.
    Read,
    /// Read and change.
    Write,
}

impl KeyLevel {
    /// Returns the name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Read => "read",
            Self::Write => "write",
        }
    }

    /// Returns the scope of the key, if there is one.
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
                    "unknown level"
                };
                serde::de::Error::custom(format_args!(
                    "`key_level` must be `none`, `read` or `write`: {why}"
                ))
            },
        )
    }
}

/// The owner of a job, an artifact or an upload: the public id of a token, or the daemon's own
/// user, who alone can use the sockets in the runtime directory and `serve --open`.
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

/// The projects a principal may access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// All projects, and what belongs to no project.
    Everything,
    /// Only these, and what the principal owns.
    Projects(Vec<ProjectId>),
}

/// The agent that holds a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyHolder {
    /// Its session; the key ends with it.
    pub session: SessionId,
    /// The origin of the key.
    pub key: AgentKey,
}

/// The origin of an agent's key, which decides what it gives access to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AgentKey {
    /// Made for the session: of the project, it gives access to the session itself, its
    /// descendants, and their workspaces.
    Made,
    /// Passed by a user: it gives access to what the user's token does.
    Passed,
}

/// A principal: an identity, a scope and a target. An edge makes one for each request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// Its identity.
    pub id: PrincipalId,
    /// Its scope.
    pub level: Level,
    /// The projects it may access.
    pub target: Target,
    /// The agent that holds the key, if one does.
    pub held_by: Option<KeyHolder>,
}

impl Principal {
    /// Makes the principal of the user the daemon runs as, who may do everything.
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
