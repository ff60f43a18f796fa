//! An agent, whatever way it is talked to.

use crate::acp::AcpOptions;
use crate::agent::Agent;
use crate::event::AgentEvent;
use crate::files::{ConfigFile, WriteFileError, write_files};
use crate::handle::AgentHandle;
use crate::one_shot::{OneShot, OneShotAgent};
use crate::spec::{AgentSpec, StartError};

/// How an agent is talked to.
#[derive(Debug, Clone)]
pub enum Protocol {
    /// In JSON lines of our own (`docs/agents.md`).
    Lines,
    /// By the Agent Client Protocol.
    Acp(AcpOptions),
    /// By being started for each message.
    OneShot(OneShot),
}

/// An agent under way. Ask for its next event again and again: that is what drives it.
///
/// Dropping it ends the agent and everything in its process group at once.
#[derive(Debug)]
#[must_use = "an agent that nobody drives does nothing, and one that is dropped is ended"]
pub struct Driver(Kind);

#[derive(Debug)]
enum Kind {
    Lasting(Box<Agent>),
    OneShot(Box<OneShotAgent>),
}

/// Why there is no agent.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// It was not started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// It was not set up.
    #[error(transparent)]
    File(#[from] WriteFileError),
}

impl Driver {
    /// Starts an agent that finds these files in its home. One that is started for each
    /// message is not started before the first.
    ///
    /// # Errors
    /// When there is nothing to start, or a file cannot be written.
    pub fn start(
        spec: AgentSpec,
        protocol: Protocol,
        files: Vec<ConfigFile>,
    ) -> Result<(Self, AgentHandle), DriveError> {
        let lasting = |(agent, handle)| (Self(Kind::Lasting(Box::new(agent))), handle);
        match protocol {
            Protocol::Lines => {
                write_files(&spec.home, &files)?;
                Ok(lasting(Agent::start(&spec)?))
            }
            Protocol::Acp(options) => {
                write_files(&spec.home, &files)?;
                Ok(lasting(Agent::start_acp(&spec, options)?))
            }
            Protocol::OneShot(shot) => {
                let (agent, handle) = OneShotAgent::new(spec, shot, files);
                Ok((Self(Kind::OneShot(Box::new(agent))), handle))
            }
        }
    }

    /// The next thing that happens; `None` after the end.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn next(&mut self) -> Option<AgentEvent> {
        match &mut self.0 {
            Kind::Lasting(agent) => agent.next().await,
            Kind::OneShot(agent) => agent.next().await,
        }
    }
}
