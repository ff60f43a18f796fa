//! The cgroups of one sandbox.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::{CgroupRoots, Controller, Version};
use crate::error::StartError;
use crate::spec::Limits;

/// The period for shares of processor time; the kernel's own default.
const CPU_PERIOD_US: u64 = 100_000;
/// How often to retry removing a cgroup that is not empty yet: version 1 has no notification.
const REMOVE_EVERY: Duration = Duration::from_millis(2);

/// cgroups with the same name, one for each hierarchy that is needed.
#[derive(Debug)]
pub(crate) struct Group {
    dirs: Vec<PathBuf>,
    limits: Vec<(Controller, Version, PathBuf, u64)>,
}

impl Group {
    /// Returns the cgroups needed for these limits, without making them.
    pub(crate) fn plan(
        cgroup_roots: &CgroupRoots,
        name: &str,
        limits: &Limits,
    ) -> Result<Self, Controller> {
        let mut group = Self { dirs: Vec::new(), limits: Vec::new() };
        for controller in Controller::ALL {
            let Some(limit) = controller.limit(limits) else { continue };
            let cgroup_root = cgroup_roots.get(controller).ok_or(controller)?;
            let dir = cgroup_root.dir.join(name);
            if !group.dirs.contains(&dir) {
                group.dirs.push(dir.clone());
            }
            group.limits.push((controller, cgroup_root.version, dir, limit));
        }
        Ok(group)
    }

    pub(crate) fn dirs(&self) -> &[PathBuf] {
        &self.dirs
    }

    /// Makes the cgroups and sets their limits.
    pub(crate) fn make(&self) -> Result<(), StartError> {
        for dir in &self.dirs {
            fs::create_dir(dir)
                .map_err(|source| StartError::State { path: dir.clone(), source })?;
        }
        for (controller, version, dir, limit) in &self.limits {
            set(*controller, *version, dir, *limit)?;
        }
        Ok(())
    }

    /// Returns the files through which a process that is about to become bubblewrap joins all of
    /// them.
    pub(crate) fn doors(&self) -> Result<Vec<OwnedFd>, StartError> {
        let open = |dir: &PathBuf| {
            let path = dir.join("cgroup.procs");
            let file = fs::OpenOptions::new().write(true).open(&path);
            file.map(OwnedFd::from).map_err(|source| StartError::State { path, source })
        };
        self.dirs.iter().map(open).collect()
    }
}

fn set(controller: Controller, version: Version, dir: &Path, limit: u64) -> Result<(), StartError> {
    let value = limit.to_string();
    match (controller, version) {
        (Controller::Memory, Version::V2) => {
            write(dir, "memory.max", &value)?;
            write_if_there(dir, "memory.swap.max", "0")?;
            // A sandbox that has lost one of its processes is useless.
            write_if_there(dir, "memory.oom.group", "1")
        }
        (Controller::Memory, Version::V1) => {
            write(dir, "memory.limit_in_bytes", &value)?;
            write_if_there(dir, "memory.memsw.limit_in_bytes", &value)
        }
        (Controller::Pids, Version::V1 | Version::V2) => write(dir, "pids.max", &value),
        (Controller::Cpu, Version::V2) => {
            write(dir, "cpu.max", &format!("{} {CPU_PERIOD_US}", quota_us(limit)))
        }
        (Controller::Cpu, Version::V1) => {
            write(dir, "cpu.cfs_period_us", &CPU_PERIOD_US.to_string())?;
            write(dir, "cpu.cfs_quota_us", &quota_us(limit).to_string())
        }
    }
}

/// The kernel accepts no less than a millisecond.
fn quota_us(percent: u64) -> u64 {
    (percent.saturating_mul(CPU_PERIOD_US) / 100).max(1000)
}

fn write(dir: &Path, name: &str, value: &str) -> Result<(), StartError> {
    let path = dir.join(name);
    fs::write(&path, value).map_err(|source| StartError::State { path, source })
}

/// Some kernels do not count swap; then there is nothing to limit.
fn write_if_there(dir: &Path, name: &str, value: &str) -> Result<(), StartError> {
    if dir.join(name).exists() { write(dir, name, value) } else { Ok(()) }
}

/// Kills every process in a cgroup, and removes it.
pub(crate) fn remove(dir: &Path, until: Instant) -> io::Result<()> {
    loop {
        match fs::remove_dir(dir) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if Instant::now() >= until => return Err(error),
            Err(_) => {
                kill_all(dir);
                std::thread::sleep(REMOVE_EVERY);
            }
        }
    }
}

fn kill_all(dir: &Path) {
    let listed = fs::read_to_string(dir.join("cgroup.procs")).unwrap_or_default();
    let pids = listed.lines().filter_map(|line| line.parse().ok()).filter_map(Pid::from_raw);
    for pid in pids {
        // A process that has just ended is fine.
        kill_process(pid, Signal::KILL).unwrap_or_default();
    }
}
