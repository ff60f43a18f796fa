//! An agent's process: started, spoken to, listened to, ended.

use std::collections::VecDeque;
use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use ringback_mcp_wire::{Line, Lines};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::event::{AgentEvent, Message};
use crate::spec::{AgentSpec, StartAgentError};
use crate::tail::Tail;

/// The longest line, either way.
const LINE_BYTES_MAX: usize = 4 << 20;
/// Messages that may wait for the agent.
const MESSAGES_MAX: usize = 64;
/// How much of the end of its error output is kept: a panic with its backtrace.
const ERROR_BYTES_MAX: usize = 16 * 1024;
/// How long a process that closed its output may take to end by itself.
const EXIT_GRACE: Duration = Duration::from_secs(3);
/// How long its output may stay open after its end: its last words are in the pipe already.
const DRAIN_GRACE: Duration = Duration::from_millis(500);

/// A running agent. Ask for its next event again and again: that is what drives it.
///
/// Dropping it ends the agent and everything in its process group at once.
#[derive(Debug)]
#[must_use = "an agent that nobody drives does nothing, and one that is dropped is ended"]
pub struct Agent {
    child: Child,
    /// `None` once nothing of it is left.
    group: Option<Pid>,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    lines: Lines,
    errors: Tail,
    messages: mpsc::Sender<String>,
    inbox: mpsc::Receiver<String>,
    /// What is being written.
    outgoing: Vec<u8>,
    events: VecDeque<AgentEvent>,
    phase: Phase,
}

/// The agent takes no more messages: it is gone, or does not read, or the message is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the agent does not read its messages")]
pub struct NotTaken;

/// How an agent's process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentExit {
    /// Whether it said that all is well.
    pub success: bool,
    /// How, in words, with the last it wrote to standard error if all is not well.
    pub text: String,
}

#[derive(Debug)]
enum Phase {
    Running,
    /// It is to end by itself until then.
    Ending {
        kill_at: Instant,
    },
    /// It was killed, which it cannot refuse.
    Killed,
    /// It has ended; what it said may still be on its way.
    Draining {
        ended: io::Result<ExitStatus>,
        until: Instant,
    },
}

impl Agent {
    /// Starts an agent.
    ///
    /// # Errors
    /// When there is no such program, or it cannot be run.
    pub fn start(spec: AgentSpec) -> Result<Self, StartAgentError> {
        let mut child = spec.spawn()?;
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let (messages, inbox) = mpsc::channel(MESSAGES_MAX);
        Ok(Self {
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            child,
            group,
            lines: Lines::new(LINE_BYTES_MAX),
            errors: Tail::new(ERROR_BYTES_MAX),
            messages,
            inbox,
            outgoing: Vec::new(),
            events: VecDeque::new(),
            phase: Phase::Running,
        })
    }

    /// Says something to the agent.
    ///
    /// # Errors
    /// When too many messages wait for it, it is gone, or the message is longer than a line may be.
    pub fn send(&self, text: &str) -> Result<(), NotTaken> {
        let line = Message::Message { text: text.to_owned() }.encode();
        if line.len() > LINE_BYTES_MAX || self.stdin.is_none() {
            return Err(NotTaken);
        }
        self.messages.try_send(line).map_err(|_| NotTaken)
    }

    /// What the agent says next; `None` once it has ended or has closed its output.
    ///
    /// # Cancel safety
    /// Dropping it loses nothing.
    pub async fn next(&mut self) -> Option<AgentEvent> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            self.stdout.as_ref()?;
            self.step().await;
        }
    }

    /// Waits for the end of an agent that has closed its output. One that stays is killed, and
    /// whatever it left in its group is, too.
    pub async fn exited(mut self) -> AgentExit {
        self.stdin = None;
        self.end(EXIT_GRACE).await
    }

    /// Ends the agent and everything in its process group: asks, waits up to `grace`, kills.
    pub async fn terminate(self, grace: Duration) -> AgentExit {
        self.signal(Signal::TERM);
        self.end(grace).await
    }

    /// Follows the agent to its end. What it still says is not told.
    async fn end(mut self, grace: Duration) -> AgentExit {
        if matches!(self.phase, Phase::Running) {
            self.phase = Phase::Ending { kill_at: Instant::now() + grace };
        }
        loop {
            self.events.clear();
            if let Phase::Draining { ended, .. } = &self.phase
                && self.stdout.is_none()
                && self.stderr.is_none()
            {
                return AgentExit::new(ended, &self.errors.text());
            }
            self.step().await;
        }
    }

    /// Waits until something happens, and takes it in.
    async fn step(&mut self) {
        let (has_ended, deadline) = match self.phase {
            Phase::Running | Phase::Killed => (false, None),
            Phase::Ending { kill_at } => (false, Some(kill_at)),
            Phase::Draining { until, .. } => (true, Some(until)),
        };
        let is_writing = !self.outgoing.is_empty();
        let mut errors = [0; 4096];
        let Self { child, stdin, stdout, stderr, lines, inbox, outgoing, .. } = self;
        tokio::select! {
            read = read_lines(stdout, lines) => self.on_stdout(&read),
            read = read_errors(stderr, &mut errors) => self.on_stderr(&errors, &read),
            written = write(stdin, outgoing), if is_writing => self.on_written(&written),
            Some(line) = inbox.recv(), if !is_writing && stdin.is_some() => self.on_message(line),
            ended = child.wait(), if !has_ended => self.on_exit(ended),
            () = wait_until(deadline) => self.on_deadline(),
        }
    }

    fn on_stdout(&mut self, read: &io::Result<usize>) {
        let mut garbage = None;
        while let Some(line) = self.lines.pop() {
            let event = match line {
                Line::Whole(line) => AgentEvent::decode(line).ok_or(line),
                Line::TooLong(start) => Err(start),
            };
            match event {
                Ok(event) => {
                    self.events.extend(garbage.take().map(Garbage::event));
                    self.events.push_back(event);
                }
                Err(line) => Garbage::add(&mut garbage, line),
            }
        }
        if matches!(read, Ok(0) | Err(_)) {
            self.stdout = None;
            if let Some(Line::Whole(torn) | Line::TooLong(torn)) = self.lines.rest() {
                Garbage::add(&mut garbage, torn);
            }
        }
        // However much of it there is, one event for each time something was read.
        self.events.extend(garbage.map(Garbage::event));
    }

    fn on_stderr(&mut self, bytes: &[u8], read: &io::Result<usize>) {
        match read {
            Ok(0) | Err(_) => self.stderr = None,
            Ok(n) => self.errors.push(&bytes[..*n]),
        }
    }

    fn on_message(&mut self, line: String) {
        self.outgoing = line.into_bytes();
        self.outgoing.push(b'\n');
    }

    fn on_written(&mut self, written: &io::Result<usize>) {
        match written {
            Ok(n) if *n > 0 => drop(self.outgoing.drain(..*n)),
            // It does not read any more; its end will follow, or its owner's patience ends.
            Ok(_) | Err(_) => {
                self.stdin = None;
                self.outgoing.clear();
            }
        }
    }

    fn on_deadline(&mut self) {
        match self.phase {
            Phase::Ending { .. } => {
                self.signal(Signal::KILL);
                self.phase = Phase::Killed;
            }
            // Somebody outside of its group holds them.
            Phase::Draining { .. } => {
                self.stdout = None;
                self.stderr = None;
            }
            Phase::Running | Phase::Killed => {}
        }
    }

    fn on_exit(&mut self, ended: io::Result<ExitStatus>) {
        // What it started may outlive it, and would hold its output open.
        self.signal(Signal::KILL);
        self.group = None;
        self.stdin = None;
        self.outgoing.clear();
        self.phase = Phase::Draining { ended, until: Instant::now() + DRAIN_GRACE };
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

impl AgentExit {
    fn new(ended: &io::Result<ExitStatus>, errors: &str) -> Self {
        let (success, how) = match ended {
            Ok(status) => (status.success(), format!("the agent ended ({status})")),
            Err(error) => (false, format!("the agent's end could not be learnt: {error}")),
        };
        let errors = errors.trim_end();
        let text = if success || errors.is_empty() { how } else { format!("{how}:\n{errors}") };
        Self { success, text }
    }
}

/// Lines in a row that are no event.
#[derive(Debug)]
struct Garbage {
    n_lines: u64,
    sample: String,
}

impl Garbage {
    /// Enough of a line to recognise it.
    const CHARS_MAX: usize = 200;

    fn add(garbage: &mut Option<Self>, line: &[u8]) {
        let garbage = garbage.get_or_insert_with(|| {
            let start = String::from_utf8_lossy(&line[..line.len().min(4 * Self::CHARS_MAX)]);
            Self { n_lines: 0, sample: start.chars().take(Self::CHARS_MAX).collect() }
        });
        garbage.n_lines += 1;
    }

    fn event(self) -> AgentEvent {
        let Self { n_lines, sample } = self;
        let text = match n_lines {
            1 => sample,
            n_lines => format!("{sample} (and {} lines more)", n_lines - 1),
        };
        AgentEvent::Garbage { text }
    }
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

async fn wait_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
