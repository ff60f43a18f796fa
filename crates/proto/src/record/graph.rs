//! Records of the graph.

use super::UnixMs;
use crate::ids::{ProjectId, SessionId};
use crate::principal::PrincipalId;
use crate::request::HintKind;

/// An identity, by its owner and its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentityKey {
    /// Its owner.
    pub owner: PrincipalId,
    /// Its id, unique for its owner.
    pub id: String,
}

/// A stored identity.
#[derive(Debug, Clone, PartialEq)]
pub struct IdentityRecord {
    /// Its owner and id.
    pub key: IdentityKey,
    /// The project it belongs to.
    pub project: Option<ProjectId>,
    /// The session whose agent created it.
    pub session: Option<SessionId>,
    /// Its name.
    pub name: String,
    /// Its hints; in a write, those to add.
    pub hints: Vec<HintRecord>,
    /// Its tags as namespace and value; empty in a write.
    pub tags: Vec<(String, String)>,
    /// When it was created.
    pub created_at: UnixMs,
}

/// A stored hint of an identity.
#[derive(Debug, Clone, PartialEq)]
pub struct HintRecord {
    /// Its kind.
    pub kind: HintKind,
    /// Its value.
    pub value: String,
    /// How sure it is, from 0 to 1.
    pub confidence: f64,
}

/// A stored connection of two ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionRecord {
    /// Its owner.
    pub owner: PrincipalId,
    /// The project it belongs to.
    pub project: Option<ProjectId>,
    /// The session whose agent made it.
    pub session: Option<SessionId>,
    /// The identity that sends.
    pub from: IdentityKey,
    /// Its port.
    pub from_port: String,
    /// The identity that receives.
    pub to: IdentityKey,
    /// Its port.
    pub to_port: String,
    /// What carries the signal.
    pub transport: Option<String>,
    /// When it was first made.
    pub created_at: UnixMs,
}
