//! What a session does, as one transcript for people, or as one JSON object per event.
//!
//! A call is one line, its result another. Model requests are no lines: they are counted in a status
//! line, which a terminal redraws while the agent works.

mod calls;
mod payload;
mod status;

use std::fmt::Display;
use std::sync::{Arc, Mutex};

use ringback_proto::ids::SessionId;
use ringback_proto::record::SessionState;
use ringback_proto::request::{SessionEventInfo, SessionResponse};
use ringback_sync::lock;
use serde::Serialize;

use self::calls::{CallLog, CallResult, ShownCall};
use self::status::StatusLine;
use crate::failure::Failure;
use crate::screen::{Screen, Style};

/// A transcript; its clones share one screen.
#[derive(Debug, Clone)]
pub(in crate::commands) struct Transcript {
    screen: Screen,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    /// The session that is watched; what its children say is indented.
    session: SessionId,
    calls: CallLog,
    status: StatusLine,
}

/// A call that this terminal serves, in JSON.
#[derive(Debug, Serialize)]
struct ServedCall<'a> {
    event: &'static str,
    request_id: &'a str,
    tool: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    succeeded: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

impl Transcript {
    /// Starts the transcript of a session. `own` are the names, as its agent sees them, of tools that
    /// this terminal serves: it shows their calls from its own side.
    pub(in crate::commands) fn new(screen: Screen, session: SessionId, own: &[String]) -> Self {
        let status = StatusLine::new(screen.is_watched());
        let state = State { session, calls: CallLog::new(own), status };
        Self { screen, state: Arc::new(Mutex::new(state)) }
    }

    /// Shows an event.
    pub(super) fn event(&self, event: &SessionEventInfo) -> Result<(), Failure> {
        if self.screen.is_json() {
            return self.screen.item(event, |_| String::new());
        }
        let mut state = lock(&self.state);
        if event.session_id == state.session {
            state.status.note(event);
        }
        let lines: Vec<String> = match event.kind.as_str() {
            "tool_call" => {
                let call = state.calls.called(event);
                call.map(|call| self.call_line(&call)).into_iter().collect()
            }
            "tool_result" => self.ended(state.calls.ended(event)),
            _ => said(self.screen, event),
        };
        let indent = if event.session_id == state.session { "" } else { "  | " };
        let text = lines.iter().flat_map(|text| text.split('\n'));
        let text: Vec<_> = text.map(|line| format!("{indent}{line}")).collect();
        if text.is_empty() {
            state.status.draw();
            return Ok(());
        }
        self.print(&mut state, &text.join("\n"))
    }

    /// Shows a call that is carried out here.
    pub(super) fn serves(&self, request_id: &str, tool: &str, arguments: &str) {
        let event = "tool_called";
        let served = ServedCall { event, request_id, tool, succeeded: None, error: None };
        let call = ShownCall { tool: tool.to_owned(), arguments: arguments.to_owned() };
        self.served(&served, |state| {
            state.calls.serves(request_id, tool);
            vec![self.call_line(&call)]
        });
    }

    /// Shows the end of such a call.
    pub(super) fn has_served(
        &self,
        request_id: &str,
        tool: &str,
        outcome: Result<&str, &str>,
        took_ms: u64,
    ) {
        let (succeeded, error) = (Some(outcome.is_ok()), outcome.err());
        let served = ServedCall { event: "tool_answered", request_id, tool, succeeded, error };
        self.served(&served, |state| {
            let result = CallResult {
                call: None,
                named: state.calls.has_served(request_id).then(|| tool.to_owned()),
                is_error: outcome.is_err(),
                took_ms: Some(took_ms),
                text: match outcome {
                    Ok(result) => payload::gist(result),
                    Err(error) => error.to_owned(),
                },
            };
            self.ended(Some(result))
        });
    }

    fn served(&self, served: &ServedCall<'_>, lines: impl FnOnce(&mut State) -> Vec<String>) {
        let shown = if self.screen.is_json() {
            self.screen.item(served, |_| String::new())
        } else {
            let mut state = lock(&self.state);
            let lines = lines(&mut state);
            self.print(&mut state, &lines.join("\n"))
        };
        if let Err(error) = shown {
            tracing::debug!(%error, "cannot show a call");
        }
    }

    /// Shows a question: what it is about, in full.
    pub(super) fn question(&self, event: &SessionEventInfo) -> Result<(), Failure> {
        if self.screen.is_json() {
            return Ok(());
        }
        let mut state = lock(&self.state);
        // Its answer is typed below it: nothing may be redrawn there.
        state.status.hold();
        let mut lines = vec![self.screen.paint(Style::Bold, &asked(self.screen, event))];
        lines.extend(payload::in_full(self.screen, event.arguments.as_deref()));
        self.print(&mut state, &lines.join("\n"))
    }

    /// Shows how a question was answered.
    pub(super) fn answered(&self, question: Option<&SessionEventInfo>, answer: &SessionEventInfo) {
        let chosen = answer.text.as_deref();
        let choice = question.and_then(|question| {
            question.options.iter().find(|option| Some(option.id.as_str()) == chosen)
        });
        let chosen = choice.map(|choice| choice.name.as_str()).or(chosen).unwrap_or("withdrawn");
        let by = answer.role.as_deref().unwrap_or("caller");
        let asked = question.map(|question| format!("{} ", asked(self.screen, question)));
        let chosen = self.screen.printable(chosen);
        self.remark(format_args!("{}{chosen} (by {by})", asked.unwrap_or_default()));
    }

    /// Whether there is a status line.
    pub(super) fn is_live(&self) -> bool {
        self.screen.is_watched()
    }

    /// Redraws the status line again, after a question.
    pub(super) fn go_on(&self) {
        lock(&self.state).status.go_on();
    }

    /// Updates the time in the status line.
    pub(super) fn tick(&self) {
        lock(&self.state).status.draw();
    }

    /// Updates what the session has used of its model.
    pub(super) fn used(&self, session: &SessionResponse) {
        lock(&self.state).status.used(session);
    }

    /// Prints a remark for people on standard error.
    pub(in crate::commands) fn remark(&self, text: impl Display) {
        let mut state = lock(&self.state);
        state.status.clear();
        self.screen.remark(text);
        state.status.draw();
    }

    fn print(&self, state: &mut State, text: &str) -> Result<(), Failure> {
        state.status.clear();
        let printed = self.screen.text(text);
        state.status.draw();
        printed
    }

    fn call_line(&self, call: &ShownCall) -> String {
        let tool = self.screen.paint(Style::Bold, &payload::short_name(&call.tool));
        let arguments = payload::line(&call.arguments);
        self.cut(format!("→ {tool} {arguments}").trim_end())
    }

    fn ended(&self, result: Option<CallResult>) -> Vec<String> {
        let Some(CallResult { call, named, is_error, took_ms, text }) = result else {
            return Vec::new();
        };
        let mut lines: Vec<_> = call.iter().map(|call| self.call_line(call)).collect();
        let name = named.map(|tool| format!("{} ", payload::short_name(&tool)));
        let (word, style) = if is_error { ("failed", Style::Red) } else { ("ok", Style::Green) };
        let word = self.screen.paint(style, word);
        let took = took_ms.map(|ms| format!(", {}", crate::screen::span(ms)));
        let text = payload::one_row(&text);
        let text = if text.is_empty() { text } else { format!(": {text}") };
        let (name, took) = (name.unwrap_or_default(), took.unwrap_or_default());
        lines.push(self.cut(&format!("← {name}{word}{took}{text}")));
        lines
    }

    /// Keeps a line to one row of the terminal.
    fn cut(&self, line: &str) -> String {
        payload::cut_styled(self.screen, line)
    }
}

/// Returns the question of an event in words.
fn asked(screen: Screen, event: &SessionEventInfo) -> String {
    let text = match (&event.tool_name, &event.text) {
        (Some(tool), _) => format!("Allow `{tool}`?"),
        (None, text) => text.clone().unwrap_or_default(),
    };
    format!("? {}", screen.printable(&text))
}

/// Formats an event that is no call.
fn said(screen: Screen, event: &SessionEventInfo) -> Vec<String> {
    let text = screen.printable(event.text.as_deref().unwrap_or_default());
    let text = text.trim_end();
    let dim = |text: String| vec![screen.paint(Style::Dim, &text)];
    match event.kind.as_str() {
        "message" => match event.role.as_deref() {
            Some("user") => vec![screen.paint(Style::Bold, &format!("> {text}"))],
            Some(_) | None => vec![text.to_owned()],
        },
        "thought" => dim(format!("({text})")),
        "plan" => vec![format!("plan:\n{text}").replace('\n', "\n  ")],
        "status" => ended_early(screen, event.status, text),
        "completion" if text.is_empty() => Vec::new(),
        "completion" => vec![format!("stopped: {text}")],
        "error" => vec![format!("{} {text}", screen.paint(Style::Red, "error:"))],
        "model_request" => status::refused(text).into_iter().collect(),
        // Asked and answered with the keyboard.
        "permission_request" | "permission_answer" | "conversation" => Vec::new(),
        "agent_garbage" => dim(format!("unreadable output: {text}")),
        kind => dim(format!("{}: {text}", kind.replace('_', " "))),
    }
}

fn ended_early(screen: Screen, status: Option<SessionState>, text: &str) -> Vec<String> {
    let word = match status {
        Some(state @ (SessionState::Failed | SessionState::Interrupted)) => state.as_str(),
        Some(SessionState::Ended) if !text.is_empty() => SessionState::Ended.as_str(),
        Some(
            SessionState::Starting
            | SessionState::Running
            | SessionState::Idle
            | SessionState::Ended,
        )
        | None => return Vec::new(),
    };
    let text = if text.is_empty() { String::new() } else { format!(": {text}") };
    vec![screen.paint(Style::Red, &format!("session {word}{text}"))]
}
