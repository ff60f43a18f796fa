//! The garden as a worker of the daemon: two services on connections of their own, so that an
//! emergency pause waits for nothing, and a client for what the garden asks and reports.

mod tools;

use std::sync::Arc;
use std::time::Duration;

use camino::Utf8PathBuf;
use ringback_blobs::BlobReader;
use ringback_client::{
    Client, Config, ConnectError, ServeError, ServingState, Worker, WorkerTools,
};
use ringback_proto::Error;
use ringback_studio::soundfont;
use tokio::sync::watch;

use self::tools::{control_tools, tools};
use crate::content::Source;
use crate::exporter::Exporter;
use crate::garden::Garden;
use crate::promises::Promises;
use crate::report::Reporter;
use crate::settings::{BUFFER_FRAMES, SAMPLE_RATES, Settings};

/// How long the daemon may be away before it counts as gone: longer than a restart.
const GONE_TIME: Duration = Duration::from_secs(30);

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
pub async fn run(
    mut settings: Settings,
    shutdown: impl Future<Output = ()>,
) -> Result<(), RunError> {
    check(&settings)?;
    settings.soundfont = settings.soundfont.or_else(installed_font);
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
    let (mut garden, events) = Garden::start(&settings, source.clone())?;
    let reporter = Reporter::start(client.clone(), events);
    let monitor = garden.monitor(client.clone());
    let endpoint = settings.events.clone().map(|it| (it, settings.daemon.credentials.clone()));
    let promises = Promises::start(garden.handle(), &client, endpoint);
    let exporter = Arc::new(Exporter::new(&settings, garden.handle(), &client, source));
    let offered = [control_tools(garden.handle()), tools(garden.handle(), &client, &exporter)];
    let served = serve(&settings.daemon, offered, shutdown).await;
    promises.stop().await;
    if let Some(monitor) = monitor {
        monitor.end().await;
    }
    // The threads end within a buffer, a decoder within its file.
    if tokio::task::spawn_blocking(move || garden.close()).await.is_err() {
        tracing::error!("the garden did not end cleanly");
    }
    reporter.finish().await;
    client.close().await;
    served
}

/// Returns a SoundFont of this machine.
fn installed_font() -> Option<Utf8PathBuf> {
    let font = soundfont::find(None, &soundfont::SEARCHED_DIRS).ok()?;
    Utf8PathBuf::from_path_buf(font).ok()
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
    [control, commands]: [WorkerTools; 2],
    shutdown: impl Future<Output = ()>,
) -> Result<(), RunError> {
    let mut shutdown = std::pin::pin!(shutdown);
    let starting = async {
        let control = Worker::serve(daemon.clone(), control).await?;
        let commands = Worker::serve(daemon.clone(), commands).await?;
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
