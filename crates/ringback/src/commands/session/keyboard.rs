//! Input typed while an agent is watched: answers to its questions, and messages.

use std::collections::VecDeque;
use std::io::{self, IsTerminal as _};

use ringback_client::Client;
use ringback_proto::ErrorKind;
use ringback_proto::ids::SessionId;
use ringback_proto::permission::PermissionMode;
use ringback_proto::request::{PermissionAnswer, SessionEventInfo, SessionMessageRequest};
use ringback_proto::tool::tools::SessionMessage;
use tokio::sync::mpsc;

use crate::failure::Failure;
use crate::screen::Screen;

/// Input lines read ahead.
const LINES_MAX: usize = 16;

/// The typed input and the open questions.
#[derive(Debug)]
pub(in crate::commands) struct Keyboard {
    screen: Screen,
    /// Gets input lines that answer no question; without it they are dropped.
    talks_to: Option<SessionId>,
    /// `None` until input is needed, so that standard input is not read without reason.
    lines: Option<mpsc::Receiver<String>>,
    questions: VecDeque<SessionEventInfo>,
    /// Whether a question is a failure, because no one is at a terminal to answer it.
    is_unattended: bool,
}

/// Prefix of the ids of questions at a limit. They wait for a while, and then end the work.
const LIMIT_ID: &str = "limit-";

impl Keyboard {
    /// Creates a keyboard that answers questions.
    pub(in crate::commands) const fn answering(screen: Screen) -> Self {
        Self {
            screen,
            talks_to: None,
            lines: None,
            questions: VecDeque::new(),
            is_unattended: false,
        }
    }

    /// Makes questions a failure without a terminal, unless it was said how they are answered.
    #[must_use]
    pub(in crate::commands) fn with_permissions(self, said: Option<PermissionMode>) -> Self {
        let is_unattended = said.is_none() && !io::stdin().is_terminal();
        Self { is_unattended, ..self }
    }

    /// Creates a keyboard that answers questions and sends everything else to an agent.
    pub(in crate::commands) fn talking(
        screen: Screen,
        session: SessionId,
    ) -> Result<Self, Failure> {
        let lines = Some(stdin()?);
        Ok(Self {
            screen,
            talks_to: Some(session),
            lines,
            questions: VecDeque::new(),
            is_unattended: false,
        })
    }

    /// Updates the open questions from an event.
    pub(super) fn note(&mut self, event: &SessionEventInfo) -> Result<(), Failure> {
        match event.kind.as_str() {
            "permission_request" if !self.screen.is_json() => {
                if self.is_unattended && !is_limit(event) {
                    self.questions.push_back(event.clone());
                    return Ok(());
                }
                if self.lines.is_none() {
                    self.lines = Some(stdin()?);
                }
                self.questions.push_back(event.clone());
                if self.questions.len() == 1 {
                    self.ask();
                }
            }
            "permission_answer" | "completion" => {
                let is_over = |question: &SessionEventInfo| match event.kind.as_str() {
                    "completion" => question.session_id == event.session_id,
                    _ => question.request_id == event.request_id,
                };
                self.questions.retain(|question| !is_over(question));
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether a question waits that no one is there to answer. The daemon may still answer it: its
    /// own answer is the next event.
    pub(super) fn is_stuck(&self) -> bool {
        self.is_unattended && self.questions.iter().any(|question| !is_limit(question))
    }

    /// Fails if a question waits that no one is there to answer.
    pub(super) fn check_unstuck(&self) -> Result<(), Failure> {
        let mut questions = self.questions.iter().filter(|question| !is_limit(question));
        match questions.next() {
            Some(question) if self.is_unattended => Err(self.unanswerable(question)),
            Some(_) | None => Ok(()),
        }
    }

    fn unanswerable(&self, event: &SessionEventInfo) -> Failure {
        let tool = self.screen.printable(event.tool_name.as_deref().unwrap_or_default());
        Failure::Wrong(format!(
            "the agent asks for permission (`{tool}`), and there is no terminal to answer; pass \
             `--permissions allow` or `deny`, or `--permissions ask` and answer on standard input or \
             with `ringback session answer`"
        ))
    }

    /// Waits for the next input line; `None` when the input of a talking keyboard has ended. Never
    /// returns if no input is read.
    pub(super) async fn line(&mut self) -> Option<String> {
        if let Some(lines) = &mut self.lines {
            if let Some(line) = lines.recv().await {
                return Some(line);
            }
            self.lines = None;
            if let Some(question) = self.questions.front() {
                let (session, request) = (question.session_id, question.request_id.as_deref());
                let request = request.unwrap_or_default();
                self.screen.remark(format_args!(
                    "input has ended; answer with `ringback session answer {session} {request} OPTION`"
                ));
            }
            if self.talks_to.is_some() {
                return None;
            }
        }
        std::future::pending().await
    }

    /// Handles an input line: an answer or a message.
    pub(super) async fn typed(&mut self, client: &Client, line: &str) -> Result<(), Failure> {
        let line = line.trim();
        let Some(question) = self.questions.front() else {
            let Some(session) = self.talks_to.filter(|_| !line.is_empty()) else { return Ok(()) };
            let request = SessionMessageRequest {
                session_id: Some(session),
                message: line.to_owned(),
                ..Default::default()
            };
            client.call::<SessionMessage>(request).await?;
            return Ok(());
        };
        let Some(option) = chosen(question, line) else {
            self.ask();
            return Ok(());
        };
        let request_id = question.request_id.clone().unwrap_or_default();
        let answer = PermissionAnswer { request_id, option: Some(option) };
        let request = SessionMessageRequest {
            session_id: Some(question.session_id),
            answer: Some(Box::new(answer)),
            ..Default::default()
        };
        self.questions.pop_front();
        match client.call::<SessionMessage>(request).await {
            Err(error) if error.kind() == ErrorKind::Conflict => {
                self.screen.remark("  already answered elsewhere");
            }
            answered => drop(answered?),
        }
        if !self.questions.is_empty() {
            self.ask();
        }
        Ok(())
    }

    fn ask(&self) {
        let Some(question) = self.questions.front() else { return };
        for (number, choice) in (1..).zip(&question.options) {
            let (name, id) =
                (self.screen.printable(&choice.name), self.screen.printable(&choice.id));
            self.screen.remark(format_args!("    {number}  {name} ({id})"));
        }
        self.screen.remark("  type a number and press Enter");
    }
}

fn is_limit(question: &SessionEventInfo) -> bool {
    question.request_id.as_ref().is_some_and(|id| id.starts_with(LIMIT_ID))
}

/// Finds the option that an input line names, by number or id.
fn chosen(question: &SessionEventInfo, line: &str) -> Option<String> {
    let numbered = line.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let choice = numbered.and_then(|index| question.options.get(index));
    let named = || question.options.iter().find(|choice| choice.id == line);
    choice.or_else(named).map(|choice| choice.id.clone())
}

/// Reads standard input line by line in a detached thread: a read of a terminal cannot be
/// interrupted, and must not keep the process from ending.
fn stdin() -> Result<mpsc::Receiver<String>, Failure> {
    let (typed, lines) = mpsc::channel(LINES_MAX);
    let read = move || {
        for line in io::stdin().lines() {
            let Ok(line) = line else { return };
            if typed.blocking_send(line).is_err() {
                return;
            }
        }
    };
    let thread = std::thread::Builder::new().name("stdin".to_owned());
    thread.spawn(read).map_err(|source| Failure::System { action: "start a thread", source })?;
    Ok(lines)
}
