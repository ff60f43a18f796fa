//! `ringback session start`: starts an agent with local commands as its tools.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use ringback_client::Client;
use ringback_proto::ErrorKind;
use ringback_proto::ids::{ProjectId, SessionId};
use ringback_proto::permission::PermissionMode;
use ringback_proto::request::{
    ProjectCreateRequest, ProjectListRequest, SessionEndRequest, SessionMessageRequest,
};
use ringback_proto::secret::Secret;
use ringback_proto::tool::tools::{ProjectCreate, ProjectList, SessionEnd, SessionMessage};

use super::caller::{self, CallerArgs};
use super::follow::{self, SessionStatus};
use super::keyboard::Keyboard;
use super::transcript::Transcript;
use crate::commands::choice::{Caller, ChoiceArgs, Chosen, model_failure};
use crate::commands::network::NetworkArgs;
use crate::commands::spending::SpendArgs;
use crate::config::Environment;
use crate::connection::{Interrupts, Target};
use crate::failure::Failure;
use crate::screen::Screen;

/// The default project.
const PROJECT: &str = "terminal";
/// Longer than the daemon needs to end an agent that hangs.
const END_TIMEOUT: Duration = Duration::from_secs(15);

/// The session to start.
#[derive(Debug, Args)]
pub struct StartArgs {
    /// Message to the agent
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub message: String,
    /// Project, by id or name [default: `terminal`, created if missing]
    #[arg(long, value_name = "ID|NAME")]
    pub project: Option<String>,
    /// The tools for the agent.
    #[command(flatten)]
    pub caller: CallerArgs,
    /// Agent [default: the project's]
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Its model and permissions.
    #[command(flatten)]
    pub choice: ChoiceArgs,
    /// File with a token that becomes the agent's key for the daemon's own tools [default: a key
    /// with the project's scope]
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<Utf8PathBuf>,
    /// Its network policy.
    #[command(flatten)]
    pub network: NetworkArgs,
    /// Its spending limits.
    #[command(flatten)]
    pub spending: SpendArgs,
    /// Stay when the agent is idle, and keep serving its tools
    #[arg(long)]
    pub follow: bool,
}

pub(super) async fn run(
    args: StartArgs,
    target: &Target,
    environment: &Environment,
    screen: Screen,
) -> Result<(), Failure> {
    let client = target.connect().await?;
    let interrupts = Interrupts::listen()?;
    let project = project(&client, args.project.as_deref()).await?;
    // Not interruptible: a session without a known id could not be ended.
    let call = Caller { client: &client, target, environment };
    let chosen = args.choice.choose(&call, project, args.agent.as_deref(), false).await?;
    let key = chosen.key.clone();
    let session = start(&client, &args, project, chosen).await?;
    if !screen.is_json() {
        screen.remark(format_args!("session {session}; Ctrl-C ends it"));
    }
    let said = args.choice.permissions;
    let work = async {
        watch(&client, screen, session, &args.caller, said, !args.follow).await?;
        match model_failure(&client, screen, session, key.as_ref()).await? {
            (_, None) => Ok(()),
            (_, Some(unanswered)) => Err(Failure::Wrong(unanswered)),
        }
    };
    let shown = interrupts.during(work).await;
    // Also after Ctrl-C: an agent is useless without its tools.
    let ended = end(&client, session).await;
    client.close().await;
    shown.and(ended)
}

/// Shows what an agent does, relays its questions and serves its calls, until it is done.
pub(in crate::commands) async fn watch(
    client: &Client,
    screen: Screen,
    session: SessionId,
    caller: &CallerArgs,
    said: Option<PermissionMode>,
    until_idle: bool,
) -> Result<SessionStatus, Failure> {
    let transcript = Transcript::new(screen, session, &caller.names());
    let mut keyboard = Keyboard::answering(screen, &transcript).with_permissions(said);
    tokio::select! {
        shown = follow::follow(client, &transcript, session, until_idle, &mut keyboard) => shown,
        served = caller::serve(client, screen, &transcript, session, &caller.tools) => {
            match served? {}
        }
    }
}

/// Ends a session, whatever its state.
pub(in crate::commands) async fn end(
    client: &Client,
    session_id: SessionId,
) -> Result<(), Failure> {
    let ended = client.call::<SessionEnd>(SessionEndRequest { session_id });
    match tokio::time::timeout(END_TIMEOUT, ended).await {
        Ok(ended) => Ok(ended.map(drop)?),
        Err(_) => Err(Failure::Wrong("the session did not end in time".to_owned())),
    }
}

async fn start(
    client: &Client,
    args: &StartArgs,
    project: ProjectId,
    chosen: Chosen,
) -> Result<SessionId, Failure> {
    let context = args.caller.context()?;
    let api_key = args.key_file.as_deref().map(read_key).transpose()?;
    // A new workspace, so that two terminals do not share a session by accident.
    let mut request = SessionMessageRequest {
        project_id: Some(project),
        message: args.message.clone(),
        create_workspace: true,
        agent: chosen.agent,
        context,
        api_key,
        network: args.network.policy()?.map(Box::new),
        limits: args.spending.limits(),
        model: chosen.model.map(Box::new),
        permissions: args.choice.permissions,
        ..Default::default()
    };
    if let Some(key) = chosen.key {
        key.add_to(&mut request);
    }
    let sent = client.call::<SessionMessage>(request).await?;
    Ok(sent.session_id)
}

/// Reads a token from a file.
fn read_key(path: &Utf8Path) -> Result<Secret, Failure> {
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|error| Failure::Usage(format!("cannot read `{path}`: {error}")))?;
    Ok(Secret::new(text.trim().to_owned()))
}

/// Finds a project by id or name; creates the default one if it is missing.
pub(in crate::commands) async fn project(
    client: &Client,
    named: Option<&str>,
) -> Result<ProjectId, Failure> {
    if let Some(id) = named.and_then(|named| named.parse().ok()) {
        return Ok(id);
    }
    let name = named.unwrap_or(PROJECT);
    if let Some(found) = find_project(client, name).await? {
        return Ok(found);
    }
    if named.is_some() {
        let text =
            format!("no such project `{name}`; create it with `ringback project create {name}`");
        return Err(Failure::Usage(text));
    }
    let request = ProjectCreateRequest {
        name: name.to_owned(),
        description: Some("sessions started in a terminal".to_owned()),
        limits: None,
        agent: None,
        key_level: None,
        network: None,
        image: None,
        permissions: None,
    };
    match client.call::<ProjectCreate>(request).await {
        Ok(made) => Ok(made.project_id),
        // Another terminal created it first.
        Err(error) if error.kind() == ErrorKind::Conflict => {
            find_project(client, name).await?.ok_or(Failure::Tool(error))
        }
        Err(error) => Err(error.into()),
    }
}

async fn find_project(client: &Client, name: &str) -> Result<Option<ProjectId>, Failure> {
    let request =
        ProjectListRequest { name_contains: Some(name.to_owned()), limit: Some(500), cursor: None };
    let listed = client.call::<ProjectList>(request).await?;
    let found = listed.projects.iter().find(|project| project.name == name);
    Ok(found.map(|project| project.project_id))
}
