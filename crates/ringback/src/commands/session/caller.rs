//! This terminal as a caller: local commands are the agent's tools.

use std::collections::HashMap;
use std::convert::Infallible;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use clap::Args;
use ringback_agents::preset::find_program;
use ringback_client::Client;
use ringback_proto::any::{Any, Format};
use ringback_proto::ids::SessionId;
use ringback_proto::raw::Raw;
use ringback_proto::request::{
    CallerTool, CallerToolProgressRequest, CallerToolRequestInfo, CallerToolRequestsRequest,
    CallerToolResponseRequest, SessionContext,
};
use ringback_proto::tool::tools::{CallerToolProgress, CallerToolRequests, CallerToolResponse};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::commands::offer::child::{Program, Progress, RunEnd};
use crate::commands::offer::schema;
use crate::commands::session::transcript::Transcript;
use crate::commands::token::Lifetime;
use crate::failure::Failure;
use crate::screen::Screen;

/// How long one poll waits for a call.
const WAIT_MS: u64 = 20_000;
const MS_PER_SECOND: u64 = 1000;

/// `NAME=COMMAND`: a tool and its command.
#[derive(Debug, Clone)]
pub struct LocalTool {
    name: String,
    command: Vec<String>,
}

impl FromStr for LocalTool {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let misfit = || "expected NAME=COMMAND, such as `notify=./notify.sh --loud`".to_owned();
        let (name, command) = text.split_once('=').ok_or_else(misfit)?;
        let command = shlex::split(command)
            .ok_or_else(|| format!("the quotes in `{command}` do not match"))?;
        if name.is_empty() || command.is_empty() {
            return Err(misfit());
        }
        Ok(Self { name: name.to_owned(), command })
    }
}

/// `NAME=FILE`: a tool and the file with its input schema.
#[derive(Debug, Clone)]
pub struct ToolSchema {
    name: String,
    path: PathBuf,
}

impl FromStr for ToolSchema {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, path)) if !name.is_empty() && !path.is_empty() => {
                Ok(Self { name: name.to_owned(), path: path.into() })
            }
            Some(_) | None => Err("expected NAME=FILE, such as `notify=notify.json`".to_owned()),
        }
    }
}

/// The tools this terminal offers to an agent.
#[derive(Debug, Args)]
pub struct CallerArgs {
    /// A tool for the agent that runs COMMAND here: words, quoted as for a shell, which does not
    /// run; may be given several times
    #[arg(long = "tool", value_name = "NAME=COMMAND")]
    pub tools: Vec<LocalTool>,
    /// File with the JSON Schema of a tool's input [default: any object, preferably with a `text`]
    #[arg(long = "tool-schema", value_name = "NAME=FILE")]
    pub schemas: Vec<ToolSchema>,
    /// How long a call of these tools may take, such as 30s, 15m or 2h [default: `caller_tools.timeout`
    /// of the daemon, a minute]
    #[arg(long, value_name = "DURATION")]
    pub tool_timeout: Option<Lifetime>,
    /// Prefix for your tool names
    #[arg(long, value_name = "NAME", default_value = "here")]
    pub caller_id: String,
}

impl CallerArgs {
    /// Returns the context with the declared tools, if there are any.
    pub(in crate::commands) fn context(&self) -> Result<Option<SessionContext>, Failure> {
        let has = |schema: &&ToolSchema| self.tools.iter().any(|tool| tool.name == schema.name);
        if let Some(schema) = self.schemas.iter().find(|schema| !has(schema)) {
            let name = &schema.name;
            let text = format!("a schema for `{name}` needs `--tool {name}=COMMAND`");
            return Err(Failure::Usage(text));
        }
        for tool in &self.tools {
            tool.check()?;
        }
        let declared = |tool: &LocalTool| {
            let schema = self.schemas.iter().find(|schema| schema.name == tool.name);
            let timeout_ms = self.tool_timeout.map(|time| time.0.saturating_mul(MS_PER_SECOND));
            tool.declared(schema.map(|schema| schema.path.as_path()), timeout_ms)
        };
        let tools = self.tools.iter().map(declared).collect::<Result<Vec<_>, _>>()?;
        Ok((!tools.is_empty()).then(|| SessionContext {
            caller_id: Some(self.caller_id.clone()),
            caller_tools: Some(tools),
            caller_server: None,
        }))
    }
}

impl CallerArgs {
    /// Returns the names of the tools, as the agent sees them.
    pub(in crate::commands) fn names(&self) -> Vec<String> {
        self.tools.iter().map(|tool| format!("{}_{}", self.caller_id, tool.name)).collect()
    }
}

impl LocalTool {
    /// Returns the declaration for the agent.
    fn declared(
        &self,
        schema: Option<&Path>,
        timeout_ms: Option<u64>,
    ) -> Result<CallerTool, Failure> {
        let bytes = schema::of(schema)?.get().to_owned().into();
        Ok(CallerTool {
            name: self.name.clone(),
            description: Some(format!(
                "Runs `{}` where the session was started.",
                self.command.join(" ")
            )),
            input_schema: Some(Raw(Any { format: Format::Json, bytes })),
            timeout_ms,
            // To name a command as a tool is to allow it.
            allowed: true,
        })
    }

    /// Checks that the program exists: an agent would notice only at its first call.
    fn check(&self) -> Result<(), Failure> {
        let Program { name: program, .. } = self.program();
        let (name, shown) = (&self.name, program.display());
        let refused = |text: String| Err(Failure::Usage(text));
        if !program.as_encoded_bytes().contains(&b'/') {
            let path = std::env::var_os("PATH").unwrap_or_default();
            return match find_program(&program.to_string_lossy(), &path) {
                Some(_) => Ok(()),
                None => refused(format!(
                    "program `{shown}` for `--tool {name}` not found in PATH; a path needs a `/`, such as \
                     `./{shown}`"
                )),
            };
        }
        match Path::new(&program).metadata() {
            Ok(file) if file.is_file() && file.permissions().mode() & 0o111 != 0 => Ok(()),
            Ok(_) => refused(format!(
                "cannot run `{shown}` for `--tool {name}`: not executable; run `chmod +x {shown}`"
            )),
            Err(error) => refused(format!("cannot run `{shown}` for `--tool {name}`: {error}")),
        }
    }

    fn program(&self) -> Program {
        let mut words = self.command.iter().map(OsString::from);
        Program { name: words.next().unwrap_or_default(), arguments: words.collect() }
    }
}

/// Serves the calls of a session until it is dropped or the session ends.
pub(in crate::commands) async fn serve(
    client: &Client,
    screen: Screen,
    transcript: &Transcript,
    session: SessionId,
    tools: &[LocalTool],
) -> Result<Infallible, Failure> {
    let programs: HashMap<_, _> =
        tools.iter().map(|tool| (tool.name.clone(), Arc::new(tool.program()))).collect();
    // Dropped with this future, which kills every command and its process group.
    let mut running: JoinSet<String> = JoinSet::new();
    let mut known: HashMap<String, CancellationToken> = HashMap::new();
    loop {
        let look = CallerToolRequestsRequest {
            session_id: session,
            caller_id: None,
            wait_ms: Some(WAIT_MS),
        };
        let requests = tokio::select! {
            biased;
            Some(done) = running.join_next() => {
                if let Ok(request_id) = done {
                    known.remove(&request_id);
                }
                continue;
            }
            looked = client.call::<CallerToolRequests>(look) => looked?.requests,
        };
        for request in requests {
            if known.contains_key(&request.request_id) {
                continue;
            }
            let stop = CancellationToken::new();
            known.insert(request.request_id.clone(), stop.clone());
            let call = Call {
                client: client.clone(),
                screen,
                transcript: transcript.clone(),
                program: programs.get(&request.tool).cloned(),
                request,
            };
            running.spawn(call.carry_out(stop));
        }
    }
}

/// One call of a tool.
struct Call {
    client: Client,
    screen: Screen,
    transcript: Transcript,
    program: Option<Arc<Program>>,
    request: CallerToolRequestInfo,
}

impl Call {
    async fn carry_out(self, stop: CancellationToken) -> String {
        let CallerToolRequestInfo { request_id, tool, arguments, .. } = &self.request;
        let shown = arguments.0.clone().translate(Format::Json).map(|input| input.bytes);
        let shown = String::from_utf8_lossy(&shown.unwrap_or_default()).into_owned();
        self.transcript.serves(request_id, tool, &shown);
        let started = Instant::now();
        let (result, error) = match self.run(&stop).await {
            RunEnd::Done(output) => (Some(payload(&output)), None),
            RunEnd::Failed(error) => (None, Some(error)),
            RunEnd::Cancelled => (None, Some("the command was cancelled where it ran".to_owned())),
        };
        let text =
            result.as_ref().map(|result| String::from_utf8_lossy(&result.bytes).into_owned());
        let outcome = match (&text, &error) {
            (Some(text), _) => Ok(text.clone()),
            (None, error) => Err(error.clone().unwrap_or_default()),
        };
        let answer = CallerToolResponseRequest {
            session_id: self.request.session_id,
            request_id: request_id.clone(),
            result: result.map(Raw),
            error,
        };
        let took = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        // Before the answer: the agent's next words come after it.
        let outcome = outcome.as_deref().map_err(String::as_str);
        self.transcript.has_served(request_id, tool, outcome, took);
        if let Err(error) = self.client.call::<CallerToolResponse>(answer).await {
            self.transcript.remark(format_args!("cannot answer {tool}: {error}"));
        }
        self.request.request_id
    }

    async fn run(&self, stop: &CancellationToken) -> RunEnd {
        let Some(program) = &self.program else {
            return RunEnd::Failed(format!("unknown tool `{}`", self.request.tool));
        };
        let input = match self.request.arguments.0.clone().translate(Format::Json) {
            Ok(input) => input.bytes,
            Err(error) => return RunEnd::Failed(format!("cannot read the input: {error}")),
        };
        let (progress, told) = watch::channel(None);
        let running = program.run(&input, progress, stop, self.screen);
        let telling = self.tell_progress(told);
        tokio::pin!(running, telling);
        tokio::select! {
            ended = &mut running => ended,
            () = &mut telling => running.await,
        }
    }

    async fn tell_progress(&self, mut told: watch::Receiver<Option<Progress>>) {
        while told.changed().await.is_ok() {
            let Some(Progress { percent, message }) = told.borrow_and_update().clone() else {
                continue;
            };
            let progress = CallerToolProgressRequest {
                session_id: self.request.session_id,
                request_id: self.request.request_id.clone(),
                percent,
                message: Some(message),
            };
            if let Err(error) = self.client.call::<CallerToolProgress>(progress).await {
                tracing::debug!(%error, "cannot report progress");
            }
        }
    }
}

/// Returns a command's output as a payload: JSON unchanged, anything else as a string.
fn payload(output: &str) -> Any {
    let trimmed = output.trim();
    let bytes = if serde_json::from_str::<serde::de::IgnoredAny>(trimmed).is_ok() {
        Bytes::copy_from_slice(trimmed.as_bytes())
    } else {
        serde_json::to_vec(output.trim_end_matches('\n')).unwrap_or_default().into()
    };
    Any { format: Format::Json, bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_a_name_and_a_command() {
        let tool: LocalTool = "notify=./notify.sh --loud".parse().unwrap();
        assert_eq!((tool.name.as_str(), tool.command.len()), ("notify", 2));
        let quoted: LocalTool = r#"x=sh -c "echo hi" 'a b'"#.parse().unwrap();
        assert_eq!(quoted.command, ["sh", "-c", "echo hi", "a b"]);
        for text in ["notify", "=x", "notify=", "notify= ", "x=sh -c \"echo"] {
            assert!(text.parse::<LocalTool>().is_err(), "{text}");
        }
    }

    /// Rule: the input of a tool has the fields of its schema, or any fields, `text` among them.
    #[test]
    fn a_tool_takes_any_object_or_what_its_schema_says() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify.json");
        let schema = r#"{"type": "object", "properties": {"text": {"type": "string"}}}"#;
        std::fs::write(&path, schema).unwrap();
        let args = |schemas: &[String]| CallerArgs {
            tools: vec!["notify=true".parse().unwrap()],
            schemas: schemas.iter().map(|schema| schema.parse().unwrap()).collect(),
            tool_timeout: Some("2m".parse().unwrap()),
            caller_id: "here".to_owned(),
        };
        let declared = |schemas: &[String]| {
            let context = args(schemas).context().unwrap().unwrap();
            let tool = context.caller_tools.unwrap().remove(0);
            assert!(tool.allowed && tool.timeout_ms == Some(120_000), "{tool:?}");
            tool.input_schema.unwrap().0.bytes
        };
        let any = schema::of(None).unwrap();
        assert_eq!(declared(&[]), any.get());
        assert_eq!(declared(&[format!("notify={}", path.display())]), schema);
        assert!(args(&["other=x".to_owned()]).context().is_err(), "a schema without a tool");
        assert!("notify".parse::<ToolSchema>().is_err());
    }

    #[test]
    fn json_passes_as_it_is_and_text_as_a_text() {
        let shown = |text: &str| payload(text).bytes;
        assert_eq!(shown("{\"n\": 12345678901234567890}\n"), "{\"n\": 12345678901234567890}");
        assert_eq!(shown("hello \"you\"\n"), r#""hello \"you\"""#);
        assert_eq!(shown("null\n"), "null");
        assert_eq!(shown(""), r#""""#);
    }
}
