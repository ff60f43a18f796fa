//! Runs scripts in sandboxes.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use ringback_testkit::engine;
use tempfile::TempDir;

/// The unprivileged user, and its group.
const NOBODY: u32 = 65534;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum User {
    Me,
    Nobody,
}

/// The backend of the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backend {
    Bubblewrap,
    Docker,
}

/// A directory with everything a sandbox needs, and something it must not see.
pub(crate) struct Bench {
    pub(crate) user: User,
    pub(crate) backend: Backend,
    program: PathBuf,
    dir: TempDir,
}

/// The result of a script.
#[derive(Debug)]
pub(crate) struct ScriptResult {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs the same test in every kind of sandbox, as two users.
macro_rules! everywhere {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        mod $name {
            use crate::bench::{Bench, User};

            #[test]
            fn as_this_user() {
                super::$name(&Bench::new(User::Me));
            }

            #[test]
            fn as_a_user_without_rights() {
                if ringback_testkit::is_root() {
                    super::$name(&Bench::new(User::Nobody));
                }
            }

            #[test]
            fn in_a_container() {
                Bench::docker(User::Me).as_ref().map(super::$name);
            }

            #[test]
            fn in_a_container_of_a_user_without_rights() {
                if ringback_testkit::is_root() {
                    Bench::docker(User::Nobody).as_ref().map(super::$name);
                }
            }
        }
    };
}
pub(crate) use everywhere;

/// Runs the same test in every kind of sandbox, as this user: for tests that start sandboxes in
/// their own process.
macro_rules! as_this_user {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        mod $name {
            use crate::bench::{Bench, User};

            #[test]
            fn by_bubblewrap() {
                super::$name(&Bench::new(User::Me));
            }

            #[test]
            fn in_a_container() {
                Bench::docker(User::Me).as_ref().map(super::$name);
            }
        }
    };
}
pub(crate) use as_this_user;

/// Runs the same test in every kind of sandbox, with limits that bubblewrap can enforce only with
/// privileges. Without them a limit is refused, which another test covers.
macro_rules! with_limits {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        mod $name {
            use crate::bench::{Bench, User};

            #[test]
            fn by_bubblewrap() {
                if ringback_testkit::is_root() {
                    super::$name(&Bench::new(User::Me));
                }
            }

            #[test]
            fn in_a_container() {
                Bench::docker(User::Me).as_ref().map(super::$name);
            }
        }
    };
}
pub(crate) use ringback_testkit::blocking::wait_for;
pub(crate) use with_limits;

impl Bench {
    /// With bubblewrap.
    pub(crate) fn new(user: User) -> Self {
        Self::with(user, Backend::Bubblewrap)
    }

    /// With containers; `None` if the tests run without an engine.
    pub(crate) fn docker(user: User) -> Option<Self> {
        engine::socket().map(|_| Self::with(user, Backend::Docker))
    }

    /// Another one of the same kind.
    pub(crate) fn another(&self) -> Self {
        Self::with(self.user, self.backend)
    }

    fn with(user: User, backend: Backend) -> Self {
        let dir = tempfile::Builder::new().prefix("box").tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["state", "workspace", "home", "session", "other", "data"] {
            let path = dir.path().join(name);
            fs::create_dir(&path).unwrap();
            if user == User::Nobody {
                chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
            }
        }
        let built = PathBuf::from(env!("CARGO_BIN_EXE_ringback-box"));
        let program = match user {
            User::Me => built,
            User::Nobody => {
                // Only the user that built it may have access to the build directory.
                let program = dir.path().join("ringback-box");
                fs::copy(built, &program).unwrap();
                program
            }
        };
        let bench = Self { user, backend, program, dir };
        fs::write(bench.path("data/token"), "SECRET").unwrap();
        bench
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Returns the command that runs a program in a sandbox.
    pub(crate) fn command(&self, options: &[&str], program: &[&str]) -> Command {
        let mut command = match self.user {
            User::Me => Command::new(&self.program),
            User::Nobody => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]);
                command.arg(&self.program);
                command
            }
        };
        command.arg("--state").arg(self.path("state"));
        command.arg("--workspace").arg(self.path("workspace"));
        command.arg("--session").arg(self.path("session"));
        command.arg("--hidden").arg(self.path("data"));
        if self.backend == Backend::Docker {
            command.args(["--backend", "docker", "--image", engine::IMAGE]);
            command.arg("--docker").arg(engine::socket().unwrap());
            for path in system() {
                command.arg("--read-only").arg(path);
            }
        }
        command.args(["--env", "PATH=/usr/bin:/bin"]).args(options).arg("--").args(program);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn shell(&self, options: &[&str], script: &str) -> ScriptResult {
        self.command(options, &["/bin/sh", "-c", script]).output().unwrap().into()
    }

    pub(crate) fn python(&self, options: &[&str], script: &str) -> ScriptResult {
        self.command(options, &["/usr/bin/python3", "-c", script]).output().unwrap().into()
    }

    pub(crate) fn start(&self, options: &[&str], script: &str) -> Child {
        self.command(options, &["/bin/sh", "-c", script]).spawn().unwrap()
    }

    /// Returns the cgroups of current sandboxes, and of those of a killed daemon.
    pub(crate) fn groups(&self) -> Vec<PathBuf> {
        groups(&self.path("state"))
    }

    /// Returns what sandboxes currently have outside of themselves.
    pub(crate) fn left(&self) -> Vec<String> {
        match self.backend {
            Backend::Bubblewrap => {
                let notes = fs::read_dir(self.path("state/boxes")).into_iter().flatten().flatten();
                notes.map(|note| note.path().display().to_string()).collect()
            }
            Backend::Docker => engine::containers(&self.path("state")),
        }
    }
}

/// Returns this machine's programs and libraries, for sandboxes whose image has next to none.
pub(crate) fn system() -> impl Iterator<Item = PathBuf> {
    let paths = ["/usr/bin", "/usr/lib", "/usr/lib64"].map(PathBuf::from);
    paths.into_iter().filter(|path| path.exists())
}

/// Returns the cgroups named in the notes in a directory.
pub(crate) fn groups(state: &Path) -> Vec<PathBuf> {
    let notes = fs::read_dir(state.join("boxes")).into_iter().flatten().flatten();
    let texts = notes.filter_map(|note| fs::read_to_string(note.path()).ok());
    texts.flat_map(|text| text.lines().map(PathBuf::from).collect::<Vec<_>>()).collect()
}

impl From<Output> for ScriptResult {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl ScriptResult {
    /// Asserts that it ran to its end, and that this is its whole output.
    #[track_caller]
    pub(crate) fn says(&self, expected: &str) {
        assert_eq!((self.code, self.out.trim()), (Some(0), expected), "{self:?}");
    }
}

/// Returns a number that a script can compute and that is on no command line.
pub(crate) fn marker() -> (u32, u32) {
    let own = std::process::id();
    let sum = own.wrapping_mul(1000) % 900_000_000 + 1_000_000_000;
    (sum - 12_345, sum)
}

/// Returns the processes of this machine that sleep for this number of seconds.
pub(crate) fn sleepers(number: u32) -> Vec<u32> {
    let wanted = format!("sleep\0{number}\0");
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let said = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        said.ends_with(wanted.as_bytes())
    })
    .collect()
}

/// Returns the processes of this machine whose command line contains this text, except these tests.
pub(crate) fn mentioning(text: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let said = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    said.map(|said| String::from_utf8_lossy(&said).replace('\0', " "))
        .filter(|said| said.contains(text))
        .collect()
}
