//! Agents without a protocol: a program that runs once for each message. Its output is the answer,
//! and its exit is the end of the turn.

use std::ffi::OsString;
use std::time::Duration;

use crate::agent::Agent;
use crate::event::{AgentEvent, StopReason};
use crate::files::{ConfigFile, write_files};
use crate::handle::{AgentHandle, Inbox, QueuedMessage, asked_to_end, next_message};
use crate::protocol::Control;
use crate::spec::AgentSpec;
use crate::template::fill;

/// How long a program may take to stop.
const ABORT_GRACE: Duration = Duration::from_secs(2);

/// The ID of a conversation that the program continues on its own.
const LAST: &str = "last";

/// How to run the program for a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OneShot {
    /// Its arguments after those of the spec; `{message}` stands for the message. If no argument
    /// contains it, the message is the program's input.
    pub args: Vec<String>,
    /// The same for every message but the first of a conversation; empty if the agent cannot
    /// continue one, and every message is a conversation of its own.
    pub args_again: Vec<String>,
    /// Whether an earlier agent has started the conversation.
    pub has_started: bool,
}

/// An agent of many runs. It runs only while its next event is awaited.
#[derive(Debug)]
#[must_use = "an agent runs only while its events are awaited"]
pub(crate) struct OneShotAgent {
    spec: AgentSpec,
    shot: OneShot,
    files: Vec<ConfigFile>,
    inbox: Inbox,
    run: Option<(Agent, AgentHandle)>,
    phase: Phase,
    /// Turns that ended before they started.
    n_taken_back: usize,
    /// The number of aborts before the last message: those do not apply to its run.
    n_aborts: u64,
    /// The next event to report.
    held: Option<AgentEvent>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Working,
    /// The run is to stop, the agent stays.
    Aborting,
    Ending,
    Over,
}

impl OneShotAgent {
    pub(crate) fn new(
        spec: AgentSpec,
        shot: OneShot,
        files: Vec<ConfigFile>,
    ) -> (Self, AgentHandle) {
        let (handle, inbox) = AgentHandle::new(None, spec.limits.line_bytes_max);
        let agent = Self {
            spec,
            shot,
            files,
            inbox,
            run: None,
            phase: Phase::Working,
            n_taken_back: 0,
            n_aborts: 0,
            held: None,
        };
        (agent, handle)
    }

    /// Returns the next event; `None` after the end.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn next(&mut self) -> Option<AgentEvent> {
        loop {
            if let Some(event) = self.held.take() {
                return Some(event);
            }
            if self.n_taken_back > 0 {
                self.n_taken_back -= 1;
                let stop = StopReason::Cancelled;
                return Some(AgentEvent::Completion { stop, usage: None });
            }
            if self.phase == Phase::Over {
                return None;
            }
            let is_idle = self.run.is_none();
            let Self { run, inbox, .. } = self;
            let Inbox { messages, held, controls, terminate } = inbox;
            let event = tokio::select! {
                heard = heard(run) => self.on_heard(heard),
                message = next_message(held, messages), if is_idle => self.on_message(message),
                Some(control) = controls.recv() => self.on_control(&control),
                grace = asked_to_end(terminate) => self.on_terminate(grace),
            };
            if event.is_some() {
                return event;
            }
        }
    }

    fn on_heard(&mut self, heard: Option<AgentEvent>) -> Option<AgentEvent> {
        match heard {
            None => {
                self.run = None;
                None
            }
            Some(AgentEvent::AgentExited { code, signal, stderr }) => {
                self.run = None;
                Some(self.on_exit(code, signal, stderr))
            }
            Some(event) => Some(event),
        }
    }

    fn on_exit(&mut self, code: Option<i32>, signal: Option<i32>, stderr: String) -> AgentEvent {
        match (self.phase, code) {
            (Phase::Ending | Phase::Over, _) => {
                self.phase = Phase::Over;
                AgentEvent::AgentExited { code, signal, stderr }
            }
            (Phase::Aborting, _) => {
                self.phase = Phase::Working;
                AgentEvent::Completion { stop: StopReason::Cancelled, usage: None }
            }
            (Phase::Working, Some(0)) => {
                let end = AgentEvent::Completion { stop: StopReason::EndTurn, usage: None };
                let had_started = std::mem::replace(&mut self.shot.has_started, true);
                if had_started || self.shot.args_again.is_empty() {
                    return end;
                }
                self.held = Some(end);
                AgentEvent::Conversation { id: LAST.to_owned(), is_resumed: false }
            }
            (Phase::Working, _) => {
                let how = match (code, signal) {
                    (Some(code), _) => format!("with code {code}"),
                    (None, Some(signal)) => format!("by signal {signal}"),
                    (None, None) => "for an unknown reason".to_owned(),
                };
                AgentEvent::Error { text: format!("the agent ended {how}\n{}", stderr.trim_end()) }
            }
        }
    }

    fn on_message(&mut self, message: Option<QueuedMessage>) -> Option<AgentEvent> {
        let Some(QueuedMessage { text: message, n_aborts, .. }) = message else {
            // No more messages can come.
            self.phase = Phase::Over;
            return Some(ended());
        };
        self.n_aborts = n_aborts;
        let (args, input) = self.shot.call(&message);
        let mut spec = self.spec.clone();
        spec.args.extend(args);
        let started = write_files(&spec.home, &self.files)
            .map_err(|error| chain(&error))
            .and_then(|()| Agent::start_output(&spec, &input).map_err(|error| chain(&error)));
        match started {
            Ok(run) => {
                self.run = Some(run);
                None
            }
            Err(text) => Some(AgentEvent::Error { text }),
        }
    }

    fn on_control(&mut self, control: &Control) -> Option<AgentEvent> {
        match control {
            Control::Answer { .. } => {}
            Control::Abort { number } => {
                self.n_taken_back += self.inbox.take_back(*number);
                if let (Some((_, handle)), Phase::Working) = (&self.run, self.phase)
                    && self.n_aborts < *number
                {
                    handle.terminate(ABORT_GRACE);
                    self.phase = Phase::Aborting;
                }
            }
        }
        None
    }

    fn on_terminate(&mut self, grace: Duration) -> Option<AgentEvent> {
        self.inbox.messages.close();
        match &self.run {
            Some((_, handle)) => {
                handle.terminate(grace);
                self.phase = Phase::Ending;
                None
            }
            None => {
                self.phase = Phase::Over;
                Some(ended())
            }
        }
    }
}

impl OneShot {
    /// Returns the arguments for a message, and the program's input.
    fn call(&self, message: &str) -> (Vec<OsString>, Vec<u8>) {
        let is_again = self.has_started && !self.args_again.is_empty();
        let args = if is_again { &self.args_again } else { &self.args };
        let is_argument = args.iter().any(|arg| arg.contains("{message}"));
        let filled = args.iter().map(|arg| fill(arg, &[("message", message)]).into()).collect();
        (filled, if is_argument { Vec::new() } else { message.as_bytes().to_vec() })
    }
}

async fn heard(run: &mut Option<(Agent, AgentHandle)>) -> Option<AgentEvent> {
    match run {
        Some((agent, _)) => agent.next().await,
        None => std::future::pending().await,
    }
}

const fn ended() -> AgentEvent {
    AgentEvent::AgentExited { code: Some(0), signal: None, stderr: String::new() }
}

fn chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        None => error.to_string(),
        Some(cause) => format!("{error}: {cause}"),
    }
}
