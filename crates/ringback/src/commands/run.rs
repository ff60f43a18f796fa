//! `ringback run`: runs an agent on a copy of a directory and shows what it does.

mod copy;
mod selection;
mod toolchains;
mod transfer;

use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use ringback_client::Client;
use ringback_proto::ids::{ProjectId, SessionId};
use ringback_proto::record::SessionState;
use ringback_proto::request::{
    SessionMessageRequest, SessionResponse, SessionSpawnRequest, SessionToolchains,
    WorkspaceDeleteRequest, WorkspaceDiffRequest, WorkspaceDiffResponse,
};
use ringback_proto::tool::tools::{SessionMessage, SessionSpawn, WorkspaceDelete, WorkspaceDiff};
use serde::Serialize;

use self::copy::DirCopy;
use self::selection::CopyArgs;
use self::transfer::put;
use crate::commands::choice::{Caller, ChoiceArgs, Chosen, ShellKey, model_failure};
use crate::commands::network::NetworkArgs;
use crate::commands::session::caller::CallerArgs;
use crate::commands::session::origin::Origins;
use crate::commands::session::{changes, start};
use crate::commands::spending::{SpendArgs, totals};
use crate::config::Environment;
use crate::connection::{ConnectArgs, Interrupts};
use crate::failure::Failure;
use crate::screen::{Screen, counted, size};

/// `ringback run`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ringback run \"fix the failing test\" --agent goose --dir . --tool notify=./notify.sh\n  \
                  ringback run \"add a test for parse()\" --agent opencode --keep\n  ringback run \"explain it\" \
                  --agent goose --provider ollama --model qwen3:8b\n  ringback session apply gogol_…\n\n\
                  A daemon is started in the background if none runs. The model's key is that of `ringback \
                  secret`, or of\nits usual variable, such as OPENAI_API_KEY, for this session alone.\n\n\
                  The agent works on a copy of the directory, with a private copy of its repository, without \
                  files that\n`git` ignores and the daemon's own; the directory itself is only read. Ctrl-C ends the session; the work \
                  so far\nstays in the copy. A tool's command reads its input as JSON on standard input and \
                  prints the result."
)]
pub struct RunArgs {
    /// Message to the agent
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub message: String,
    /// Directory to copy
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub dir: PathBuf,
    /// Agent [default: the project's, else the only one that is configured or installed]
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Its model and permissions.
    #[command(flatten)]
    pub choice: ChoiceArgs,
    /// Project, by id or name [default: `terminal`, created if missing]
    #[arg(long, value_name = "ID|NAME")]
    pub project: Option<String>,
    /// The tools for the agent.
    #[command(flatten)]
    pub caller: CallerArgs,
    /// Its network policy.
    #[command(flatten)]
    pub network: NetworkArgs,
    /// Its spending limits.
    #[command(flatten)]
    pub spending: SpendArgs,
    /// What is copied.
    #[command(flatten)]
    pub copy: CopyArgs,
    /// Keep the session when the agent is done, for `ringback session attach`
    #[arg(long)]
    pub keep: bool,
    /// Print one JSON object per event; the last is the diff
    #[arg(long)]
    pub json: bool,
    /// The daemon.
    #[command(flatten)]
    pub connect: ConnectArgs,
}

/// An event in JSON.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum RunEvent<'a> {
    Copied { session_id: SessionId, files: u64, bytes: u64 },
    Changed(&'a WorkspaceDiffResponse),
}

pub(crate) async fn run(args: RunArgs, environment: &Environment) -> Result<(), Failure> {
    let screen = Screen::new(args.json);
    let private = args.connect.private(environment)?;
    let copy = DirCopy::of(&args.dir, &private, &args.copy, environment.get("PATH"))?;
    let target = args.connect.target_or_start(environment).await?;
    let client = target.connect().await?;
    // Paths of this machine mean nothing to a daemon of someone else, and it would refuse them.
    let is_own = target.is_without_token() && target.is_own_socket().await;
    let shows_toolchains = is_own && !args.copy.no_toolchains;
    let toolchains = shows_toolchains.then(|| toolchains::of(environment, copy.dir()));
    if let Some(toolchains) = &toolchains {
        toolchains::remark(screen, toolchains, environment);
    }
    let origins = Origins::of(environment);
    let interrupts = Interrupts::listen()?;
    // Not interruptible: a session without a known id could not be ended.
    let call = Caller { client: &client, target: &target, environment };
    let project = start::project(&client, args.project.as_deref()).await?;
    let chosen = args.choice.choose(&call, project, args.agent.as_deref(), true).await?;
    let key = chosen.key.clone();
    let session = spawn(&client, &args, project, chosen, toolchains).await?;
    let mut is_sent = false;
    let (args, session, key) = (&args, &session, key.as_ref());
    let run = Run { client: &client, screen, args, session, key, is_own };
    let work = run.work(&copy, &origins, &mut is_sent);
    let done = Box::pin(interrupts.during(work)).await;
    let left = leave(&client, args, session, is_sent, done.is_ok()).await;
    if done.is_err() && is_sent {
        let id = session.session_id;
        screen.remark(format_args!(
            "the agent's changes are kept; see them with `ringback session diff {id}`"
        ));
    }
    client.close().await;
    done.and(left)
}

/// Ends the session unless it is kept, and deletes the workspace if the agent never started.
async fn leave(
    client: &Client,
    args: &RunArgs,
    session: &SessionResponse,
    is_sent: bool,
    went_well: bool,
) -> Result<(), Failure> {
    if !(args.keep && went_well) {
        start::end(client, session.session_id).await?;
    }
    if !is_sent {
        let (project_id, workspace_id) = (session.project_id, session.workspace_id);
        let delete = WorkspaceDeleteRequest { project_id, workspace_id };
        client.call::<WorkspaceDelete>(delete).await?;
    }
    Ok(())
}

/// The run of an agent.
#[derive(Clone, Copy)]
struct Run<'a> {
    client: &'a Client,
    screen: Screen,
    args: &'a RunArgs,
    session: &'a SessionResponse,
    /// The key that goes with the message.
    key: Option<&'a ShellKey>,
    /// Whether the daemon is this user's own.
    is_own: bool,
}

impl Run<'_> {
    /// Runs the agent. Sets `is_sent` once the message is sent: from then on there may be changes
    /// to keep.
    async fn work(
        self,
        copy: &DirCopy,
        origins: &Origins,
        is_sent: &mut bool,
    ) -> Result<(), Failure> {
        let Self { client, screen, args, session, key, is_own } = self;
        let id = session.session_id;
        put(client, session, copy, is_own).await?;
        origins.remember(id, copy.dir(), copy.base())?;
        let (files, bytes) = (copy.files() as u64, copy.bytes());
        if screen.is_json() {
            screen.item(&RunEvent::Copied { session_id: id, files, bytes }, |_| String::new())?;
        }
        remark(screen, id, copy);
        if let Some(notice) = &session.notice {
            screen.remark(format_args!("note: {notice}"));
        }
        let mut message = SessionMessageRequest {
            session_id: Some(id),
            message: args.message.clone(),
            ..Default::default()
        };
        if let Some(key) = key {
            key.add_to(&mut message);
        }
        client.call::<SessionMessage>(message).await?;
        *is_sent = true;
        let said = args.choice.permissions;
        let followed = start::watch(client, screen, id, &args.caller, said, true).await?;
        let changed = diff(client, session).await?;
        changes::remark_skipped(screen, &changed);
        screen.item(&RunEvent::Changed(&changed), |_| changes::shown(screen, &changed))?;
        let (shown, unanswered) = model_failure(client, screen, id, key).await?;
        if let Some(totals) = totals(&shown) {
            screen.remark(totals);
        }
        let error = followed.error.map(|error| screen.printable(&error));
        match (followed.state, error, unanswered) {
            (SessionState::Failed | SessionState::Interrupted, ..) => {
                Err(Failure::Wrong("the session ended early".to_owned()))
            }
            (_, Some(error), None) => Err(Failure::Wrong(format!("the agent failed: {error}"))),
            (_, Some(error), Some(unanswered)) => {
                Err(Failure::Wrong(format!("the agent failed: {error}; {unanswered}")))
            }
            (_, None, Some(unanswered)) => Err(Failure::Wrong(unanswered)),
            (_, None, None) => {
                what_next(screen, args, id, &changed);
                Ok(())
            }
        }
    }
}

/// Shows what was copied, and what was left out.
fn remark(screen: Screen, id: SessionId, copy: &DirCopy) {
    let (size, dir) = (size(copy.bytes()), copy.dir().display());
    let files = counted(copy.files(), "file");
    screen.remark(format_args!("session {id} works on a copy of {dir}: {files}, {size}"));
    for left_out in copy.left_out() {
        let left_out = left_out.display();
        screen.remark(format_args!("left out, hidden from agents: {left_out}"));
    }
    if let Some(remark) = copy.remark() {
        screen.remark(remark);
    }
}

fn what_next(screen: Screen, args: &RunArgs, id: SessionId, changed: &WorkspaceDiffResponse) {
    if !changed.changes.is_empty() {
        screen.remark(format_args!(
            "next: `ringback session apply {id}` applies the changes to the directory; preview with \
             `--dry-run`"
        ));
    }
    if args.keep {
        screen.remark(format_args!("next: talk to the agent with `ringback session attach {id}`"));
    }
}

/// Creates a session; its agent starts with the first message.
async fn spawn(
    client: &Client,
    args: &RunArgs,
    project_id: ProjectId,
    chosen: Chosen,
    toolchains: Option<SessionToolchains>,
) -> Result<SessionResponse, Failure> {
    let context = args.caller.context()?;
    let request = SessionSpawnRequest {
        project_id,
        workspace_id: None,
        create_workspace: true,
        agent: chosen.agent,
        context,
        caller_id: None,
        caller_tools: None,
        network: args.network.policy()?,
        limits: args.spending.limits(),
        model: chosen.model,
        permissions: args.choice.permissions,
        toolchains,
    };
    Ok(client.call::<SessionSpawn>(request).await?)
}

async fn diff(
    client: &Client,
    session: &SessionResponse,
) -> Result<WorkspaceDiffResponse, Failure> {
    let (project_id, workspace_id) = (session.project_id, session.workspace_id);
    let request = WorkspaceDiffRequest { project_id, workspace_id, path: None };
    Ok(client.call::<WorkspaceDiff>(request).await?)
}
