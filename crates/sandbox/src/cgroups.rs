//! cgroups: limits on the memory, processes and processor time of a whole sandbox.
//!
//! A cgroup is made below the one of this process, or below its nearest writable ancestor, so that
//! limits on this process also apply to its sandboxes. Version 2 is used where it is delegated,
//! otherwise version 1 where it is writable.

mod discovery;
mod group;

use std::path::PathBuf;

pub(crate) use self::group::{Group, remove};
use crate::probe::Layer;
use crate::spec::Limits;

/// A controller, which enforces a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Controller {
    Memory,
    Pids,
    Cpu,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    V1,
    V2,
}

/// Where cgroups with one controller can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CgroupRoot {
    pub(crate) version: Version,
    pub(crate) dir: PathBuf,
}

/// Where cgroups can be made on this machine.
#[derive(Debug, Clone, Default)]
pub(crate) struct CgroupRoots {
    memory: Option<CgroupRoot>,
    pids: Option<CgroupRoot>,
    cpu: Option<CgroupRoot>,
}

impl Controller {
    pub(crate) const ALL: [Self; 3] = [Self::Memory, Self::Pids, Self::Cpu];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Pids => "pids",
            Self::Cpu => "cpu",
        }
    }

    pub(crate) const fn layer(self) -> Layer {
        match self {
            Self::Memory => Layer::Memory,
            Self::Pids => Layer::Processes,
            Self::Cpu => Layer::Cpu,
        }
    }

    /// Returns the value of its limit, in its own unit.
    pub(crate) fn limit(self, limits: &Limits) -> Option<u64> {
        match self {
            Self::Memory => limits.memory_bytes,
            // Two more: bubblewrap itself, outside the sandbox and as its first process.
            Self::Pids => limits.processes.map(|processes| u64::from(processes) + 2),
            Self::Cpu => limits.cpu_percent.map(u64::from),
        }
    }
}

impl CgroupRoots {
    pub(crate) const fn get(&self, controller: Controller) -> Option<&CgroupRoot> {
        match controller {
            Controller::Memory => self.memory.as_ref(),
            Controller::Pids => self.pids.as_ref(),
            Controller::Cpu => self.cpu.as_ref(),
        }
    }

    fn set(&mut self, controller: Controller, cgroup_root: CgroupRoot) {
        match controller {
            Controller::Memory => self.memory = Some(cgroup_root),
            Controller::Pids => self.pids = Some(cgroup_root),
            Controller::Cpu => self.cpu = Some(cgroup_root),
        }
    }
}
