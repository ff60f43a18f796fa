//! What is typed while an agent is watched: answers to what it asks, and messages.

use std::collections::VecDeque;
use std::io;

use ringback_client::Client;
use ringback_proto::ErrorKind;
use ringback_proto::ids::SessionId;
use ringback_proto::request::{PermissionAnswer, SessionEventInfo, SessionMessageRequest};
use ringback_proto::tool::tools::SessionMessage;
use tokio::sync::mpsc;

use crate::failure::Failure;
use crate::screen::Screen;

/// Lines that are read ahead.
const LINES_MAX: usize = 16;

/// Who types, and what for.
#[derive(Debug)]
pub(in crate::commands) struct Keyboard {
    screen: Screen,
    /// Where lines go that answer nothing; without it they go nowhere.
    talks_to: Option<SessionId>,
    /// Not there before somebody has reason to type: what else is on standard input stays there.
    lines: Option<mpsc::Receiver<String>>,
    questions: VecDeque<SessionEventInfo>,
}

impl Keyboard {
    /// Answers questions.
    pub(in crate::commands) const fn answering(screen: Screen) -> Self {
        Self { screen, talks_to: None, lines: None, questions: VecDeque::new() }
    }

    /// Answers questions, and says everything else to an agent.
    pub(in crate::commands) fn talking(
        screen: Screen,
        session: SessionId,
    ) -> Result<Self, Failure> {
        let lines = Some(stdin()?);
        Ok(Self { screen, talks_to: Some(session), lines, questions: VecDeque::new() })
    }

    /// Notes what an event means for who types.
    pub(super) fn note(&mut self, event: &SessionEventInfo) -> Result<(), Failure> {
        match event.kind.as_str() {
            "permission_request" if !self.screen.is_json() => {
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

    /// The next line; none when somebody who talks has no more to say, and never if nobody types.
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
                    "nobody types here; answer with `ringback session answer {session} {request} OPTION`"
                ));
            }
            if self.talks_to.is_some() {
                return None;
            }
        }
        std::future::pending().await
    }

    /// Passes a line on to where it belongs.
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
                self.screen.remark("  somebody else has answered that");
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
        self.screen.remark("  type a number and Enter");
    }
}

/// The option that a line names, by its number or its id.
fn chosen(question: &SessionEventInfo, line: &str) -> Option<String> {
    let numbered = line.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let choice = numbered.and_then(|index| question.options.get(index));
    let named = || question.options.iter().find(|choice| choice.id == line);
    choice.or_else(named).map(|choice| choice.id.clone())
}

/// Standard input, line by line, read by a thread that belongs to nobody: a read of a terminal cannot
/// be interrupted, and must not keep the process from ending.
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
