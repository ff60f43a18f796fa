//! An agent's process: started, spoken to, listened to, ended.

use std::collections::{BTreeMap, VecDeque};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use camino::Utf8PathBuf;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::event::{AgentEvent, Told};
use crate::lines::{Line, Lines};

/// The longest line of an agent.
const LINE_BYTES_MAX: usize = 4 << 20;
/// Events that may wait for whoever drives it; then the agent waits.
const EVENTS_MAX: usize = 256;
/// Messages that may wait for the agent.
const MESSAGES_MAX: usize = 64;
/// The last lines of its standard error that are kept, and how long each may be.
const ERROR_LINES_MAX: usize = 40;
const ERROR_LINE_BYTES_MAX: usize = 2000;
/// How long a process that closed its output may take to end by itself.
const EXIT_GRACE: Duration = Duration::from_secs(3);
/// What an agent finds programs by.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// How an agent is started.
#[derive(Debug, Clone)]
pub struct AgentSpec {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Its whole environment, but for `PATH`, `HOME` and `LANG` where they are not in it.
    pub env: BTreeMap<String, String>,
    /// Where it works; its home.
    pub workspace: Utf8PathBuf,
}

/// Why an agent was not started.
#[derive(Debug, thiserror::Error)]
pub enum StartAgentError {
    /// There is no program to start.
    #[error("its command is empty; give the agent a command in the configuration")]
    NoCommand,
    /// The program cannot be started.
    #[error("`{program}` cannot be started")]
    Spawn {
        /// Which.
        program: String,
        /// Why.
        source: std::io::Error,
    },
}

/// The agent takes no more messages: it is gone, or does not read.
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

/// A running agent. Dropping it kills its process; [`Agent::terminate`] ends it and all it started.
#[derive(Debug)]
pub struct Agent {
    child: Child,
    group: Option<Pid>,
    messages: mpsc::Sender<Vec<u8>>,
    events: mpsc::Receiver<AgentEvent>,
    errors: Arc<Mutex<VecDeque<String>>>,
    pipes: JoinSet<()>,
}

impl Agent {
    /// Starts an agent.
    ///
    /// # Errors
    /// When there is no such program, or it cannot be run.
    pub fn start(spec: AgentSpec) -> Result<Self, StartAgentError> {
        let AgentSpec { command, mut env, workspace } = spec;
        let Some((program, args)) = command.split_first() else {
            return Err(StartAgentError::NoCommand);
        };
        env.entry("PATH".to_owned()).or_insert_with(|| PATH.to_owned());
        env.entry("HOME".to_owned()).or_insert_with(|| workspace.to_string());
        env.entry("LANG".to_owned()).or_insert_with(|| "C.UTF-8".to_owned());
        let mut child = Command::new(program)
            .args(args)
            .env_clear()
            .envs(env)
            .current_dir(&workspace)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|source| StartAgentError::Spawn { program: program.clone(), source })?;
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let (messages, inbox) = mpsc::channel(MESSAGES_MAX);
        let (heard, events) = mpsc::channel(EVENTS_MAX);
        let errors = Arc::new(Mutex::new(VecDeque::new()));
        let mut pipes = JoinSet::new();
        if let Some(stdin) = child.stdin.take() {
            pipes.spawn(write(stdin, inbox));
        }
        if let Some(stdout) = child.stdout.take() {
            pipes.spawn(listen(stdout, heard));
        }
        if let Some(stderr) = child.stderr.take() {
            pipes.spawn(keep_errors(stderr, Arc::clone(&errors)));
        }
        Ok(Self { child, group, messages, events, errors, pipes })
    }

    /// Says something to the agent.
    ///
    /// # Errors
    /// When too many messages wait for it, or it is gone.
    pub fn send(&self, text: &str) -> Result<(), NotTaken> {
        let mut line = serde_json::to_vec(&Told::Message { text }).map_err(|_| NotTaken)?;
        line.push(b'\n');
        self.messages.try_send(line).map_err(|_| NotTaken)
    }

    /// What the agent says next; `None` once it has closed its output.
    ///
    /// # Cancel safety
    /// Dropping it loses nothing.
    pub async fn next(&mut self) -> Option<AgentEvent> {
        self.events.recv().await
    }

    /// Waits for the end of an agent that has closed its output. One that stays is killed, and
    /// whatever it left in its group is, too.
    pub async fn exited(self) -> AgentExit {
        let Self { mut child, group, messages, events, errors, mut pipes } = self;
        drop((messages, events));
        let ended = tokio::time::timeout(EXIT_GRACE, child.wait()).await;
        signal_group(group, Signal::KILL);
        let status = match ended {
            Ok(status) => status,
            Err(_) => child.wait().await,
        };
        // Whoever held the other ends is dead, so the pipes end.
        while pipes.join_next().await.is_some() {}
        let (success, how) = match status {
            Ok(status) => (status.success(), format!("the agent ended ({status})")),
            Err(error) => (false, format!("the agent's end could not be learnt: {error}")),
        };
        let errors = errors.lock().unwrap_or_else(PoisonError::into_inner);
        let told = errors.iter().map(String::as_str).collect::<Vec<_>>().join("\n");
        let text = if success || told.is_empty() { how } else { format!("{how}:\n{told}") };
        AgentExit { success, text }
    }

    /// Ends the agent and everything in its process group: asks, waits up to `grace`, kills.
    pub async fn terminate(mut self, grace: Duration) {
        signal_group(self.group, Signal::TERM);
        let ended = tokio::time::timeout(grace, self.child.wait()).await;
        signal_group(self.group, Signal::KILL);
        if ended.is_err()
            && let Err(error) = self.child.wait().await
        {
            tracing::error!(%error, "an agent could not be waited for");
        }
        self.pipes.shutdown().await;
    }
}

fn signal_group(group: Option<Pid>, signal: Signal) {
    let Some(group) = group else { return };
    // A group that is gone is what is wanted.
    if let Err(error) = kill_process_group(group, signal)
        && error != rustix::io::Errno::SRCH
    {
        tracing::warn!(%error, "an agent's process group could not be signalled");
    }
}

async fn write(mut stdin: ChildStdin, mut inbox: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = inbox.recv().await {
        if stdin.write_all(&line).await.is_err() {
            return;
        }
    }
}

async fn listen(stdout: ChildStdout, heard: mpsc::Sender<AgentEvent>) {
    let mut lines = Lines::new(stdout, LINE_BYTES_MAX);
    while let Ok(Some(line)) = lines.next().await {
        let event = match line {
            Line::Whole(line) if line.iter().all(u8::is_ascii_whitespace) => continue,
            Line::Whole(line) => AgentEvent::read(&line),
            Line::TooLong(line) => AgentEvent::garbage(&line),
        };
        if heard.send(event).await.is_err() {
            return;
        }
    }
}

async fn keep_errors(stderr: ChildStderr, errors: Arc<Mutex<VecDeque<String>>>) {
    let mut lines = Lines::new(stderr, ERROR_LINE_BYTES_MAX);
    while let Ok(Some(Line::Whole(line) | Line::TooLong(line))) = lines.next().await {
        let line = &line[..line.len().min(ERROR_LINE_BYTES_MAX)];
        let mut errors = errors.lock().unwrap_or_else(PoisonError::into_inner);
        if errors.len() == ERROR_LINES_MAX {
            errors.pop_front();
        }
        errors.push_back(String::from_utf8_lossy(line).into_owned());
    }
}
