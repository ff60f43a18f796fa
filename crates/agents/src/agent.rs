//! A running agent.

use std::collections::VecDeque;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use ringback_mcp_wire::{Line, Lines};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use crate::event::{AgentEvent, Message};
use crate::spec::{AgentLimits, AgentSpec, StartError};
use crate::tail::Tail;

/// Messages that wait for an agent that does not read.
const MESSAGES_MAX: usize = 16;
/// How much of a line that is no event is shown.
const SAMPLE_CHARS_MAX: usize = 200;

/// A running agent. Ask for its next event again and again: that is what drives it.
///
/// Dropping it ends the agent and everything in its process group at once.
#[derive(Debug)]
#[must_use = "an agent that nobody drives does nothing, and one that is dropped is ended"]
pub struct Agent {
    child: Child,
    group: Option<Pid>,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    lines: Lines,
    tail: Tail,
    messages: mpsc::Receiver<String>,
    terminate: watch::Receiver<Option<Duration>>,
    /// What is being written.
    outgoing: Vec<u8>,
    events: VecDeque<AgentEvent>,
    garbage: Option<Garbage>,
    phase: Phase,
    limits: AgentLimits,
}

/// Sends messages to an agent, and ends it. When all of its handles are dropped, an agent learns
/// that there will be no more messages by the end of its standard input.
#[derive(Debug, Clone)]
pub struct AgentHandle {
    messages: mpsc::Sender<String>,
    terminate: watch::Sender<Option<Duration>>,
    pid: Option<u32>,
    line_bytes_max: usize,
}

/// Why a message was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// It has ended.
    #[error("the agent has ended")]
    Gone,
    /// Messages that it has not read wait already.
    #[error("the agent has not read the messages before this one; try again later")]
    Busy,
    /// The message is too long.
    #[error("the message is longer than the {line_bytes_max} bytes that a line may have")]
    TooLarge {
        /// How many bytes a line may have.
        line_bytes_max: usize,
    },
}

#[derive(Debug)]
struct Garbage {
    n_lines: u64,
    sample: String,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    Running,
    /// It was asked to end.
    Terminating {
        kill_at: Instant,
    },
    /// It has ended; what it said may still be on its way.
    Draining {
        /// `None` if the system could not say.
        status: Option<ExitStatus>,
        until: Instant,
    },
    Over,
}

impl Agent {
    /// Starts an agent.
    ///
    /// # Errors
    /// When there is nothing to start.
    pub fn start(spec: &AgentSpec) -> Result<(Self, AgentHandle), StartError> {
        let (mut child, group) = launch(spec)?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(StartError::NoPipes { command: spec.command.clone() });
        };
        let pid = child.id();
        let (messages_in, messages) = mpsc::channel(MESSAGES_MAX);
        let (terminate_in, terminate) = watch::channel(None);
        let limits = spec.limits;
        let agent = Self {
            child,
            group,
            stdin: Some(stdin),
            stdout: Some(stdout),
            stderr: Some(stderr),
            lines: Lines::new(limits.line_bytes_max),
            tail: Tail::new(limits.stderr_bytes_max),
            messages,
            terminate,
            outgoing: Vec::new(),
            events: VecDeque::new(),
            garbage: None,
            phase: Phase::Running,
            limits,
        };
        let line_bytes_max = limits.line_bytes_max;
        let handle =
            AgentHandle { messages: messages_in, terminate: terminate_in, pid, line_bytes_max };
        Ok((agent, handle))
    }

    /// The next thing that happens; `None` after the end.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn next(&mut self) -> Option<AgentEvent> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            match self.phase {
                Phase::Over => return None,
                Phase::Draining { status, .. } if self.is_drained() => self.end(status),
                Phase::Running | Phase::Terminating { .. } | Phase::Draining { .. } => {
                    self.step().await;
                }
            }
        }
    }

    async fn step(&mut self) {
        let deadline = match self.phase {
            Phase::Terminating { kill_at } => Some(kill_at),
            Phase::Draining { until, .. } => Some(until),
            Phase::Running | Phase::Over => None,
        };
        let has_ended = matches!(self.phase, Phase::Draining { .. });
        let is_writing = !self.outgoing.is_empty();
        let mut errors = [0; 4096];
        let Self { child, stdin, stdout, stderr, lines, messages, terminate, outgoing, .. } = self;
        tokio::select! {
            read = read_lines(stdout, lines) => self.on_stdout(&read),
            read = read_errors(stderr, &mut errors) => self.on_stderr(&errors, &read),
            written = write(stdin, outgoing), if is_writing => self.on_written(&written),
            message = messages.recv(), if !is_writing && stdin.is_some() => self.on_message(message),
            asked = asked_to_end(terminate), if !has_ended => self.on_terminate(asked),
            exited = child.wait(), if !has_ended => self.on_exit(exited),
            () = wait_until(deadline) => self.on_deadline(),
        }
    }

    fn on_stdout(&mut self, read: &io::Result<usize>) {
        while let Some(line) = self.lines.pop() {
            let event = match line {
                Line::Whole(line) => AgentEvent::decode(line).ok_or(line),
                Line::TooLong(start) => Err(start),
            };
            match event {
                Ok(event) => {
                    self.events.extend(self.garbage.take().map(Garbage::event));
                    self.events.push_back(event);
                }
                Err(line) => Garbage::add(&mut self.garbage, line),
            }
        }
        if matches!(read, Ok(0) | Err(_)) {
            self.stdout = None;
            if let Some(Line::Whole(torn) | Line::TooLong(torn)) = self.lines.rest() {
                Garbage::add(&mut self.garbage, torn);
            }
        }
        // However much of it there is, one event for each time something was read.
        self.events.extend(self.garbage.take().map(Garbage::event));
    }

    fn on_stderr(&mut self, bytes: &[u8], read: &io::Result<usize>) {
        match read {
            Ok(0) | Err(_) => self.stderr = None,
            Ok(n) => self.tail.push(&bytes[..*n]),
        }
    }

    fn on_message(&mut self, line: Option<String>) {
        match line {
            Some(line) => {
                self.outgoing = line.into_bytes();
                self.outgoing.push(b'\n');
            }
            None => self.stdin = None,
        }
    }

    fn on_written(&mut self, written: &io::Result<usize>) {
        match written {
            Ok(n) if *n > 0 => drop(self.outgoing.drain(..*n)),
            // It does not read any more; its end will follow, or the owner's patience ends.
            Ok(_) | Err(_) => {
                self.stdin = None;
                self.outgoing.clear();
                self.messages.close();
            }
        }
    }

    fn on_terminate(&mut self, grace: Duration) {
        let kill_at = Instant::now() + grace;
        let kill_at = match self.phase {
            // Who is in more of a hurry is right.
            Phase::Terminating { kill_at: before } => before.min(kill_at),
            Phase::Running | Phase::Draining { .. } | Phase::Over => {
                self.signal(Signal::TERM);
                kill_at
            }
        };
        self.phase = Phase::Terminating { kill_at };
    }

    fn on_deadline(&mut self) {
        match self.phase {
            Phase::Terminating { .. } => {
                self.signal(Signal::KILL);
                // The kill cannot be refused: only the end can be next.
                self.phase = Phase::Running;
            }
            Phase::Draining { .. } => {
                self.stdout = None;
                self.stderr = None;
            }
            Phase::Running | Phase::Over => {}
        }
    }

    fn on_exit(&mut self, exited: io::Result<ExitStatus>) {
        // What it started may outlive it, and would hold its output open.
        self.signal(Signal::KILL);
        self.stdin = None;
        self.messages.close();
        let status = exited.ok();
        self.phase = Phase::Draining { status, until: Instant::now() + self.limits.drain };
    }

    const fn is_drained(&self) -> bool {
        self.stdout.is_none() && self.stderr.is_none()
    }

    fn end(&mut self, status: Option<ExitStatus>) {
        self.phase = Phase::Over;
        self.group = None;
        self.events.push_back(AgentEvent::AgentExited {
            code: status.and_then(|status| status.code()),
            signal: status.and_then(|status| status.signal()),
            stderr: self.tail.text(),
        });
    }

    /// To the whole group. One that is not there any more has what was wanted.
    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            kill_process_group(group, signal).unwrap_or_default();
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

impl AgentHandle {
    /// Gives the agent a message.
    ///
    /// # Errors
    /// When it is not taken; then the agent does not see it.
    pub fn send(&self, text: impl Into<String>) -> Result<(), SendError> {
        let line = Message::Message { text: text.into() }.encode();
        let line_bytes_max = self.line_bytes_max;
        if line.len() > line_bytes_max {
            return Err(SendError::TooLarge { line_bytes_max });
        }
        self.messages.try_send(line).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => SendError::Busy,
            mpsc::error::TrySendError::Closed(_) => SendError::Gone,
        })
    }

    /// Asks the agent and all of its group to end, and ends them after `grace`. The agent's last
    /// event tells when it is done.
    pub fn terminate(&self, grace: Duration) {
        self.terminate.send_replace(Some(grace));
    }

    /// The agent's process. It is also its group, where no launcher has started it.
    #[must_use]
    pub const fn pid(&self) -> Option<u32> {
        self.pid
    }
}

impl Garbage {
    fn add(garbage: &mut Option<Self>, line: &[u8]) {
        let garbage = garbage.get_or_insert_with(|| Self {
            n_lines: 0,
            sample: String::from_utf8_lossy(&line[..line.len().min(4 * SAMPLE_CHARS_MAX)])
                .chars()
                .take(SAMPLE_CHARS_MAX)
                .collect(),
        });
        garbage.n_lines += 1;
    }

    fn event(self) -> AgentEvent {
        AgentEvent::AgentGarbage { lines: self.n_lines, sample: self.sample }
    }
}

/// Starts the agent's process; its group is where signals go.
fn launch(spec: &AgentSpec) -> Result<(Child, Option<Pid>), StartError> {
    if let Some(launcher) = &spec.launcher {
        let launched = launcher.launch(spec).map_err(|source| {
            let command = spec.command.clone();
            StartError::Launch { command, source }
        })?;
        return Ok((launched.child, Some(launched.group)));
    }
    let child = spawn(spec)?;
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
    Ok((child, pid))
}

fn spawn(spec: &AgentSpec) -> Result<Child, StartError> {
    Command::new(&spec.command)
        .args(&spec.args)
        .env_clear()
        .envs(spec.env.iter().map(|(name, value)| (name, value)))
        .current_dir(&spec.workspace)
        .process_group(0)
        .kill_on_drop(true)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|source| StartError::Spawn {
            command: spec.command.clone(),
            workspace: spec.workspace.clone(),
            source,
        })
}

async fn read_lines(stdout: &mut Option<ChildStdout>, lines: &mut Lines) -> io::Result<usize> {
    match stdout {
        Some(stdout) => stdout.read_buf(lines.room()).await,
        None => std::future::pending().await,
    }
}

async fn read_errors(stderr: &mut Option<ChildStderr>, bytes: &mut [u8]) -> io::Result<usize> {
    match stderr {
        Some(stderr) => stderr.read(bytes).await,
        None => std::future::pending().await,
    }
}

async fn write(stdin: &mut Option<ChildStdin>, bytes: &[u8]) -> io::Result<usize> {
    match stdin {
        Some(stdin) => stdin.write(bytes).await,
        None => Ok(0),
    }
}

async fn asked_to_end(terminate: &mut watch::Receiver<Option<Duration>>) -> Duration {
    loop {
        if terminate.changed().await.is_err() {
            // Every handle is gone, and nobody can ask any more.
            return std::future::pending().await;
        }
        if let Some(grace) = *terminate.borrow_and_update() {
            return grace;
        }
    }
}

async fn wait_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
