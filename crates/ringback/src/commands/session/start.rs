//! `ringback session start`: an agent, with commands of this machine as its tools.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use ringback_client::Client;
use ringback_proto::ErrorKind;
use ringback_proto::ids::{ProjectId, SessionId};
use ringback_proto::request::{
    ProjectCreateRequest, ProjectListRequest, SessionEndRequest, SessionMessageRequest,
};
use ringback_proto::secret::Secret;
use ringback_proto::tool::tools::{ProjectCreate, ProjectList, SessionEnd, SessionMessage};

use super::caller::{self, CallerArgs};
use super::follow::{self, Followed};
use super::keyboard::Keyboard;
use crate::commands::network::NetworkArgs;
use crate::commands::spending::SpendArgs;
use crate::connect::{Interrupts, Target};
use crate::failure::Failure;
use crate::screen::Screen;

/// The project of sessions that name none.
const PROJECT: &str = "terminal";
/// More than the daemon takes to end an agent that hangs.
const END_TIMEOUT: Duration = Duration::from_secs(15);

/// What to start.
#[derive(Debug, Args)]
pub struct StartArgs {
    /// What to say to the agent
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub message: String,
    /// The project, by id or name [default: `terminal`, made if it is missing]
    #[arg(long, value_name = "ID|NAME")]
    pub project: Option<String>,
    /// What you offer it.
    #[command(flatten)]
    pub caller: CallerArgs,
    /// The agent [default: the project's]
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// A file with a token of yours, which the agent has as its key for the daemon's own tools
    /// [default: a key as the project says]
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<Utf8PathBuf>,
    /// What it may reach.
    #[command(flatten)]
    pub network: NetworkArgs,
    /// What it may spend.
    #[command(flatten)]
    pub spending: SpendArgs,
    /// Stay when the agent has nothing more to do, and keep serving its tools
    #[arg(long)]
    pub follow: bool,
}

pub(super) async fn run(args: StartArgs, target: &Target, screen: Screen) -> Result<(), Failure> {
    let client = target.connect().await?;
    let interrupts = Interrupts::listen()?;
    let project = project(&client, args.project.as_deref()).await?;
    // An interrupt waits for it: a session whose id nobody has got could not be ended.
    let session = start(&client, &args, project).await?;
    if !screen.is_json() {
        screen.remark(format_args!("session {session}; Ctrl-C ends it"));
    }
    let shown =
        interrupts.during(watch(&client, screen, session, &args.caller, !args.follow)).await;
    // Also after Ctrl-C: an agent whose tools are gone is of no use to anybody.
    let ended = end(&client, session).await;
    client.close().await;
    shown.map(drop).and(ended)
}

/// Shows what an agent does, asks what it asks and carries out its calls, until it is done.
pub(in crate::commands) async fn watch(
    client: &Client,
    screen: Screen,
    session: SessionId,
    caller: &CallerArgs,
    until_idle: bool,
) -> Result<Followed, Failure> {
    let mut keyboard = Keyboard::answering(screen);
    tokio::select! {
        shown = follow::follow(client, screen, session, until_idle, &mut keyboard) => shown,
        served = caller::serve(client, screen, session, &caller.tools) => match served? {},
    }
}

/// Ends a session, whatever became of the work in it.
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
) -> Result<SessionId, Failure> {
    let context = args.caller.context()?;
    let api_key = args.key_file.as_deref().map(read_key).transpose()?;
    // A workspace of its own: two terminals do not speak into one session by accident.
    let request = SessionMessageRequest {
        project_id: Some(project),
        message: args.message.clone(),
        create_workspace: true,
        agent: args.agent.clone(),
        context,
        api_key,
        network: args.network.policy()?.map(Box::new),
        limits: args.spending.limits(),
        ..Default::default()
    };
    let sent = client.call::<SessionMessage>(request).await?;
    Ok(sent.session_id)
}

/// A token from a file.
fn read_key(path: &Utf8Path) -> Result<Secret, Failure> {
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|error| Failure::Usage(format!("cannot read `{path}`: {error}")))?;
    Ok(Secret::new(text.trim().to_owned()))
}

/// The project of this id or name.
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
            format!("there is no project `{name}`; make one with `ringback project create {name}`");
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
        // Another terminal was quicker.
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
