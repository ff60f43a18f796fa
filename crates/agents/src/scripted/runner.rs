//! Runs the steps of a script.

use std::time::Duration;

use ringback_mcp_wire::{Object, RawValue};
use serde::Serialize;
use serde_json::value::to_raw_value;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use super::mcp::{Answer, Mcp};
use super::output::{Output, shown};
use super::script::{Call, Child, Expectation, Step};
use crate::event::{AgentEvent, PlanEntry};

/// How long a tool list may take: a server may wait for its own tools.
const LIST_WAIT: Duration = Duration::from_secs(10);
/// The exit code after a failed `expect`.
const EXIT_UNEXPECTED: u8 = 1;
/// The tools that start a child session: with a key, and without one.
const CHILD_TOOLS: [&str; 2] = ["oubliette_session_message", "session_message"];

/// Runs scripts, one after another.
#[derive(Debug)]
pub(super) struct Runner {
    mcp: Option<Mcp>,
    pub(super) output: Output,
    n_calls: u64,
    last: Option<Outcome>,
    /// The messages of earlier turns.
    pub(super) recalled: Vec<String>,
    /// The other blocks of the message.
    pub(super) blocks: Vec<String>,
    /// Answers to its permission requests.
    pub(super) answers: Option<mpsc::Receiver<Option<String>>>,
}

/// Where a script stopped.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ScriptEnd {
    /// At its end.
    Done,
    /// At a step that ends the program, or at a failed `expect`.
    Exit(u8),
}

/// The result of a call.
#[derive(Debug)]
struct Outcome {
    is_error: bool,
    result: Box<RawValue>,
}

/// A pending call.
struct PendingCall<'a> {
    call: &'a Call,
    name: String,
    request: u64,
}

impl Runner {
    pub(super) const fn new(mcp: Option<Mcp>, output: Output) -> Self {
        Self {
            mcp,
            output,
            n_calls: 0,
            last: None,
            recalled: Vec::new(),
            blocks: Vec::new(),
            answers: None,
        }
    }

    /// Runs every step, and reports the events.
    pub(super) async fn run(&mut self, steps: Vec<Step>) -> Result<ScriptEnd, String> {
        for step in steps {
            match self.step(step).await? {
                ScriptEnd::Done => {}
                exit @ ScriptEnd::Exit(_) => return Ok(exit),
            }
        }
        self.output.tell(&AgentEvent::Done)?;
        Ok(ScriptEnd::Done)
    }

    async fn step(&mut self, step: Step) -> Result<ScriptEnd, String> {
        match step {
            Step::Say(text) => self.output.say(text)?,
            Step::Think(text) => self.output.tell(&AgentEvent::Thought { text })?,
            Step::Plan(steps) => {
                let entry = |text| PlanEntry { text, status: "pending".to_owned() };
                let entries = steps.into_iter().map(entry).collect();
                self.output.tell(&AgentEvent::Plan { entries })?;
            }
            Step::Recall {} => self.output.say(self.recalled.join("; "))?,
            Step::Attached {} => self.output.say(self.blocks.join("; "))?,
            Step::Ask { tool } => return self.ask(&tool).await,
            Step::List {} => {
                let names = self.mcp()?.tools(Instant::now() + LIST_WAIT).await?;
                self.output.log(format!("tools: {}", names.join(", ")))?;
            }
            Step::Call(call) => self.together(&[call]).await?,
            Step::Together(calls) => self.together(&calls).await?,
            Step::Child(child) => return self.child(&child).await,
            Step::WaitChange { timeout_ms } => {
                let until = Instant::now() + Duration::from_millis(timeout_ms);
                if !self.mcp()?.change(until).await? {
                    return self.unexpected("no change of the tools was announced".to_owned());
                }
            }
            Step::WaitTool { tool, timeout_ms } => return self.wait_tool(&tool, timeout_ms).await,
            Step::SleepMs(ms) => sleep(Duration::from_millis(ms)).await,
            Step::Write { path, text } => {
                let written = std::fs::write(&path, text);
                return self.wrote(written, &path);
            }
            Step::Remove { path } => return self.wrote(std::fs::remove_file(&path), &path),
            Step::Expect(expected) => return self.expect(&expected),
            Step::Print {} => {
                let text = self.last.as_ref().map(Outcome::text);
                self.output.say(text.unwrap_or_else(|| "no result yet".to_owned()))?;
            }
            Step::Garbage { text, times } => {
                for _ in 0..times {
                    self.output.raw(&text)?;
                }
            }
            Step::End { code } => return Ok(ScriptEnd::Exit(code)),
        }
        Ok(ScriptEnd::Done)
    }

    fn wrote(&self, written: std::io::Result<()>, path: &str) -> Result<ScriptEnd, String> {
        match written {
            Ok(()) => Ok(ScriptEnd::Done),
            Err(error) => self.unexpected(format!("`{path}`: {error}")),
        }
    }

    /// Requests permission; the answer becomes the last result.
    async fn ask(&mut self, tool: &str) -> Result<ScriptEnd, String> {
        self.n_calls += 1;
        let name = format!("ask-{}", self.n_calls);
        let Some(answers) = self.answers.as_mut().filter(|_| self.output.has_client()) else {
            return self.unexpected("no client to ask for permission".to_owned());
        };
        self.output.ask(&name, tool)?;
        let option = answers.recv().await.flatten();
        let is_error = option.as_deref() != Some("once");
        let text = option.unwrap_or_else(|| "no answer".to_owned());
        self.last = Some(Outcome { is_error, result: told(&text) });
        Ok(ScriptEnd::Done)
    }

    /// Starts all calls, then waits for each.
    async fn together(&mut self, calls: &[Call]) -> Result<(), String> {
        let started = Instant::now();
        let mut pending = Vec::with_capacity(calls.len());
        for call in calls {
            pending.push(self.begin(call).await?);
        }
        for pending in pending {
            self.end(pending, started).await?;
        }
        Ok(())
    }

    async fn begin<'a>(&mut self, call: &'a Call) -> Result<PendingCall<'a>, String> {
        #[derive(Serialize)]
        struct Params<'a> {
            name: &'a str,
            arguments: &'a RawValue,
        }
        self.n_calls += 1;
        let name = self.n_calls.to_string();
        let arguments = match &call.arguments {
            Some(arguments) => arguments.clone(),
            None => RawValue::from_string("{}".to_owned()).map_err(|error| error.to_string())?,
        };
        self.output.tell(&AgentEvent::ToolCall {
            id: name.clone(),
            tool: call.tool.clone(),
            arguments: shown(&arguments),
        })?;
        let params = to_raw_value(&Params { name: &call.tool, arguments: &arguments })
            .map_err(|error| error.to_string())?;
        let request = self.mcp()?.ask("tools/call", &params).await?;
        Ok(PendingCall { call, name, request })
    }

    async fn end(&mut self, pending: PendingCall<'_>, started: Instant) -> Result<(), String> {
        let PendingCall { call, name, request } = pending;
        let wait_ms = call.cancel_after_ms.unwrap_or(call.timeout_ms);
        let until = started + Duration::from_millis(wait_ms);
        let answer = self.mcp()?.answer_or_not(request, until).await?;
        let outcome = match answer {
            Some(answer) => Outcome::of(answer),
            None => {
                self.mcp()?.cancel(request).await?;
                Outcome { is_error: true, result: told("the call was cancelled") }
            }
        };
        self.output.tell(&AgentEvent::ToolResult {
            id: name,
            tool: call.tool.clone(),
            is_error: outcome.is_error,
            result: shown(&outcome.result),
        })?;
        self.last = Some(outcome);
        Ok(())
    }

    async fn child(&mut self, child: &Child) -> Result<ScriptEnd, String> {
        #[derive(Serialize)]
        struct Arguments<'a> {
            message: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            session_id: Option<&'a str>,
        }
        let names = self.mcp()?.tools(Instant::now() + LIST_WAIT).await?;
        let Some(tool) = CHILD_TOOLS.into_iter().find(|tool| names.iter().any(|name| name == tool))
        else {
            return self.unexpected("no tool to start a child session with".to_owned());
        };
        let arguments =
            Arguments { message: &child.message, session_id: child.session_id.as_deref() };
        let arguments = to_raw_value(&arguments).map_err(|error| error.to_string())?;
        let call = Call {
            tool: tool.to_owned(),
            arguments: Some(arguments),
            timeout_ms: 120_000,
            cancel_after_ms: None,
        };
        self.together(&[call]).await?;
        Ok(ScriptEnd::Done)
    }

    async fn wait_tool(&mut self, tool: &str, timeout_ms: u64) -> Result<ScriptEnd, String> {
        let until = Instant::now() + Duration::from_millis(timeout_ms);
        loop {
            let names = self.mcp()?.tools(Instant::now() + LIST_WAIT).await?;
            if names.iter().any(|name| name == tool) {
                return Ok(ScriptEnd::Done);
            }
            if !self.mcp()?.change(until).await? {
                return self.unexpected(format!("unknown tool `{tool}`"));
            }
        }
    }

    fn expect(&mut self, expected: &Expectation) -> Result<ScriptEnd, String> {
        let Some(last) = &self.last else {
            return self.unexpected("nothing was called before `expect`".to_owned());
        };
        let is_as_expected = expected.is_error.is_none_or(|is_error| is_error == last.is_error)
            && expected.contains.as_ref().is_none_or(|part| last.result.get().contains(part));
        if is_as_expected {
            return Ok(ScriptEnd::Done);
        }
        let text = format!("the last result is not as expected: {}", shown(&last.result));
        self.unexpected(text)
    }

    fn unexpected(&self, text: String) -> Result<ScriptEnd, String> {
        self.output.tell(&AgentEvent::Error { text })?;
        Ok(ScriptEnd::Exit(EXIT_UNEXPECTED))
    }

    fn mcp(&mut self) -> Result<&mut Mcp, String> {
        self.mcp.as_mut().ok_or_else(|| "no server: name one after `--`".to_owned())
    }
}

impl Outcome {
    fn of(answer: Answer) -> Self {
        match answer {
            Err(result) => Self { is_error: true, result },
            Ok(result) => {
                let flag = Object::of(&result).ok().and_then(|object| object.get("isError"));
                let is_error = flag.is_some_and(|raw| raw.get() == "true");
                Self { is_error, result }
            }
        }
    }

    /// Returns the text of the result, or all of it.
    fn text(&self) -> String {
        let text = Object::of(&self.result).ok().and_then(|object| {
            let content: Vec<Object<'_>> =
                serde_json::from_str(object.get("content")?.get()).ok()?;
            let texts: Vec<_> = content.iter().filter_map(|block| block.text("text")).collect();
            Some(texts.join("\n"))
        });
        text.unwrap_or_else(|| self.result.get().to_owned())
    }
}

fn told(text: &str) -> Box<RawValue> {
    to_raw_value(text).expect("a text can be serialized")
}
