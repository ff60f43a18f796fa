//! The tools of the garden, and how its timeline follows that of the daemon.

use std::sync::Arc;
use std::time::Duration;

use ringback_client::{Client, WorkerCall, WorkerTools};
use ringback_proto::garden::command::{
    self, CreateRegionArguments, DeleteRegionArguments, ExportArguments, MoveRegionArguments,
    PrepareRegionArguments, SeekArguments, SetLoopArguments, SetRegionStateArguments,
    SetTempoArguments, TransportArguments,
};
use ringback_proto::garden::{CONTROL_SERVICE, SERVICE};
use ringback_proto::ids::JobId;
use ringback_proto::ready::OfferedTool;
use ringback_proto::request::GardenTimelineRequest;
use ringback_proto::tool::tools::GardenTimeline;
use ringback_proto::{Error, ErrorKind};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::exporter::Exporter;
use crate::garden::GardenHandle;
use crate::transport::Action;

/// The pause between two attempts to fetch the timeline, while the connection recovers.
const FETCH_PAUSE: Duration = Duration::from_millis(100);

/// Attempts to fetch a timeline that does not change meanwhile.
const FETCHES_MAX: usize = 16;

/// Commands that run at the same time; the renderer takes them one by one.
const CONCURRENCY: usize = 256;

/// The answer of a tool that has none.
#[derive(Serialize, Deserialize)]
struct Nothing {}

pub(super) fn control_tools(garden: &GardenHandle) -> WorkerTools {
    let garden = garden.clone();
    WorkerTools::new(CONTROL_SERVICE).concurrency(CONCURRENCY).tool(
        named(command::EMERGENCY_PAUSE),
        move |_: Nothing, _| {
            let garden = garden.clone();
            async move { garden.emergency_pause().await }
        },
    )
}

pub(super) fn tools(
    garden: &GardenHandle,
    client: &Client,
    exporter: &Arc<Exporter>,
) -> WorkerTools {
    let tools = WorkerTools::new(SERVICE).concurrency(CONCURRENCY);
    let tools = monitor_tool(transport_tools(tools, garden), garden);
    export_tool(edit_tools(tools, garden, client), exporter).before_offer({
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

fn monitor_tool(tools: WorkerTools, garden: &GardenHandle) -> WorkerTools {
    let garden = garden.clone();
    tools.tool(named(command::MONITOR), move |_: Nothing, _| {
        let started = garden.start_monitor();
        async move { Ok(started) }
    })
}

fn edit_tools(tools: WorkerTools, garden: &GardenHandle, client: &Client) -> WorkerTools {
    let edits = Edits { garden: garden.clone(), client: client.clone() };
    let reload = edits.clone();
    let tools = edits.tool(
        tools,
        command::SET_TEMPO,
        |garden, arguments: SetTempoArguments, _| async move { garden.set_tempo(arguments).await },
    );
    let create = |garden: GardenHandle, arguments: CreateRegionArguments, call: WorkerCall| async move {
        garden.create_region(arguments, call.deadline()).await
    };
    let tools = edits.tool(tools, command::CREATE_REGION, create);
    let preparing = garden.clone();
    let tools = tools.tool(
        named(command::PREPARE_REGION),
        move |arguments: PrepareRegionArguments, call: WorkerCall| {
            let garden = preparing.clone();
            async move {
                let prepared = garden.prepare_region(&arguments.region, call.deadline()).await;
                prepared.map(|()| Nothing {})
            }
        },
    );
    let tools = edits.tool(
        tools,
        command::MOVE_REGION,
        |garden, arguments: MoveRegionArguments, _| async move {
            garden.move_region(arguments).await.map(|()| Nothing {})
        },
    );
    let tools = edits.tool(
        tools,
        command::DELETE_REGION,
        |garden, arguments: DeleteRegionArguments, _| async move {
            garden.delete_region(arguments).await.map(|()| Nothing {})
        },
    );
    let tools =
        edits.tool(tools, command::SET_LOOP, |garden, arguments: SetLoopArguments, _| async move {
            garden.set_loop(arguments).await.map(|()| Nothing {})
        });
    let state = |garden: GardenHandle, arguments: SetRegionStateArguments, _| async move {
        garden.set_region_state(arguments).await.map(|()| Nothing {})
    };
    let tools = edits.tool(tools, command::SET_REGION_STATE, state);
    tools.tool(named(command::RELOAD), move |_: Nothing, _| {
        let Edits { garden, client } = reload.clone();
        async move { fetch(&garden, &client).await.map(|()| Nothing {}) }
    })
}

/// The tools that change the timeline. Each change follows the revision before it.
#[derive(Debug, Clone)]
struct Edits {
    garden: GardenHandle,
    client: Client,
}

impl Edits {
    fn tool<A, R, F>(
        &self,
        tools: WorkerTools,
        name: &str,
        change: impl Fn(GardenHandle, A, WorkerCall) -> F + Clone + Send + Sync + 'static,
    ) -> WorkerTools
    where
        A: Change + DeserializeOwned + Send + 'static,
        R: Serialize + 'static,
        F: Future<Output = Result<R, Error>> + Send,
    {
        let edits = self.clone();
        tools.tool(named(name), move |arguments: A, call| {
            let (Self { garden, client }, change) = (edits.clone(), change.clone());
            async move {
                follow(&garden, &client, arguments.revision()).await?;
                change(garden, arguments, call).await
            }
        })
    }
}

/// The arguments of a change of the timeline.
trait Change {
    /// The revision that the change makes.
    fn revision(&self) -> u64;
}

macro_rules! changes {
    ($($arguments:ty),* $(,)?) => {$(
        impl Change for $arguments {
            fn revision(&self) -> u64 {
                self.revision
            }
        }
    )*};
}

changes! {
    SetTempoArguments, CreateRegionArguments, MoveRegionArguments, DeleteRegionArguments,
    SetLoopArguments, SetRegionStateArguments,
}

fn export_tool(tools: WorkerTools, exporter: &Arc<Exporter>) -> WorkerTools {
    let exporter = Arc::clone(exporter);
    tools.tool(named(command::EXPORT), move |arguments: ExportArguments, call: WorkerCall| {
        let exporter = Arc::clone(&exporter);
        async move {
            let exported = call.cancelled().run_until_cancelled(exporter.export(arguments)).await;
            exported.unwrap_or_else(|| Err(Error::cancelled("at the caller's request")))
        }
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

/// Fetches the timeline. One that changed here meanwhile, because a promise was kept, may be newer than
/// what was fetched, so it is fetched again.
async fn fetch(garden: &GardenHandle, client: &Client) -> Result<(), Error> {
    for _ in 0..FETCHES_MAX {
        let before = garden.revision().await?;
        let timeline = client.call::<GardenTimeline>(GardenTimelineRequest {}).await?;
        if garden.load_after(before, timeline).await? {
            return Ok(());
        }
    }
    Err(Error::busy("the garden's timeline, which changes all the time"))
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
