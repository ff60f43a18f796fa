//! What agents are answered that ask for permission: first by the rules of their project, then by what
//! it says otherwise, then by the agent's own settings, then by those of all sessions.

use ringback_agents::{PatternError, Permissions, Policy};
use ringback_proto::ids::ProjectId;
use ringback_proto::permission::{PermissionMode, PermissionPolicy};
use ringback_proto::principal::Principal;
use ringback_proto::{Error, Result};

use crate::sessions::{ELSEWHERE, SessionSettings, Sessions};
use crate::sync::lock;

/// What holds for an agent.
fn policy(
    project: Option<&PermissionPolicy>,
    usual: Permissions,
) -> std::result::Result<Policy, PatternError> {
    let Some(project) = project else { return Ok(usual.into()) };
    let rules = project.rules.iter().map(|rule| (rule.tool.as_str(), answer(rule.answer)));
    Policy::new(project.otherwise.map_or(usual, answer), rules)
}

const fn answer(mode: PermissionMode) -> Permissions {
    match mode {
        PermissionMode::Deny => Permissions::Deny,
        PermissionMode::Ask => Permissions::Ask,
        PermissionMode::Allow => Permissions::Allow,
    }
}

const fn mode(permissions: Permissions) -> PermissionMode {
    match permissions {
        Permissions::Deny => PermissionMode::Deny,
        Permissions::Ask => PermissionMode::Ask,
        Permissions::Allow => PermissionMode::Allow,
    }
}

impl SessionSettings {
    /// What holds for an agent whose project says nothing.
    fn permissions_of(&self, agent: &str) -> Permissions {
        let own = self.agents.get(agent).and_then(|agent| agent.permissions);
        own.unwrap_or(self.permissions)
    }

    /// The least that any agent is allowed by its settings.
    fn permissions_least(&self) -> PermissionMode {
        let own = self.agents.keys().map(|agent| mode(self.permissions_of(agent)));
        own.min().unwrap_or(mode(self.permissions))
    }
}

impl Sessions {
    /// Whether a project may answer so. To allow what the settings of some agent do not is to loosen
    /// them: an agent that cannot ask would do what nobody was asked for.
    pub(crate) fn check_permissions(
        &self,
        principal: &Principal,
        wanted: &PermissionPolicy,
    ) -> Result<()> {
        let refused = |message: String| Error::invalid_field("permissions", message);
        wanted.check().map_err(|error| refused(error.to_string()))?;
        policy(Some(wanted), Permissions::Ask).map_err(|error| refused(error.to_string()))?;
        let least = self.kernel.config.sessions.permissions_least();
        if wanted.most().is_some_and(|most| most > least) {
            ringback_core::policy::may_loosen(
                principal,
                "permissions beyond the agents' own settings",
            )?;
        }
        Ok(())
    }

    /// What holds for an agent of a project that says so.
    pub(in crate::sessions) fn policy_for(
        &self,
        project: Option<&PermissionPolicy>,
        agent: &str,
    ) -> std::result::Result<Policy, PatternError> {
        policy(project, self.kernel.config.sessions.permissions_of(agent))
    }

    /// Lets the sessions of a project that live follow it from their next question on.
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
            if is_of_it && live.agent != ELSEWHERE {
                let policy = self.policy_for(wanted, &live.agent);
                live.permissions.set(policy.map_err(crate::failure::internal)?);
            }
        }
        Ok(())
    }
}
