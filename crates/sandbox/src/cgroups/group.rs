//! The control groups of one box.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::{Controller, Homes, Version};
use crate::error::StartError;
use crate::spec::Limits;

/// The part of time that a share of the processors is of; the kernel's own default.
const CPU_PERIOD_US: u64 = 100_000;
/// How often a group that is not empty yet is looked at again: the kernel says nothing in version 1.
const REMOVE_EVERY: Duration = Duration::from_millis(2);

/// Groups of one name, one for each hierarchy that is needed.
#[derive(Debug)]
pub(crate) struct Group {
    dirs: Vec<PathBuf>,
    limits: Vec<(Controller, Version, PathBuf, u64)>,
}

impl Group {
    /// What has to be made for these limits. Nothing is made yet.
    pub(crate) fn plan(homes: &Homes, name: &str, limits: &Limits) -> Result<Self, Controller> {
        let mut group = Self { dirs: Vec::new(), limits: Vec::new() };
        for controller in Controller::ALL {
            let Some(limit) = controller.limit(limits) else { continue };
            let home = homes.get(controller).ok_or(controller)?;
            let dir = home.dir.join(name);
            if !group.dirs.contains(&dir) {
                group.dirs.push(dir.clone());
            }
            group.limits.push((controller, home.version, dir, limit));
        }
        Ok(group)
    }

    pub(crate) fn dirs(&self) -> &[PathBuf] {
        &self.dirs
    }

    /// Makes the groups and sets their limits.
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

    /// Where a process that is about to become bubblewrap puts itself into all of them.
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
            // A box without one of its processes is of no use.
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

/// The kernel takes no less than a thousandth of a second.
fn quota_us(percent: u64) -> u64 {
    (percent.saturating_mul(CPU_PERIOD_US) / 100).max(1000)
}

fn write(dir: &Path, name: &str, value: &str) -> Result<(), StartError> {
    let path = dir.join(name);
    fs::write(&path, value).map_err(|source| StartError::State { path, source })
}

/// Some kernels do not count what is swapped out; then nothing is.
fn write_if_there(dir: &Path, name: &str, value: &str) -> Result<(), StartError> {
    if dir.join(name).exists() { write(dir, name, value) } else { Ok(()) }
}

/// Ends whatever is in a group, and removes it.
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
        // One that has just ended has what was wanted.
        kill_process(pid, Signal::KILL).unwrap_or_default();
    }
}
