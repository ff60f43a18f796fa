//! The garden: commands to the process that plays the timeline, and the timeline itself, whose
//! truth is in the store.

mod deleted;
mod export;
mod monitor;
mod process;
mod promise;
mod timeline;

use std::sync::Arc;
use std::time::Duration;

use ringback_core::garden as rules;
use ringback_proto::garden::command::{self, SeekArguments, TransportAnswer, TransportArguments};
use ringback_proto::garden::{
    CONTROL_SERVICE, GardenAt, GardenEvent, GardenHeard, GardenStatus, SERVICE,
};
use ringback_proto::ids::JobId;
use ringback_proto::principal::PrincipalId;
use ringback_proto::record::{HeardRecord, Record};
use ringback_proto::{Certainty, Error, ErrorKind, Result, ToolRequest};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::{Semaphore, SetOnce};

use self::deleted::DeletedRegions;
pub use self::monitor::Monitor;
pub use self::process::{GardenProcess, NoGardenProcess};
pub(crate) use self::timeline::{NewTempo, Order};
use crate::kernel::Kernel;
use crate::lines::{Lines, ServiceCall};

/// A command is executed between two blocks of sound; a garden that takes a second hangs.
const ACCEPT_WAIT: Duration = Duration::from_secs(1);
/// The process connects, reads the timeline and opens its device before it serves.
const START_WAIT: Duration = Duration::from_secs(5);
/// Changes of the timeline that wait for their turn: seconds of work.
const CHANGES_WAITING_MAX: usize = 64;
/// Events of one report: a minute of position events.
const REPORT_EVENTS_MAX: usize = 600;

/// The garden.
#[derive(Debug)]
pub(crate) struct Garden {
    kernel: Arc<Kernel>,
    lines: Arc<Lines>,
    /// The turn to change the timeline: one at a time.
    turn: Arc<Semaphore>,
    /// Places in the queue for it.
    queue: Semaphore,
    /// What is heard, for the listeners of the monitor.
    monitor: monitor::Channel,
    /// Regions that the garden may still report as heard.
    deleted: DeletedRegions,
}

/// The answer to a command that was sent before its job was durable.
pub(crate) type SentCommand = Arc<SetOnce<Result<TransportAnswer>>>;

/// A command of the transport, for the service [`SERVICE`].
#[derive(Debug, Clone, Copy)]
pub(crate) enum Transport {
    Play(Option<GardenAt>),
    Pause(Option<GardenAt>),
    Stop(Option<GardenAt>),
}

impl Garden {
    pub(crate) fn new(kernel: Arc<Kernel>, lines: Arc<Lines>) -> Self {
        let queue = Semaphore::new(CHANGES_WAITING_MAX);
        let (turn, monitor) = (Arc::new(Semaphore::new(1)), monitor::Channel::new());
        Self { kernel, lines, turn, queue, monitor, deleted: DeletedRegions::default() }
    }

    /// Returns what the garden is doing. It does not start the process: one that does not run plays
    /// nothing.
    pub(crate) async fn status(&self) -> Result<GardenStatus> {
        self.check_served(SERVICE, command::STATUS)?;
        self.ask(SERVICE, command::STATUS, &NoArguments {}, None, ACCEPT_WAIT).await
    }

    pub(crate) async fn transport(
        &self,
        job: Option<JobId>,
        command: Transport,
    ) -> Result<TransportAnswer> {
        let (tool, at) = match command {
            Transport::Play(at) => (command::PLAY, at),
            Transport::Pause(at) => (command::PAUSE, at),
            Transport::Stop(at) => (command::STOP, at),
        };
        rules::check_at(at)?;
        self.command(tool, &TransportArguments { at }, job).await
    }

    pub(crate) async fn seek(
        &self,
        job: Option<JobId>,
        to: SeekArguments,
    ) -> Result<TransportAnswer> {
        rules::check_at(to.at)?;
        self.command(command::SEEK, &to, job).await
    }

    /// Sends what must not wait for the commit of its job, as soon as the call is admitted.
    pub(crate) fn send_early(self: &Arc<Self>, request: &ToolRequest) -> Option<SentCommand> {
        let ToolRequest::GardenEmergencyPause(_) = request else { return None };
        let (garden, sent) = (Arc::clone(self), SentCommand::default());
        let answer = Arc::clone(&sent);
        drop(self.kernel.tasks.spawn(async move {
            drop(answer.set(garden.emergency_pause().await));
        }));
        Some(sent)
    }

    /// Silences the garden, past every other command and without a job's id.
    async fn emergency_pause(&self) -> Result<TransportAnswer> {
        let tool = command::EMERGENCY_PAUSE;
        self.check_served(CONTROL_SERVICE, tool)?;
        self.ask(CONTROL_SERVICE, tool, &NoArguments {}, None, ACCEPT_WAIT).await
    }

    /// Publishes what the garden reports, and records what was heard.
    pub(crate) async fn report(&self, events: Vec<GardenEvent>) -> Result<usize> {
        if events.len() > REPORT_EVENTS_MAX {
            let message = format!("a report can have at most {REPORT_EVENTS_MAX} events");
            return Err(Error::invalid_field("events", message));
        }
        let mut heard = Vec::new();
        for event in &events {
            match event {
                GardenEvent::Heard(part) => heard.push(part.clone()),
                GardenEvent::Position(position) => {
                    self.monitor.set_position(position.position_beats);
                }
                GardenEvent::Transport(_) | GardenEvent::Region(_) | GardenEvent::Trouble(_) => {}
            }
        }
        let told: Vec<_> = events.into_iter().filter_map(rules::announced).collect();
        let n_told = told.len();
        for event in told {
            self.kernel.publish(event, PrincipalId::Local, None);
        }
        if !heard.is_empty() {
            self.record_heard(heard).await?;
        }
        Ok(n_told)
    }

    /// Records what was heard, also of regions that were deleted meanwhile.
    async fn record_heard(&self, heard: Vec<GardenHeard>) -> Result<()> {
        let at = self.kernel.now().unix;
        let deleted: Vec<_> =
            heard.iter().map(|part| self.deleted.artifact(part.region_id)).collect();
        let records = self.kernel.read(move |store| {
            let mut records = Vec::with_capacity(heard.len());
            for (GardenHeard { region_id, from, to }, deleted) in heard.into_iter().zip(deleted) {
                let region = store.region(region_id)?;
                if let Some(artifact) = region.map(|region| region.artifact).or(deleted) {
                    records.push(HeardRecord { region: region_id, artifact, from, to, at });
                }
            }
            Ok(records)
        });
        let records = records.await?;
        if !records.is_empty() {
            self.kernel.commit(vec![Record::Heard(records)]).await?;
        }
        Ok(())
    }

    /// Sends a command, and starts the process for it if need be.
    async fn command<R: DeserializeOwned>(
        &self,
        tool: &'static str,
        arguments: &impl Serialize,
        job: Option<JobId>,
    ) -> Result<R> {
        self.ready(tool).await?;
        self.ask(SERVICE, tool, arguments, job, ACCEPT_WAIT).await
    }

    /// Waits until a process serves a tool, and starts it if it is to be started on demand.
    async fn ready(&self, tool: &str) -> Result<()> {
        let mut changes = self.lines.service_changes();
        if self.lines.serves(SERVICE, tool) {
            return Ok(());
        }
        self.kernel.config.garden.wake().map_err(|advice| not_running(&advice))?;
        let served =
            async { while !self.lines.serves(SERVICE, tool) && changes.changed().await.is_ok() {} };
        tokio::time::timeout(START_WAIT, served).await.map_err(|_| {
            let secs = START_WAIT.as_secs();
            not_running(&format!("it did not start within {secs} s; the daemon's log says why"))
        })
    }

    /// Checks that a process serves a tool, without starting one.
    fn check_served(&self, service: &str, tool: &str) -> Result<()> {
        if self.lines.serves(service, tool) {
            return Ok(());
        }
        Err(not_running("nothing plays; a command such as `garden_play` starts it if it may start"))
    }

    async fn ask<R: DeserializeOwned>(
        &self,
        service: &'static str,
        tool: &'static str,
        arguments: &impl Serialize,
        job_id: Option<JobId>,
        limit: Duration,
    ) -> Result<R> {
        let arguments = rmp_serde::to_vec_named(arguments).map_err(crate::failure::internal)?;
        let call = ServiceCall { service, tool, arguments: arguments.into(), job_id, limit };
        let answer = self.lines.call_service(call).await?;
        rmp_serde::from_slice(&answer).map_err(|error| {
            let message = format!("cannot read the garden's answer to `{tool}`: {error}");
            Error::new(ErrorKind::ToolFailed, message).with_certainty(Certainty::Ran)
        })
    }
}

/// The arguments of a tool that takes none, and the answer of one that returns nothing.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct NoArguments {}

fn not_running(advice: &str) -> Error {
    Error::new(ErrorKind::Gone, format!("the garden is not running: {advice}"))
}
