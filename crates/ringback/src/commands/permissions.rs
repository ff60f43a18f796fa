//! Permission options of commands.

use clap::Args;
use ringback_proto::permission::{PermissionMode, PermissionPolicy, PermissionRule};

use crate::failure::Failure;

/// The permission policy of a project.
#[derive(Debug, Clone, Default, Args)]
pub struct PermissionArgs {
    /// Answer to agents' permission requests: `ask` (you), `allow` or `deny`; more than the agent's
    /// settings allow needs an admin token [default: the agent's settings]
    #[arg(long, value_name = "ANSWER")]
    pub permissions: Option<PermissionMode>,
    /// Answer for some tools, such as `bash*=deny`; may be given several times, the first match
    /// wins
    #[arg(long = "permission", value_name = "TOOL=ANSWER")]
    pub permission: Vec<PermissionRule>,
}

impl PermissionArgs {
    /// Returns the policy, if one was given.
    pub(crate) fn policy(self) -> Result<Option<PermissionPolicy>, Failure> {
        let policy = PermissionPolicy { otherwise: self.permissions, rules: self.permission };
        policy.check().map_err(|error| Failure::Usage(error.to_string()))?;
        Ok(Some(policy).filter(|policy| !policy.is_empty()))
    }
}

/// Formats a policy for people.
pub(crate) fn shown(policy: &PermissionPolicy) -> String {
    let rules = policy.rules.iter().map(ToString::to_string);
    let otherwise = policy.otherwise.map(|mode| mode.name().to_owned());
    rules.chain(otherwise).collect::<Vec<_>>().join(", ")
}
