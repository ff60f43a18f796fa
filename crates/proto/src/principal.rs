//! Who calls: a principal and what it may do.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{ParseIdError, ProjectId, TokenId};

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

/// A principal: an identity, a level and a target. Made by an edge for each request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// Whose it is.
    pub id: PrincipalId,
    /// How much it may do.
    pub level: Level,
    /// Where.
    pub target: Target,
}

impl Principal {
    /// The user the daemon runs as, who may do everything.
    #[must_use]
    pub const fn local() -> Self {
        Self { id: PrincipalId::Local, level: Level::Admin, target: Target::Everything }
    }
}
