//! Control groups: what limits the memory, processes and processor time of all of a box together.
//!
//! A group is made below the one that this process is in, or below the nearest one above it that may
//! be written, so that the limits of whoever started this process hold for its boxes too. Version 2 is
//! used where it is delegated, otherwise version 1 where it can be written.

mod find;
mod group;

use std::path::PathBuf;

pub(crate) use self::group::{Group, remove};
use crate::probe::Layer;
use crate::spec::Limits;

/// What keeps a limit, by the name it has in the kernel.
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

/// Where groups with one controller can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Home {
    pub(crate) version: Version,
    pub(crate) dir: PathBuf,
}

/// Where groups can be made on this machine.
#[derive(Debug, Clone, Default)]
pub(crate) struct Homes {
    memory: Option<Home>,
    pids: Option<Home>,
    cpu: Option<Home>,
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

    /// What it has to keep, in its own unit.
    pub(crate) fn limit(self, limits: &Limits) -> Option<u64> {
        match self {
            Self::Memory => limits.memory_bytes,
            // Two more: bubblewrap is in it, outside of the box and as its first process.
            Self::Pids => limits.processes.map(|processes| u64::from(processes) + 2),
            Self::Cpu => limits.cpu_percent.map(u64::from),
        }
    }
}

impl Homes {
    pub(crate) const fn get(&self, controller: Controller) -> Option<&Home> {
        match controller {
            Controller::Memory => self.memory.as_ref(),
            Controller::Pids => self.pids.as_ref(),
            Controller::Cpu => self.cpu.as_ref(),
        }
    }

    fn set(&mut self, controller: Controller, home: Home) {
        match controller {
            Controller::Memory => self.memory = Some(home),
            Controller::Pids => self.pids = Some(home),
            Controller::Cpu => self.cpu = Some(home),
        }
    }
}
