//! System calls.

use std::fmt::Write as _;

use crate::bench::{Backend, Bench, everywhere};

/// Makes a system call with its number and arguments, and prints the result.
const PRELUDE: &str = "
import ctypes, errno, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(name, number, *args):
    args = [ctypes.c_long(arg) if isinstance(arg, int) else arg for arg in args]
    result = libc.syscall(ctypes.c_long(number), *args)
    if result == 0 and name.startswith('clone'):
        os._exit(0)
    said = 'done' if result >= 0 else errno.errorcode[ctypes.get_errno()]
    print(name, said)
";

#[track_caller]
fn every_call_says(bench: &Bench, calls: &[(&str, libc::c_long, &str)], expected: &str) {
    let mut script = PRELUDE.to_owned();
    for (name, number, args) in calls {
        writeln!(script, "call('{name}', {number}, {args})").unwrap();
    }
    let said: Vec<_> = calls.iter().map(|(name, _, _)| format!("{name} {expected}")).collect();
    bench.python(&[], &script).says(&said.join("\n"));
}

everywhere! {
    /// Rule: mounts, tracing, keyrings, kernel code, new namespaces and the like are refused, whatever
    /// their arguments.
    dangerous_calls_are_refused
}
#[rustfmt::skip]
fn dangerous_calls_are_refused(bench: &Bench) {
    let calls = [
        ("mount", libc::SYS_mount, "b'none', b'/tmp', b'tmpfs', 0, 0"),
        ("umount2", libc::SYS_umount2, "b'/tmp', 2"),
        ("pivot_root", libc::SYS_pivot_root, "b'/tmp', b'/tmp'"),
        ("chroot", libc::SYS_chroot, "b'/tmp'"),
        ("open_tree", libc::SYS_open_tree, "-100, b'/tmp', 1"),
        ("fsopen", libc::SYS_fsopen, "b'tmpfs', 0"),
        ("unshare-user", libc::SYS_unshare, "0x10000000"),
        ("unshare-net", libc::SYS_unshare, "0x40000000"),
        ("setns", libc::SYS_setns, "0, 0"),
        ("clone-user", libc::SYS_clone, "0x10000000 | 17, 0, 0, 0, 0"),
        ("clone-mount", libc::SYS_clone, "0x00020000 | 17, 0, 0, 0, 0"),
        ("clone-high-bits", libc::SYS_clone, "0x700000010000000 | 17, 0, 0, 0, 0"),
        ("ptrace", libc::SYS_ptrace, "0, 0, 0, 0"),
        ("process_vm_readv", libc::SYS_process_vm_readv, "1, 0, 0, 0, 0, 0"),
        ("pidfd_getfd", libc::SYS_pidfd_getfd, "0, 0, 0"),
        ("open_by_handle_at", libc::SYS_open_by_handle_at, "0, 0, 0"),
        ("keyctl", libc::SYS_keyctl, "0, -3, 0"),
        ("add_key", libc::SYS_add_key, "b'user', b'x', b'y', 1, -3"),
        ("bpf", libc::SYS_bpf, "0, 0, 0"),
        ("perf_event_open", libc::SYS_perf_event_open, "0, 0, -1, -1, 0"),
        ("userfaultfd", libc::SYS_userfaultfd, "1"),
        ("io_uring_setup", libc::SYS_io_uring_setup, "1, 0"),
        ("init_module", libc::SYS_init_module, "0, 0, b''"),
        ("finit_module", libc::SYS_finit_module, "0, b'', 0"),
        ("kexec_load", libc::SYS_kexec_load, "0, 0, 0, 0"),
        ("reboot", libc::SYS_reboot, "0, 0, 0, 0"),
        ("sethostname", libc::SYS_sethostname, "b'x', 1"),
        ("socket-vsock", libc::SYS_socket, "40, 1, 0"),
        ("socket-alg", libc::SYS_socket, "38, 5, 0"),
    ];
    every_call_says(bench, &calls, "EPERM");
    let typing = [
        ("tiocsti", libc::SYS_ioctl, "0, 0x5412, b'x'"),
        ("tiocsti-high-bits", libc::SYS_ioctl, "0, 0x100005412, b'x'"),
    ];
    let said = match bench.backend {
        Backend::Bubblewrap => "EPERM",
        // A container has no terminal: its three pipes are all it has from outside.
        Backend::Docker => "ENOTTY",
    };
    every_call_says(bench, &typing, said);
}

everywhere! {
    /// Rule: a file that runs as its owner cannot be made: outside, its owner is the daemon's user.
    no_file_can_be_made_that_runs_as_its_owner
}
fn no_file_can_be_made_that_runs_as_its_owner(bench: &Bench) {
    std::fs::write(bench.path("workspace/file"), "").unwrap();
    let calls = [
        ("fchmodat", libc::SYS_fchmodat, "-100, b'/workspace/file', 0o4755"),
        ("fchmodat-group", libc::SYS_fchmodat, "-100, b'/workspace/file', 0o2755"),
        ("openat", libc::SYS_openat, "-100, b'/workspace/new', 0o101, 0o4755"),
        ("openat-unnamed", libc::SYS_openat, "-100, b'/workspace', 0o20200001, 0o4755"),
        ("mknodat", libc::SYS_mknodat, "-100, b'/workspace/new', 0o104755, 0"),
    ];
    every_call_says(bench, &calls, "EPERM");
    // An engine older than this call reports it as nonexistent.
    let script = format!("{PRELUDE}call('new', 452, -100, b'/workspace/file', 0o4755, 0)");
    let ran = bench.python(&[], &script);
    let is_old = bench.backend == Backend::Docker && ran.out.trim() == "new ENOSYS";
    assert!(is_old || ran.out.trim() == "new EPERM", "{ran:?}");
}

everywhere! {
    /// Rule: no process outside waits for a sandbox when a file that it sees is opened: leases and
    /// `dnotify` are refused, whatever is in the bits that the kernel ignores. Other `fcntl`
    /// commands still work.
    leases_are_refused
}
fn leases_are_refused(bench: &Bench) {
    let script = format!(
        "{PRELUDE}
own = os.open('/workspace/own', os.O_CREAT | os.O_RDONLY)
directory = os.open('/workspace', os.O_RDONLY)
call('lease', {fcntl}, own, 1024, 0)
call('high-bits', {fcntl}, own, 0x700000400, 0)
call('notes', {fcntl}, directory, 1026, 1)
call('delegation', {fcntl}, directory, 1040, 0)
import fcntl
fcntl.fcntl(own, fcntl.F_SETFD, fcntl.fcntl(own, fcntl.F_GETFD))
fcntl.fcntl(own, fcntl.F_SETFL, fcntl.fcntl(own, fcntl.F_GETFL))
os.close(fcntl.fcntl(own, fcntl.F_DUPFD_CLOEXEC, 10))
reads, writes = os.pipe()
print(fcntl.fcntl(own, 1025), fcntl.fcntl(reads, 1031, 8192))
lock = open('/workspace/lock', 'w'); fcntl.lockf(lock, fcntl.LOCK_EX); fcntl.flock(lock, fcntl.LOCK_SH)
",
        fcntl = libc::SYS_fcntl
    );
    // Without a lease, that is all there is to report (2 is \"unlocked\").
    let said = "lease EPERM\nhigh-bits EPERM\nnotes EPERM\ndelegation EPERM\n2 8192";
    bench.python(&[], &script).says(said);
}

everywhere! {
    /// Rule: a call whose arguments no filter can read, and the second set of calls, do not exist.
    calls_past_the_filter_do_not_exist
}
fn calls_past_the_filter_do_not_exist(bench: &Bench) {
    let calls = [
        ("3clone", libc::SYS_clone3, "0, 0"),
        ("openat2", libc::SYS_openat2, "-100, b'/workspace', 0, 24"),
    ];
    every_call_says(bench, &calls, "ENOSYS");
    let second = 0x4000_0000 + libc::SYS_unshare;
    let ran = bench.python(&[], &format!("{PRELUDE}call('second', {second}, 0x10000000)"));
    match bench.backend {
        Backend::Bubblewrap => ran.says("second ENOSYS"),
        // By SIGSYS: engines kill a process that tries.
        Backend::Docker => assert_eq!((ran.code, ran.out.as_str()), (Some(159), ""), "{ran:?}"),
    }
}

everywhere! {
    /// Rule: no capabilities, no new privileges, the filters in force, no terminal.
    there_are_no_privileges_to_be_had
}
fn there_are_no_privileges_to_be_had(bench: &Bench) {
    let script = "grep -E '^(Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs|Seccomp_filters):' \
        /proc/self/status | tr -d '\\t' | tr '\\n' ' '; su -c true 2>/dev/null && echo su; \
        : < /dev/tty && echo tty";
    let none = "0000000000000000";
    let ran = bench.shell(&[], &format!("{{ {script}; }} 2>/dev/null"));
    let n_filters = match bench.backend {
        Backend::Bubblewrap => 3,
        Backend::Docker => 1,
    };
    let expected = format!(
        "CapInh:{none} CapPrm:{none} CapEff:{none} CapBnd:{none} CapAmb:{none} NoNewPrivs:1 \
         Seccomp_filters:{n_filters}"
    );
    assert_eq!(ran.out.trim(), expected, "{ran:?}");
}

everywhere! {
    /// Rule: ordinary programs still work: threads, pipes, sockets, child processes.
    ordinary_programs_run
}
fn ordinary_programs_run(bench: &Bench) {
    let script = "
import threading, subprocess, socket, tempfile, os
threads = [threading.Thread(target=lambda: None) for _ in range(8)]
[thread.start() for thread in threads]; [thread.join() for thread in threads]
print(subprocess.check_output(['sh', '-c', 'echo a | tr a b']).decode().strip())
server = socket.create_server(('127.0.0.1', 0))
client = socket.create_connection(server.getsockname())
socket.socketpair(); tempfile.NamedTemporaryFile().write(b'x')
os.chmod(tempfile.mkdtemp(), 0o755); os.openpty()
import pwd; print(pwd.getpwuid(os.getuid()).pw_name, os.getcwd())";
    bench.python(&[], script).says("b\nagent /workspace");
}
