//! Who may call what: the one rule, the same for every edge.
//!
//! A key that an agent holds is told apart from a user's token ([`Principal::held_by`]). It loosens
//! nothing that holds agents back, answers no question, and manages no tokens, whatever its level.

#[cfg(test)]
mod tests;

use ringback_proto::ids::{ProjectId, SessionId};
use ringback_proto::principal::{AgentKey, HeldBy, Level, Principal, PrincipalId, Target};
use ringback_proto::tool::{ToolKind, ToolRow};
use ringback_proto::{Error, Result};

/// What a refusal of an agent's key says is missing.
const NO_AGENTS: &str = "a token that no agent has";

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

/// What a tool needs of a key besides its level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Nothing: what the call names decides.
    Level,
    /// That it is for whole projects, not for one session.
    Project,
    /// That it is for all projects.
    AllProjects,
    /// That no agent holds it.
    User,
}

/// What a tool needs of a key besides its level. A new tool has to be thought of here.
#[must_use]
pub const fn needs(tool: ToolKind) -> Needs {
    match tool {
        ToolKind::TokenCreate
        | ToolKind::TokenList
        | ToolKind::TokenRevoke
        | ToolKind::ProjectUpdate
        | ToolKind::CallerToolResponse
        | ToolKind::CallerToolProgress
        | ToolKind::CallerToolRequests => Needs::User,
        ToolKind::ProjectCreate => Needs::AllProjects,
        ToolKind::ProjectDelete => Needs::Project,
        ToolKind::Ping
        | ToolKind::ListTools
        | ToolKind::ConfigGet
        | ToolKind::CasStore
        | ToolKind::CasGet
        | ToolKind::CasInspect
        | ToolKind::CasUploadFile
        | ToolKind::CasStats
        | ToolKind::ArtifactUpload
        | ToolKind::ArtifactCreate
        | ToolKind::ArtifactGet
        | ToolKind::ArtifactList
        | ToolKind::AddAnnotation
        | ToolKind::JobStatus
        | ToolKind::JobList
        | ToolKind::JobPoll
        | ToolKind::JobCancel
        | ToolKind::JobSleep
        | ToolKind::EventPoll
        | ToolKind::CallWhy
        | ToolKind::AbcParse
        | ToolKind::AbcValidate
        | ToolKind::AbcTranspose
        | ToolKind::AbcToMidi
        | ToolKind::SoundfontInspect
        | ToolKind::SoundfontPresetInspect
        | ToolKind::MidiToWav
        | ToolKind::BeatthisAnalyze
        | ToolKind::ClapAnalyze
        | ToolKind::OrpheusGenerate
        | ToolKind::OrpheusGenerateSeeded
        | ToolKind::OrpheusContinue
        | ToolKind::OrpheusBridge
        | ToolKind::OrpheusLoops
        | ToolKind::OrpheusClassify
        | ToolKind::MusicgenGenerate
        | ToolKind::YueGenerate
        | ToolKind::ProjectList
        | ToolKind::ProjectGet
        | ToolKind::WorkspaceList
        | ToolKind::WorkspaceDelete
        | ToolKind::WorkspaceGet
        | ToolKind::WorkspacePut
        | ToolKind::WorkspaceDiff
        | ToolKind::ContainerStart
        | ToolKind::ContainerStop
        | ToolKind::ContainerLogs
        | ToolKind::ContainerExec
        | ToolKind::ImageRebuild
        | ToolKind::SessionSpawn
        | ToolKind::SessionMessage
        | ToolKind::SessionEvents
        | ToolKind::SessionList
        | ToolKind::SessionGet
        | ToolKind::SessionEnd
        | ToolKind::SessionNetwork
        | ToolKind::SessionCleanup
        | ToolKind::SessionOpen
        | ToolKind::ConfigLimits => Needs::Level,
    }
}

/// Whether a principal may call a tool, whatever its input. A denial says what was missing.
///
/// # Errors
/// `forbidden`, with what is missing.
pub fn authorize(principal: &Principal, row: &ToolRow) -> Result<()> {
    let refused = |missing: String| Err(Error::forbidden(&format!("`{}`", row.name), missing));
    if principal.level < row.level {
        return refused(format!("a token of level {}; yours is {}", row.level, principal.level));
    }
    match (needs(row.kind), principal) {
        (Needs::User, Principal { held_by: Some(_), .. }) => refused(NO_AGENTS.to_owned()),
        (Needs::AllProjects, Principal { target: Target::Projects(_), .. }) => {
            refused("a token for all projects".to_owned())
        }
        (Needs::Project, _) if tree(principal).is_some() => {
            refused("a token for the whole project; yours is for one session".to_owned())
        }
        (Needs::Level | Needs::Project | Needs::AllProjects | Needs::User, _) => Ok(()),
    }
}

/// Whose jobs, artifacts, sessions and events a principal sees. The key that was made for a session
/// sees its own: the other sessions of its project are not its.
#[must_use]
pub fn sight(principal: &Principal) -> Sight {
    match tree(principal) {
        Some(_) => Sight::Own { owner: principal.id, projects: Vec::new() },
        None => sight_of_projects(principal),
    }
}

/// Which projects a principal sees.
#[must_use]
pub fn sight_of_projects(principal: &Principal) -> Sight {
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

/// The session that a principal's key was made for: it opens that session, those that come from it,
/// and their workspaces. `None` for everybody else.
#[must_use]
pub const fn tree(principal: &Principal) -> Option<SessionId> {
    match principal.held_by {
        Some(HeldBy { session, key: AgentKey::Made }) => Some(session),
        Some(HeldBy { key: AgentKey::Passed, .. }) | None => None,
    }
}

/// Whether a principal may make a token with this level and target, and so see and revoke one that
/// has them: never more than it has itself.
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

/// Whether a principal may raise what holds agents back. No agent may.
///
/// # Errors
/// `forbidden`, with what is missing.
pub fn may_loosen(principal: &Principal, what: &str) -> Result<()> {
    no_agent(principal, what)?;
    if principal.level < Level::Admin {
        return Err(Error::forbidden(what, "a token of level admin"));
    }
    Ok(())
}

/// Whether a principal may stop the work of a session that it sees, or narrow what it reaches.
///
/// # Errors
/// `forbidden`, with what is missing.
pub fn may_hold_back(principal: &Principal, owner: PrincipalId) -> Result<()> {
    let may = owner == principal.id || principal.level == Level::Admin;
    if may || tree(principal).is_some() {
        return Ok(());
    }
    Err(Error::forbidden("deciding for this session", "the token that started it"))
}

/// Whether a principal may answer what the agent of a session asks. No agent may.
///
/// # Errors
/// `forbidden`, with what is missing.
pub fn may_answer(principal: &Principal, owner: PrincipalId) -> Result<()> {
    no_agent(principal, "answering for an agent with a key that an agent has")?;
    may_hold_back(principal, owner)
}

/// What only users do.
///
/// # Errors
/// `forbidden` for a key that an agent holds.
pub fn no_agent(principal: &Principal, what: &str) -> Result<()> {
    match principal.held_by {
        None => Ok(()),
        Some(_) => Err(Error::forbidden(what, NO_AGENTS)),
    }
}
