//! The garden as a worker of the daemon: two services on connections of their own, so that an
//! emergency pause waits for nothing, and a client for what the garden asks and reports.

use std::time::Duration;

use ringback_blobs::BlobReader;
use ringback_client::{
    Client, Config, ConnectError, ServeError, ServingState, Worker, WorkerCall, WorkerTools,
};
use ringback_proto::garden::command::{
    self, CreateRegionArguments, DeleteRegionArguments, MoveRegionArguments, SeekArguments,
    SetTempoArguments, TransportArguments,
};
use ringback_proto::garden::{CONTROL_SERVICE, SERVICE};
use ringback_proto::ids::JobId;
use ringback_proto::ready::OfferedTool;
use ringback_proto::request::GardenTimelineRequest;
use ringback_proto::tool::tools::GardenTimeline;
use ringback_proto::{Error, ErrorKind};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::content::Source;
use crate::garden::{Garden, GardenHandle};
use crate::report::Reporter;
use crate::settings::{BUFFER_FRAMES, SAMPLE_RATES, Settings};
use crate::transport::Action;

/// How long the daemon may be away before it counts as gone: longer than a restart.
const GONE_TIME: Duration = Duration::from_secs(30);

/// The pause between two attempts to fetch the timeline, while the connection recovers.
const FETCH_PAUSE: Duration = Duration::from_millis(100);

/// Commands that run at the same time; the renderer takes them one by one.
const CONCURRENCY: usize = 256;

/// Why the garden cannot run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A setting makes no sense.
    #[error("{0}")]
    Settings(String),
    /// The daemon does not answer.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The daemon does not accept a garden.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// The system starts no threads.
    #[error("cannot start the threads of the garden")]
    Threads(#[from] std::io::Error),
    /// The daemon refused the garden while it ran.
    #[error("the daemon refuses the garden: {0}")]
    Refused(Error),
    /// The daemon is gone.
    #[error("the daemon did not come back within {GONE_TIME:?}; the garden stops")]
    Gone,
}

/// Runs the garden until it is shut down, or the daemon is gone.
///
/// # Errors
/// If a setting makes no sense, or the daemon does not answer, refuses the garden, or does not come
/// back.
pub async fn run(settings: Settings, shutdown: impl Future<Output = ()>) -> Result<(), RunError> {
    check(&settings)?;
    let client = Client::connect(settings.daemon.clone()).await?;
    let blobs = settings.blobs.as_deref().and_then(|root| match BlobReader::open(root) {
        Ok(blobs) => Some(blobs),
        Err(error) => {
            tracing::info!(%error, "fetching content from the daemon instead of its directory");
            None
        }
    });
    let runtime = tokio::runtime::Handle::current();
    let source = Source::new(blobs, Some((client.clone(), runtime)));
    let (garden, events) = Garden::start(&settings, source)?;
    let reporter = Reporter::start(client.clone(), events);
    let served = serve(&settings.daemon, garden.handle(), &client, shutdown).await;
    // The threads end within a buffer, a decoder within its file.
    if tokio::task::spawn_blocking(move || garden.close()).await.is_err() {
        tracing::error!("the garden did not end cleanly");
    }
    reporter.finish().await;
    client.close().await;
    served
}

fn check(settings: &Settings) -> Result<(), RunError> {
    let Settings { sample_rate, buffer_frames, .. } = settings;
    for (name, value, range) in [
        ("garden.sample_rate", sample_rate, SAMPLE_RATES),
        ("garden.buffer_frames", buffer_frames, BUFFER_FRAMES),
    ] {
        if !range.contains(value) {
            let (min, max) = (range.start(), range.end());
            let message = format!("`{name}` is {value}; use {min} to {max}");
            return Err(RunError::Settings(message));
        }
    }
    Ok(())
}

/// Offers the tools until the end.
async fn serve(
    daemon: &Config,
    garden: &GardenHandle,
    client: &Client,
    shutdown: impl Future<Output = ()>,
) -> Result<(), RunError> {
    let mut shutdown = std::pin::pin!(shutdown);
    let starting = async {
        let control = Worker::serve(daemon.clone(), control_tools(garden)).await?;
        let commands = Worker::serve(daemon.clone(), tools(garden, client)).await?;
        Ok::<_, ServeError>((control, commands))
    };
    let (control, commands) = tokio::select! {
        () = &mut shutdown => return Ok(()),
        started = starting => started?,
    };
    let ended = tokio::select! {
        () = &mut shutdown => Ok(()),
        ended = gone(commands.serving()) => Err(ended),
        ended = gone(control.serving()) => Err(ended),
    };
    commands.close().await;
    control.close().await;
    ended
}

/// Waits until a connection is refused or stays down.
async fn gone(mut serving: watch::Receiver<ServingState>) -> RunError {
    loop {
        let state = serving.borrow_and_update().clone();
        let changed = serving.changed();
        match state {
            ServingState::Refused(error) => return RunError::Refused(error),
            ServingState::Yes => {
                if changed.await.is_err() {
                    return RunError::Gone;
                }
            }
            ServingState::Down | ServingState::Asking => {
                if !matches!(tokio::time::timeout(GONE_TIME, changed).await, Ok(Ok(()))) {
                    return RunError::Gone;
                }
            }
        }
    }
}

/// The answer of a tool that has none.
#[derive(Serialize, Deserialize)]
struct Nothing {}

fn control_tools(garden: &GardenHandle) -> WorkerTools {
    let garden = garden.clone();
    WorkerTools::new(CONTROL_SERVICE).concurrency(CONCURRENCY).tool(
        named(command::EMERGENCY_PAUSE),
        move |_: Nothing, _| {
            let garden = garden.clone();
            async move { garden.emergency_pause().await }
        },
    )
}

fn tools(garden: &GardenHandle, client: &Client) -> WorkerTools {
    let tools = WorkerTools::new(SERVICE).concurrency(CONCURRENCY);
    edit_tools(transport_tools(tools, garden), garden, client).before_offer({
        let (garden, client) = (garden.clone(), client.clone());
        move || fetch_until_done(garden.clone(), client.clone())
    })
}

fn transport_tools(tools: WorkerTools, garden: &GardenHandle) -> WorkerTools {
    let mut tools = tools;
    for (name, action) in [
        (command::PLAY, Action::Play),
        (command::PAUSE, Action::Pause),
        (command::STOP, Action::Stop),
    ] {
        let garden = garden.clone();
        let work = move |arguments: TransportArguments, call: WorkerCall| {
            let garden = garden.clone();
            async move { garden.transport(action, arguments.at, job_of(&call)).await }
        };
        tools = tools.tool(named(name), work);
    }
    let (seeking, asked) = (garden.clone(), garden.clone());
    tools
        .tool(named(command::SEEK), move |arguments: SeekArguments, call: WorkerCall| {
            let garden = seeking.clone();
            let action = Action::Seek(arguments.position);
            async move { garden.transport(action, arguments.at, job_of(&call)).await }
        })
        .tool(named(command::STATUS), move |_: Nothing, _| {
            let garden = asked.clone();
            async move { garden.status().await }
        })
}

fn edit_tools(tools: WorkerTools, garden: &GardenHandle, client: &Client) -> WorkerTools {
    let [tempo, create, shift, delete, reload] = [(); 5].map(|()| (garden.clone(), client.clone()));
    tools
        .tool(named(command::SET_TEMPO), move |arguments: SetTempoArguments, _| {
            let (garden, client) = tempo.clone();
            async move {
                follow(&garden, &client, arguments.revision).await?;
                garden.set_tempo(arguments).await
            }
        })
        .tool(named(command::CREATE_REGION), move |arguments: CreateRegionArguments, call| {
            let (garden, client) = create.clone();
            let deadline = WorkerCall::deadline(&call);
            async move {
                follow(&garden, &client, arguments.revision).await?;
                garden.create_region(arguments, deadline).await
            }
        })
        .tool(named(command::MOVE_REGION), move |arguments: MoveRegionArguments, _| {
            let (garden, client) = shift.clone();
            async move {
                follow(&garden, &client, arguments.revision).await?;
                garden.move_region(arguments).await.map(|()| Nothing {})
            }
        })
        .tool(named(command::DELETE_REGION), move |arguments: DeleteRegionArguments, _| {
            let (garden, client) = delete.clone();
            async move {
                follow(&garden, &client, arguments.revision).await?;
                garden.delete_region(arguments).await.map(|()| Nothing {})
            }
        })
        .tool(named(command::RELOAD), move |_: Nothing, _| {
            let (garden, client) = reload.clone();
            async move { fetch(&garden, &client).await.map(|()| Nothing {}) }
        })
}

/// Returns the job of a call, for its events.
fn job_of(call: &WorkerCall) -> Option<JobId> {
    call.job_id().and_then(|job_id| job_id.parse().ok())
}

fn named(name: &str) -> OfferedTool {
    OfferedTool::Name(name.to_owned())
}

/// Fetches the timeline if a change does not follow the revision that is known here.
async fn follow(garden: &GardenHandle, client: &Client, revision: u64) -> Result<(), Error> {
    if garden.revision().await? + 1 == revision {
        return Ok(());
    }
    tracing::info!(revision, "the timeline has changed without the garden; fetching it");
    fetch(garden, client).await
}

async fn fetch(garden: &GardenHandle, client: &Client) -> Result<(), Error> {
    let timeline = client.call::<GardenTimeline>(GardenTimelineRequest {}).await?;
    garden.load(timeline).await
}

/// Fetches the timeline. The connection for calls may come back after the one for commands.
async fn fetch_until_done(garden: GardenHandle, client: Client) {
    loop {
        match fetch(&garden, &client).await {
            Ok(()) => return,
            Err(error) if error.kind() == ErrorKind::Gone => {
                tracing::debug!(%error, "waiting for the connection");
            }
            Err(error) => tracing::warn!(%error, "cannot fetch the timeline"),
        }
        tokio::time::sleep(FETCH_PAUSE).await;
    }
}
