//! Network options of commands that start an agent.

use clap::Args;
use ringback_proto::network::{HostRule, NetworkMode, NetworkPolicy};

use crate::failure::Failure;

/// The network policy of a session.
#[derive(Debug, Clone, Default, Args)]
pub struct NetworkArgs {
    /// Network access of the agent: `none`, `model`, `allow` or `full`; more than `model` needs an
    /// admin token [default: the agent's model]
    #[arg(long, value_name = "MODE")]
    pub network: Option<NetworkMode>,
    /// A host the agent may reach, such as `example.org:443`, `*.example.org:443` or `10.1.2.3:*`;
    /// may be given several times
    #[arg(long = "allow", value_name = "HOST:PORT")]
    pub allow: Vec<HostRule>,
}

impl NetworkArgs {
    /// Returns the policy, if one was given.
    pub(crate) fn policy(&self) -> Result<Option<NetworkPolicy>, Failure> {
        match self.network {
            None if self.allow.is_empty() => Ok(None),
            mode => policy(mode.unwrap_or(NetworkMode::Allow), self.allow.clone()).map(Some),
        }
    }
}

/// Builds a policy and checks that it is consistent.
pub(crate) fn policy(mode: NetworkMode, allow: Vec<HostRule>) -> Result<NetworkPolicy, Failure> {
    let policy = NetworkPolicy { mode, allow };
    policy.check().map_err(|error| Failure::Usage(error.to_string()))?;
    Ok(policy)
}
