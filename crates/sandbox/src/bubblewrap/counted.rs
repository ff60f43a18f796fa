//! Limits on what the kernel counts per user, and a sandbox therefore shares with its daemon.
//!
//! inotify watches have limits in each user namespace, and a sandbox has its own. Only a process in
//! that namespace can set them, so a helper process enters it, sets them and ends.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use rustix::fs::{Mode, OFlags, open};
use rustix::process::Pid;

/// One sandbox may have this fraction of its user's limit.
const SHARE: u64 = 4;
/// Per-user limits, below `/proc/sys/user`.
const COUNTED: [&str; 2] = ["max_inotify_instances", "max_inotify_watches"];

/// The limits for one sandbox, where this machine has them.
#[derive(Debug)]
pub(crate) struct Counted(Vec<(CString, String)>);

impl Counted {
    /// Returns a fraction of what this machine grants its user.
    pub(crate) fn of_this_machine() -> Self {
        let limit = |name: &&str| {
            let path = format!("/proc/sys/user/{name}");
            let whole: u64 = fs::read_to_string(&path).ok()?.trim().parse().ok()?;
            Some((CString::new(path).ok()?, (whole / SHARE).max(1).to_string()))
        };
        Self(COUNTED.iter().filter_map(limit).collect())
    }

    /// Sets them in the user namespace of a process. Blocks for about a millisecond.
    pub(crate) fn set(&self, of: Pid) -> io::Result<()> {
        let namespace = format!("/proc/{}/ns/user", of.as_raw_nonzero());
        let namespace = open(namespace.as_str(), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let limits: Vec<_> =
            self.0.iter().map(|(path, limit)| (path.clone(), limit.clone())).collect();
        let prepare = move || {
            enter(&namespace)?;
            for (path, limit) in &limits {
                let file = open(path.as_c_str(), OFlags::WRONLY, Mode::empty())?;
                rustix::io::write(&file, limit.as_bytes())?;
            }
            end()
        };
        // The program is never reached: the child exits after setting the limits.
        let mut command = Command::new("/proc/self/exe");
        command.env_clear().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        before_exec(&mut command, prepare);
        let status = command.status()?;
        if status.success() {
            Ok(())
        } else {
            Err(io::Error::other(format!("the helper process ended with {status}")))
        }
    }
}

#[expect(unsafe_code, reason = "nothing else runs between fork and exec")]
fn before_exec(
    command: &mut Command,
    prepare: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
) {
    // SAFETY: the closure makes a few system calls, takes no lock and allocates nothing.
    unsafe { command.pre_exec(prepare) };
}

#[expect(unsafe_code, reason = "no crate that we use has this call")]
fn enter(namespace: &OwnedFd) -> io::Result<()> {
    // SAFETY: a system call that reads and writes no memory of this process.
    let entered = unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWUSER) };
    if entered == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Ends this process immediately, without exit handlers: it shares them with the process it was
/// forked from.
#[expect(unsafe_code, reason = "the standard exit would run the daemon's exit handlers")]
fn end() -> io::Result<()> {
    // SAFETY: it does not return.
    unsafe { libc::_exit(0) }
}
