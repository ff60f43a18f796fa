//! Limits that a process has by itself, and hands to those it starts.

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

use crate::spec::Limits;

/// Sets them for the first process of a box, before the program is there.
pub(crate) fn apply(pid: Pid, limits: &Limits) -> rustix::io::Result<()> {
    // What handles a dump of a crashed program runs outside of the box.
    lower(pid, Resource::Core, 0)?;
    if let Some(bytes) = limits.file_bytes {
        lower(pid, Resource::Fsize, bytes)?;
    }
    if let Some(n_files) = limits.open_files {
        lower(pid, Resource::Nofile, n_files)?;
    }
    Ok(())
}

/// Only root can raise a limit; one that is lower already is as good.
fn lower(pid: Pid, resource: Resource, wanted: u64) -> rustix::io::Result<()> {
    let allowed = getrlimit(resource).maximum.map_or(wanted, |maximum| maximum.min(wanted));
    let limit = Rlimit { current: Some(allowed), maximum: Some(allowed) };
    prlimit(Some(pid), resource, limit).map(drop)
}
