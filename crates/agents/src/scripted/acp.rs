//! The scripted agent with the Agent Client Protocol. Its conversations are files in its home, so
//! that another scripted agent can resume them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ringback_mcp_wire::{Era, Id, Limits, Line, Lines, Message, Object, RawValue};
use tokio::io::AsyncReadExt as _;
use tokio::sync::mpsc;

use super::mcp::Mcp;
use super::output::{Output, json};
use super::runner::{Runner, ScriptEnd};
use super::{LINE_BYTES_MAX, script};

/// The directory of conversations.
const DIRECTORY: &str = ".scripted-agent";

/// Standard input, by message.
struct Reader {
    input: tokio::io::Stdin,
    lines: Lines,
}

/// A client's request.
enum ClientRequest {
    Initialize(Id),
    Begin(Id, ConversationSpec),
    TakeUp(Id, ConversationSpec, String),
    Prompt(Id, Prompt),
    Cancel,
    Answer(Option<String>),
    /// An unknown method.
    Unknown(Option<Id>),
}

/// A message: its text, and its other blocks.
struct Prompt {
    text: String,
    blocks: Vec<String>,
}

/// The directory of a conversation, and its server.
struct ConversationSpec {
    cwd: PathBuf,
    server: Option<Server>,
}

struct Server {
    program: OsString,
    args: Vec<OsString>,
    env: Vec<(String, String)>,
}

/// A running conversation.
struct Conversation {
    file: PathBuf,
    runner: Runner,
    answers: mpsc::Sender<Option<String>>,
}

/// Serves one client until its input ends, or a script ends it.
pub(super) async fn serve(era: Era) -> Result<u8, String> {
    let mut reader = Reader { input: tokio::io::stdin(), lines: Lines::new(LINE_BYTES_MAX) };
    let mut conversation = None;
    while let Some(wanted) = reader.next().await? {
        match wanted {
            ClientRequest::Initialize(id) => {
                let prompts = r#"{"image":true,"audio":true,"embeddedContext":true}"#;
                let can = format!(
                    r#"{{"loadSession":true,"promptCapabilities":{prompts},"mcpCapabilities":{{}}}}"#
                );
                respond(&id, &format!(r#"{{"protocolVersion":1,"agentCapabilities":{can}}}"#))?;
            }
            ClientRequest::Begin(id, opening) => {
                let name = format!("scripted-{}", std::process::id());
                conversation = Some(Conversation::open(&opening, &name, era).await?);
                respond(&id, &format!(r#"{{"sessionId":{}}}"#, json(&name)))?;
            }
            ClientRequest::TakeUp(id, opening, name) => {
                let before = Conversation::file(&opening.cwd, &name).exists();
                if !before {
                    refuse(&id, "unknown conversation")?;
                    continue;
                }
                let taken = Conversation::open(&opening, &name, era).await?;
                taken.replay()?;
                conversation = Some(taken);
                respond(&id, "{}")?;
            }
            ClientRequest::Prompt(id, prompt) => {
                let Some(conversation) = &mut conversation else {
                    refuse(&id, "no conversation was started")?;
                    continue;
                };
                if let Some(code) = conversation.turn(&id, &prompt, &mut reader).await? {
                    return Ok(code);
                }
            }
            ClientRequest::Unknown(Some(id)) => refuse(&id, "unknown method")?,
            ClientRequest::Unknown(None) | ClientRequest::Cancel | ClientRequest::Answer(_) => {}
        }
    }
    Ok(0)
}

impl Conversation {
    async fn open(opening: &ConversationSpec, name: &str, era: Era) -> Result<Self, String> {
        let mcp = match &opening.server {
            None => None,
            Some(Server { program, args, env }) => Some(Mcp::start(program, args, env, era).await?),
        };
        let file = Self::file(&opening.cwd, name);
        let made = std::fs::create_dir_all(file.parent().unwrap_or(&opening.cwd));
        made.map_err(|error| format!("cannot store conversations: {error}"))?;
        let (answers, answers_out) = mpsc::channel(1);
        let mut runner = Runner::new(mcp, Output::of_conversation(name));
        runner.answers = Some(answers_out);
        Ok(Self { file, runner, answers })
    }

    /// Returns the file of a conversation: in the home, or without one in the working directory.
    fn file(cwd: &Path, name: &str) -> PathBuf {
        let home = std::env::var_os("HOME").map_or_else(|| cwd.to_owned(), PathBuf::from);
        home.join(DIRECTORY).join(name.replace(['/', '.'], "_"))
    }

    /// Replays the conversation.
    fn replay(&self) -> Result<(), String> {
        for message in self.messages() {
            self.runner.output.say_of_user(&message)?;
        }
        Ok(())
    }

    /// Returns the messages so far.
    fn messages(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.file).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Runs the script of a message; returns the exit code, if the script ends the program.
    async fn turn(
        &mut self,
        id: &Id,
        prompt: &Prompt,
        reader: &mut Reader,
    ) -> Result<Option<u8>, String> {
        let message = &prompt.text;
        self.runner.recalled = self.messages();
        self.runner.blocks.clone_from(&prompt.blocks);
        let mut kept = self.messages();
        kept.push(message.to_owned());
        let lines: String = kept.iter().map(|message| json(message) + "\n").collect();
        std::fs::write(&self.file, lines).map_err(|error| error.to_string())?;
        let steps = match script::parse(message, message) {
            Ok(steps) => steps,
            Err(wrong) => return refuse(id, &wrong.to_string()).map(|()| None),
        };
        let stop = {
            let run = self.runner.run(steps);
            tokio::pin!(run);
            loop {
                tokio::select! {
                    stopped = &mut run => match stopped? {
                        ScriptEnd::Done => break "end_turn",
                        ScriptEnd::Exit(code) => return Ok(Some(code)),
                    },
                    wanted = reader.next() => match wanted? {
                        None => return Ok(Some(0)),
                        Some(ClientRequest::Cancel) => break "cancelled",
                        Some(ClientRequest::Answer(option)) => drop(self.answers.try_send(option)),
                        Some(
                            ClientRequest::Initialize(other)
                            | ClientRequest::Begin(other, _)
                            | ClientRequest::TakeUp(other, ..)
                            | ClientRequest::Prompt(other, _)
                            | ClientRequest::Unknown(Some(other)),
                        ) => refuse(&other, "a turn is already running")?,
                        Some(ClientRequest::Unknown(None)) => {}
                    },
                }
            }
        };
        let usage = r#"{"inputTokens":3,"outputTokens":4,"totalTokens":7}"#;
        respond(id, &format!(r#"{{"stopReason":"{stop}","usage":{usage}}}"#))?;
        Ok(None)
    }
}

impl Reader {
    /// Returns the next request; `None` at the end.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    async fn next(&mut self) -> Result<Option<ClientRequest>, String> {
        loop {
            while let Some(line) = self.lines.pop() {
                if let Line::Whole(line) = line {
                    return Ok(Some(wanted(line)));
                }
            }
            let read = self.input.read_buf(self.lines.room()).await;
            if read.map_err(|error| error.to_string())? == 0 {
                return Ok(None);
            }
        }
    }
}

fn wanted(line: &[u8]) -> ClientRequest {
    match Message::decode(line, Limits::default()) {
        Ok(Message::Request(request)) => {
            let (id, params) = (request.id, &request.params);
            let name = || params.text("sessionId").unwrap_or_default().into_owned();
            match request.method.as_ref() {
                "initialize" => ClientRequest::Initialize(id),
                "session/new" => ClientRequest::Begin(id, ConversationSpec::of(params)),
                "session/load" => ClientRequest::TakeUp(id, ConversationSpec::of(params), name()),
                "session/prompt" => ClientRequest::Prompt(id, prompt(params)),
                _ => ClientRequest::Unknown(Some(id)),
            }
        }
        Ok(Message::Notification(told)) if told.method == "session/cancel" => ClientRequest::Cancel,
        Ok(Message::Reply(reply)) => {
            let outcome = reply.outcome.ok().and_then(|result| Object::of(result).ok());
            let outcome = outcome.and_then(|it| Object::of(it.get("outcome")?).ok());
            ClientRequest::Answer(outcome.and_then(|it| Some(it.text("optionId")?.into_owned())))
        }
        Ok(Message::Notification(_)) | Err(_) => ClientRequest::Unknown(None),
    }
}

impl ConversationSpec {
    fn of(params: &Object<'_>) -> Self {
        let cwd = params.text("cwd").unwrap_or_default().into_owned().into();
        let servers: Vec<Object<'_>> = list(params, "mcpServers");
        let server = servers.first().map(|server| {
            let args: Vec<String> = list(server, "args");
            let env: Vec<Object<'_>> = list(server, "env");
            let text = |of: &Object<'_>, name| of.text(name).unwrap_or_default().into_owned();
            Server {
                program: text(server, "command").into(),
                args: args.into_iter().map(Into::into).collect(),
                env: env.iter().map(|it| (text(it, "name"), text(it, "value"))).collect(),
            }
        });
        Self { cwd, server }
    }
}

fn list<'a, T: serde::Deserialize<'a>>(of: &Object<'a>, name: &str) -> Vec<T> {
    of.get(name).and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}

fn prompt(params: &Object<'_>) -> Prompt {
    let blocks: Vec<&RawValue> = list(params, "prompt");
    let text = |raw: &&RawValue| Some(Object::of(raw).ok()?.text("text")?.into_owned());
    let texts: Vec<_> = blocks.iter().filter_map(text).collect();
    let is_other = |raw: &&&RawValue| text(raw).is_none();
    let others = blocks.iter().filter(is_other).map(|raw| raw.get().to_owned());
    Prompt { text: texts.join("\n"), blocks: others.collect() }
}

fn respond(id: &Id, result: &str) -> Result<(), String> {
    Output::default().raw(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, json(id)))
}

fn refuse(id: &Id, message: &str) -> Result<(), String> {
    let error = format!(r#"{{"code":-32603,"message":{}}}"#, json(message));
    Output::default().raw(&format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, json(id)))
}
