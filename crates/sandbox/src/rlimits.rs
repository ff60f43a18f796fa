//! Limits that a process has by itself, and hands to those it starts.

use std::fs;

use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

use crate::probe::FILES_FIX;
use crate::spec::Limits;

/// The kernel takes this for "start no program that handles dumps"; zero only holds back files. It is
/// less than any dump has, so that no file is written either.
pub(crate) const CORE_BYTES: u64 = 1;
const CORE_PATTERN: &str = "/proc/sys/kernel/core_pattern";
const CORE_FIX: &str = "start the daemon with a hard limit for core files that is not zero, for example \
    with `LimitCORE=1` in its service, or write a plain name such as `core` to \
    /proc/sys/kernel/core_pattern";

/// Why a limit cannot be set.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) why: String,
    pub(crate) fix: &'static str,
}

impl From<Errno> for Refused {
    fn from(error: Errno) -> Self {
        Self { why: error.to_string(), fix: FILES_FIX }
    }
}

/// Sets them for the first process of a box, before the program is there.
pub(crate) fn apply(pid: Pid, limits: &Limits) -> Result<(), Refused> {
    dump_nothing(pid)?;
    if let Some(bytes) = limits.file_bytes {
        lower(pid, Resource::Fsize, bytes)?;
    }
    if let Some(n_files) = limits.open_files {
        lower(pid, Resource::Nofile, n_files)?;
    }
    Ok(())
}

/// What handles a dump of a crashed program runs outside of the box.
fn dump_nothing(pid: Pid) -> Result<(), Refused> {
    let limit = Rlimit { current: Some(CORE_BYTES), maximum: Some(CORE_BYTES) };
    match prlimit(Some(pid), Resource::Core, limit) {
        Ok(_) => Ok(()),
        // Zero is all that this user may set, which is enough where dumps are files.
        Err(Errno::PERM) if !is_handled_by_a_program() => Ok(lower(pid, Resource::Core, 0)?),
        Err(Errno::PERM) => {
            let why = "this user may have no core files, and a limit of zero does not keep the \
                kernel from starting the program that /proc/sys/kernel/core_pattern names"
                .to_owned();
            Err(Refused { why, fix: CORE_FIX })
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether dumps go to a program or to a socket. One that cannot be read may say so.
fn is_handled_by_a_program() -> bool {
    fs::read(CORE_PATTERN).map_or(true, |pattern| matches!(pattern.first(), Some(b'|' | b'@')))
}

/// Only root can raise a limit; one that is lower already is as good.
fn lower(pid: Pid, resource: Resource, wanted: u64) -> rustix::io::Result<()> {
    let allowed = getrlimit(resource).maximum.map_or(wanted, |maximum| maximum.min(wanted));
    let limit = Rlimit { current: Some(allowed), maximum: Some(allowed) };
    prlimit(Some(pid), resource, limit).map(drop)
}
