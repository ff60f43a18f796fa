//! Starts the user's own daemon in the background, once, for a command that needs one.
//!
//! It gets a chosen environment, so that no key of a shell lives on in it, and a session of its own,
//! so that Ctrl-C does not reach it.

use std::io::{self, Read as _, Seek as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

use crate::config::{Config, Environment};
use crate::connection::{ConnectArgs, TOKEN_VARIABLE};
use crate::failure::Failure;
use crate::running::{RunningDaemon, StartLock, log_file};
use crate::screen::remark;

/// A daemon with a large data directory on a slow disk starts in seconds.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// How often a command looks whether another has started the daemon.
const LOOK_PERIOD: Duration = Duration::from_millis(5);
/// How much of a failed daemon's log is shown.
const REASON_BYTES_MAX: u64 = 4 << 10;

/// Variables that a daemon needs: where things are, how text and time look, what its secrets'
/// commands ask. Everything else stays with the shell, keys above all.
const PASSED_ON: [&str; 19] = [
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "DOCKER_HOST",
    "GNUPGHOME",
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LOGNAME",
    "PASSWORD_STORE_DIR",
    "PATH",
    "SHELL",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "WAYLAND_DISPLAY",
];
/// Beginnings of the names of others: directories, and this program's own settings.
const PASSED_ON_PREFIXES: [&str; 2] = ["XDG_", "RINGBACK_"];
/// Own variables that are for commands alone: a token is no setting of a daemon.
const KEPT_BACK: [&str; 3] = [TOKEN_VARIABLE, "RINGBACK_API_KEY", "RINGBACK_DAEMON"];

/// Starts a daemon unless one is running by then: of two commands at the same time, one starts it
/// and the other waits.
pub(crate) async fn start(
    connect: &ConnectArgs,
    config: &Config,
    environment: &Environment,
) -> Result<(), Failure> {
    config.create_dirs().map_err(|error| Failure::Start(error.into()))?;
    let Some(lock) = wait_for_turn(config).await? else { return Ok(()) };
    let log = log_file(config);
    let failed = |source| Failure::File { action: "open", path: log.clone(), source };
    let (stderr, before) = open_log(&log).map_err(failed)?;
    let mut child = command(connect, environment, stderr)?
        .spawn()
        .map_err(|source| Failure::System { action: "start a daemon in the background", source })?;
    let started = timeout(START_TIMEOUT, announced(&mut child)).await;
    drop(lock);
    if !matches!(started, Ok(Ok(true))) {
        let reason = reason(&log, before).unwrap_or_default();
        return Err(Failure::NotStarted { log, reason });
    }
    let (pid, log) = (child.id().unwrap_or_default(), log.display());
    let idle = config.background.idle;
    remark(format_args!(
        "started a daemon in the background (process {pid}, log {log}); it ends when idle for {idle}, \
         or with `ringback stop`"
    ));
    Ok(())
}

/// Takes the lock, or returns `None` when another process has started a daemon.
async fn wait_for_turn(config: &Config) -> Result<Option<StartLock>, Failure> {
    let until = Instant::now() + START_TIMEOUT;
    loop {
        let lock = StartLock::try_take(config)
            .map_err(|source| Failure::System { action: "lock the runtime directory", source })?;
        // Also with the lock: another process may just have released it.
        if RunningDaemon::find(config).is_some() {
            return Ok(None);
        }
        if lock.is_some() || Instant::now() > until {
            return lock.map(Some).ok_or_else(|| {
                let text = "another command has been starting a daemon for a minute; try again";
                Failure::Wrong(text.to_owned())
            });
        }
        sleep(LOOK_PERIOD).await;
    }
}

/// Opens the log to append to, and returns its length.
fn open_log(path: &Path) -> io::Result<(std::fs::File, u64)> {
    let file = std::fs::File::options().create(true).append(true).mode(0o600).open(path)?;
    let length = file.metadata()?.len();
    Ok((file, length))
}

fn command(
    connect: &ConnectArgs,
    environment: &Environment,
    stderr: std::fs::File,
) -> Result<Command, Failure> {
    let program = std::env::current_exe()
        .map_err(|source| Failure::System { action: "find this program", source })?;
    let mut command = Command::new(program);
    let any = "tcp://127.0.0.1:0";
    command.args(["serve", "--background", "--json", "--http", "127.0.0.1:0"]);
    command.args(["--hoot", any, "--iopub", any]);
    // The daemon's working directory is another one.
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    if let Some(file) = &connect.config {
        command.arg("--config").arg(absolute(file));
    }
    if let Some(dir) = &connect.data_dir {
        command.arg("--data-dir").arg(absolute(Path::new(dir)));
    }
    command.env_clear().envs(environment.chosen(is_passed_on));
    command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr);
    Ok(command)
}

fn is_passed_on(name: &str) -> bool {
    let is_own = || PASSED_ON_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    !KEPT_BACK.contains(&name) && (PASSED_ON.contains(&name) || is_own())
}

/// Waits until the daemon prints its addresses; false if it ends before that.
async fn announced(child: &mut Child) -> io::Result<bool> {
    let Some(stdout) = child.stdout.take() else { return Ok(false) };
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).await?;
    Ok(line.ends_with('\n'))
}

/// Returns what a daemon that did not start has written.
fn reason(log: &Path, before: u64) -> io::Result<String> {
    let mut file = std::fs::File::open(log)?;
    file.seek(io::SeekFrom::Start(before))?;
    let mut text = Vec::new();
    file.take(REASON_BYTES_MAX).read_to_end(&mut text)?;
    let text = String::from_utf8_lossy(&text);
    let last = text.lines().last().unwrap_or_default();
    let report = serde_json::from_str::<serde_json::Value>(last).unwrap_or_default();
    let message = report["error"]["message"].as_str();
    Ok(message.unwrap_or(last).to_owned())
}

#[cfg(test)]
mod tests {
    use super::is_passed_on;

    /// Rule: a daemon in the background gets no variable that may be a key.
    #[test]
    fn a_daemon_in_the_background_gets_chosen_variables_alone() {
        for name in ["HOME", "PATH", "XDG_RUNTIME_DIR", "RINGBACK_CONFIG", "RINGBACK_HTTP__LISTEN"]
        {
            assert!(is_passed_on(name), "{name}");
        }
        for name in [
            "OPENAI_API_KEY",
            "ANTHROPIC_API_KEY",
            "AWS_SECRET_ACCESS_KEY",
            "SSH_AUTH_SOCK",
            "LD_PRELOAD",
            "RINGBACK_TOKEN",
            "RINGBACK_API_KEY",
            "MYHOME",
        ] {
            assert!(!is_passed_on(name), "{name}");
        }
    }
}
