//! The scope of session keys: one rule for keys that are made, passed and inherited.
//!
//! A key is a subset. It grants no more than the starter of the session has, and no more than the
//! project grants; the key of a session that an agent starts grants no more than that agent's own
//! key.

#[cfg(test)]
mod tests;

use ringback_proto::Result;
use ringback_proto::principal::{Level, Principal, Target};
use ringback_proto::record::ProjectRecord;

use crate::policy::{may_grant, sight_of_projects};

/// The starter of a session.
#[derive(Debug, Clone, Copy)]
pub enum Starter<'a> {
    /// A user.
    User(&'a Principal),
    /// The agent of another session, with the key of that session.
    Agent(Option<&'a Principal>),
}

/// The permissions of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// Its scope.
    pub level: Level,
    /// The projects it covers.
    pub target: Target,
}

/// Returns the key for a session of a project: the intersection of what its starter has and what
/// the project grants. `None` if nothing is left.
#[must_use]
pub fn made(starter: Starter<'_>, project: &ProjectRecord) -> Option<Grant> {
    let above = match starter {
        Starter::User(user) => user,
        Starter::Agent(key) => key?,
    };
    if !sight_of_projects(above).includes(project.owner, Some(project.id)) {
        return None;
    }
    let level = project.key_level.level()?.min(above.level);
    Some(Grant { level, target: Target::Projects(vec![project.id]) })
}

/// Returns the key of a session that a token was passed to: the same as the token, if its starter
/// could have made it.
///
/// # Errors
/// `forbidden`, naming what the starter lacks.
pub fn passed(starter: &Principal, token: &Principal) -> Result<Grant> {
    may_grant(starter, token.level, &token.target)?;
    Ok(Grant { level: token.level, target: token.target.clone() })
}
