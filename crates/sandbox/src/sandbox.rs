//! Makes boxes.

use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::process::Child;
use tokio::runtime::Handle;

use crate::bubblewrap::{self, Handed};
use crate::cgroups::{Group, Homes};
use crate::confined::{Confined, Hold};
use crate::error::{OpenError, StartError};
use crate::leftovers::Notes;
use crate::probe::{self, Layer, Probe};
use crate::spawner::Spawner;
use crate::spec::{Limits, SandboxSpec};
use crate::sweeper::{Remains, Sweeper};
use crate::{etc, rlimits, seccomp};

/// Where bubblewrap is looked for.
const PROGRAMS: &[&str] = &["/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap"];
/// How long bubblewrap may take to have a first process, also on a machine that is busy.
const FIRST_PROCESS: Duration = Duration::from_secs(20);
/// What bubblewrap says about it has about 200 bytes.
const INFO_BYTES_MAX: usize = 4096;
/// How much of its complaints is kept.
const SAID_BYTES_MAX: u64 = 4096;

/// How boxes are made.
#[derive(Debug, Clone)]
pub struct SandboxSettings {
    /// Where the sandbox keeps its own files. One process at a time.
    pub state_dir: PathBuf,
    /// What no box may see, whatever it is told to mount.
    pub hidden: Vec<PathBuf>,
    /// Where bubblewrap is, if not where it usually is.
    pub program: Option<PathBuf>,
}

/// What makes the boxes.
#[derive(Debug)]
enum Backend {
    /// The program `bwrap`; `None` if there is none.
    Bubblewrap(Option<PathBuf>),
}

/// Makes boxes. A handle: clones are the same.
#[derive(Debug, Clone)]
pub struct Sandbox(Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    backend: Backend,
    hidden: Vec<PathBuf>,
    etc: Vec<(PathBuf, PathBuf)>,
    notes: Notes,
    homes: Homes,
    /// Gone only while this is dropped.
    threads: Option<(Spawner, Sweeper)>,
    handles: Vec<JoinHandle<()>>,
}

impl SandboxSettings {
    /// With bubblewrap where it usually is.
    #[must_use]
    pub fn in_dir(state_dir: impl Into<PathBuf>) -> Self {
        Self { state_dir: state_dir.into(), hidden: Vec::new(), program: None }
    }
}

impl Sandbox {
    /// Gets ready, and ends what an earlier run left.
    ///
    /// # Errors
    /// When the sandbox's own files cannot be written. That bubblewrap is missing is none: what a
    /// machine cannot give is told by [`Self::probe`], and when something is started.
    pub fn open(settings: SandboxSettings) -> Result<Self, OpenError> {
        let etc = etc::write(&settings.state_dir)?;
        let notes = Notes::open(&settings.state_dir)?;
        let n_swept = notes.sweep()?;
        if n_swept > 0 {
            tracing::warn!(n_swept, "sandboxes of an earlier run were cleaned up");
        }
        let usual = || PROGRAMS.iter().map(PathBuf::from).find(|path| path.exists());
        let program = settings.program.or_else(usual).filter(|path| path.exists());
        let (spawner, spawner_thread) = Spawner::start()?;
        let (sweeper, sweeper_thread) = Sweeper::start()?;
        Ok(Self(Arc::new(Inner {
            backend: Backend::Bubblewrap(program),
            hidden: settings.hidden,
            etc,
            notes,
            homes: Homes::find(),
            threads: Some((spawner, sweeper)),
            handles: vec![spawner_thread, sweeper_thread],
        })))
    }

    /// Starts a program in a box of its own.
    ///
    /// # Errors
    /// When a layer cannot be given, or something to mount is not there. Then nothing runs. What is
    /// wrong only inside of the box, such as a program that it does not have, ends the child and is in
    /// its error output.
    ///
    /// # Cancel safety
    /// Nothing is left.
    pub async fn start(&self, spec: SandboxSpec) -> Result<Confined, StartError> {
        let inner = Arc::clone(&self.0);
        let runtime = Handle::current();
        // Cancelled halfway, it goes on to its end here, and what it made is dropped then.
        tokio::task::spawn_blocking(move || inner.start(&spec, &runtime))
            .await
            .map_err(|_| StartError::Closed)?
    }

    /// The same where it may block, within a runtime.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_blocking(&self, spec: &SandboxSpec) -> Result<Confined, StartError> {
        self.0.start(spec, &Handle::current())
    }

    /// What this machine can give of what a box with these limits needs. Starts a box to find out.
    pub async fn probe(&self, limits: &Limits) -> Probe {
        probe::probe(self, limits).await
    }

    pub(crate) fn homes(&self) -> &Homes {
        &self.0.homes
    }

    /// Where bubblewrap is.
    pub(crate) fn program(&self) -> Option<&Path> {
        match &self.0.backend {
            Backend::Bubblewrap(program) => program.as_deref(),
        }
    }

    pub(crate) fn state_dir(&self) -> &Path {
        self.0.notes.state_dir()
    }
}

impl Inner {
    pub(crate) fn sweeper(self: &Arc<Self>) -> &Sweeper {
        &self.threads().1
    }

    fn threads(&self) -> &(Spawner, Sweeper) {
        self.threads.as_ref().expect("they are taken when nothing has this any more")
    }

    fn start(
        self: &Arc<Self>,
        spec: &SandboxSpec,
        runtime: &Handle,
    ) -> Result<Confined, StartError> {
        match &self.backend {
            Backend::Bubblewrap(Some(program)) => self.start_bubblewrap(program, spec, runtime),
            Backend::Bubblewrap(None) => Err(probe::not_installed()),
        }
    }

    fn start_bubblewrap(
        self: &Arc<Self>,
        program: &Path,
        spec: &SandboxSpec,
        runtime: &Handle,
    ) -> Result<Confined, StartError> {
        bubblewrap::check(spec, &self.hidden)?;
        let seccomp = seccomp::programs().map_err(|error| StartError::Layer {
            layer: Layer::Seccomp,
            why: error.to_string(),
            fix: probe::SECCOMP_FIX.to_owned(),
        })?;
        let (group, mut hold) = self.groups(&spec.limits)?;
        let not_spawned = |source| StartError::Spawn { program: program.to_owned(), source };
        let (info, info_in) = std::io::pipe().map_err(not_spawned)?;
        let (block_out, mut block) = std::io::pipe().map_err(not_spawned)?;
        let handed = Handed {
            info: info_in.into(),
            block: block_out.into(),
            block_in: block.try_clone().map_err(not_spawned)?.into(),
            groups: group.doors()?,
            seccomp: &seccomp,
        };
        let command = bubblewrap::command(program, spec, &self.etc, handed).map_err(not_spawned)?;
        let spawned = self.threads().0.spawn(command, runtime);
        // Also a child that could not be handed over, as when the runtime is closing, may be there.
        let first = first_process(info)?;
        if let Some(first) = first {
            hold.first = first;
            hold_process(first, &mut hold)?;
        }
        let mut child = spawned.map_err(not_spawned)?;
        let Some(first) = first else {
            return Err(StartError::Refused { said: said(&mut child, runtime) });
        };
        rlimits::apply(first, &spec.limits).map_err(|error| StartError::Layer {
            layer: Layer::Files,
            why: error.to_string(),
            fix: probe::FILES_FIX.to_owned(),
        })?;
        // Until it is told so, the first process does not go on.
        block.write_all(b"\n").map_err(not_spawned)?;
        Ok(Confined { child, hold })
    }

    /// Makes the control groups, and what removes them again.
    fn groups(self: &Arc<Self>, limits: &Limits) -> Result<(Group, Hold), StartError> {
        let name = Notes::new_name();
        let group = Group::plan(&self.homes, &name, limits).map_err(probe::no_group)?;
        let note = self.notes.path(&name);
        if !group.dirs().is_empty() {
            self.notes
                .write(&name, group.dirs())
                .map_err(|source| StartError::State { path: note.clone(), source })?;
        }
        let remains = Some(Remains { first: None, groups: group.dirs().to_vec(), note });
        // Not a process yet; nothing is signalled before there is one.
        let hold = Hold { sandbox: Arc::clone(self), remains, first: Pid::INIT };
        group.make()?;
        Ok((group, hold))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        drop(self.threads.take());
        for thread in self.handles.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread of the sandbox has panicked");
            }
        }
    }
}

fn hold_process(first: Pid, hold: &mut Hold) -> Result<(), StartError> {
    let fd: OwnedFd = pidfd_open(first, PidfdFlags::empty()).map_err(|error| {
        StartError::Refused { said: format!("its first process ended: {error}") }
    })?;
    if let Some(remains) = &mut hold.remains {
        remains.first = Some(fd);
    }
    Ok(())
}

/// Which process is the first of the box; `None` if bubblewrap ended before there was one.
fn first_process(mut info: std::io::PipeReader) -> Result<Option<Pid>, StartError> {
    #[derive(serde::Deserialize)]
    struct Info {
        #[serde(rename = "child-pid")]
        child_pid: i32,
    }
    let until = Instant::now() + FIRST_PROCESS;
    let mut said = Vec::new();
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let limit = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: 999_999 };
        let mut ready = [PollFd::new(&info, PollFlags::IN)];
        let n_ready = poll(&mut ready, Some(&limit)).unwrap_or_default();
        if n_ready == 0 && left.is_zero() {
            return Err(StartError::TooSlow { limit: FIRST_PROCESS });
        }
        let mut bytes = [0; 512];
        let n_bytes = if n_ready == 0 { continue } else { info.read(&mut bytes) };
        match n_bytes {
            Ok(n_bytes) if n_bytes > 0 && said.len() < INFO_BYTES_MAX => {
                said.extend_from_slice(&bytes[..n_bytes]);
            }
            Ok(_) | Err(_) => break,
        }
    }
    let info: Option<Info> = serde_json::from_slice(&said).ok();
    Ok(info.and_then(|info| Pid::from_raw(info.child_pid)))
}

/// What a bubblewrap that has given up complained about.
fn said(child: &mut Child, runtime: &Handle) -> String {
    use tokio::io::AsyncReadExt as _;
    let mut said = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        let mut limited = stderr.take(SAID_BYTES_MAX);
        let read =
            runtime.block_on(tokio::time::timeout(FIRST_PROCESS, limited.read_to_end(&mut said)));
        tracing::debug!(?read, "bubblewrap gave up");
    }
    String::from_utf8_lossy(&said).trim().to_owned()
}
