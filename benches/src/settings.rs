//! What all benchmarks share: sizes, the output directory, the core they run on.

use std::path::PathBuf;

use anyhow::Context;
use rustix::process::{Resource, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// An odd number, so that the median is one of the rounds.
const ROUNDS: usize = 7;
const ROUNDS_QUICK: usize = 3;

/// How to measure.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) n_rounds: usize,
    quick: bool,
    /// The cores that this process had when it started.
    all_cores: CpuSet,
    /// Next to the build, and therefore on a real disk.
    pub(crate) dir: PathBuf,
    /// The daemon's program.
    pub(crate) ringback: PathBuf,
    /// This program.
    pub(crate) bench: PathBuf,
}

impl Settings {
    /// Pins this process and its children to one core, and finds the programs.
    pub(crate) fn prepare(quick: bool) -> anyhow::Result<Self> {
        let all_cores = sched_getaffinity(None)?;
        pin_to_one_core(&all_cores).context("cannot pin the process to one core")?;
        raise_open_files().context("cannot raise the limit of open files")?;
        let bench = std::env::current_exe().context("cannot find this program")?;
        let built = bench.parent().context("this program has no directory")?;
        let ringback = built.join("ringback");
        anyhow::ensure!(
            ringback.exists(),
            "`{}` not found: run `cargo xtask bench`",
            ringback.display()
        );
        let dir = built.with_file_name("bench");
        std::fs::create_dir_all(&dir)
            .with_context(|| format!("cannot create `{}`", dir.display()))?;
        let n_rounds = if quick { ROUNDS_QUICK } else { ROUNDS };
        Ok(Self { n_rounds, quick, all_cores, dir, ringback, bench })
    }

    /// Lets this thread and the processes that it starts use all cores.
    pub(crate) fn use_all_cores(&self) -> anyhow::Result<()> {
        sched_setaffinity(None, &self.all_cores).context("cannot use all cores")
    }

    /// Pins them to one core again.
    pub(crate) fn use_one_core(&self) -> anyhow::Result<()> {
        pin_to_one_core(&self.all_cores).context("cannot pin the process to one core")
    }

    /// Returns a size, or with `--quick` a small part of it.
    pub(crate) const fn size(&self, full: usize) -> usize {
        if self.quick { full.div_ceil(50) } else { full }
    }

    /// Returns a temporary directory that is removed when dropped.
    pub(crate) fn temporary(&self) -> anyhow::Result<tempfile::TempDir> {
        tempfile::Builder::new()
            .prefix("b")
            .tempdir_in(&self.dir)
            .with_context(|| format!("cannot create a directory in `{}`", self.dir.display()))
    }
}

fn pin_to_one_core(allowed: &CpuSet) -> rustix::io::Result<()> {
    let mut one = CpuSet::new();
    if let Some(core) = (0..CpuSet::MAX_CPU).find(|core| allowed.is_set(*core)) {
        one.set(core);
    }
    sched_setaffinity(None, &one)
}

/// Thousands of peers need as many open files on both sides.
fn raise_open_files() -> rustix::io::Result<()> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit)
}
