//! A running agent.

use std::fmt;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

use ringback_mcp_wire::{Line, Lines};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::{Instant, sleep_until};

use crate::acp::{AcpOptions, Conversation};
use crate::child;
use crate::event::AgentEvent;
use crate::handle::{AgentHandle, Inbox, QueuedMessage, asked_to_end, next_message};
use crate::protocol::{Control, Effects, ProtocolState, Wait};
use crate::spec::{AgentLimits, AgentProcess, AgentSpec, LaunchedProcess, StartError};
use crate::tail::Tail;
use crate::text::Text;

/// The output of an agent that leaves more input than this unread is not read.
const UNREAD_BYTES_MAX: usize = 64 * 1024;
/// How long output is held back in case more follows.
const QUIET: Duration = Duration::from_secs(1);
/// How long an agent that has failed may take to end.
const END_GRACE: Duration = Duration::from_secs(2);
/// How much of an invalid output line is shown.
const SAMPLE_CHARS_MAX: usize = 200;

type Input = Box<dyn AsyncWrite + Send + Unpin>;
type Output = Box<dyn AsyncRead + Send + Unpin>;

/// A running agent. It runs only while its next event is awaited.
///
/// Dropping it ends the agent and everything it started immediately.
#[must_use = "an agent runs only while its events are awaited, and ends when dropped"]
pub struct Agent {
    process: Box<dyn AgentProcess>,
    stdin: Option<Input>,
    stdout: Option<Output>,
    stderr: Option<Output>,
    lines: Lines,
    tail: Tail,
    inbox: Inbox,
    /// The number of aborts before the last message: those do not apply to its turn.
    n_aborts: u64,
    protocol_state: ProtocolState,
    /// Pending input for the agent, and pending events.
    out: Effects,
    garbage: Option<Garbage>,
    phase: Phase,
    /// What it has to do, and by when.
    waiting: Option<(Wait, Instant)>,
    /// When held-back output is reported even if no more follows.
    quiet_at: Option<Instant>,
    limits: AgentLimits,
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
    /// It has ended; some of its output may still be unread.
    Draining {
        /// `None` if the system could not report it.
        status: Option<ExitStatus>,
        until: Instant,
    },
    Over,
}

impl Agent {
    /// Starts an agent that speaks the line protocol.
    ///
    /// # Errors
    /// If the program cannot be started.
    pub fn start(spec: &AgentSpec) -> Result<(Self, AgentHandle), StartError> {
        Self::start_with(spec, |_, _| ProtocolState::Lines)
    }

    /// Starts an agent that speaks the Agent Client Protocol.
    ///
    /// # Errors
    /// If the program cannot be started.
    pub fn start_acp(
        spec: &AgentSpec,
        options: AcpOptions,
    ) -> Result<(Self, AgentHandle), StartError> {
        Self::start_with(spec, |pid, out| {
            let name = format!("p{}", pid.unwrap_or_default());
            ProtocolState::Acp(Box::new(Conversation::begin(options, &name, out)))
        })
    }

    /// Starts a program that gets all of its input at the start, and whose output is its answer.
    pub(crate) fn start_output(
        spec: &AgentSpec,
        input: &[u8],
    ) -> Result<(Self, AgentHandle), StartError> {
        Self::start_with(spec, |_, out| {
            out.bytes.extend_from_slice(input);
            ProtocolState::Output(Text::default())
        })
    }

    fn start_with(
        spec: &AgentSpec,
        protocol_state: impl FnOnce(Option<u32>, &mut Effects) -> ProtocolState,
    ) -> Result<(Self, AgentHandle), StartError> {
        let LaunchedProcess { stdin, stdout, stderr, process } = launch(spec)?;
        let pid = process.id();
        let limits = spec.limits;
        let (handle, inbox) = AgentHandle::new(pid, limits.line_bytes_max);
        let mut out = Effects::default();
        let protocol_state = protocol_state(pid, &mut out);
        let mut agent = Self {
            process,
            stdin: Some(stdin),
            stdout: Some(stdout),
            stderr: Some(stderr),
            lines: Lines::new(limits.line_bytes_max),
            tail: Tail::new(limits.stderr_bytes_max),
            inbox,
            n_aborts: 0,
            protocol_state,
            out,
            garbage: None,
            phase: Phase::Running,
            waiting: None,
            quiet_at: None,
            limits,
        };
        agent.settle();
        agent.close_if_told();
        Ok((agent, handle))
    }

    /// Returns the next event; `None` after the end.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn next(&mut self) -> Option<AgentEvent> {
        loop {
            if let Some(event) = self.out.events.pop_front() {
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
            Phase::Running => self.waiting.map(|(_, until)| until),
            Phase::Over => None,
        };
        let has_ended = matches!(self.phase, Phase::Draining { .. });
        let is_writing = !self.out.bytes.is_empty();
        let is_heard = self.out.bytes.len() <= UNREAD_BYTES_MAX;
        let takes_messages =
            !is_writing && self.stdin.is_some() && self.protocol_state.takes_messages();
        let quiet_at = self.quiet_at;
        let mut errors = [0; 4096];
        let Self { process, stdin, stdout, stderr, lines, inbox, out, .. } = self;
        let Inbox { messages, held, controls, terminate } = inbox;
        tokio::select! {
            read = read_lines(stdout, lines), if is_heard => self.on_stdout(&read),
            read = read_errors(stderr, &mut errors) => self.on_stderr(&errors, &read),
            written = write(stdin, &out.bytes), if is_writing => self.on_written(&written),
            message = next_message(held, messages), if takes_messages => self.on_message(message),
            Some(control) = controls.recv(), if !is_writing => self.on_control(control),
            asked = asked_to_end(terminate), if !has_ended => self.on_terminate(asked),
            exited = process.wait(), if !has_ended => self.on_exit(exited),
            () = wait_until(deadline) => self.on_deadline(),
            () = wait_until(quiet_at) => self.on_quiet(),
        }
    }

    fn on_stdout(&mut self, read: &io::Result<usize>) {
        while let Some(line) = self.lines.pop() {
            let n_events = self.out.events.len();
            let (line, is_clear) = match line {
                Line::Whole(line) => (line, self.protocol_state.hear(line, &mut self.out)),
                Line::TooLong(start) => (start, false),
            };
            if !is_clear {
                Garbage::add(&mut self.garbage, line);
            } else if self.out.events.len() > n_events
                && let Some(garbage) = self.garbage.take()
            {
                self.out.events.insert(n_events, garbage.event());
            }
        }
        let is_end = matches!(read, Ok(0) | Err(_));
        if is_end {
            self.stdout = None;
            match self.lines.rest() {
                Some(Line::Whole(torn)) if self.protocol_state.ends_after_start() => {
                    self.protocol_state.hear(torn, &mut self.out);
                }
                Some(Line::Whole(torn) | Line::TooLong(torn)) => {
                    Garbage::add(&mut self.garbage, torn);
                }
                None => {}
            }
        }
        self.protocol_state.pause(is_end, &mut self.out);
        self.quiet_at = self.protocol_state.holds().then(|| Instant::now() + QUIET);
        // One event for each read, however much garbage there is.
        self.out.events.extend(self.garbage.take().map(Garbage::event));
        self.settle();
    }

    fn on_quiet(&mut self) {
        self.quiet_at = None;
        self.protocol_state.pause(true, &mut self.out);
    }

    fn on_stderr(&mut self, bytes: &[u8], read: &io::Result<usize>) {
        match read {
            Ok(0) | Err(_) => self.stderr = None,
            Ok(n) => self.tail.push(&bytes[..*n]),
        }
    }

    fn on_message(&mut self, message: Option<QueuedMessage>) {
        match message {
            Some(told) => {
                self.n_aborts = told.n_aborts;
                self.protocol_state.tell(told, &mut self.out);
            }
            None => self.stdin = None,
        }
    }

    fn on_control(&mut self, control: Control) {
        match control {
            Control::Answer { id, option } => {
                self.protocol_state.answer(&id, option.as_deref(), &mut self.out);
            }
            Control::Abort { number } => {
                for _ in 0..self.inbox.take_back(number) {
                    self.protocol_state.taken_back(&mut self.out);
                }
                if self.n_aborts < number {
                    self.protocol_state.abort(&mut self.out);
                }
            }
        }
        self.settle();
    }

    fn on_written(&mut self, written: &io::Result<usize>) {
        match written {
            Ok(n) if *n > 0 => drop(self.out.bytes.drain(..*n)),
            // It has closed its input; it will end, or run into a timeout.
            Ok(_) | Err(_) => {
                self.stdin = None;
                self.out.bytes.clear();
                self.inbox.messages.close();
            }
        }
        self.close_if_told();
    }

    /// Updates what is expected of the agent after input or output.
    fn settle(&mut self) {
        if std::mem::take(&mut self.out.is_over) {
            self.give_up();
        }
        let before = self.waiting.take();
        self.waiting = self.protocol_state.wait().map(|wait| match before {
            Some((same, until)) if same == wait => (wait, until),
            Some(_) | None => (wait, Instant::now() + wait.limit(&self.limits)),
        });
    }

    /// Closes the input of an agent that gets all of it at the start.
    fn close_if_told(&mut self) {
        if self.out.bytes.is_empty() && self.protocol_state.ends_after_start() {
            self.stdin = None;
        }
    }

    fn give_up(&mut self) {
        if matches!(self.phase, Phase::Running) {
            self.on_terminate(END_GRACE);
        }
    }

    fn on_terminate(&mut self, grace: Duration) {
        let kill_at = Instant::now() + grace;
        let kill_at = match self.phase {
            // The earlier deadline wins.
            Phase::Terminating { kill_at: before } => before.min(kill_at),
            Phase::Running | Phase::Draining { .. } | Phase::Over => {
                self.process.terminate();
                kill_at
            }
        };
        self.phase = Phase::Terminating { kill_at };
    }

    fn on_deadline(&mut self) {
        match self.phase {
            Phase::Terminating { .. } => {
                self.process.kill();
                // A kill cannot be refused: the next event is the end.
                self.phase = Phase::Running;
                self.waiting = None;
            }
            Phase::Draining { .. } => {
                self.stdout = None;
                self.stderr = None;
            }
            Phase::Running => {
                if let Some((wait, _)) = self.waiting.take() {
                    self.out.tell(AgentEvent::Error { text: wait.failure().to_owned() });
                    self.give_up();
                }
            }
            Phase::Over => {}
        }
    }

    fn on_exit(&mut self, exited: io::Result<ExitStatus>) {
        // Its children may outlive it, and would keep its output open.
        self.process.kill();
        self.stdin = None;
        self.out.bytes.clear();
        self.inbox.messages.close();
        self.inbox.controls.close();
        let status = exited.ok();
        self.phase = Phase::Draining { status, until: Instant::now() + self.limits.drain };
    }

    const fn is_drained(&self) -> bool {
        self.stdout.is_none() && self.stderr.is_none()
    }

    fn end(&mut self, status: Option<ExitStatus>) {
        self.phase = Phase::Over;
        self.protocol_state.pause(true, &mut self.out);
        self.out.tell(AgentEvent::AgentExited {
            code: status.and_then(|status| status.code()),
            signal: status.and_then(|status| status.signal()),
            stderr: match self.process.ended_because() {
                Some(why) => format!("{why}\n{}", self.tail.text()),
                None => self.tail.text(),
            },
        });
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // After its end its number may be reused.
        if !matches!(self.phase, Phase::Over) {
            self.process.kill();
        }
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { process, phase, .. } = self;
        let mut shown = f.debug_struct("Agent");
        shown.field("process", process).field("phase", phase).finish_non_exhaustive()
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

/// Starts the agent's process.
fn launch(spec: &AgentSpec) -> Result<LaunchedProcess, StartError> {
    match &spec.launcher {
        Some(launcher) => launcher.launch(spec).map_err(|source| {
            let command = spec.command.clone();
            StartError::Launch { command, source }
        }),
        None => child::spawn(spec),
    }
}

async fn read_lines(stdout: &mut Option<Output>, lines: &mut Lines) -> io::Result<usize> {
    match stdout {
        Some(stdout) => stdout.read_buf(lines.room()).await,
        None => std::future::pending().await,
    }
}

async fn read_errors(stderr: &mut Option<Output>, bytes: &mut [u8]) -> io::Result<usize> {
    match stderr {
        Some(stderr) => stderr.read(bytes).await,
        None => std::future::pending().await,
    }
}

async fn write(stdin: &mut Option<Input>, bytes: &[u8]) -> io::Result<usize> {
    match stdin {
        Some(stdin) => stdin.write(bytes).await,
        None => Ok(0),
    }
}

async fn wait_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
