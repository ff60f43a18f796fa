//! What agents are answered that ask for permission, as options of commands.

use clap::Args;
use ringback_proto::permission::{PermissionMode, PermissionPolicy, PermissionRule};

use crate::failure::Failure;

/// What the agents of a project are answered.
#[derive(Debug, Clone, Default, Args)]
pub struct PermissionArgs {
    /// What agents are answered that ask for permission: `ask` (you), `allow` or `deny`; more than their settings needs an admin token [default: as the agent's settings say]
    #[arg(long, value_name = "ANSWER")]
    pub permissions: Option<PermissionMode>,
    /// What is answered for some tools, such as `bash*=deny`; may be given several times, the first that fits counts
    #[arg(long = "permission", value_name = "TOOL=ANSWER")]
    pub permission: Vec<PermissionRule>,
}

impl PermissionArgs {
    /// The policy, if there is one.
    pub(crate) fn policy(self) -> Result<Option<PermissionPolicy>, Failure> {
        let policy = PermissionPolicy { otherwise: self.permissions, rules: self.permission };
        policy.check().map_err(|error| Failure::Usage(error.to_string()))?;
        Ok(Some(policy).filter(|policy| !policy.is_empty()))
    }
}

/// A policy for people.
pub(crate) fn shown(policy: &PermissionPolicy) -> String {
    let rules = policy.rules.iter().map(ToString::to_string);
    let otherwise = policy.otherwise.map(|mode| mode.name().to_owned());
    rules.chain(otherwise).collect::<Vec<_>>().join(", ")
}
