//! Limits on what the kernel counts per user, and a sandbox therefore shares with its daemon.
//!
//! inotify watches have limits in each user namespace, and a sandbox has its own. Only a process in
//! that namespace can set them, so a helper process enters it, sets them and ends.

use std::ffi::{CString, c_int, c_void};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

use rustix::fs::{Mode, OFlags, open};
use rustix::process::Pid;

/// One sandbox may have this fraction of its user's limit.
const SHARE: u64 = 4;
/// Per-user limits, below `/proc/sys/user`.
const COUNTED: [&str; 2] = ["max_inotify_instances", "max_inotify_watches"];
/// The stack of the helper process, which makes a few system calls.
const STACK_BYTES: usize = 64 << 10;
/// The alignment that functions expect of their stack.
const STACK_ALIGN: usize = 16;

/// The limits for one sandbox, where this machine has them.
#[derive(Debug)]
pub(crate) struct UserLimits(Vec<(CString, String)>);

/// What the helper process does.
struct Task<'a> {
    namespace: OwnedFd,
    limits: &'a [(CString, String)],
}

impl UserLimits {
    /// Returns a fraction of what this machine grants its user.
    pub(crate) fn of_this_machine() -> Self {
        let limit = |name: &&str| {
            let path = format!("/proc/sys/user/{name}");
            let whole: u64 = fs::read_to_string(&path).ok()?.trim().parse().ok()?;
            Some((CString::new(path).ok()?, (whole / SHARE).max(1).to_string()))
        };
        Self(COUNTED.iter().filter_map(limit).collect())
    }

    /// Sets them in the user namespace of a process. Blocks until a helper process has ended.
    pub(crate) fn set(&self, of: Pid) -> io::Result<()> {
        let namespace = format!("/proc/{}/ns/user", of.as_raw_nonzero());
        let namespace = open(namespace.as_str(), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        match run(&Task { namespace, limits: &self.0 })? {
            0 => Ok(()),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    }
}

impl Task<'_> {
    fn carry_out(&self) -> io::Result<()> {
        enter(&self.namespace)?;
        for (path, limit) in self.limits {
            let file = open(path.as_c_str(), OFlags::WRONLY, Mode::empty())?;
            rustix::io::write(&file, limit.as_bytes())?;
        }
        Ok(())
    }
}

/// Runs a task in a helper process and returns its exit code: 0, or the number of an error. The helper
/// borrows this process's memory, as `vfork` does: a fork would copy the page tables of the whole
/// daemon at every start of a sandbox.
#[expect(unsafe_code, reason = "the standard library can only fork and exec")]
fn run(task: &Task<'_>) -> io::Result<c_int> {
    let mut stack = vec![0_u8; STACK_BYTES];
    let top = stack.as_mut_ptr_range().end;
    let top = top.wrapping_sub(top.addr() % STACK_ALIGN);
    let _blocked = BlockedSignals::new();
    let task = std::ptr::from_ref(task).cast_mut().cast::<c_void>();
    // SAFETY: this thread sleeps until the helper has ended, so nothing else uses the stack or the task,
    // and both outlive it. The helper has a copy of the descriptors and of the file system state, so
    // what it opens and enters is its own. No signal handler runs in it.
    let pid = unsafe { libc::clone(helper, top.cast(), libc::CLONE_VM | libc::CLONE_VFORK, task) };
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut status = 0;
    loop {
        // SAFETY: it writes to `status` alone. Without a signal at its end, the helper is waited for
        // only by its number.
        let waited = unsafe { libc::waitpid(pid, &raw mut status, libc::__WALL) };
        if waited == pid {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    if libc::WIFEXITED(status) {
        Ok(libc::WEXITSTATUS(status))
    } else {
        Err(io::Error::other("the helper process was killed"))
    }
}

/// The helper process.
extern "C" fn helper(task: *mut c_void) -> c_int {
    #[expect(unsafe_code, reason = "the task comes through a C function")]
    // SAFETY: `run` passes a task that outlives the helper.
    let task = unsafe { &*task.cast::<Task<'_>>() };
    match task.carry_out() {
        Ok(()) => 0,
        Err(error) => error.raw_os_error().unwrap_or(libc::EIO),
    }
}

/// Blocks every signal of this thread, until dropped.
struct BlockedSignals(libc::sigset_t);

#[expect(unsafe_code, reason = "no crate that we use has these calls")]
impl BlockedSignals {
    fn new() -> Self {
        // SAFETY: both sets are plain memory that the calls fill.
        unsafe {
            let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
            libc::sigfillset(&raw mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
            Self(before)
        }
    }
}

#[expect(unsafe_code, reason = "no crate that we use has this call")]
impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // SAFETY: the set was filled by the call that blocked the signals.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut())
        };
    }
}

#[expect(unsafe_code, reason = "no crate that we use has this call")]
fn enter(namespace: &OwnedFd) -> io::Result<()> {
    // SAFETY: a system call that reads and writes no memory of this process.
    let entered = unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWUSER) };
    if entered == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule: what the helper process does leaves this process as it was: it neither keeps descriptors
    /// nor enters a namespace, and its errors are reported.
    #[test]
    fn a_helper_ends_and_leaves_nothing() {
        let n_open = || fs::read_dir("/proc/self/fd").unwrap().count();
        let namespace = || fs::read_link("/proc/thread-self/ns/user").unwrap();
        let (before, own) = (n_open(), namespace());
        let path = CString::new("/nowhere/at/all").unwrap();
        let limits = [(path, "1".to_owned())];
        let file = open("/proc/self/ns/user", OFlags::RDONLY, Mode::empty()).unwrap();
        // Nobody may enter the namespace that it is in already.
        let code = run(&Task { namespace: file, limits: &limits }).unwrap();
        assert_eq!(code, libc::EINVAL);
        assert_eq!((n_open(), namespace()), (before, own));
    }
}
