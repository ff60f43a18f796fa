//! Authorization: one rule, the same for every edge.
//!
//! A key that an agent holds is distinguished from a user's token ([`Principal::held_by`]). It
//! loosens no restriction of agents, answers no permission request, and manages no tokens, whatever
//! its scope.

#[cfg(test)]
mod tests;

use ringback_proto::ids::{ProjectId, SessionId};
use ringback_proto::principal::{AgentKey, KeyHolder, Level, Principal, PrincipalId, Target};
use ringback_proto::tool::{ToolKind, ToolRow};
use ringback_proto::{Error, Result};

/// The missing permission in the refusal of an agent's key.
const NO_AGENTS: &str = "a token that no agent holds";

/// What a principal sees: what it owns, what its projects own, what its session made, or everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Visibility {
    /// Everything.
    All,
    /// What it owns, and what belongs to these projects.
    Own {
        /// The owner.
        owner: PrincipalId,
        /// The projects.
        projects: Vec<ProjectId>,
    },
    /// What it owns, and what a session and its descendants made.
    Tree {
        /// The owner.
        owner: PrincipalId,
        /// The session.
        session: SessionId,
    },
}

/// Where a call comes from, which decides who sees what it makes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Provenance {
    /// The project.
    pub project: Option<ProjectId>,
    /// The session whose agent makes it.
    pub session: Option<SessionId>,
}

impl Visibility {
    /// Returns whether something with this owner and project is visible. What descendants of a
    /// session made is known to the store.
    #[must_use]
    pub fn includes(&self, owner: PrincipalId, project: Option<ProjectId>) -> bool {
        match self {
            Self::All => true,
            Self::Tree { owner: own, .. } => *own == owner,
            Self::Own { owner: own, projects } => {
                *own == owner || project.is_some_and(|project| projects.contains(&project))
            }
        }
    }
}

/// The requirements of a tool on a key besides its scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyRequirement {
    /// Nothing: the named resources decide.
    Level,
    /// That it covers whole projects, not just one session.
    Project,
    /// That it covers all projects.
    AllProjects,
    /// That no agent holds it.
    User,
    /// That it may do everything: the tools of the garden process.
    Everything,
}

/// Returns the requirements of a tool on a key besides its scope. Every new tool needs a decision
/// here.
#[must_use]
#[expect(clippy::too_many_lines, reason = "one line for each tool")]
pub const fn needs(tool: ToolKind) -> KeyRequirement {
    match tool {
        ToolKind::TokenCreate
        | ToolKind::TokenList
        | ToolKind::TokenRevoke
        | ToolKind::ProjectUpdate
        | ToolKind::CallerToolResponse
        | ToolKind::CallerToolProgress
        | ToolKind::CallerToolRequests => KeyRequirement::User,
        ToolKind::GardenTimeline
        | ToolKind::GardenReport
        | ToolKind::GardenSettle
        | ToolKind::GardenMonitor => KeyRequirement::Everything,
        ToolKind::ProjectCreate => KeyRequirement::AllProjects,
        ToolKind::ProjectDelete => KeyRequirement::Project,
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
        | ToolKind::GraphBind
        | ToolKind::GraphTag
        | ToolKind::GraphConnect
        | ToolKind::GraphFind
        | ToolKind::GraphQuery
        | ToolKind::GraphContext
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
        | ToolKind::GardenStatus
        | ToolKind::GardenPlay
        | ToolKind::GardenPause
        | ToolKind::GardenStop
        | ToolKind::GardenEmergencyPause
        | ToolKind::GardenSeek
        | ToolKind::GardenSetTempo
        | ToolKind::GardenGetRegions
        | ToolKind::GardenCreateRegion
        | ToolKind::GardenMoveRegion
        | ToolKind::GardenDeleteRegion
        | ToolKind::GardenSetLoop
        | ToolKind::GardenApprove
        | ToolKind::GardenReject
        | ToolKind::GardenExport
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
        | ToolKind::ConfigLimits => KeyRequirement::Level,
    }
}

/// Checks whether a principal may call a tool, regardless of its input. A denial names what is
/// missing.
///
/// # Errors
/// `forbidden`, naming what is missing.
pub fn authorize(principal: &Principal, row: &ToolRow) -> Result<()> {
    let action = || format!("`{}`", row.name);
    if principal.level < row.level {
        return Err(Error::lacks_scope(&action(), row.level, principal.level));
    }
    let refused = |missing: &str| Err(Error::forbidden(&action(), missing));
    match (needs(row.kind), principal) {
        (KeyRequirement::User, Principal { held_by: Some(_), .. }) => refused(NO_AGENTS),
        (KeyRequirement::Everything, principal) if !may_do_everything(principal) => {
            refused("a token for all projects that no agent holds")
        }
        (KeyRequirement::AllProjects, Principal { target: Target::Projects(_), .. }) => {
            refused("a token for all projects")
        }
        (KeyRequirement::Project, _) if tree(principal).is_some() => {
            refused("a token for the whole project; yours is for a single session")
        }
        (
            KeyRequirement::Level
            | KeyRequirement::Project
            | KeyRequirement::AllProjects
            | KeyRequirement::User
            | KeyRequirement::Everything,
            _,
        ) => Ok(()),
    }
}

/// Returns whose jobs, artifacts, sessions and events a principal sees. A session key sees what its
/// session and the descendants of that made, and not the other sessions of its project.
#[must_use]
pub fn sight(principal: &Principal) -> Visibility {
    match tree(principal) {
        Some(session) => Visibility::Tree { owner: principal.id, session },
        None => sight_of_projects(principal),
    }
}

/// Returns where a call of a principal comes from. `place` is the project of the session that holds
/// its key. What a user makes belongs to a project only if the token is for exactly one.
#[must_use]
pub fn provenance(principal: &Principal, place: Option<ProjectId>) -> Provenance {
    let session = principal.held_by.map(|holder| holder.session);
    let project = match (&principal.target, place) {
        (_, Some(project)) => Some(project),
        (Target::Projects(projects), None) => match projects.as_slice() {
            [project] => Some(*project),
            [] | [_, _, ..] => None,
        },
        (Target::Everything, None) => None,
    };
    Provenance { project, session }
}

/// Returns whether a principal sees what everyone owns.
#[must_use]
pub fn sees_all(principal: &Principal) -> bool {
    tree(principal).is_none()
        && matches!((&principal.target, principal.level), (Target::Everything, Level::Admin))
}

/// Returns whether a principal is the daemon's own user or a full administrator: every project, and
/// no agent.
#[must_use]
pub fn may_do_everything(principal: &Principal) -> bool {
    principal.held_by.is_none() && sees_all(principal)
}

/// Returns which projects a principal sees.
#[must_use]
pub fn sight_of_projects(principal: &Principal) -> Visibility {
    match (&principal.target, principal.level) {
        (Target::Everything, Level::Admin) => Visibility::All,
        (Target::Everything, Level::Read | Level::Write) => {
            Visibility::Own { owner: principal.id, projects: Vec::new() }
        }
        (Target::Projects(projects), _) => {
            Visibility::Own { owner: principal.id, projects: projects.clone() }
        }
    }
}

/// Returns the session that a principal's key was made for: it gives access to that session, its
/// descendants, and their workspaces. `None` for every other principal.
#[must_use]
pub const fn tree(principal: &Principal) -> Option<SessionId> {
    match principal.held_by {
        Some(KeyHolder { session, key: AgentKey::Made }) => Some(session),
        Some(KeyHolder { key: AgentKey::Passed, .. }) | None => None,
    }
}

/// Checks whether a principal may make a token with this scope and target, and so see and revoke
/// one that has them: never more than it has itself.
///
/// # Errors
/// `forbidden`, naming what is missing.
pub fn may_grant(creator: &Principal, level: Level, target: &Target) -> Result<()> {
    const ACTION: &str = "creating this token";
    if level > creator.level {
        let missing = format!("a token that itself has scope `{level}`");
        return Err(Error::forbidden(ACTION, missing).with_scope(level));
    }
    match (&creator.target, target) {
        (Target::Everything, _) => Ok(()),
        (Target::Projects(_), Target::Everything) => {
            Err(Error::forbidden(ACTION, "a token that itself covers all projects"))
        }
        (Target::Projects(own), Target::Projects(wanted)) => {
            match wanted.iter().find(|project| !own.contains(project)) {
                None => Ok(()),
                Some(project) => Err(Error::forbidden(ACTION, format!("a token for {project}"))),
            }
        }
    }
}

/// Checks whether a principal may loosen the restrictions of agents. No agent may.
///
/// # Errors
/// `forbidden`, naming what is missing.
pub fn may_loosen(principal: &Principal, what: &str) -> Result<()> {
    no_agent(principal, what)?;
    if principal.level < Level::Admin {
        return Err(Error::forbidden(what, "a token with scope `admin`").with_scope(Level::Admin));
    }
    Ok(())
}

/// Checks whether a principal may stop the work of a session that it sees, or narrow its network
/// policy.
///
/// # Errors
/// `forbidden`, naming what is missing.
pub fn may_hold_back(principal: &Principal, owner: PrincipalId) -> Result<()> {
    let may = owner == principal.id || principal.level == Level::Admin;
    if may || tree(principal).is_some() {
        return Ok(());
    }
    Err(Error::forbidden("deciding for this session", "the token that started it"))
}

/// Checks whether a principal may answer the permission requests of a session's agent. No agent
/// may.
///
/// # Errors
/// `forbidden`, naming what is missing.
pub fn may_answer(principal: &Principal, owner: PrincipalId) -> Result<()> {
    no_agent(principal, "answering for an agent with an agent's key")?;
    may_hold_back(principal, owner)
}

/// Checks that a principal may have its toolchains shown in a sandbox: they are paths of this
/// machine, which are nothing to a token.
///
/// # Errors
/// `forbidden` for everyone but the user the daemon runs as.
pub fn may_show_toolchains(principal: &Principal) -> Result<()> {
    let what = "showing toolchains of this machine";
    no_agent(principal, what)?;
    match principal.id {
        PrincipalId::Local => Ok(()),
        PrincipalId::Token(_) => Err(Error::forbidden(what, "the daemon's own user")),
    }
}

/// Checks that a principal is not an agent, for what only users may do.
///
/// # Errors
/// `forbidden` for a key that an agent holds.
pub fn no_agent(principal: &Principal, what: &str) -> Result<()> {
    match principal.held_by {
        None => Ok(()),
        Some(_) => Err(Error::forbidden(what, NO_AGENTS)),
    }
}
