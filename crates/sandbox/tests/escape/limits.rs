//! Limits of a program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};

use crate::bench::{Bench, User, everywhere, marker, sleepers, wait_for, with_limits};

with_limits! {
    /// Rule: a fork bomb stops at the limit on processes, and the host goes on.
    a_fork_bomb_stops_at_the_limit
}
fn a_fork_bomb_stops_at_the_limit(bench: &Bench) {
    let script = "
import os, errno
n = 0
try:
    while True:
        if os.fork() == 0:
            import signal; signal.pause()
        n += 1
except OSError as error:
    print(n, errno.errorcode[error.errno], flush=True)
    os._exit(0)";
    // Twenty, including this program.
    bench.python(&["--processes", "20"], script).says("19 EAGAIN");
}

with_limits! {
    /// Rule: a real fork bomb harms nothing else, and is ended completely.
    a_real_fork_bomb_can_be_ended
}
fn a_real_fork_bomb_can_be_ended(bench: &Bench) {
    let (part, sum) = marker();
    let script =
        format!("bomb() {{ bomb | bomb & sleep $(({part} + 12345)); }}; bomb 2>/dev/null; wait");
    let options = ["--processes", "64", "--memory", "268435456", "--grace", "100"];
    let mut child = bench.start(&options, &script);
    wait_for("it bombs", || !sleepers(sum).is_empty());
    assert!(Command::new("true").status().unwrap().success());
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    child.wait().unwrap();
    assert_eq!(sleepers(sum), Vec::<u32>::new());
    assert_eq!(bench.left(), Vec::<String>::new());
}

with_limits! {
    /// Rule: a runaway allocation ends its own sandbox; a neighbour does not notice.
    a_runaway_allocation_ends_its_own_box_only
}
fn a_runaway_allocation_ends_its_own_box_only(bench: &Bench) {
    let neighbour = bench.another();
    let options = ["--memory", "67108864"];
    let script = "touch ready; while [ ! -e go ]; do sleep 0.05; done; echo alive";
    let child = neighbour.start(&options, script);
    wait_for("the neighbour runs", || neighbour.path("workspace/ready").exists());
    let ran = bench.python(&options, "x = bytearray(1 << 30); print('got it')");
    assert_eq!((ran.code, ran.out.as_str()), (Some(137), ""), "{ran:?}");
    fs::write(neighbour.path("workspace/go"), "").unwrap();
    let said = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&said.stdout), "alive\n");
}

with_limits! {
    /// Rule: files in memory are memory.
    files_in_tmp_count_as_memory
}
fn files_in_tmp_count_as_memory(bench: &Bench) {
    let ran = bench
        .shell(&["--memory", "67108864"], "head -c 500000000 /dev/zero > /tmp/x && echo all of it");
    assert!(!ran.out.contains("all of it"), "{ran:?}");
}

with_limits! {
    /// Rule: the share of processor time is set in the kernel.
    the_share_of_processors_is_in_force
}
fn the_share_of_processors_is_in_force(bench: &Bench) {
    let (part, sum) = marker();
    let script = format!("sleep $(({part} + 12345)); true");
    let mut child = bench.start(&["--cpu", "20"], &script);
    wait_for("it runs", || !sleepers(sum).is_empty());
    let groups = groups_of(sleepers(sum)[0]);
    let is_set = |group: &PathBuf| {
        let v1 = fs::read_to_string(group.join("cpu.cfs_quota_us"));
        let v2 = fs::read_to_string(group.join("cpu.max"));
        v1.is_ok_and(|quota| quota.trim() == "20000")
            || v2.is_ok_and(|max| max.trim() == "20000 100000")
    };
    assert!(groups.iter().any(is_set), "{groups:?}");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    child.wait().unwrap();
}

/// Returns the possible cgroups of a process.
fn groups_of(pid: u32) -> Vec<PathBuf> {
    let said = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let groups = said.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        Some(Path::new("/sys/fs/cgroup").join(controllers).join(path.trim_start_matches('/')))
    });
    groups.collect()
}

everywhere! {
    /// Rule: one file cannot fill the disk.
    a_file_ends_at_the_limit
}
fn a_file_ends_at_the_limit(bench: &Bench) {
    let script = "(head -c 10737418240 /dev/zero > /workspace/big) 2>/dev/null; echo $?";
    // 128 and SIGXFSZ.
    bench.shell(&["--file", "1048576"], script).says("153");
    assert_eq!(fs::metadata(bench.path("workspace/big")).unwrap().len(), 1_048_576);
}

everywhere! {
    /// Rule: `/tmp` has a size.
    tmp_ends_at_its_size
}
fn tmp_ends_at_its_size(bench: &Bench) {
    let script = "for dir in /tmp /dev/shm; do head -c 9000000 /dev/zero > $dir/x || \
        stat -c %s $dir/x; done 2>/dev/null";
    bench.shell(&["--tmp", "1048576"], script).says("1048576\n1048576");
}

everywhere! {
    /// Rule: the number of open files of a process is limited.
    open_files_end_at_the_limit
}
fn open_files_end_at_the_limit(bench: &Bench) {
    let script = "
files = []
try:
    while True: files.append(open('/dev/null'))
except OSError as error: print(error.strerror)";
    bench.python(&["--open-files", "64"], script).says("Too many open files");
}

everywhere! {
    /// Rule: no core is dumped, and no program in a sandbox can change that: with another limit,
    /// even a lower one, the kernel would start the dump handler outside. Other limits can be
    /// lowered.
    nothing_is_dumped
}
fn nothing_is_dumped(bench: &Bench) {
    let script = "
import resource, ctypes
libc = ctypes.CDLL(None, use_errno=True)
core = lambda: resource.getrlimit(resource.RLIMIT_CORE)
print(core())
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
zeros = (ctypes.c_ulong * 2)(0, 0)
for number, args in ((160, (4,)), (160, (0x100000004,)), (302, (0, 4)), (302, (0, 0x700000004))):
    libc.syscall(ctypes.c_long(number), *[ctypes.c_long(arg) for arg in args], zeros, None)
print(core(), [line.split()[4:6] for line in open('/proc/self/limits') if 'core' in line])
resource.setrlimit(resource.RLIMIT_NOFILE, (99, 99)); print(resource.getrlimit(resource.RLIMIT_NOFILE))";
    bench.python(&[], script).says("(1, 1)\n(1, 1) [['1', '1']]\n(99, 99)");
}

everywhere! {
    /// Rule: a crash in a sandbox starts no program outside of it, even where the kernel is set to
    /// start one.
    a_crash_starts_no_program_outside
}
fn a_crash_starts_no_program_outside(bench: &Bench) {
    if !ringback_testkit::is_root() {
        return;
    }
    let handled = CrashHandler::start(&bench.path("handler"));
    let script = |name: &str| {
        format!(
            "import ctypes, os, resource; ctypes.CDLL(None).prctl(15, b'{name}'); \
             resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); os.kill(os.getpid(), 11)"
        )
    };
    bench.python(&[], &script("in-a-box"));
    // The same crash outside shows that the handler would have been started.
    let outside = Command::new("/usr/bin/python3").args(["-c", &script("outside")]).status();
    assert!(!outside.unwrap().success());
    wait_for("the crash outside was handled", || handled.said().contains("outside"));
    assert!(!handled.said().contains("in-a-box"), "{}", handled.said());
}

/// A program that the kernel starts when another one crashes, while no other test sets one. The
/// previous setting is restored at the end.
struct CrashHandler {
    said: PathBuf,
    before: Vec<u8>,
    _alone: fs::File,
}

const CORE_PATTERN: &str = "/proc/sys/kernel/core_pattern";

impl CrashHandler {
    fn start(program: &Path) -> Self {
        use std::os::unix::fs::PermissionsExt as _;
        let alone =
            fs::File::create(std::env::temp_dir().join("ringback-core-pattern.lock")).unwrap();
        rustix::fs::flock(&alone, rustix::fs::FlockOperation::LockExclusive).unwrap();
        let said = program.with_extension("said");
        let text = format!("#!/bin/sh\necho \"$1\" >> {}\ncat > /dev/null\n", said.display());
        fs::write(program, text).unwrap();
        fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
        let before = fs::read(CORE_PATTERN).unwrap();
        fs::write(CORE_PATTERN, format!("|{} %e", program.display())).unwrap();
        Self { said, before, _alone: alone }
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.said).unwrap_or_default()
    }
}

impl Drop for CrashHandler {
    fn drop(&mut self) {
        fs::write(CORE_PATTERN, &self.before).unwrap();
    }
}

/// Rule: one sandbox gets a fraction of its user's inotify watches, not all of them.
#[test]
fn a_box_has_a_part_of_the_watches_of_its_user() {
    let benches =
        [Some(Bench::new(User::Me)), ringback_testkit::is_root().then(|| Bench::new(User::Nobody))];
    for bench in benches.into_iter().flatten() {
        let script = "
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
n = 0
while libc.inotify_init() >= 0: n += 1
print(n, ctypes.get_errno())";
        let whole = fs::read_to_string("/proc/sys/user/max_inotify_instances").unwrap();
        let part = whole.trim().parse::<u32>().unwrap() / 4;
        bench.python(&[], script).says(&format!("{part} {}", libc::EMFILE));
    }
}
