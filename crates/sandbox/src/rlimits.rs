//! Limits of a single process, which its children inherit.

use std::fs;

use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

use crate::probe::FILES_FIX;
use crate::spec::Limits;

/// The kernel takes this for "start no program that handles dumps"; zero only prevents files. It is
/// smaller than any dump, so that no file is written either.
pub(crate) const CORE_BYTES: u64 = 1;
const CORE_PATTERN: &str = "/proc/sys/kernel/core_pattern";
const CORE_FIX: &str = "start the daemon with a nonzero hard limit for core files, for example \
    with `LimitCORE=1` in its service, or write a plain name such as `core` to \
    /proc/sys/kernel/core_pattern";

/// Why a limit cannot be set.
#[derive(Debug)]
pub(crate) struct LimitRefusal {
    pub(crate) why: String,
    pub(crate) fix: &'static str,
}

impl From<Errno> for LimitRefusal {
    fn from(error: Errno) -> Self {
        Self { why: error.to_string(), fix: FILES_FIX }
    }
}

/// Sets them for the first process of a sandbox, before the program starts.
pub(crate) fn apply(pid: Pid, limits: &Limits) -> Result<(), LimitRefusal> {
    dump_nothing(pid)?;
    if let Some(bytes) = limits.file_bytes {
        lower(pid, Resource::Fsize, bytes)?;
    }
    if let Some(n_files) = limits.open_files {
        lower(pid, Resource::Nofile, n_files)?;
    }
    Ok(())
}

/// A handler of core dumps runs outside the sandbox.
fn dump_nothing(pid: Pid) -> Result<(), LimitRefusal> {
    let limit = Rlimit { current: Some(CORE_BYTES), maximum: Some(CORE_BYTES) };
    match prlimit(Some(pid), Resource::Core, limit) {
        Ok(_) => Ok(()),
        // This user may only set zero, which is enough where dumps are files.
        Err(Errno::PERM) if !is_handled_by_a_program() => Ok(lower(pid, Resource::Core, 0)?),
        Err(Errno::PERM) => {
            let why = "this user's core file limit is zero, which does not keep the kernel from \
                starting the program named in /proc/sys/kernel/core_pattern"
                .to_owned();
            Err(LimitRefusal { why, fix: CORE_FIX })
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns whether dumps go to a program or a socket. An unreadable setting counts as yes.
fn is_handled_by_a_program() -> bool {
    fs::read(CORE_PATTERN).map_or(true, |pattern| matches!(pattern.first(), Some(b'|' | b'@')))
}

/// Only root can raise a limit; one that is already lower is fine.
fn lower(pid: Pid, resource: Resource, wanted: u64) -> rustix::io::Result<()> {
    let allowed = getrlimit(resource).maximum.map_or(wanted, |maximum| maximum.min(wanted));
    let limit = Rlimit { current: Some(allowed), maximum: Some(allowed) };
    prlimit(Some(pid), resource, limit).map(drop)
}
