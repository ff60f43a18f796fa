//! The program inside: the time until it has listed its tools, against a bare static echo, and its
//! size on disk and in memory.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::Context;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;

use crate::circle::{Circle, Session};
use crate::figure::{Figure, Line, Round};
use crate::process::{Server, status_mib_of};
use crate::settings::Settings;

/// Starts per round.
const STARTS: usize = 100;
const MIB: f64 = 1024.0 * 1024.0;

/// Measures starts, size and memory.
pub(crate) async fn run(settings: &Settings) -> anyhow::Result<Vec<Figure>> {
    let dir = settings.temporary()?;
    let echo = built_static(dir.path(), "echo", include_str!("echo.c"))?;
    let inside = built(settings)?;
    let server = Server::daemon(settings, dir.path(), dir.path())?;
    let session = Session::open(&server).await?;
    let mut rounds = Vec::new();
    let mut resident_mib = f64::MIN;
    for _ in 0..settings.n_rounds {
        let (mut bare, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..settings.size(STARTS) {
            bare.push(start_echo(&echo).await?);
            let start = Instant::now();
            let program = (inside.clone(), Vec::new());
            let started = Circle::start(program, &session.socket, "me_echo").await?;
            ours.push(start.elapsed());
            resident_mib = resident_mib.max(status_mib_of(started.process()?, "VmRSS:")?);
        }
        rounds.push(Round { bare: median_us(bare), ours: median_us(ours) });
    }
    let size_mib = std::fs::metadata(&inside)?.len() as f64 / MIB;
    Ok(vec![
        Figure::ratio("inside: start to tools listed", "µs", &rounds, Line::AtMost(4.0)),
        Figure::value("inside: binary", "MiB", size_mib, Line::AtMost(4.0)),
        Figure::value("inside: resident", "MiB", resident_mib, Line::AtMost(4.0)),
    ])
}

/// Measures from the start to the echo of one input line.
async fn start_echo(program: &Path) -> anyhow::Result<Duration> {
    let start = Instant::now();
    let mut echo = Command::new(program)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    echo.stdin.as_mut().context("the echo has no input")?.write_all(b"hello\n").await?;
    let mut line = String::new();
    BufReader::new(echo.stdout.take().context("the echo has no output")?)
        .read_line(&mut line)
        .await?;
    anyhow::ensure!(line == "hello\n", "unexpected output of the echo: `{line}`");
    Ok(start.elapsed())
}

/// Builds a small static program in C.
pub(crate) fn built_static(dir: &Path, name: &str, text: &str) -> anyhow::Result<PathBuf> {
    let (source, program) = (dir.join(name).with_extension("c"), dir.join(name));
    std::fs::write(&source, text)?;
    let mut cc = std::process::Command::new("cc");
    let built = cc.args(["-O2", "-static", "-o"]).arg(&program).arg(&source).status();
    anyhow::ensure!(built.context("`cc` not found")?.success(), "cannot build `{name}.c`");
    Ok(program)
}

/// Returns the path of the static program that is embedded in the daemon, in its build directory.
pub(crate) fn built(settings: &Settings) -> anyhow::Result<PathBuf> {
    let below = settings.dir.with_file_name("inside-static");
    let targets = std::fs::read_dir(&below).with_context(|| format!("no `{}`", below.display()))?;
    let mut found = targets.flatten().map(|target| target.path().join("inside/ringback-inside"));
    found.find(|program| program.exists()).context("the program inside is not built")
}

/// Returns the median, in microseconds.
pub(crate) fn median_us(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e6
}
