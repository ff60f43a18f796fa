//! The supervisor of the garden process: starts it when it is wanted, starts it again when it dies,
//! and stops it with the daemon.

use std::ffi::OsString;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use ringback_broker::GardenProcess;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::config::{Config, GardenStart};

/// The pause before the first new start, doubled with each further one.
const PAUSE_MIN: Duration = Duration::from_millis(250);
/// The longest pause: a broken garden costs little, and a repaired one is back soon.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// A process that ran this long was well; its next start needs no long pause.
const WELL_AFTER: Duration = Duration::from_secs(60);
/// Long enough to fade out and close the device.
const END_GRACE: Duration = Duration::from_secs(2);

/// Starts and stops the garden process.
#[derive(Debug)]
pub(super) struct GardenSupervisor {
    /// The program and its arguments.
    program: Vec<OsString>,
    /// Whether the process is wanted.
    wanted: watch::Sender<bool>,
}

impl GardenProcess for GardenSupervisor {
    fn wake(&self) -> Result<(), String> {
        self.wanted.send_replace(true);
        Ok(())
    }
}

impl GardenSupervisor {
    /// Returns the supervisor that the configuration asks for, if the daemon is to start the process.
    /// It connects to the daemon's own socket, as the daemon's user.
    pub(super) fn new(config: &Config) -> Option<Self> {
        let sockets = config.ipc_sockets()?;
        let is_wanted = match config.garden.start {
            GardenStart::Never => return None,
            GardenStart::OnDemand => false,
            GardenStart::Always => true,
        };
        let program = std::env::current_exe().ok()?;
        let mut words: Vec<OsString> = vec![program.into(), "garden".into(), "run".into()];
        for (name, socket) in [("--connect", sockets.hoot), ("--iopub", sockets.iopub)] {
            let mut endpoint = OsString::from("ipc://");
            endpoint.push(socket);
            words.extend([name.into(), endpoint]);
        }
        let program = words.into_iter().chain(arguments(config)).collect();
        Some(Self { program, wanted: watch::Sender::new(is_wanted) })
    }

    /// Keeps the process running while it is wanted, until `stop`.
    pub(super) async fn run(self: Arc<Self>, stop: CancellationToken) {
        let mut wanted = self.wanted.subscribe();
        if stop.run_until_cancelled(wanted.wait_for(|wanted| *wanted)).await.is_none() {
            return;
        }
        let mut pause = PAUSE_MIN;
        while !stop.is_cancelled() {
            let started = Instant::now();
            match self.start() {
                Ok(child) => match watched(child, &stop).await {
                    None => return,
                    Some(status) => tracing::warn!(%status, "the garden process ended"),
                },
                Err(error) => tracing::error!(%error, "cannot start the garden process"),
            }
            if started.elapsed() >= WELL_AFTER {
                pause = PAUSE_MIN;
            }
            stop.run_until_cancelled(tokio::time::sleep(pause)).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    fn start(&self) -> io::Result<Child> {
        let (program, arguments) =
            self.program.split_first().ok_or_else(|| io::Error::other("no program"))?;
        tracing::info!("starting the garden process");
        Command::new(program)
            .args(arguments)
            // A pipe that closes with the daemon, however the daemon ends.
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
    }
}

/// Returns what `garden run` needs besides the daemon's address.
fn arguments(config: &Config) -> impl Iterator<Item = OsString> {
    let garden = &config.garden;
    let blobs = config.root.data_dir.join(ringback_broker::BLOBS_DIR);
    let soundfont = garden.soundfont.as_ref().or(config.studio.soundfont.as_ref());
    let options: [(&str, Option<OsString>); 7] = [
        ("--blobs", Some(blobs.into())),
        ("--device", Some(garden.device.clone().into())),
        ("--sample-rate", Some(garden.sample_rate.to_string().into())),
        ("--buffer-frames", Some(garden.buffer_frames.to_string().into())),
        ("--ahead", Some(format!("{}ms", garden.ahead.as_millis()).into())),
        ("--cache", Some(garden.cache.0.to_string().into())),
        ("--soundfont", soundfont.map(|path| path.clone().into())),
    ];
    options.into_iter().filter_map(|(name, value)| Some([OsString::from(name), value?])).flatten()
}

/// Waits for the end of the process. At `stop` it ends it; `None` then.
async fn watched(mut child: Child, stop: &CancellationToken) -> Option<ExitStatus> {
    // Waiting would close it, and its end tells the process that the daemon is gone.
    let _stdin = child.stdin.take();
    let ended = stop.run_until_cancelled(child.wait()).await;
    match ended {
        Some(Ok(status)) => return Some(status),
        Some(Err(error)) => tracing::error!(%error, "cannot wait for the garden process"),
        None => {}
    }
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    if let Some(pid) = pid
        && let Err(error) = kill_process(pid, Signal::TERM)
    {
        tracing::debug!(%error, "the garden process has already ended");
    }
    if tokio::time::timeout(END_GRACE, child.wait()).await.is_err()
        && let Err(error) = child.kill().await
    {
        tracing::warn!(%error, "cannot kill the garden process");
    }
    None
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::{Environment, ServeFlags};

    /// A stand-in that notes each start, with its arguments, and then does as told.
    fn stand_in(dir: &Path, then: &str) -> Arc<GardenSupervisor> {
        let script = format!("echo started >> {}/starts; {then}", dir.display());
        let program = ["/bin/sh", "-c", &script].map(OsString::from).to_vec();
        Arc::new(GardenSupervisor { program, wanted: watch::Sender::new(false) })
    }

    fn n_starts(dir: &Path) -> usize {
        std::fs::read_to_string(dir.join("starts")).map_or(0, |text| text.lines().count())
    }

    async fn until(what: impl Fn() -> bool) {
        let waited = async {
            while !what() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), waited).await.expect("it happens");
    }

    #[tokio::test]
    async fn it_starts_when_woken_and_ends_with_the_daemon() {
        let dir = tempfile::tempdir().unwrap();
        let ended = dir.path().join("ended");
        let then =
            format!("trap 'touch {}; exit' TERM; while :; do sleep 0.01; done", ended.display());
        let supervisor = stand_in(dir.path(), &then);
        let stop = CancellationToken::new();
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(Arc::clone(&supervisor).run(stop.clone()));
        tokio::task::yield_now().await;
        assert_eq!(n_starts(dir.path()), 0, "nothing wants it yet");
        supervisor.wake().unwrap();
        supervisor.wake().unwrap();
        until(|| n_starts(dir.path()) == 1).await;
        stop.cancel();
        tasks.join_next().await.unwrap().unwrap();
        assert!(ended.exists(), "it was asked to end, not killed");
        assert_eq!(n_starts(dir.path()), 1);
    }

    #[tokio::test]
    async fn it_is_started_again_when_it_dies_and_killed_when_it_does_not_end() {
        let dir = tempfile::tempdir().unwrap();
        let supervisor = stand_in(dir.path(), "exit 3");
        let stop = CancellationToken::new();
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(Arc::clone(&supervisor).run(stop.clone()));
        supervisor.wake().unwrap();
        until(|| n_starts(dir.path()) >= 2).await;
        stop.cancel();
        tasks.join_next().await.unwrap().unwrap();

        let dir = tempfile::tempdir().unwrap();
        let supervisor = stand_in(dir.path(), "trap '' TERM; while :; do sleep 0.01; done");
        let stop = CancellationToken::new();
        tasks.spawn(Arc::clone(&supervisor).run(stop.clone()));
        supervisor.wake().unwrap();
        until(|| n_starts(dir.path()) == 1).await;
        stop.cancel();
        tasks.join_next().await.unwrap().unwrap();
    }

    #[test]
    fn the_program_is_this_one_with_the_settings_of_the_configuration() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().display();
        let path = dir.path().join("ringback.toml");
        let load = |start: &str| {
            let text = format!(
                "data_dir = \"{data}/data\"\nruntime_dir = \"{data}/run\"\n\
                 [garden]\nstart = \"{start}\"\ndevice = \"null\"\nahead = \"50ms\"\n"
            );
            std::fs::write(&path, text).unwrap();
            let flags = ServeFlags { config: Some(path.clone()), ..ServeFlags::default() };
            Config::load(&flags, &Environment::default()).unwrap()
        };
        assert!(GardenSupervisor::new(&load("never")).is_none());
        let supervisor = GardenSupervisor::new(&load("always")).unwrap();
        assert!(*supervisor.wanted.borrow());
        let supervisor = GardenSupervisor::new(&load("on_demand")).unwrap();
        assert!(!*supervisor.wanted.borrow());
        let words: Vec<_> = supervisor.program[1..]
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        let text = words.join(" ");
        assert!(
            text.starts_with(&format!(
                "garden run --connect ipc://{data}/run/hoot.sock --iopub \
                 ipc://{data}/run/iopub.sock --blobs {data}"
            )),
            "{text}"
        );
        assert!(text.contains("--device null --sample-rate 48000 --buffer-frames 128"), "{text}");
        assert!(text.contains("--ahead 50ms --cache 536870912"), "{text}");
    }
}
