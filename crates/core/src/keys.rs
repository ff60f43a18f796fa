//! What the key of a session may do: the one rule for keys that are made, passed and handed down.
//!
//! A key is a subset. It has no more than who started the session has, and no more than the project
//! gives; the key of a session that an agent starts has no more than the key of that agent.

#[cfg(test)]
mod tests;

use ringback_proto::Result;
use ringback_proto::principal::{Level, Principal, Target};
use ringback_proto::record::ProjectRecord;

use crate::policy::{may_grant, sight_of_projects};

/// Who starts a session.
#[derive(Debug, Clone, Copy)]
pub enum Starter<'a> {
    /// A user.
    User(&'a Principal),
    /// The agent of another session, with the key of that session.
    Agent(Option<&'a Principal>),
}

/// What a key may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// How much.
    pub level: Level,
    /// Where.
    pub target: Target,
}

/// The key that is made for a session of a project: the intersection of what its starter has and what
/// the project gives. `None` if nothing is left.
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

/// The key of a session that a token was passed to: as the token, if its starter could have made that.
///
/// # Errors
/// `forbidden`, with what its starter lacks.
pub fn passed(starter: &Principal, token: &Principal) -> Result<Grant> {
    may_grant(starter, token.level, &token.target)?;
    Ok(Grant { level: token.level, target: token.target.clone() })
}
