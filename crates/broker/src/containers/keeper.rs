//! The supervisor of a container: owns it, keeps the end of its output, and stops it.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ringback_proto::ids::ProjectId;
use ringback_sandbox::{ConfinedProgram, Output, Pipes, Process, SandboxGuard};
use tokio::io::AsyncReadExt as _;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::ring::Ring;
use super::{ContainerOrigin, Containers, EndedContainer};
use crate::disk::{BoxEnd, Watch};
use crate::sync::lock;

/// Bytes per read.
const PIECE_BYTES: usize = 8 << 10;
/// How long the last output may take to arrive after all writers are gone.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// How long to wait for the exit of a killed program; its sandbox is removed in any case.
const KILLED: Duration = Duration::from_secs(10);
/// Shells add this to the number of the signal that ended a command.
const EXIT_SIGNAL: i32 = 128;

/// The supervisor of one container.
#[derive(Debug)]
pub(super) struct Keeper {
    pub(super) containers: Arc<Containers>,
    pub(super) project: ProjectId,
    pub(super) make: ContainerOrigin,
    pub(super) end: BoxEnd,
    /// Disk watch while it runs.
    pub(super) watch: Watch,
    pub(super) ring: Arc<Mutex<Ring>>,
    pub(super) over: watch::Sender<bool>,
}

impl Keeper {
    /// Runs until the program has ended or is stopped.
    pub(super) async fn run(self, confined: ConfinedProgram) {
        let ConfinedProgram { pipes: Pipes { stdin, stdout, stderr }, mut process, hold } =
            confined;
        // Nothing is ever written to it.
        drop(stdin);
        let mut readers = JoinSet::new();
        for output in [stdout, stderr] {
            readers.spawn(keep(output, Arc::clone(&self.ring)));
        }
        let status = self.wait(&mut process).await;
        ended(hold, &mut readers).await;
        drop(self.watch);
        if let Some(why) = self.end.why() {
            lock(&self.ring).push(format!("container stopped: {why}\n").as_bytes());
        }
        let exit_code = status.map(code);
        tracing::info!(project = %self.project, exit_code, "container ended");
        let since = self.containers.kernel.now().unix;
        let ended = EndedContainer { make: self.make, since, exit_code, ring: self.ring };
        lock(&self.containers.table).end(self.project, Arc::new(ended));
        self.over.send_replace(true);
    }

    async fn wait(&self, process: &mut Process) -> Option<ExitStatus> {
        tokio::select! {
            biased;
            waited = process.wait() => return self.told(waited),
            () = self.end.stop.cancelled() => process.terminate(),
        }
        let usual = self.containers.kernel.config.sessions.end_grace;
        // A container stopped because of the disk would go on writing.
        let grace = if self.end.why().is_some() { Duration::ZERO } else { usual };
        if let Ok(waited) = timeout(grace, process.wait()).await {
            return self.told(waited);
        }
        process.kill();
        timeout(KILLED, process.wait()).await.ok().and_then(|waited| self.told(waited))
    }

    fn told(&self, waited: io::Result<ExitStatus>) -> Option<ExitStatus> {
        let project = self.project;
        let unknown = |error: &io::Error| {
            tracing::warn!(%project, %error, "cannot tell how a container ended");
        };
        waited.inspect_err(unknown).ok()
    }
}

/// Ends what is left in a sandbox, and reads the remaining output.
pub(super) async fn ended<T: 'static>(hold: SandboxGuard, readers: &mut JoinSet<T>) -> Vec<T> {
    hold.gone().await;
    let mut read = Vec::new();
    let all = async {
        while let Some(reader) = readers.join_next().await {
            read.extend(reader.ok());
        }
    };
    if timeout(LAST_WORDS, all).await.is_err() {
        readers.shutdown().await;
    }
    read
}

/// Returns the exit code, in the convention of shells.
pub(super) fn code(status: ExitStatus) -> i32 {
    let signal = || status.signal().map_or(EXIT_SIGNAL, |signal| EXIT_SIGNAL + signal);
    status.code().unwrap_or_else(signal)
}

async fn keep(mut output: Output, ring: Arc<Mutex<Ring>>) {
    let mut piece = vec![0; PIECE_BYTES];
    // An error also ends the output.
    while let Ok(n_read @ 1..) = output.read(&mut piece).await {
        lock(&ring).push(&piece[..n_read]);
    }
}
