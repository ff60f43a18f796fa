//! Sandboxes made with bubblewrap.

mod command;
mod devices;
mod prestarted;
mod user_limits;

use std::io::{PipeWriter, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::fcntl_setpipe_size;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::process::Child;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

pub(crate) use self::command::StartSpec;
pub(crate) use self::prestarted::{Kit, Prestarted};
use self::user_limits::UserLimits;
use crate::cgroups::{CgroupRoots, Group};
use crate::confined_program::{ConfinedProgram, Pipes, SandboxGuard};
use crate::error::{OpenError, StartError};
use crate::leftovers::Notes;
use crate::probe::{self, Layer};
use crate::process::Process;
use crate::root::Roots;
use crate::sandbox::Inner;
use crate::spawner::Spawner;
use crate::spec::SandboxSpec;
use crate::sweeper::{BubblewrapRemains, Remains, Sweeper};
use crate::{mounts, rlimits};

/// Where to look for bubblewrap.
const PROGRAMS: &[&str] = &["/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap"];
/// How long bubblewrap may take to report its first process, even on a busy machine.
const FIRST_PROCESS: Duration = Duration::from_secs(20);
/// bubblewrap's report about it has about 200 bytes.
const INFO_BYTES_MAX: u64 = 4096;
/// Fits into any pipe without blocking.
const PIPE_BYTES: usize = 4096;
/// How much of bubblewrap's error output is kept.
const SAID_BYTES_MAX: u64 = 4096;

/// Makes sandboxes with the program `bwrap`.
#[derive(Debug)]
pub(crate) struct Bubblewrap {
    /// `None` if it is not installed.
    program: Option<PathBuf>,
    roots: Roots,
    cgroup_roots: CgroupRoots,
    counted: UserLimits,
    /// `None` only while this is being dropped.
    threads: Option<(Spawner, Sweeper)>,
    handles: Vec<JoinHandle<()>>,
}

impl Bubblewrap {
    pub(crate) fn open(program: Option<PathBuf>, notes: &Notes) -> Result<Self, OpenError> {
        let cgroup_roots = CgroupRoots::find();
        let usual = || PROGRAMS.iter().map(PathBuf::from).find(|path| path.exists());
        let (spawner, spawner_thread) =
            Spawner::start(Kit { cgroup_roots: cgroup_roots.clone(), notes: notes.clone() })?;
        let (sweeper, sweeper_thread) = Sweeper::start()?;
        Ok(Self {
            program: program.or_else(usual).filter(|path| path.exists()),
            roots: Roots::open(notes.state_dir())?,
            cgroup_roots,
            counted: UserLimits::of_this_machine(),
            threads: Some((spawner, sweeper)),
            handles: vec![spawner_thread, sweeper_thread],
        })
    }

    pub(crate) fn program(&self) -> Option<&Path> {
        self.program.as_deref()
    }

    pub(crate) const fn cgroup_roots(&self) -> &CgroupRoots {
        &self.cgroup_roots
    }

    /// Ends a sandbox, removes its remains, and signals `done`.
    pub(crate) fn sweep(&self, swept: BubblewrapRemains, done: Option<oneshot::Sender<()>>) {
        self.threads().1.sweep(swept, done);
    }

    fn threads(&self) -> &(Spawner, Sweeper) {
        self.threads.as_ref().expect("the threads are taken only when this is dropped")
    }

    /// Starts a program in a sandbox. May block.
    pub(crate) fn start(
        &self,
        inner: &Arc<Inner>,
        spec: &SandboxSpec,
        runtime: &Handle,
    ) -> Result<ConfinedProgram, StartError> {
        let program = self.program.as_deref().ok_or_else(probe::not_installed)?;
        let spec = &mounts::checked(spec, inner.hidden())?;
        mounts::check_system(inner.hidden())?;
        let path = || inner.notes().state_dir().to_owned();
        let root =
            self.roots.of(spec).map_err(|source| StartError::State { path: path(), source })?;
        let not_spawned = |source| StartError::Spawn { program: program.to_owned(), source };
        let options = command::options(spec, &root).map_err(not_spawned)?;
        let prestarted = self.threads().0.begin(StartSpec::of(spec, program), runtime)?;
        let mut hold = hold(inner, &prestarted.name, &prestarted.group);
        let Prestarted { mut child, options: options_in, info, mut block, .. } = prestarted;
        let told = tell(options_in, &options);
        let first = first_process(info)?;
        let held = first.map(|first| hold_process(first, &mut hold)).transpose()?;
        let (Some(first), Some(held)) = (first, held) else {
            return Err(StartError::Refused { said: said(&mut child, runtime) });
        };
        told.map_err(not_spawned)?;
        rlimits::apply(first, &spec.limits).map_err(|refused| StartError::Layer {
            layer: Layer::Files,
            why: refused.why,
            fix: refused.fix.to_owned(),
        })?;
        self.counted.set(first).map_err(|error| StartError::Layer {
            layer: Layer::Namespaces,
            why: format!("cannot set the per-user limits of the sandbox: {error}"),
            fix: probe::COUNTED_FIX.to_owned(),
        })?;
        // The first process waits for this byte.
        block.write_all(b"\n").map_err(not_spawned)?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(not_spawned(std::io::Error::other("bubblewrap has no pipes")));
        };
        let watched = held.try_clone().map_err(not_spawned)?;
        let why = inner.guard().add(Arc::clone(&hold.name), first, watched);
        Ok(ConfinedProgram {
            pipes: Pipes {
                stdin: Box::new(stdin),
                stdout: Box::new(stdout),
                stderr: Box::new(stderr),
            },
            process: Process::bubblewrap(child, first, held, why),
            hold,
        })
    }
}

/// Returns the guard that ends a sandbox with these cgroups.
fn hold(inner: &Arc<Inner>, name: &str, group: &Group) -> SandboxGuard {
    let note = inner.notes().path(name);
    let swept = BubblewrapRemains { first: None, groups: group.dirs().to_vec(), note };
    let remains = Some(Remains::Bubblewrap(swept));
    SandboxGuard { sandbox: Arc::clone(inner), name: name.into(), remains }
}

impl Drop for Bubblewrap {
    fn drop(&mut self) {
        drop(self.threads.take());
        for thread in self.handles.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread of the sandbox panicked");
            }
        }
    }
}

/// Sends bubblewrap its options.
fn tell(mut options_in: PipeWriter, options: &[u8]) -> std::io::Result<()> {
    if options.len() > PIPE_BYTES
        && let Err(error) = fcntl_setpipe_size(&options_in, options.len())
    {
        tracing::debug!(%error, "cannot write all options to bubblewrap before it reads");
    }
    options_in.write_all(options)
}

/// Returns a handle for the first process, and gives another to `hold`.
fn hold_process(first: Pid, hold: &mut SandboxGuard) -> Result<OwnedFd, StartError> {
    let ended = |error: std::io::Error| StartError::Refused {
        said: format!("the first process of the sandbox ended: {error}"),
    };
    let fd: OwnedFd =
        pidfd_open(first, PidfdFlags::empty()).map_err(|error| ended(error.into()))?;
    let held = fd.try_clone().map_err(ended)?;
    if let Some(Remains::Bubblewrap(swept)) = &mut hold.remains {
        swept.first = Some(fd);
    }
    Ok(held)
}

/// Returns the first process of the sandbox; `None` if bubblewrap ended before it had one.
fn first_process(info: std::io::PipeReader) -> Result<Option<Pid>, StartError> {
    #[derive(serde::Deserialize)]
    struct Info {
        #[serde(rename = "child-pid")]
        child_pid: i32,
    }
    let until = Instant::now() + FIRST_PROCESS;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let limit = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: 999_999 };
        // Waits only for the end of the report: bubblewrap writes it piecemeal, and all of it fits
        // into the pipe.
        let mut ended = [PollFd::new(&info, PollFlags::empty())];
        match poll(&mut ended, Some(&limit)).unwrap_or_default() {
            0 if left.is_zero() => return Err(StartError::TooSlow { limit: FIRST_PROCESS }),
            0 => {}
            _ => break,
        }
    }
    let mut said = Vec::new();
    // An unreadable report means no known first process.
    info.take(INFO_BYTES_MAX).read_to_end(&mut said).unwrap_or_default();
    let info: Option<Info> = serde_json::from_slice(&said).ok();
    Ok(info.and_then(|info| Pid::from_raw(info.child_pid)))
}

/// Returns the error output of a bubblewrap that failed.
fn said(child: &mut Child, runtime: &Handle) -> String {
    use tokio::io::AsyncReadExt as _;
    let mut said = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        let mut limited = stderr.take(SAID_BYTES_MAX);
        let read =
            runtime.block_on(tokio::time::timeout(FIRST_PROCESS, limited.read_to_end(&mut said)));
        tracing::debug!(?read, "bubblewrap failed without an error message");
    }
    String::from_utf8_lossy(&said).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::sandbox::{Sandbox, SandboxSettings};
    use crate::spec::{Limits, Network, Workspace};

    fn spec(workspace: &Path) -> SandboxSpec {
        SandboxSpec {
            program: "/bin/cat".into(),
            args: Vec::new(),
            env: Vec::new(),
            workspace: Workspace::Write(workspace.to_owned()),
            working_dir: None,
            home: None,
            session_dir: None,
            inside: None,
            read_only: Vec::new(),
            limits: Limits { processes: Some(64), ..Limits::none() },
            masked: Vec::new(),
            cache: None,
            network: Network::None,
            image: None,
        }
    }

    /// Returns the cgroup of a process that enforces the process limit.
    fn group_of(process: u32) -> String {
        let groups = fs::read_to_string(format!("/proc/{process}/cgroup")).unwrap();
        let of_it = groups.lines().find(|line| line.contains(":pids:") || line.starts_with("0::"));
        of_it.unwrap().rsplit('/').next().unwrap().to_owned()
    }

    fn left_in(state_dir: &Path) -> usize {
        let notes = ["boxes", "next"].map(|dir| fs::read_dir(state_dir.join(dir)).unwrap().count());
        notes.into_iter().sum()
    }

    /// Rule: a sandbox can be ended at any moment, even before its program has started.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_box_ends_however_early_it_is_told_to() {
        let dir = tempfile::tempdir().unwrap();
        let workspace = dir.path().join("workspace");
        fs::create_dir(&workspace).unwrap();
        let sandbox = Sandbox::open(SandboxSettings::in_dir(dir.path().join("state"))).unwrap();
        for _ in 0..20 {
            let mut confined = sandbox.start(spec(&workspace)).await.unwrap();
            confined.process.kill();
            let patience = Duration::from_secs(10);
            tokio::time::timeout(patience, confined.process.wait()).await.unwrap().unwrap();
            confined.hold.gone().await;
        }
    }

    /// Rule: a sandbox has cgroups of its own, whether it was pre-started or not, and they are
    /// removed with it. A pre-started sandbox that is never used is removed as well.
    #[tokio::test(flavor = "multi_thread")]
    async fn every_box_is_in_its_own_groups_and_leaves_none() {
        let dir = tempfile::tempdir().unwrap();
        let (state, workspace) = (dir.path().join("state"), dir.path().join("workspace"));
        fs::create_dir(&workspace).unwrap();
        let sandbox = Sandbox::open(SandboxSettings::in_dir(&state)).unwrap();
        let spawner = &sandbox.0.bubblewrap.threads().0;
        let mut boxes = Vec::new();
        for number in 0..4 {
            let ahead = spawner.process_ahead();
            let confined = sandbox.start(spec(&workspace)).await.unwrap();
            let Some(Remains::Bubblewrap(swept)) = &confined.hold.remains else { panic!() };
            let name = swept.groups[0].file_name().unwrap().to_str().unwrap().to_owned();
            let process = confined.process.id().unwrap();
            assert_eq!(group_of(process), name, "sandbox {number}");
            // The first two are not predicted.
            assert_eq!(ahead.is_some(), number >= 2, "sandbox {number}");
            assert!(ahead.is_none_or(|ahead| parent_of(process) == ahead), "sandbox {number}");
            boxes.push((confined, name));
            if number > 0 {
                wait_for(|| spawner.process_ahead().is_some());
            }
        }
        let ahead = spawner.process_ahead().unwrap();
        let mut names: Vec<_> = boxes.iter().map(|(_, name)| name.clone()).collect();
        names.push(group_of(ahead));
        names.dedup();
        assert_eq!(names.len(), 5);
        for (confined, _) in boxes {
            confined.hold.gone().await;
        }
        drop(sandbox);
        assert_eq!(left_in(&state), 0);
        wait_for(|| !Path::new(&format!("/proc/{ahead}/cgroup")).exists());
    }

    /// Rule: a pre-started bubblewrap that has ended does not make the next sandbox fail.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_box_starts_though_the_prestarted_one_was_killed() {
        let dir = tempfile::tempdir().unwrap();
        let (state, workspace) = (dir.path().join("state"), dir.path().join("workspace"));
        fs::create_dir(&workspace).unwrap();
        let sandbox = Sandbox::open(SandboxSettings::in_dir(&state)).unwrap();
        let spawner = &sandbox.0.bubblewrap.threads().0;
        for _ in 0..2 {
            sandbox.start(spec(&workspace)).await.unwrap().hold.gone().await;
        }
        wait_for(|| spawner.process_ahead().is_some());
        let ahead = spawner.process_ahead().unwrap();
        let pid = Pid::from_raw(ahead.cast_signed()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        // An exiting process gives up its memory, and with it its command line, before it can be
        // waited for: only a zombie has ended.
        wait_for(|| {
            fs::read_to_string(format!("/proc/{ahead}/stat")).is_ok_and(|it| it.contains(") Z "))
        });
        let confined = sandbox.start(spec(&workspace)).await.unwrap();
        assert_ne!(parent_of(confined.process.id().unwrap()), ahead);
        confined.hold.gone().await;
        drop(sandbox);
        assert_eq!(left_in(&state), 0);
    }

    fn parent_of(process: u32) -> u32 {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap();
        parent.trim().parse().unwrap()
    }

    fn wait_for(is_so: impl Fn() -> bool) {
        let until = Instant::now() + Duration::from_secs(10);
        while !is_so() {
            assert!(Instant::now() < until, "no bubblewrap was pre-started");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}
