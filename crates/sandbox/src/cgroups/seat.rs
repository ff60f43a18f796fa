//! Control groups that the next box is to have, with the thread in them that will start it.
//!
//! To move a process between control groups, the kernel waits until every processor has passed through
//! its scheduler: ten to twenty milliseconds, several times what else a box takes to start. In version
//! 1 a thread can be in groups of its own, and its children are born there. So the thread that starts
//! boxes moves ahead, after one box and before the next. Version 2 moves whole processes alone; there
//! each box pays the wait.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{Controller, Group, Homes, Version};
use crate::spec::Limits;

/// What version 1 takes a thread by; what stands for the one that writes.
const TASKS: &str = "tasks";
const THIS_THREAD: &str = "0";

/// Groups that are made, limited, and have this thread in them.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) name: String,
    pub(crate) group: Group,
    limits: Limits,
}

impl Seat {
    /// Moves this thread into groups with these limits, under a name that is noted already. `None` where
    /// that cannot be; then nothing is left of it, but that the thread may be in some of the groups.
    pub(crate) fn take(homes: &Homes, name: String, limits: Limits) -> io::Result<Option<Self>> {
        let is_v1 = |home: &super::Home| home.version == Version::V1;
        let needed = Controller::ALL.into_iter().filter(|own| own.limit(&limits).is_some());
        if !needed.clone().all(|own| homes.get(own).is_some_and(is_v1)) {
            return Ok(None);
        }
        let Ok(group) = Group::plan(homes, &name, &limits) else { return Ok(None) };
        if group.dirs().is_empty() {
            return Ok(None);
        }
        group.make().map_err(io::Error::other)?;
        for dir in group.dirs() {
            enter(dir)?;
        }
        Ok(Some(Self { name, group, limits }))
    }

    pub(crate) fn is_for(&self, limits: &Limits) -> bool {
        self.limits == *limits
    }
}

/// Moves this thread back to where its process is, as far as it was elsewhere.
pub(crate) fn leave(homes: &Homes) {
    for home in Controller::ALL.iter().filter_map(|own| homes.get(*own)) {
        if home.version == Version::V1
            && let Err(error) = enter(&home.dir)
        {
            tracing::warn!(dir = %home.dir.display(), %error, "a thread is left in a control group");
        }
    }
}

fn enter(dir: &Path) -> io::Result<()> {
    let path: PathBuf = dir.join(TASKS);
    fs::write(path, THIS_THREAD)
}
