//! Input typed while an agent is watched: answers to its questions, and messages.

use std::collections::VecDeque;
use std::io::{self, IsTerminal as _};

use ringback_client::Client;
use ringback_proto::ErrorKind;
use ringback_proto::ids::SessionId;
use ringback_proto::permission::PermissionMode;
use ringback_proto::request::{
    PermissionAnswer, PermissionChoice, SessionEventInfo, SessionMessageRequest,
};
use ringback_proto::tool::tools::SessionMessage;
use tokio::sync::mpsc;

use super::transcript::Transcript;
use crate::failure::Failure;
use crate::screen::{Screen, one_line};

/// Input lines read ahead.
const LINES_MAX: usize = 16;

/// The typed input and the open questions.
#[derive(Debug)]
pub(in crate::commands) struct Keyboard {
    transcript: Transcript,
    /// For programs: nothing is asked.
    is_mute: bool,
    /// Gets input lines that answer no question; without it they are dropped.
    talks_to: Option<SessionId>,
    /// `None` until input is needed, so that standard input is not read without reason.
    lines: Option<mpsc::Receiver<String>>,
    /// Whether standard input has ended.
    has_ended: bool,
    questions: VecDeque<SessionEventInfo>,
    /// Whether the first of them is on the screen.
    is_asked: bool,
    /// The question that was answered here; its answer is on the screen already.
    answered: Option<String>,
    /// Whether a question is a failure, because no one is at a terminal to answer it.
    is_unattended: bool,
}

/// Prefix of the ids of questions at a limit. They wait for a while, and then end the work.
const LIMIT_ID: &str = "limit-";

impl Keyboard {
    /// Creates a keyboard that answers questions.
    pub(in crate::commands) fn answering(screen: Screen, transcript: &Transcript) -> Self {
        Self {
            transcript: transcript.clone(),
            is_mute: screen.is_json(),
            talks_to: None,
            lines: None,
            has_ended: false,
            questions: VecDeque::new(),
            is_asked: false,
            answered: None,
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
        transcript: &Transcript,
        session: SessionId,
    ) -> Result<Self, Failure> {
        let lines = Some(stdin()?);
        Ok(Self { talks_to: Some(session), lines, ..Self::answering(screen, transcript) })
    }

    /// Updates the open questions from an event.
    pub(super) fn note(&mut self, event: &SessionEventInfo) {
        if self.is_mute {
            return;
        }
        match event.kind.as_str() {
            "permission_request" => self.questions.push_back(event.clone()),
            "permission_answer" => {
                let is_it = |asked: &SessionEventInfo| asked.request_id == event.request_id;
                let place = self.questions.iter().position(is_it);
                let question = place.and_then(|place| self.remove(place));
                if self.answered.is_none() || self.answered != event.request_id {
                    self.transcript.answered(question.as_ref(), event);
                }
            }
            "completion" => {
                let is_of = |asked: &SessionEventInfo| asked.session_id == event.session_id;
                while let Some(place) = self.questions.iter().position(is_of) {
                    self.remove(place);
                }
            }
            _ => {}
        }
    }

    fn remove(&mut self, place: usize) -> Option<SessionEventInfo> {
        if place == 0 {
            self.is_asked = false;
            self.transcript.go_on();
        }
        self.questions.remove(place)
    }

    /// Shows the first open question, if it is not on the screen.
    pub(super) fn ask(&mut self) -> Result<(), Failure> {
        let Some(question) = self.questions.front().filter(|_| !self.is_asked) else {
            return Ok(());
        };
        if self.is_unattended && !is_limit(question) {
            return Ok(());
        }
        self.transcript.question(question)?;
        self.is_asked = true;
        if self.lines.is_none() && !self.has_ended {
            self.lines = Some(stdin()?);
        }
        if self.has_ended {
            self.point_elsewhere();
        } else {
            self.offer_choices();
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
            Some(question) if self.is_unattended => Err(unanswerable(question)),
            Some(_) | None => Ok(()),
        }
    }

    /// Waits for the next input line; `None` when the input of a talking keyboard has ended. Never
    /// returns if no input is read.
    pub(super) async fn line(&mut self) -> Option<String> {
        if let Some(lines) = &mut self.lines {
            if let Some(line) = lines.recv().await {
                return Some(line);
            }
            (self.lines, self.has_ended) = (None, true);
            self.point_elsewhere();
            if self.talks_to.is_some() {
                return None;
            }
        }
        std::future::pending().await
    }

    /// Shows how a question is answered where nothing can be typed.
    fn point_elsewhere(&self) {
        let Some(question) = self.questions.front() else { return };
        let (session, request) = (question.session_id, question.request_id.as_deref());
        let ids: Vec<_> = question.options.iter().map(|choice| one_line(&choice.id)).collect();
        let (request, ids) = (one_line(request.unwrap_or_default()), ids.join("|"));
        self.transcript.remark(format_args!(
            "no terminal here; answer from another one with `ringback session answer {session} \
             {request} {ids}`"
        ));
    }

    /// Handles an input line: an answer or a message.
    pub(super) async fn typed(&mut self, client: &Client, line: &str) -> Result<(), Failure> {
        let line = line.trim();
        let Some(question) = self.questions.front().filter(|_| self.is_asked) else {
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
            let line = one_line(line);
            self.transcript.remark(format_args!("`{line}` is not one of the choices"));
            self.offer_choices();
            return Ok(());
        };
        let request_id = question.request_id.clone().unwrap_or_default();
        let answer = PermissionAnswer { request_id, option: Some(option) };
        let request = SessionMessageRequest {
            session_id: Some(question.session_id),
            answer: Some(Box::new(answer)),
            ..Default::default()
        };
        self.answered.clone_from(&question.request_id);
        self.remove(0);
        match client.call::<SessionMessage>(request).await {
            Err(error) if error.kind() == ErrorKind::Conflict => {
                self.transcript.remark("already answered elsewhere");
            }
            answered => drop(answered?),
        }
        self.ask()
    }

    /// Shows what may be typed.
    fn offer_choices(&self) {
        let Some(question) = self.questions.front() else { return };
        let choices = (1..).zip(&question.options);
        let choice = |(number, choice): (u32, &PermissionChoice)| {
            format!("  {number}  {}\n", one_line(&choice.name))
        };
        let choices: String = choices.map(choice).collect();
        self.transcript.remark(format_args!("{choices}type a number and press Enter"));
    }
}

fn unanswerable(question: &SessionEventInfo) -> Failure {
    let tool = one_line(question.tool_name.as_deref().unwrap_or_default());
    Failure::Wrong(format!(
        "the agent asks for permission (`{tool}`), and there is no terminal to answer; pass \
         `--permissions allow` or `deny`, or `--permissions ask` and answer on standard input or with \
         `ringback session answer`"
    ))
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
