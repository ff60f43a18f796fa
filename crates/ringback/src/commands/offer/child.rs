//! One run of the offered command: its own process group, with limits on output and time to end.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::connection::TOKEN_VARIABLE;
use crate::screen::Screen;

/// Half of what the daemon accepts in one body, because text may grow when encoded as JSON.
const OUTPUT_BYTES_MAX: usize = 8 << 20;
/// The rest of a longer line on standard error is dropped.
const LINE_BYTES_MAX: usize = 4 << 10;
/// The last lines of standard error reported with a failure.
const TAIL_LINES_MAX: usize = 20;
/// The time between SIGTERM and SIGKILL.
const TERMINATE_GRACE: Duration = Duration::from_secs(2);

/// The program to run.
#[derive(Debug)]
pub(in crate::commands) struct Program {
    pub(in crate::commands) name: OsString,
    pub(in crate::commands) arguments: Vec<OsString>,
}

/// The progress of a run.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::commands) struct Progress {
    /// 0 to 100.
    pub(in crate::commands) percent: f32,
    pub(in crate::commands) message: String,
}

/// How a run ended.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::commands) enum RunEnd {
    /// It succeeded with this output.
    Done(String),
    /// It failed for this reason.
    Failed(String),
    /// It was cancelled.
    Cancelled,
}

/// A run; dropping it kills its process group.
struct Run {
    child: Child,
    group: Option<Pid>,
}

/// Standard error, line by line.
struct Errors {
    progress: watch::Sender<Option<Progress>>,
    screen: Screen,
    line: Vec<u8>,
    tail: VecDeque<String>,
}

impl Program {
    /// Runs it once with this input.
    pub(in crate::commands) async fn run(
        &self,
        input: &[u8],
        progress: watch::Sender<Option<Progress>>,
        stop: &CancellationToken,
        screen: Screen,
    ) -> RunEnd {
        let mut run = match self.start() {
            Ok(run) => run,
            Err(error) => {
                return RunEnd::Failed(format!("cannot run `{}`: {error}", self.shown()));
            }
        };
        let errors = Errors { progress, screen, line: Vec::new(), tail: VecDeque::new() };
        let ended = tokio::select! {
            biased;
            () = stop.cancelled() => None,
            ended = run.finish(input, errors) => Some(ended),
        };
        match ended {
            Some(Ok((output, _, status))) if status.success() => {
                text(output).unwrap_or_else(|| {
                    RunEnd::Failed(format!("the output of `{}` is not UTF-8 text", self.shown()))
                })
            }
            Some(Ok((_, tail, status))) => {
                let text = format!("`{}` ended with {status}\n{tail}", self.shown());
                RunEnd::Failed(text.trim_end().to_owned())
            }
            Some(Err(error)) => {
                run.end().await;
                RunEnd::Failed(format!("`{}` was ended: {error}", self.shown()))
            }
            None => {
                run.end().await;
                RunEnd::Cancelled
            }
        }
    }

    fn start(&self) -> io::Result<Run> {
        let child = Command::new(&self.name)
            .args(&self.arguments)
            .env_remove(TOKEN_VARIABLE)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Ok(Run { child, group })
    }

    fn shown(&self) -> std::borrow::Cow<'_, str> {
        self.name.to_string_lossy()
    }
}

impl Run {
    async fn finish(
        &mut self,
        input: &[u8],
        errors: Errors,
    ) -> io::Result<(Vec<u8>, String, std::process::ExitStatus)> {
        let (stdin, stdout, stderr) =
            (self.child.stdin.take(), self.child.stdout.take(), self.child.stderr.take());
        let missing = || io::Error::other("a pipe is missing");
        let (stdin, stdout, stderr) =
            (stdin.ok_or_else(missing)?, stdout.ok_or_else(missing)?, stderr.ok_or_else(missing)?);
        let ((), output, tail, status) = tokio::try_join!(
            feed(stdin, input),
            read_output(stdout),
            errors.read(stderr),
            self.child.wait()
        )?;
        // The child is reaped: from now on its id may belong to another process.
        self.group = None;
        Ok((output, tail, status))
    }

    /// Asks the group to end, then kills it.
    async fn end(&mut self) {
        self.signal(Signal::TERM);
        if tokio::time::timeout(TERMINATE_GRACE, self.child.wait()).await.is_err() {
            tracing::debug!("a command ignores SIGTERM");
        }
        // Also reaches processes whose parent has ended.
        self.signal(Signal::KILL);
        self.group = None;
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group
            && let Err(error) = kill_process_group(group, signal)
        {
            tracing::trace!(%error, "a process group has already ended");
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

impl Errors {
    /// Reads to the end. Returns the last lines, without progress.
    async fn read(mut self, mut from: impl AsyncRead + Unpin) -> io::Result<String> {
        let mut buffer = [0; 4096];
        loop {
            let n_read = from.read(&mut buffer).await?;
            if n_read == 0 {
                self.on_line();
                return Ok(self.tail.into_iter().collect::<Vec<_>>().join("\n"));
            }
            for piece in buffer[..n_read].split_inclusive(|byte| *byte == b'\n') {
                let (piece, ends) = match piece.strip_suffix(b"\n") {
                    Some(piece) => (piece, true),
                    None => (piece, false),
                };
                let room = LINE_BYTES_MAX.saturating_sub(self.line.len());
                self.line.extend_from_slice(&piece[..piece.len().min(room)]);
                if ends {
                    self.on_line();
                }
            }
        }
    }

    fn on_line(&mut self) {
        let line = String::from_utf8_lossy(&self.line).trim_end().to_owned();
        self.line.clear();
        if let Some(progress) = Progress::read(&line) {
            self.progress.send_replace(Some(progress));
        } else if !line.is_empty() {
            self.screen.remark(&line);
            if self.tail.len() == TAIL_LINES_MAX {
                self.tail.pop_front();
            }
            self.tail.push_back(line);
        }
    }
}

impl Progress {
    /// Parses `progress: 40 message`.
    fn read(line: &str) -> Option<Self> {
        let rest = line.strip_prefix("progress:")?.trim_start();
        let (percent, message) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let percent = percent.trim_end_matches('%').parse().ok()?;
        let fits = (0.0..=100.0).contains(&percent);
        fits.then(|| Self { percent, message: message.trim().to_owned() })
    }
}

/// Writes the input as one line. A command need not read it.
async fn feed(mut stdin: ChildStdin, input: &[u8]) -> io::Result<()> {
    let fed = async {
        stdin.write_all(input).await?;
        stdin.write_all(b"\n").await?;
        stdin.shutdown().await
    };
    match fed.await {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

async fn read_output(from: impl AsyncRead + Unpin) -> io::Result<Vec<u8>> {
    let mut output = Vec::new();
    let limit = OUTPUT_BYTES_MAX as u64 + 1;
    from.take(limit).read_to_end(&mut output).await?;
    if output.len() > OUTPUT_BYTES_MAX {
        let mib = OUTPUT_BYTES_MAX >> 20;
        return Err(io::Error::other(format!("the output is larger than {mib} MiB")));
    }
    Ok(output)
}

/// Returns the output without its last newline, if it is text.
fn text(output: Vec<u8>) -> Option<RunEnd> {
    let mut text = String::from_utf8(output).ok()?;
    if text.ends_with('\n') {
        text.pop();
    }
    Some(RunEnd::Done(text))
}

#[cfg(test)]
mod tests {
    use tokio::sync::watch;
    use tokio_util::sync::CancellationToken;

    use super::{Program, Progress, RunEnd};
    use crate::screen::Screen;

    const LOOK_AGAIN: std::time::Duration = std::time::Duration::from_millis(5);

    async fn run(script: &str, input: &str) -> (RunEnd, Option<Progress>) {
        let program = Program { name: "sh".into(), arguments: vec!["-c".into(), script.into()] };
        let (progress, told) = watch::channel(None);
        let (stop, screen) = (CancellationToken::new(), Screen::new(true));
        let ended = program.run(input.as_bytes(), progress, &stop, screen).await;
        let told = told.borrow().clone();
        (ended, told)
    }

    #[tokio::test]
    async fn output_is_the_result_and_a_bad_exit_tells_the_end_of_standard_error() {
        assert_eq!(run("cat", r#"{"a": "ä"}"#).await.0, RunEnd::Done(r#"{"a": "ä"}"#.to_owned()));
        assert_eq!(run("true", "{}").await.0, RunEnd::Done(String::new()));
        let failed = "echo first >&2; echo 'progress: 40 half' >&2; echo last >&2; exit 3";
        let (ended, told) = run(failed, "{}").await;
        let text = "`sh` ended with exit status: 3\nfirst\nlast".to_owned();
        assert_eq!(ended, RunEnd::Failed(text));
        assert_eq!(told, Some(Progress { percent: 40.0, message: "half".to_owned() }));
        let (ended, _) = run(r"printf '\377'", "{}").await;
        assert!(matches!(&ended, RunEnd::Failed(text) if text.contains("UTF-8")), "{ended:?}");
    }

    /// Rule: every size has a limit.
    #[tokio::test]
    async fn too_much_output_ends_the_command() {
        let (ended, _) = run("yes; sleep 600", "{}").await;
        assert!(matches!(&ended, RunEnd::Failed(text) if text.contains("8 MiB")), "{ended:?}");
        let (ended, _) = run("head -c 100000 /dev/zero >&2; exit 1", "{}").await;
        assert!(matches!(&ended, RunEnd::Failed(text) if text.len() < 5000), "{ended:?}");
    }

    /// Rule: a cancelled call leaves no process behind.
    #[tokio::test]
    async fn a_cancelled_command_ends_with_its_whole_group() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pid");
        let script = format!("sleep 600 & echo $! > {0}.new; mv {0}.new {0}; wait", path.display());
        let program = Program { name: "sh".into(), arguments: vec!["-c".into(), script.into()] };
        let stop = CancellationToken::new();
        let (progress, _told) = watch::channel(None);
        let running = program.run(b"{}", progress, &stop, Screen::new(true));
        let stopping = async {
            while !path.exists() {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
            stop.cancel();
        };
        let (ended, ()) = tokio::join!(running, stopping);
        assert_eq!(ended, RunEnd::Cancelled);
        let pid = std::fs::read_to_string(&path).unwrap().trim().to_owned();
        // Killed; the process that inherited it may take a moment to reap it.
        let is_gone = || match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
            Ok(stat) => stat.contains(") Z "),
            Err(_) => true,
        };
        while !is_gone() {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    #[test]
    fn progress_is_a_number_and_a_text() {
        let read = |line: &str| Progress::read(line).map(|read| (read.percent, read.message));
        assert_eq!(read("progress: 40 reading"), Some((40.0, "reading".to_owned())));
        assert_eq!(read("progress:99.5%"), Some((99.5, String::new())));
        for other in ["progress: soon", "progress: 101", "progress: -1 x", "progress: NaN", "x 40"]
        {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
