//! Keeps the device nodes of this machine as they are.
//!
//! A box has the machine's own `/dev/null` and the like. Whoever owns them could change their mode for
//! everybody, also from inside of a box; that is so where the daemon is root. Bubblewrap cannot mount them
//! read-only without making them useless (its read-only mounts are also `nodev`). So it is started in a
//! mount namespace where they are read-only already, and its own mounts inherit that. What is read from
//! and written to a device passes as before.

use std::ffi::{CStr, CString};
use std::io;
use std::os::unix::fs::MetadataExt as _;

use rustix::process::{getegid, geteuid};

/// What bubblewrap takes from this machine.
const NODES: &[&str] =
    &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];
/// Flags of a mount that have the same number where they are asked for and where they are set.
const SAME_FLAGS: libc::c_ulong =
    libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC | libc::MS_NOATIME | libc::MS_NODIRATIME;

/// The nodes that this user could change, and what it takes to keep it from that.
#[derive(Debug)]
pub(super) struct Devices {
    nodes: Vec<CString>,
    uid_map: String,
    gid_map: String,
}

impl Devices {
    /// Those of this machine that belong to this user: none, unless it is root.
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

    /// Makes them read-only for this process and what it starts. To be called between fork and exec: it
    /// only makes system calls.
    pub(super) fn keep(&self) -> io::Result<()> {
        if self.nodes.is_empty() {
            return Ok(());
        }
        self.leave_mounts()?;
        // What is mounted on this machine later still arrives, and nothing leaves.
        mount(None, c"/", libc::MS_SLAVE | libc::MS_REC)?;
        for node in &self.nodes {
            mount(Some(node), node, libc::MS_BIND)?;
            let flags = flags_of(node)? | libc::MS_RDONLY;
            mount(None, node, libc::MS_REMOUNT | libc::MS_BIND | flags)?;
        }
        Ok(())
    }

    /// Into a mount namespace of its own. Root without the right to that, as in a container, has it in a
    /// user namespace of its own, where it stays who it is.
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

#[expect(unsafe_code, reason = "the threads of no process are concerned: it has just been forked")]
fn unshare(what: libc::c_int) -> io::Result<()> {
    // SAFETY: a system call that reads and writes no memory of this process.
    done(unsafe { libc::unshare(what) })
}

#[expect(unsafe_code, reason = "no crate of ours has this call")]
fn mount(from: Option<&CStr>, at: &CStr, flags: libc::c_ulong) -> io::Result<()> {
    let from = from.map_or(std::ptr::null(), CStr::as_ptr);
    let (kind, data) = (std::ptr::null(), std::ptr::null());
    // SAFETY: both texts end with a zero byte and outlive the call, and the rest is absent.
    done(unsafe { libc::mount(from, at.as_ptr(), kind, flags, data) })
}

/// The flags that a mount has, which must stay where this user could not take them away.
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
