//! An agent, whatever its protocol.

use crate::acp::AcpOptions;
use crate::agent::Agent;
use crate::event::AgentEvent;
use crate::files::{ConfigFile, WriteFileError, write_files};
use crate::handle::AgentHandle;
use crate::one_shot::{OneShot, OneShotAgent};
use crate::spec::{AgentSpec, StartError};

/// The protocol of an agent.
#[derive(Debug, Clone)]
pub enum Protocol {
    /// Ringback's own JSON lines (`docs/agents.md`).
    Lines,
    /// The Agent Client Protocol.
    Acp(AcpOptions),
    /// One run of the program for each message.
    OneShot(OneShot),
}

/// A running agent. It runs only while its next event is awaited.
///
/// Dropping it ends the agent and everything in its process group immediately.
#[derive(Debug)]
#[must_use = "an agent runs only while its events are awaited, and ends when dropped"]
pub struct Driver(Kind);

#[derive(Debug)]
enum Kind {
    Lasting(Box<Agent>),
    OneShot(Box<OneShotAgent>),
}

/// Why an agent was not started.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The program did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Its files were not written.
    #[error(transparent)]
    File(#[from] WriteFileError),
}

impl Driver {
    /// Starts an agent, after writing these files to its home. An agent that runs once for each
    /// message is not started before the first one.
    ///
    /// # Errors
    /// If the program cannot be started, or a file cannot be written.
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

    /// Returns the next event; `None` after the end.
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
