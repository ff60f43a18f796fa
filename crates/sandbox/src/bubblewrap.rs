//! Boxes that bubblewrap makes.

mod command;

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
use tokio::sync::oneshot;

use self::command::Handed;
use crate::cgroups::{Group, Homes};
use crate::confined::{Confined, Hold, Pipes};
use crate::error::{OpenError, StartError};
use crate::leftovers::Notes;
use crate::probe::{self, Layer};
use crate::process::Process;
use crate::sandbox::Inner;
use crate::spawner::{Spawner, TakenSeat};
use crate::spec::{Limits, SandboxSpec};
use crate::sweeper::{Remains, Sweeper, Swept};
use crate::{mounts, rlimits, seccomp};

/// Where bubblewrap is looked for.
const PROGRAMS: &[&str] = &["/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap"];
/// How long bubblewrap may take to have a first process, also on a machine that is busy.
const FIRST_PROCESS: Duration = Duration::from_secs(20);
/// What bubblewrap says about it has about 200 bytes.
const INFO_BYTES_MAX: usize = 4096;
/// How much of its complaints is kept.
const SAID_BYTES_MAX: u64 = 4096;

/// Makes boxes with the program `bwrap`.
#[derive(Debug)]
pub(crate) struct Bubblewrap {
    /// `None` if there is none.
    program: Option<PathBuf>,
    etc: Vec<(PathBuf, PathBuf)>,
    homes: Homes,
    /// Gone only while this is dropped.
    threads: Option<(Spawner, Sweeper)>,
    handles: Vec<JoinHandle<()>>,
}

impl Bubblewrap {
    pub(crate) fn open(
        program: Option<PathBuf>,
        etc: Vec<(PathBuf, PathBuf)>,
        notes: &Notes,
    ) -> Result<Self, OpenError> {
        let homes = Homes::find();
        let usual = || PROGRAMS.iter().map(PathBuf::from).find(|path| path.exists());
        let (spawner, spawner_thread) = Spawner::start(homes.clone(), notes.clone())?;
        let (sweeper, sweeper_thread) = Sweeper::start()?;
        Ok(Self {
            program: program.or_else(usual).filter(|path| path.exists()),
            etc,
            homes,
            threads: Some((spawner, sweeper)),
            handles: vec![spawner_thread, sweeper_thread],
        })
    }

    pub(crate) fn program(&self) -> Option<&Path> {
        self.program.as_deref()
    }

    pub(crate) const fn homes(&self) -> &Homes {
        &self.homes
    }

    /// Ends a box and removes what it has; tells when that is done.
    pub(crate) fn sweep(&self, swept: Swept, done: Option<oneshot::Sender<()>>) {
        self.threads().1.sweep(swept, done);
    }

    fn threads(&self) -> &(Spawner, Sweeper) {
        self.threads.as_ref().expect("they are taken when nothing has this any more")
    }

    /// Starts a program in a box. May block.
    pub(crate) fn start(
        &self,
        inner: &Arc<Inner>,
        spec: &SandboxSpec,
        runtime: &Handle,
    ) -> Result<Confined, StartError> {
        let program = self.program.as_deref().ok_or_else(probe::not_installed)?;
        mounts::check(spec, inner.hidden())?;
        check_system(inner.hidden())?;
        let seccomp = seccomp::programs().map_err(|error| StartError::Layer {
            layer: Layer::Seccomp,
            why: error.to_string(),
            fix: probe::SECCOMP_FIX.to_owned(),
        })?;
        let seat = self.threads().0.take_seat(&spec.limits);
        let (doors, mut hold) = match &seat {
            // It is born there.
            Some(TakenSeat { name, group, .. }) => (Vec::new(), hold(inner, name, group)),
            None => self.groups(inner, &spec.limits)?,
        };
        let not_spawned = |source| StartError::Spawn { program: program.to_owned(), source };
        let (info, info_in) = std::io::pipe().map_err(not_spawned)?;
        let (block_out, mut block) = std::io::pipe().map_err(not_spawned)?;
        let handed = Handed {
            info: info_in.into(),
            block: block_out.into(),
            block_in: block.try_clone().map_err(not_spawned)?.into(),
            groups: doors,
            seccomp: &seccomp,
        };
        let command = command::command(program, spec, &self.etc, handed).map_err(not_spawned)?;
        let spawned = self.threads().0.spawn(command, seat, spec.limits, runtime);
        // Also a child that could not be handed over, as when the runtime is closing, may be there.
        let first = first_process(info)?;
        let held = first.map(|first| hold_process(first, &mut hold)).transpose()?;
        let mut child = spawned.map_err(not_spawned)?;
        let (Some(first), Some(held)) = (first, held) else {
            return Err(StartError::Refused { said: said(&mut child, runtime) });
        };
        rlimits::apply(first, &spec.limits).map_err(|error| StartError::Layer {
            layer: Layer::Files,
            why: error.to_string(),
            fix: probe::FILES_FIX.to_owned(),
        })?;
        // Until it is told so, the first process does not go on.
        block.write_all(b"\n").map_err(not_spawned)?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(not_spawned(std::io::Error::other("it has no pipes")));
        };
        Ok(Confined {
            pipes: Pipes {
                stdin: Box::new(stdin),
                stdout: Box::new(stdout),
                stderr: Box::new(stderr),
            },
            process: Process::bubblewrap(child, first, held),
            hold,
        })
    }

    /// Makes control groups, with the way into them and what removes them again.
    fn groups(
        &self,
        inner: &Arc<Inner>,
        limits: &Limits,
    ) -> Result<(Vec<OwnedFd>, Hold), StartError> {
        let name = Notes::new_name();
        let group = Group::plan(&self.homes, &name, limits).map_err(probe::no_group)?;
        if !group.dirs().is_empty() {
            let path = inner.notes().path(&name);
            let noted = inner.notes().write(&name, group.dirs());
            noted.map_err(|source| StartError::State { path, source })?;
        }
        let hold = hold(inner, &name, &group);
        group.make()?;
        Ok((group.doors()?, hold))
    }
}

/// What ends a box with these groups.
fn hold(inner: &Arc<Inner>, name: &str, group: &Group) -> Hold {
    let note = inner.notes().path(name);
    let swept = Swept { first: None, groups: group.dirs().to_vec(), note };
    let remains = Some(Remains::Bubblewrap(swept));
    Hold { sandbox: Arc::clone(inner), name: name.into(), remains }
}

impl Drop for Bubblewrap {
    fn drop(&mut self) {
        drop(self.threads.take());
        for thread in self.handles.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread of the sandbox has panicked");
            }
        }
    }
}

/// What every box shows of this machine must show nothing of what is hidden.
fn check_system(hidden: &[PathBuf]) -> Result<(), StartError> {
    for system in [Path::new("/usr")].into_iter().chain(command::SYSTEM.iter().map(Path::new)) {
        if let Some(shown) = hidden.iter().find(|hidden| hidden.starts_with(system)) {
            return Err(StartError::Hidden { path: system.to_owned(), hidden: shown.clone() });
        }
    }
    Ok(())
}

/// A handle for the first process, and one for what ends it.
fn hold_process(first: Pid, hold: &mut Hold) -> Result<OwnedFd, StartError> {
    let ended = |error: std::io::Error| StartError::Refused {
        said: format!("its first process ended: {error}"),
    };
    let fd: OwnedFd =
        pidfd_open(first, PidfdFlags::empty()).map_err(|error| ended(error.into()))?;
    let held = fd.try_clone().map_err(ended)?;
    if let Some(Remains::Bubblewrap(swept)) = &mut hold.remains {
        swept.first = Some(fd);
    }
    Ok(held)
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::sandbox::{Sandbox, SandboxSettings};
    use crate::spec::Network;

    fn spec(workspace: &Path) -> SandboxSpec {
        SandboxSpec {
            program: "/bin/cat".into(),
            args: Vec::new(),
            env: Vec::new(),
            workspace: workspace.to_owned(),
            working_dir: None,
            home: None,
            session_dir: None,
            inside: None,
            read_only: Vec::new(),
            limits: Limits { processes: Some(64), ..Limits::none() },
            network: Network::None,
            image: None,
        }
    }

    /// The group of a process that keeps the limit of processes.
    fn group_of(process: u32) -> String {
        let groups = fs::read_to_string(format!("/proc/{process}/cgroup")).unwrap();
        let of_it = groups.lines().find(|line| line.contains(":pids:") || line.starts_with("0::"));
        of_it.unwrap().rsplit('/').next().unwrap().to_owned()
    }

    fn left_in(state_dir: &Path) -> usize {
        let notes = ["boxes", "next"].map(|dir| fs::read_dir(state_dir.join(dir)).unwrap().count());
        notes.into_iter().sum()
    }

    /// Rule: a box can be ended at any moment, also before its program has begun.
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

    /// Rule: whether a box is moved into its control groups or born there, it is in its own, which go
    /// with it. The groups of a box that never comes are nobody's.
    #[tokio::test(flavor = "multi_thread")]
    async fn every_box_is_in_its_own_groups_and_leaves_none() {
        let dir = tempfile::tempdir().unwrap();
        let (state, workspace) = (dir.path().join("state"), dir.path().join("workspace"));
        fs::create_dir(&workspace).unwrap();
        let sandbox = Sandbox::open(SandboxSettings::in_dir(&state)).unwrap();
        let mut boxes = Vec::new();
        for number in 0..4 {
            let confined = sandbox.start(spec(&workspace)).await.unwrap();
            let Some(Remains::Bubblewrap(swept)) = &confined.hold.remains else { panic!() };
            let name = swept.groups[0].file_name().unwrap().to_str().unwrap().to_owned();
            assert_eq!(group_of(confined.process.id().unwrap()), name, "box {number}");
            boxes.push((confined, name));
            if number % 2 == 0 {
                // The next one may be started before the thread waits for it, or after.
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        let mut names: Vec<_> = boxes.iter().map(|(_, name)| name.clone()).collect();
        names.dedup();
        assert_eq!(names.len(), 4);
        for (confined, _) in boxes {
            confined.hold.gone().await;
        }
        let given_up = sandbox.0.bubblewrap.threads().0.take_seat(&spec(&workspace).limits);
        let given_up = given_up.map(|seat| hold(&sandbox.0, &seat.name, &seat.group));
        if let Some(hold) = given_up {
            hold.gone().await;
        }
        drop(sandbox);
        assert_eq!(left_in(&state), 0);
    }
}
