//! `ringback call`: one call of one tool.

use std::io::Read;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use ringback_client::Client;
use ringback_proto::any::{Any, Format};
use ringback_proto::ids::JobId;
use ringback_proto::request::{AckResponse, ListToolsRequest, ToolInfo};
use ringback_proto::tool::tools::ListTools;
use ringback_proto::tool::{ToolRow, find};
use ringback_proto::value::Value;
use ringback_proto::{
    CallOptions, RequestEnvelope, ResponseEnvelope, ToolCall, ToolRequest, ToolResponse, ToolTiming,
};
use serde::{Deserialize, Serialize};

use crate::arguments::{self, ToolInput};
use crate::config::Environment;
use crate::connection::{ConnectArgs, Target};
use crate::failure::Failure;
use crate::followed_call::{self, FollowEnd, OutputDetail};
use crate::nearest::nearest;
use crate::screen::{Screen, json_text};

/// Pages of tools searched for a suggestion.
const SUGGESTION_PAGES_MAX: usize = 20;

/// `ringback call`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ringback call ping\n  ringback call job_sleep milliseconds=2000\n  \
                  ringback call cas_store mime_type=text/plain data=@README.md\n  ringback call \
                  artifact_list --json '{\"tag\": \"draft\"}'\n  ringback call job_sleep \
                  milliseconds=2000 --stream --output json\n  ringback call \
                  client_shout_shout text=hello    a tool that a client offers\n\n`ringback tools TOOL` shows the input \
                  of a tool. A value `@FILE` is the content of that file;\nfor a list, repeat the key."
)]
pub struct CallArgs {
    /// The tool
    pub tool: String,
    /// Input, field by field
    #[arg(value_name = "KEY=VALUE")]
    pub pairs: Vec<String>,
    /// Input as one JSON object
    #[arg(long, value_name = "ARGS", conflicts_with = "args_file")]
    pub json: Option<String>,
    /// File with the input as one JSON object; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub args_file: Option<PathBuf>,
    /// Milliseconds to wait for the result before printing the job id instead; limited by the
    /// tool's timing class [default: by timing class, 30 s or 120 s]
    #[arg(long, value_name = "MS", conflicts_with_all = ["no_wait", "stream"])]
    pub wait: Option<u64>,
    /// Print the job id immediately
    #[arg(long, conflicts_with = "stream")]
    pub no_wait: bool,
    /// Milliseconds after which an unfinished call fails
    #[arg(long, value_name = "MS")]
    pub deadline: Option<NonZeroU64>,
    /// Show what the tool sends while it runs
    #[arg(long)]
    pub stream: bool,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub output: OutputFormat,
    /// The daemon.
    #[command(flatten)]
    pub connect: ConnectArgs,
}

/// The output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// For programs
    Json,
    /// For people
    Table,
}

/// A call that continues as a job.
#[derive(Debug, Serialize)]
struct JobReport {
    job: ReportedJob,
}

#[derive(Debug, Serialize)]
struct ReportedJob {
    job_id: Option<JobId>,
    tool: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected_timing: Option<ToolTiming>,
}

impl CallArgs {
    pub(crate) const fn wants_json(&self) -> bool {
        matches!(self.output, OutputFormat::Json)
    }

    fn input(&self) -> Result<Option<String>, Failure> {
        let Some(path) = &self.args_file else { return Ok(self.json.clone()) };
        let mut text = String::new();
        let read = if path == Path::new("-") {
            std::io::stdin().lock().read_to_string(&mut text)
        } else {
            std::fs::File::open(path).and_then(|mut file| file.read_to_string(&mut text))
        };
        read.map_err(|source| Failure::File { action: "read", path: path.clone(), source })?;
        Ok(Some(text))
    }

    /// Returns how long to wait for the result of a job.
    fn wait(&self, timing: ToolTiming) -> Duration {
        match (self.no_wait, self.wait) {
            (true, _) => Duration::ZERO,
            (false, Some(wait)) => Duration::from_millis(wait).min(timing.wait_max()),
            (false, None) => timing.edge_wait(),
        }
    }
}

pub(crate) async fn run(args: CallArgs, environment: &Environment) -> Result<(), Failure> {
    let screen = Screen::new(args.wants_json());
    let json = args.input()?;
    let Some(row) = find(&args.tool) else {
        let target = args.connect.target(environment)?;
        return on_line(&target, screen, &args, json.as_deref()).await;
    };
    let input = ToolInput::native(row)?.input(json.as_deref(), &args.pairs)?;
    let request = arguments::request(row, &input)?;
    let target = args.connect.target(environment)?;
    target.run(async |client| call(client, screen, &args, row, request).await).await
}

/// Calls a tool that the daemon knows and this build does not.
async fn on_line(
    target: &Target,
    screen: Screen,
    args: &CallArgs,
    json: Option<&str>,
) -> Result<(), Failure> {
    let called = target.run(async |client| {
        let tool = offered(client, &args.tool).await?;
        let input = ToolInput::on_line(&tool).input(json, &args.pairs)?;
        let arguments = arguments::passed(&input)?;
        let options = CallOptions { deadline_ms: args.deadline, ..CallOptions::default() };
        let shown = if args.stream { OutputDetail::All } else { OutputDetail::Answer };
        let call = ToolCall::Named { name: tool.name, arguments };
        followed_call::to_end(client, screen, call, options, shown).await
    });
    match called.await {
        // A mistyped native tool name is reported even without a daemon.
        Err(Failure::NoDaemon { endpoint, source }) => match arguments::near_native(&args.tool) {
            Some(near) => Err(arguments::unknown(&args.tool, Some(near))),
            None => Err(Failure::NoDaemon { endpoint, source }),
        },
        called => called,
    }
}

/// Finds a tool by name, or fails with a suggestion.
async fn offered(client: &Client, name: &str) -> Result<ToolInfo, Failure> {
    let request = ListToolsRequest { cursor: None, prefix: Some(name.to_owned()) };
    let page = client.call::<ListTools>(request).await?;
    // Names are sorted: an exact match comes first among those with the prefix.
    if let Some(tool) = page.tools.into_iter().find(|tool| tool.name == name) {
        return Ok(tool);
    }
    let (mut names, mut cursor) = (Vec::new(), None);
    for _ in 0..SUGGESTION_PAGES_MAX {
        let page = client.call::<ListTools>(ListToolsRequest { cursor, prefix: None }).await?;
        names.extend(page.tools.into_iter().map(|tool| tool.name));
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    let known = || names.iter().map(String::as_str);
    let suffix = format!("_{name}");
    let near = known().find(|known| known.ends_with(&suffix)).or_else(|| nearest(name, known()));
    Err(arguments::unknown(name, near))
}

async fn call(
    client: &Client,
    screen: Screen,
    args: &CallArgs,
    row: &'static ToolRow,
    request: ToolRequest,
) -> Result<(), Failure> {
    let wait = args.wait(row.timing);
    let options = CallOptions { deadline_ms: args.deadline, ..CallOptions::default() };
    if args.stream {
        let call = ToolCall::Native(request);
        return followed_call::to_end(client, screen, call, options, OutputDetail::All).await;
    }
    if row.makes_job && screen.is_watched() && !wait.is_zero() {
        return match followed_call::watched(client, screen, request, options, wait).await? {
            FollowEnd::Done(response) => show(screen, *response),
            FollowEnd::GoesOn(job_id) => hand_over(screen, row, job_id, Some(row.timing)),
        };
    }
    let wait_ms = (row.makes_job && !wait.is_zero())
        .then(|| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
    let envelope = RequestEnvelope {
        request: ToolCall::Native(request),
        options: CallOptions { wait_ms, ..options },
    };
    match client.call_envelope(envelope).await? {
        ResponseEnvelope::Success { response } => show(screen, response),
        ResponseEnvelope::JobStarted { job_id, expected_timing, .. } => {
            hand_over(screen, row, Some(job_id), Some(expected_timing))
        }
        ResponseEnvelope::Ack { message, .. } => show(screen, AckResponse { message }.into()),
        ResponseEnvelope::Error(error) => Err(ringback_proto::Error::from(error).into()),
        ResponseEnvelope::StreamStart { .. }
        | ResponseEnvelope::StreamChunk { .. }
        | ResponseEnvelope::StreamEnd { .. } => {
            Err(Failure::Wrong("the daemon sent a stream that was not requested".to_owned()))
        }
    }
}

fn hand_over(
    screen: Screen,
    row: &'static ToolRow,
    job_id: Option<JobId>,
    expected_timing: Option<ToolTiming>,
) -> Result<(), Failure> {
    let handed = JobReport { job: ReportedJob { job_id, tool: row.name, expected_timing } };
    screen.answer(&handed, |_| job_id.map(|id| id.to_string()).unwrap_or_default())?;
    if let Some(job_id) = job_id {
        screen.remark(format_args!(
            "`{}` continues as a job; follow it with `ringback jobs watch {job_id}`",
            row.name
        ));
    }
    Ok(())
}

/// The answer of any tool, for display.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Answer {
    /// From a native tool.
    Native(Box<ToolResponse>),
    /// From a tool on a line.
    Passed(Value),
}

impl Answer {
    /// Decodes a response that came from a line.
    pub(crate) fn of(response: ToolResponse) -> Result<Self, Failure> {
        if let ToolResponse::Passed(Any { format: Format::MsgPack, bytes }) = &response {
            let read = rmp_serde::from_slice(bytes);
            return read.map(Self::Passed).map_err(|error| {
                Failure::Wrong(format!("cannot read the tool's answer: {error}"))
            });
        }
        Ok(Self::Native(Box::new(response)))
    }

    fn fields(&self) -> Option<Vec<(String, Value)>> {
        let value = match self {
            Self::Native(response) => {
                serde_json::to_value(response).ok().and_then(|value| Value::deserialize(value).ok())
            }
            Self::Passed(value) => Some(value.clone()),
        };
        if let Some(Value::Map(fields)) = value { Some(fields) } else { None }
    }
}

/// Shows the answer of any tool: its fields, one per line.
pub(crate) fn show(screen: Screen, response: ToolResponse) -> Result<(), Failure> {
    let answer = Answer::of(response)?;
    let fields = if screen.is_json() { None } else { answer.fields() };
    let Some(fields) = fields else {
        return screen.json_document(&answer);
    };
    let is_tag = |name: &str| matches!(answer, Answer::Native(_)) && name == "type";
    let pairs = fields
        .iter()
        .filter(|(name, _)| !is_tag(name))
        .map(|(name, value)| Ok((name.as_str(), field_text(value)?)))
        .collect::<Result<Vec<_>, Failure>>()?;
    screen.text(screen.pairs(&pairs))
}

fn field_text(value: &Value) -> Result<String, Failure> {
    match value {
        Value::Text(text) => Ok(text.clone()),
        Value::Null => Ok("-".to_owned()),
        Value::Bool(_)
        | Value::Int(_)
        | Value::UInt(_)
        | Value::Float(_)
        | Value::Bytes(_)
        | Value::List(_)
        | Value::Map(_) => json_text(value, false),
    }
}
