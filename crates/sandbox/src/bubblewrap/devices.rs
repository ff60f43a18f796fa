//! Keeps a sandbox from changing this machine's device nodes.
//!
//! A sandbox has the machine's own `/dev/null` and the like. Their owner could change their mode
//! for everyone, even from inside a sandbox; this is the case if the daemon is root. Bubblewrap
//! cannot mount them read-only without making them useless (its read-only mounts are also `nodev`).
//! So it is started in a mount namespace where they are read-only already, and its own mounts
//! inherit that. Reading from and writing to a device still works.

use std::ffi::{CStr, CString};
use std::io;
use std::os::unix::fs::MetadataExt as _;

use rustix::process::{getegid, geteuid};

/// The nodes that bubblewrap takes from this machine.
const NODES: &[&str] =
    &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];
/// Mount flags with the same value for querying and setting.
const SAME_FLAGS: libc::c_ulong =
    libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC | libc::MS_NOATIME | libc::MS_NODIRATIME;

/// The nodes that this user could change, and what is needed to prevent that.
#[derive(Debug)]
pub(super) struct Devices {
    nodes: Vec<CString>,
    uid_map: String,
    gid_map: String,
}

impl Devices {
    /// Returns the nodes of this machine that this user owns: none unless it is root.
    pub(super) fn own() -> Self {
        let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
        let is_own = |path: &&&str| std::fs::metadata(path).is_ok_and(|node| node.uid() == uid);
        let nodes = NODES.iter().filter(is_own).filter_map(|path| CString::new(*path).ok());
        Self {
            nodes: nodes.collect(),
            uid_map: format!("{uid} {uid} 1"),
            gid_map: format!("{gid} {gid} 1"),
        }
    }

    /// Makes them read-only for this process and its children. Call it between fork and exec: it
    /// only makes system calls.
    pub(super) fn keep(&self) -> io::Result<()> {
        if self.nodes.is_empty() {
            return Ok(());
        }
        self.leave_mounts()?;
        // Later mounts of this machine still arrive; none propagate back.
        mount(None, c"/", libc::MS_SLAVE | libc::MS_REC)?;
        for node in &self.nodes {
            mount(Some(node), node, libc::MS_BIND)?;
            let flags = flags_of(node)? | libc::MS_RDONLY;
            mount(None, node, libc::MS_REMOUNT | libc::MS_BIND | flags)?;
        }
        Ok(())
    }

    /// Enters a mount namespace of its own. Root without that right, as in a container, gets it in
    /// a user namespace of its own, where its user ID stays the same.
    fn leave_mounts(&self) -> io::Result<()> {
        match unshare(libc::CLONE_NEWNS) {
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
                unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS)?;
                write(c"/proc/self/setgroups", b"deny")?;
                write(c"/proc/self/uid_map", self.uid_map.as_bytes())?;
                write(c"/proc/self/gid_map", self.gid_map.as_bytes())
            }
            left => left,
        }
    }
}

#[expect(unsafe_code, reason = "the process has just been forked and has a single thread")]
fn unshare(what: libc::c_int) -> io::Result<()> {
    // SAFETY: a system call that reads and writes no memory of this process.
    done(unsafe { libc::unshare(what) })
}

#[expect(unsafe_code, reason = "no crate that we use has this call")]
fn mount(from: Option<&CStr>, at: &CStr, flags: libc::c_ulong) -> io::Result<()> {
    let from = from.map_or(std::ptr::null(), CStr::as_ptr);
    let (kind, data) = (std::ptr::null(), std::ptr::null());
    // SAFETY: both strings end with a zero byte and outlive the call, and the other pointers are
    // null.
    done(unsafe { libc::mount(from, at.as_ptr(), kind, flags, data) })
}

/// Returns the flags of a mount; those that this user may not clear have to be kept.
fn flags_of(path: &CStr) -> io::Result<libc::c_ulong> {
    let found = rustix::fs::statvfs(path)?;
    Ok(found.f_flag.bits() & SAME_FLAGS)
}

fn write(path: &CStr, content: &[u8]) -> io::Result<()> {
    let file = rustix::fs::open(path, rustix::fs::OFlags::WRONLY, rustix::fs::Mode::empty())?;
    rustix::io::write(&file, content)?;
    Ok(())
}

fn done(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
