//! What an agent may reach, as options of commands that start one.

use clap::Args;
use ringback_proto::network::{HostRule, NetworkMode, NetworkPolicy};

use crate::failure::Failure;

/// What a session may reach.
#[derive(Debug, Clone, Default, Args)]
pub struct NetworkArgs {
    /// What the agent may reach: `none`, `model`, `allow` or `full`; more than its model needs an admin token [default: the model of its agent]
    #[arg(long, value_name = "MODE")]
    pub network: Option<NetworkMode>,
    /// A place the agent may reach, such as `example.org:443`, `*.example.org:443` or `10.1.2.3:*`; may be given several times
    #[arg(long = "allow", value_name = "HOST:PORT")]
    pub allow: Vec<HostRule>,
}

impl NetworkArgs {
    /// The policy, if there is one.
    pub(crate) fn policy(&self) -> Result<Option<NetworkPolicy>, Failure> {
        match self.network {
            None if self.allow.is_empty() => Ok(None),
            mode => policy(mode.unwrap_or(NetworkMode::Allow), self.allow.clone()).map(Some),
        }
    }
}

/// A policy that says what it can mean.
pub(crate) fn policy(mode: NetworkMode, allow: Vec<HostRule>) -> Result<NetworkPolicy, Failure> {
    let policy = NetworkPolicy { mode, allow };
    policy.check().map_err(|error| Failure::Usage(error.to_string()))?;
    Ok(policy)
}
