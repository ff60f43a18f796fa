//! The answers to agents' permission requests, in this order: the rules of the project, tools that
//! their callers allow, what was chosen for the session, the project's `otherwise`, the agent's own
//! setting, the default of all sessions. A project's `otherwise` of `deny` comes before tools that
//! callers allow, unless something else was chosen for the session.

use ringback_agents::{PatternError, Permissions, Policy};
use ringback_proto::ids::ProjectId;
use ringback_proto::permission::{PermissionMode, PermissionPolicy};
use ringback_proto::principal::Principal;
use ringback_proto::{Error, Result};

use crate::sessions::lifecycle::choice::ChosenAgent;
use crate::sessions::{ELSEWHERE, SessionSettings, Sessions};
use crate::sync::lock;

/// Builds the policy for an agent.
fn policy(
    project: Option<&PermissionPolicy>,
    chosen: Option<PermissionMode>,
    usual: Permissions,
) -> std::result::Result<Policy, PatternError> {
    let Some(project) = project else { return Ok(chosen.map_or(usual, answer).into()) };
    let rules = project.rules.iter().map(|rule| (rule.tool.as_str(), answer(rule.answer)));
    let policy = Policy::new(chosen.or(project.otherwise).map_or(usual, answer), rules)?;
    let is_closed = chosen.is_none() && project.otherwise == Some(PermissionMode::Deny);
    Ok(if is_closed { policy.closed() } else { policy })
}

pub(in crate::sessions) const fn answer(mode: PermissionMode) -> Permissions {
    match mode {
        PermissionMode::Deny => Permissions::Deny,
        PermissionMode::Ask => Permissions::Ask,
        PermissionMode::Allow => Permissions::Allow,
    }
}

pub(in crate::sessions) const fn mode(permissions: Permissions) -> PermissionMode {
    match permissions {
        Permissions::Deny => PermissionMode::Deny,
        Permissions::Ask => PermissionMode::Ask,
        Permissions::Allow => PermissionMode::Allow,
    }
}

impl SessionSettings {
    /// Returns the answer for an agent whose project sets none.
    fn permissions_of(&self, agent: &str) -> Permissions {
        let own = self.agents.get(agent).and_then(|agent| agent.permissions);
        own.unwrap_or(self.permissions)
    }

    /// Returns the strictest answer in the settings of all agents.
    fn permissions_least(&self) -> PermissionMode {
        // Presets need no configuration, and use the default.
        let own = self.agents.keys().map(|agent| mode(self.permissions_of(agent)));
        own.fold(mode(self.permissions), PermissionMode::min)
    }
}

impl Sessions {
    /// Checks whether this principal may set a project's permissions. Allowing more than some
    /// agent's settings loosens them: an agent that cannot ask would act without a question.
    pub(crate) fn check_permissions(
        &self,
        principal: &Principal,
        wanted: &PermissionPolicy,
    ) -> Result<()> {
        let refused = |message: String| Error::invalid_field("permissions", message);
        wanted.check().map_err(|error| refused(error.to_string()))?;
        policy(Some(wanted), None, Permissions::Ask).map_err(|error| refused(error.to_string()))?;
        let least = self.kernel.config.sessions.permissions_least();
        if wanted.most().is_some_and(|most| most > least) {
            ringback_core::policy::may_loosen(
                principal,
                "permissions beyond the agents' own settings",
            )?;
        }
        Ok(())
    }

    /// Returns the policy for an agent in a project with these permissions.
    pub(in crate::sessions) fn policy_for(
        &self,
        project: Option<&PermissionPolicy>,
        chosen: &ChosenAgent,
    ) -> std::result::Result<Policy, PatternError> {
        let usual = chosen.command.permissions;
        let usual = usual.unwrap_or(self.kernel.config.sessions.permissions);
        policy(project, chosen.choice.permissions, usual)
    }

    /// Applies a project's permissions to its live sessions, from their next request on.
    pub(crate) fn follow_permissions(
        &self,
        project: ProjectId,
        wanted: Option<&PermissionPolicy>,
    ) -> Result<()> {
        let live: Vec<_> = lock(&self.register.live)
            .iter()
            .map(|(id, live)| (*id, std::sync::Arc::clone(live)))
            .collect();
        for (id, live) in live {
            let place = lock(&self.register.table).find(id).map(|(place, _)| place);
            let is_of_it = place.is_some_and(|place| place.project == project);
            if is_of_it && live.chosen.name != ELSEWHERE {
                let policy = self.policy_for(wanted, &live.chosen);
                live.permissions.set(policy.map_err(crate::failure::internal)?);
            }
        }
        Ok(())
    }
}
