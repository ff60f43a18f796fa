//! A process under test: the daemon, or the bare ROUTER or relay it is compared with.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::Context;
use camino::Utf8Path;

use crate::bare;
use crate::bare_circle;
use crate::bare_mcp;
use crate::relay;
use crate::settings::Settings;

/// The token of the bare ROUTER: as long as a real one, so that both sides send the same amount.
const BARE_TOKEN: &str = "oub_0000000000000000000000000000000000000000000000000000000000000000";
/// The kernel's CPU time ticks per second; Linux has no other value.
const TICKS_PER_SECOND: f64 = 100.0;

/// A listening process.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    /// Its address for frames; empty if it has none.
    pub(crate) endpoint: String,
    /// Its address for HTTP; empty if it has none.
    pub(crate) http: String,
    pub(crate) token: String,
    /// The directory of its sockets; empty if it has none.
    pub(crate) run_dir: PathBuf,
}

impl Server {
    /// Starts an unconfigured daemon on a data directory. `roots` are the directories it may read
    /// files from.
    pub(crate) fn daemon(
        settings: &Settings,
        data_dir: &Path,
        roots: &Path,
    ) -> anyhow::Result<Self> {
        Self::daemon_with(settings, data_dir, roots, &[])
    }

    /// Does the same with settings as environment variables.
    pub(crate) fn daemon_with(
        settings: &Settings,
        data_dir: &Path,
        roots: &Path,
        environment: &[(&str, &str)],
    ) -> anyhow::Result<Self> {
        // Temporary directories are readable for others, which the daemon refuses.
        fs::set_permissions(data_dir, fs::Permissions::from_mode(0o700))?;
        let mut command = Command::new(&settings.ringback);
        command
            .args(["serve", "--json", "--http", "127.0.0.1:0", "--data-dir"])
            .arg(data_dir)
            .args(["--hoot", "tcp://127.0.0.1:0", "--iopub", "tcp://127.0.0.1:0"])
            .env_clear()
            .env("HOME", data_dir)
            .env("RINGBACK_FILES__ROOTS", roots)
            .envs(environment.iter().copied())
            .stderr(fs::File::create(data_dir.join("daemon.log"))?);
        let (child, line) = start(command)?;
        let said: serde_json::Value =
            serde_json::from_str(&line).context("the daemon did not report its addresses")?;
        let text = |key: &str| said[key].as_str().with_context(|| format!("no `{key}` in {line}"));
        let token = fs::read_to_string(text("token_file")?).context("cannot read the token")?;
        let (endpoint, http) = (text("hoot")?.to_owned(), text("http")?.to_owned());
        let run_dir = data_dir.join("run");
        Ok(Self { child, endpoint, http, token: token.trim().to_owned(), run_dir })
    }

    /// Starts a ROUTER of the same library that sends everything back.
    pub(crate) fn bare(settings: &Settings) -> anyhow::Result<Self> {
        let mut command = Command::new(&settings.bench);
        command.arg(bare::ROUTER_ROLE);
        let (child, line) = start(command)?;
        let (endpoint, token) = (line.trim().to_owned(), BARE_TOKEN.to_owned());
        Ok(Self { child, endpoint, http: String::new(), token, run_dir: PathBuf::new() })
    }

    /// Starts an HTTP relay that makes the hops of a client tool and nothing else.
    pub(crate) fn relay(settings: &Settings) -> anyhow::Result<Self> {
        let mut command = Command::new(&settings.bench);
        command.arg(relay::ROLE);
        let (child, line) = start(command)?;
        Ok(Self::bare_http(child, &line))
    }

    /// Starts a handler of `tools/call` that decodes and encodes, and nothing else.
    pub(crate) fn bare_mcp(settings: &Settings) -> anyhow::Result<Self> {
        let mut command = Command::new(&settings.bench);
        command.arg(bare_mcp::ROLE);
        let (child, line) = start(command)?;
        Ok(Self::bare_http(child, &line))
    }

    /// Starts a relay that makes the hops of a caller tool and nothing else.
    pub(crate) fn bare_circle(settings: &Settings, dir: &Path) -> anyhow::Result<Self> {
        let mut command = Command::new(&settings.bench);
        command.arg(bare_circle::ROLE).arg(dir);
        let (child, line) = start(command)?;
        Ok(Self::bare_http(child, &line))
    }

    fn bare_http(child: Child, line: &str) -> Self {
        let (http, token) = (line.trim().to_owned(), BARE_TOKEN.to_owned());
        Self { child, endpoint: String::new(), http, token, run_dir: PathBuf::new() }
    }

    /// Returns its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the CPU time used so far, in microseconds.
    pub(crate) fn cpu_us(&self) -> anyhow::Result<f64> {
        cpu_us_of(self.child.id())
    }

    /// Returns the current resident memory in MiB.
    pub(crate) fn resident_mib(&self) -> anyhow::Result<f64> {
        status_mib_of(self.child.id(), "VmRSS:")
    }

    /// Returns the memory that is not a file's, in MiB.
    pub(crate) fn own_mib(&self) -> anyhow::Result<f64> {
        status_mib_of(self.child.id(), "RssAnon:")
    }

    /// Returns the peak of resident memory since [`Self::forget_peak`].
    pub(crate) fn peak_mib(&self) -> anyhow::Result<f64> {
        status_mib_of(self.child.id(), "VmHWM:")
    }

    /// Resets the peak.
    pub(crate) fn forget_peak(&self) -> anyhow::Result<()> {
        fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5")
            .context("cannot reset the peak of resident memory")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already, which the measurement has noticed.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Returns a field of a process's `/proc/PID/status`, in MiB.
pub(crate) fn status_mib_of(process: u32, field: &str) -> anyhow::Result<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let value = status.lines().find_map(|line| line.strip_prefix(field));
    let kib = value.and_then(|value| value.trim().strip_suffix(" kB"));
    let kib: f64 = kib.context("the process has ended")?.parse()?;
    Ok(kib / 1024.0)
}

/// Returns the CPU time that a process has used so far, in microseconds.
pub(crate) fn cpu_us_of(process: u32) -> anyhow::Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The second field is a name in brackets that may contain spaces.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let mut fields = fields.split_whitespace().skip(11);
    let mut ticks = || -> Option<f64> { fields.next()?.parse().ok() };
    let (user, system) = ticks().zip(ticks()).context("cannot read the CPU time")?;
    Ok((user + system) / TICKS_PER_SECOND * 1e6)
}

/// Returns the first child of a process.
pub(crate) fn child_of(process: u32) -> anyhow::Result<u32> {
    for task in fs::read_dir(format!("/proc/{process}/task"))? {
        let children = fs::read_to_string(task?.path().join("children"))?;
        if let Some(child) = children.split_whitespace().next() {
            return Ok(child.parse()?);
        }
    }
    anyhow::bail!("process {process} has no children")
}

/// Returns the id of a process's thread with this name.
pub(crate) fn thread_of(process: u32, name: &str) -> anyhow::Result<u32> {
    for task in fs::read_dir(format!("/proc/{process}/task"))? {
        let task = task?.path();
        if fs::read_to_string(task.join("comm"))?.trim() == name {
            let id = task.file_name().and_then(|id| id.to_str());
            return Ok(id.context("a thread without an id")?.parse()?);
        }
    }
    anyhow::bail!("process {process} has no thread `{name}`")
}

/// Returns the CPU time that a thread has used so far, in microseconds.
pub(crate) fn thread_cpu_us(process: u32, thread: u32) -> anyhow::Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{process}/task/{thread}/schedstat"))?;
    let nanoseconds: f64 = stat.split_whitespace().next().context("no CPU time")?.parse()?;
    Ok(nanoseconds / 1e3)
}

/// Starts a process and waits for its first output line.
pub(crate) fn start(mut command: Command) -> anyhow::Result<(Child, String)> {
    let program = Utf8Path::from_path(Path::new(command.get_program()))
        .map_or_else(String::new, ToString::to_string);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start `{program}`"))?;
    let stdout = child.stdout.take().context("the process has no output")?;
    let mut line = String::new();
    let n_bytes = BufReader::new(stdout).read_line(&mut line)?;
    anyhow::ensure!(n_bytes > 0, "`{program}` ended before it was ready");
    Ok((child, line))
}
