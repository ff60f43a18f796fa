//! A running bubblewrap in cgroups of its own that waits for its options.

use std::io::{PipeReader, PipeWriter};
use std::path::PathBuf;
use std::time::Instant;

use tokio::process::Child;
use tokio::runtime::Handle;

use super::command::{self, InheritedFiles, StartSpec};
use crate::cgroups::{self, CgroupRoots, Group};
use crate::error::StartError;
use crate::leftovers::{Notes, PATIENCE};
use crate::probe::{self, Layer};
use crate::seccomp;

/// A bubblewrap that waits for its options. Use or discard it: if dropped, it ends, and its cgroups
/// are left to the next start.
#[derive(Debug)]
pub(crate) struct Prestarted {
    /// The name of its cgroups and its note.
    pub(crate) name: String,
    pub(crate) group: Group,
    pub(crate) child: Child,
    /// The pipe from which it reads its options, until end of file.
    pub(crate) options: PipeWriter,
    /// The pipe to which it reports the first process of the sandbox.
    pub(crate) info: PipeReader,
    /// The pipe that it waits on before it proceeds.
    pub(crate) block: PipeWriter,
}

/// What is needed to start one.
#[derive(Debug, Clone)]
pub(crate) struct Kit {
    pub(crate) cgroup_roots: CgroupRoots,
    pub(crate) notes: Notes,
}

impl Kit {
    /// Starts a bubblewrap that ends with the calling thread. Its note marks it as pre-started.
    pub(crate) fn begin(
        &self,
        start_spec: &StartSpec,
        runtime: &Handle,
    ) -> Result<Prestarted, StartError> {
        let name = Notes::new_name();
        let group =
            Group::plan(&self.cgroup_roots, &name, &start_spec.limits).map_err(probe::no_group)?;
        let note = self.notes.next_path(&name);
        let noted = self.notes.write_next(&name, group.dirs());
        noted.map_err(|source| StartError::State { path: note, source })?;
        let dirs = group.dirs().to_vec();
        let prestarted = begin_in(name.clone(), group, start_spec, runtime);
        if prestarted.is_err() {
            self.remove(&name, &dirs);
        }
        prestarted
    }

    /// Ends an unused one.
    pub(crate) fn discard(&self, prestarted: Prestarted) {
        let Prestarted { name, group, child, .. } = prestarted;
        drop(child);
        self.remove(&name, group.dirs());
    }

    /// Removes cgroups that have no processes left.
    fn remove(&self, name: &str, dirs: &[PathBuf]) {
        let until = Instant::now() + PATIENCE;
        let removed = dirs.iter().try_for_each(|dir| cgroups::remove(dir, until));
        if let Err(error) = removed.and_then(|()| std::fs::remove_file(self.notes.next_path(name)))
        {
            tracing::warn!(%error, "cannot remove cgroups; the next start removes them");
        }
    }
}

fn begin_in(
    name: String,
    group: Group,
    start_spec: &StartSpec,
    runtime: &Handle,
) -> Result<Prestarted, StartError> {
    let seccomp = seccomp::programs().map_err(|error| StartError::Layer {
        layer: Layer::Seccomp,
        why: error.to_string(),
        fix: probe::SECCOMP_FIX.to_owned(),
    })?;
    group.make()?;
    let groups = group.doors()?;
    let failed = |source| StartError::Spawn { program: start_spec.bubblewrap.clone(), source };
    let (options_out, options) = std::io::pipe().map_err(failed)?;
    let (info, info_in) = std::io::pipe().map_err(failed)?;
    let (block_out, block) = std::io::pipe().map_err(failed)?;
    let handed = InheritedFiles {
        options: options_out.into(),
        info: info_in.into(),
        block: block_out.into(),
        block_in: block.try_clone().map_err(failed)?.into(),
        groups,
        seccomp,
    };
    let command = command::command(start_spec, handed).map_err(failed)?;
    let _entered = runtime.enter();
    let child = tokio::process::Command::from(command).kill_on_drop(true).spawn();
    let child = child.map_err(failed)?;
    Ok(Prestarted { name, group, child, options, info, block })
}
