//! Who may call what: the one rule, the same for every edge.

use ringback_proto::ids::ProjectId;
use ringback_proto::principal::{Level, Principal, PrincipalId, Target};
use ringback_proto::tool::ToolRow;
use ringback_proto::{Error, Result};

/// Whose things a principal sees: its own, its projects', or everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sight {
    /// Everything.
    All,
    /// Its own, and what belongs to these projects.
    Own {
        /// Who.
        owner: PrincipalId,
        /// Whose things it sees besides.
        projects: Vec<ProjectId>,
    },
}

impl Sight {
    /// Whether something with this owner and project is seen.
    #[must_use]
    pub fn includes(&self, owner: PrincipalId, project: Option<ProjectId>) -> bool {
        match self {
            Self::All => true,
            Self::Own { owner: own, projects } => {
                *own == owner || project.is_some_and(|project| projects.contains(&project))
            }
        }
    }
}

/// Whether a principal may call a tool. A denial says what was missing.
///
/// # Errors
/// `forbidden`, with the missing level.
pub fn authorize(principal: &Principal, row: &ToolRow) -> Result<()> {
    if principal.level >= row.level {
        return Ok(());
    }
    Err(Error::forbidden(
        &format!("`{}`", row.name),
        format!("a token of level {}; yours is {}", row.level, principal.level),
    ))
}

/// Whose things a principal sees.
#[must_use]
pub fn sight(principal: &Principal) -> Sight {
    match (&principal.target, principal.level) {
        (Target::Everything, Level::Admin) => Sight::All,
        (Target::Everything, Level::Read | Level::Write) => {
            Sight::Own { owner: principal.id, projects: Vec::new() }
        }
        (Target::Projects(projects), _) => {
            Sight::Own { owner: principal.id, projects: projects.clone() }
        }
    }
}

/// Whether a principal may make a token with this level and target: never more than it has itself.
///
/// # Errors
/// `forbidden`, with what is missing.
pub fn may_grant(creator: &Principal, level: Level, target: &Target) -> Result<()> {
    const ACTION: &str = "making this token";
    if level > creator.level {
        return Err(Error::forbidden(ACTION, format!("a token of level {level} itself")));
    }
    match (&creator.target, target) {
        (Target::Everything, _) => Ok(()),
        (Target::Projects(_), Target::Everything) => {
            Err(Error::forbidden(ACTION, "a token for all projects itself"))
        }
        (Target::Projects(own), Target::Projects(wanted)) => {
            match wanted.iter().find(|project| !own.contains(project)) {
                None => Ok(()),
                Some(project) => Err(Error::forbidden(ACTION, format!("a token for {project}"))),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ringback_proto::ErrorKind;
    use ringback_proto::ids::TokenId;
    use ringback_proto::tool::TOOLS;

    use super::*;

    fn principal(level: Level, target: Target) -> Principal {
        let id = PrincipalId::Token(TokenId::from_random([1; 16]));
        Principal { id, level, target }
    }

    #[test]
    fn a_tool_needs_its_level_and_a_denial_says_which() {
        for row in TOOLS {
            for level in [Level::Read, Level::Write, Level::Admin] {
                match authorize(&principal(level, Target::Everything), row) {
                    Ok(()) => assert!(level >= row.level),
                    Err(error) => {
                        assert!(level < row.level);
                        assert_eq!(error.kind(), ErrorKind::Forbidden);
                        let missing = error.context().missing.clone().unwrap();
                        assert!(missing.contains(row.level.as_str()), "{missing}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_token_sees_its_own_and_its_projects_and_only_a_full_admin_sees_all() {
        let project = ProjectId::from_random([2; 16]);
        let other = PrincipalId::Token(TokenId::from_random([9; 16]));
        let own = principal(Level::Read, Target::Everything);
        assert!(sight(&own).includes(own.id, None));
        assert!(!sight(&own).includes(other, Some(project)));

        let narrowed = principal(Level::Admin, Target::Projects(vec![project]));
        assert!(sight(&narrowed).includes(other, Some(project)));
        assert!(!sight(&narrowed).includes(other, None));

        assert_eq!(sight(&principal(Level::Admin, Target::Everything)), Sight::All);
    }

    #[test]
    fn nobody_grants_more_than_it_has() {
        let a = ProjectId::from_random([2; 16]);
        let b = ProjectId::from_random([3; 16]);
        let narrowed = principal(Level::Admin, Target::Projects(vec![a]));
        assert!(may_grant(&narrowed, Level::Admin, &Target::Projects(vec![a])).is_ok());
        assert!(may_grant(&narrowed, Level::Read, &Target::Projects(vec![a, b])).is_err());
        assert!(may_grant(&narrowed, Level::Read, &Target::Everything).is_err());
        let writer = principal(Level::Write, Target::Everything);
        assert!(may_grant(&writer, Level::Admin, &Target::Everything).is_err());
    }
}
