//! `ringback-sim`: simulates seeds, one after another, until one breaks a promise.

#![expect(clippy::print_stdout, reason = "a command line tool prints to stdout")]
#![expect(clippy::print_stderr, reason = "a command line tool reports errors on stderr")]

use std::process::ExitCode;

use ringback_sim::history::HistoryEvent;
use ringback_sim::{Run, run};

/// The usage error of `sysexits.h`.
const EXIT_USAGE: u8 = 64;
/// How many entries of a history are shown before a violation.
const TAIL: usize = 40;
const USAGE: &str = "Usage: ringback-sim --seed N [--rounds R] [--history FROM]";

/// The command line.
struct Options {
    seed: u64,
    rounds: u64,
    /// Show the history from this entry on.
    history: Option<usize>,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(Options { seed, rounds, history }) = read(&arguments) else {
        eprintln!("{USAGE}");
        return ExitCode::from(EXIT_USAGE);
    };
    for seed in seed..seed.saturating_add(rounds) {
        let run = run(seed);
        if let Some(from) = history {
            print!("{}", shown(&run, from, usize::MAX));
        }
        println!("{}", summary(&run));
        if !run.violations.is_empty() {
            print!("{}", tail(&run));
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn read(arguments: &[String]) -> Option<Options> {
    let (mut seed, mut rounds, mut history) = (None, 1, None);
    for pair in arguments.chunks(2) {
        let [name, value] = pair else { return None };
        match name.as_str() {
            "--seed" => seed = Some(value.parse().ok()?),
            "--rounds" => rounds = value.parse().ok()?,
            "--history" => history = Some(value.parse().ok()?),
            _ => return None,
        }
    }
    Some(Options { seed: seed?, rounds, history })
}

fn summary(run: &Run) -> String {
    let history = &run.history;
    let n_calls = history.calls().count();
    let n_crashes = history.count(|what| matches!(what, HistoryEvent::Crashed));
    let n_faults = history.count(|what| matches!(what, HistoryEvent::DiskFull));
    let n_events = history.announced().count();
    let verdict = match run.violations.len() {
        0 => "OK".to_owned(),
        n_violations => format!("{n_violations} VIOLATIONS"),
    };
    format!(
        "seed {}: {n_calls} calls, {n_crashes} crashes, {n_faults} refused commits, {n_events} \
         events, digest {:016x}: {verdict}",
        run.seed,
        history.digest()
    )
}

/// Returns the violations, and the entries before the first.
fn tail(run: &Run) -> String {
    let first = run.violations.first().map_or(0, |violation| violation.entry);
    let mut text = shown(run, first.saturating_sub(TAIL), TAIL + 1);
    for violation in &run.violations {
        text.push_str(&format!("{violation}\n"));
    }
    text.push_str(&format!("reproduce with: cargo xtask sim --seed {}\n", run.seed));
    text
}

fn shown(run: &Run, from: usize, count: usize) -> String {
    let entries = run.history.entries.iter().enumerate().skip(from).take(count);
    entries
        .map(|(index, entry)| format!("{index:>6} {}:{} {:?}\n", entry.life, entry.at, entry.what))
        .collect()
}
