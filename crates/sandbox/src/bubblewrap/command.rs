//! The command line of bubblewrap: the contents of a sandbox.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use command_fds::{CommandFdExt as _, FdMapping};
use rustix::fs::{Access, MemfdFlags, SeekFrom, access, memfd_create, seek};
use rustix::process::{Signal, set_parent_process_death_signal};

use super::devices::Devices;
use crate::etc;
use crate::mounts;
use crate::root::SYSTEM;
use crate::spec::{Limits, Network, SandboxSpec, Workspace, places};

/// Kernel files that reveal facts about the machine; hidden in every sandbox.
const KERNEL_FILES: &[&str] = &[
    "/proc/kcore",
    "/proc/keys",
    "/proc/key-users",
    "/proc/kallsyms",
    "/proc/kmsg",
    "/proc/kpagecgroup",
    "/proc/kpagecount",
    "/proc/kpageflags",
    "/proc/pagetypeinfo",
    "/proc/sched_debug",
    "/proc/slabinfo",
    "/proc/sysrq-trigger",
    "/proc/timer_list",
    "/proc/vmallocinfo",
];
/// The file descriptors that bubblewrap gets.
const OPTIONS_FD: i32 = 3;
const INFO_FD: i32 = 4;
const BLOCK_FD: i32 = 5;
const SYNC_FD: i32 = 6;
const SECCOMP_FD: i32 = 7;

/// What a bubblewrap is started with. Everything else it gets later, with its options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StartSpec {
    /// The path of bubblewrap.
    pub(crate) bubblewrap: PathBuf,
    /// The program for the sandbox, and its arguments.
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<OsString>,
    pub(crate) network: Network,
    /// The limits of its cgroups.
    pub(crate) limits: Limits,
}

/// The files that bubblewrap inherits.
#[derive(Debug)]
pub(crate) struct InheritedFiles {
    /// It reads its options here.
    pub(crate) options: OwnedFd,
    /// It reports the first process of the sandbox here.
    pub(crate) info: OwnedFd,
    /// It waits here before it proceeds,
    pub(crate) block: OwnedFd,
    /// and keeps the other end open as well: if this process dies, it waits forever.
    pub(crate) block_in: OwnedFd,
    /// The cgroups it joins before it starts.
    pub(crate) groups: Vec<OwnedFd>,
    /// The system call filters.
    pub(crate) seccomp: &'static [Vec<u8>],
}

/// Options, in mount order.
#[derive(Debug, Default)]
struct Options(Vec<OsString>);

/// Returns the command for a sandbox whose contents are not known yet. It includes every layer of
/// isolation: whatever happens to the remaining options, none is missing.
pub(crate) fn command(start_spec: &StartSpec, handed: InheritedFiles) -> io::Result<Command> {
    let mut options = Options::default();
    options.walls(start_spec.network);
    let mut mappings = vec![
        FdMapping { parent_fd: handed.options, child_fd: OPTIONS_FD },
        FdMapping { parent_fd: handed.info, child_fd: INFO_FD },
        FdMapping { parent_fd: handed.block, child_fd: BLOCK_FD },
        FdMapping { parent_fd: handed.block_in, child_fd: SYNC_FD },
    ];
    for (number, filter) in (SECCOMP_FD..).zip(handed.seccomp) {
        options.add(["--add-seccomp-fd", &number.to_string()]);
        mappings.push(FdMapping { parent_fd: in_memory(filter)?, child_fd: number });
    }
    // The remaining options are not on the command line, where every user could read keys.
    options.add(["--args", &OPTIONS_FD.to_string(), "--"]);
    let mut command = Command::new(&start_spec.bubblewrap);
    command.args(options.0).arg(&start_spec.program).args(&start_spec.args);
    command.env_clear().current_dir("/").process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    before_exec(&mut command, handed.groups);
    command
        .fd_mappings(mappings)
        .map_err(|_| io::Error::other("two files have the same number"))?;
    Ok(command)
}

/// Returns the remaining options, in bubblewrap's format: the contents of the sandbox.
pub(crate) fn options(spec: &SandboxSpec, root: &Path) -> io::Result<Vec<u8>> {
    let mut options = Options::default();
    options.system(root);
    options.private(spec.limits.tmp_bytes);
    for read_only in &spec.read_only {
        options.mount("--ro-bind", &read_only.host, &read_only.inside);
    }
    options.masked(spec);
    options.session(spec)?;
    options.process(spec);
    Ok(options.bytes())
}

/// Runs in the child, before it becomes bubblewrap.
#[expect(unsafe_code, reason = "nothing else runs between fork and exec")]
fn before_exec(command: &mut Command, groups: Vec<OwnedFd>) {
    let devices = Devices::own();
    let prepare = move || {
        // bubblewrap does this itself, but later.
        set_parent_process_death_signal(Some(Signal::KILL))?;
        for group in &groups {
            // A zero stands for the writing process.
            rustix::io::write(group, b"0")?;
        }
        devices.keep()?;
        close_others()
    };
    // SAFETY: the closure makes a few system calls, takes no lock and allocates nothing.
    unsafe { command.pre_exec(prepare) };
}

/// Closes every other file of this process, including inherited ones it does not know of. The files
/// stay open until the exec, so that those to be passed on can still be renumbered.
#[expect(unsafe_code, reason = "no crate that we use has this call")]
fn close_others() -> io::Result<()> {
    // SAFETY: a system call that reads and writes no memory of this process.
    let closed = unsafe {
        libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC)
    };
    if closed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Returns an unnamed file in memory, positioned at its start.
fn in_memory(content: &[u8]) -> io::Result<OwnedFd> {
    let fd = memfd_create("ringback-sandbox", MemfdFlags::CLOEXEC)?;
    let mut rest = content;
    while !rest.is_empty() {
        let n_written = rustix::io::write(&fd, rest)?;
        rest = &rest[n_written..];
    }
    seek(&fd, SeekFrom::Start(0))?;
    Ok(fd)
}

impl StartSpec {
    pub(crate) fn of(spec: &SandboxSpec, bubblewrap: &Path) -> Self {
        Self {
            bubblewrap: bubblewrap.to_owned(),
            program: spec.program.clone(),
            args: spec.args.clone(),
            network: spec.network,
            limits: spec.limits,
        }
    }
}

impl Options {
    fn add<const N: usize>(&mut self, options: [&str; N]) {
        self.0.extend(options.into_iter().map(OsString::from));
    }

    fn mount(&mut self, how: &str, host: &Path, inside: &Path) {
        self.0.extend([OsStr::new(how), host.as_os_str(), inside.as_os_str()].map(OsString::from));
    }

    fn walls(&mut self, network: Network) {
        self.add(["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]);
        self.add(["--unshare-cgroup", "--disable-userns", "--hostname", "sandbox"]);
        match network {
            Network::None => self.add(["--unshare-net"]),
        }
        self.add(["--uid", etc::UID, "--gid", etc::UID, "--cap-drop", "ALL"]);
        self.add(["--new-session", "--die-with-parent", "--clearenv"]);
        self.add(["--info-fd", &INFO_FD.to_string(), "--block-fd", &BLOCK_FD.to_string()]);
        self.add(["--sync-fd", &SYNC_FD.to_string()]);
    }

    fn system(&mut self, root: &Path) {
        self.mount("--ro-bind", root, Path::new("/"));
        self.mount("--ro-bind", Path::new("/usr"), Path::new("/usr"));
        for path in SYSTEM.iter().map(Path::new).filter(|path| path.is_dir() && !path.is_symlink())
        {
            self.mount("--ro-bind", path, path);
        }
        for path in etc::mounted() {
            self.mount("--ro-bind", &path, &path);
        }
    }

    fn private(&mut self, tmp_bytes: u64) {
        let tmp_bytes = tmp_bytes.to_string();
        self.add(["--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev"]);
        for dir in ["/dev/shm", "/tmp"] {
            self.add(["--perms", "1777", "--size", &tmp_bytes, "--tmpfs", dir]);
        }
        // Files that this user cannot open cannot be opened in the sandbox either.
        for path in KERNEL_FILES.iter().filter(|path| access(**path, Access::READ_OK).is_ok()) {
            self.add(["--ro-bind", "/dev/null", path]);
        }
        // Also protects the memory of other processes and the kernel's settings.
        self.add(["--remount-ro", "/proc"]);
    }

    /// Covers paths that exist, after everything that could show them is mounted.
    fn masked(&mut self, spec: &SandboxSpec) {
        for path in &spec.masked {
            let host = spec.read_only.iter().find_map(|shown| {
                path.strip_prefix(&shown.inside).ok().map(|below| shown.host.join(below))
            });
            if host.is_some_and(|host| host.is_dir()) {
                for option in ["--tmpfs", "--remount-ro"] {
                    self.0.extend([OsStr::new(option), path.as_os_str()].map(OsString::from));
                }
            } else {
                self.mount("--ro-bind", Path::new("/dev/null"), path);
            }
        }
    }

    fn session(&mut self, spec: &SandboxSpec) -> io::Result<()> {
        let workspace = Path::new(places::WORKSPACE);
        match &spec.workspace {
            Workspace::None => {}
            Workspace::Read(host) => self.mount("--ro-bind", host, workspace),
            Workspace::Write(host) => self.mount("--bind", host, workspace),
        }
        if let Some(home) = &spec.home {
            self.mount("--bind", home, Path::new(places::HOME));
        }
        if let Some(cache) = &spec.cache {
            self.mount("--bind", cache, Path::new(places::CACHE));
        }
        if let Some(dir) = &spec.session_dir {
            self.mount("--ro-bind", dir, Path::new(places::SESSION));
        }
        if let Some(inside) = &spec.inside
            && !mounts::link_inside(spec)?
        {
            self.mount("--ro-bind", inside, Path::new(places::INSIDE));
        }
        Ok(())
    }

    fn process(&mut self, spec: &SandboxSpec) {
        let start = spec.working_dir.as_deref().unwrap_or(Path::new(places::WORKSPACE));
        self.0.extend([OsStr::new("--chdir"), start.as_os_str()].map(OsString::from));
        for (name, value) in &spec.env {
            self.0.extend([OsString::from("--setenv"), name.clone(), value.clone()]);
        }
    }

    /// Returns them as bubblewrap reads them: each ends with a zero byte.
    fn bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|option| option.as_bytes().iter().copied().chain([0])).collect()
    }
}
