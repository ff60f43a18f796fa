//! Runs steps one after another: a heading, the command, its wall time, and a table at the end.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Context;

/// The result of a subcommand, or of one of its steps.
pub(crate) type Outcome = Result<(), FailedStep>;

/// The step that ended the run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FailedStep {
    pub(crate) step: String,
    pub(crate) code: u8,
}

/// The steps of one run, in the workspace root.
#[derive(Debug)]
pub(crate) struct Steps {
    root: PathBuf,
    finished: Vec<FinishedStep>,
}

#[derive(Debug)]
struct FinishedStep {
    name: String,
    verdict: &'static str,
    took: Duration,
}

impl Steps {
    /// Returns steps in the workspace of this crate.
    pub(crate) fn in_workspace() -> anyhow::Result<Self> {
        let manifest_dir = std::env::var_os("CARGO_MANIFEST_DIR")
            .context("cannot find the workspace: run this as `cargo xtask`")?;
        let root = Path::new(&manifest_dir).parent().context("xtask has no parent directory")?;
        Ok(Self::in_directory(root))
    }

    fn in_directory(root: &Path) -> Self {
        Self { root: root.to_owned(), finished: Vec::new() }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns a `cargo` command; cargo passes its own path to its children.
    pub(crate) fn cargo(&self, arguments: &str) -> Command {
        let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(program);
        command.args(arguments.split_whitespace());
        command
    }

    /// Runs `command` in the workspace root; its exit code becomes the step's.
    pub(crate) fn command(&mut self, name: &str, mut command: Command) -> Outcome {
        println!("\n== {name}\n$ {}", shown(&command));
        let start = Instant::now();
        let code = match command.current_dir(&self.root).status() {
            Ok(status) if status.success() => None,
            // A child ended by a signal has no code; a shell would report 128 + signal.
            Ok(status) => Some(status.code().and_then(|code| u8::try_from(code).ok())),
            Err(error) => {
                eprintln!("cannot start `{}`: {error}", shown(&command));
                Some(None)
            }
        };
        self.finish(name, start, code.map(|code| code.unwrap_or(1)))
    }

    /// Runs a function of this program as a step.
    pub(crate) fn function(
        &mut self,
        name: &str,
        body: impl FnOnce(&Path) -> anyhow::Result<()>,
    ) -> Outcome {
        println!("\n== {name}");
        let start = Instant::now();
        let result = body(&self.root);
        if let Err(error) = &result {
            eprintln!("{error:#}");
        }
        self.finish(name, start, result.err().map(|_| 1))
    }

    /// Returns the table of all steps so far; empty for fewer than two steps.
    pub(crate) fn summary(&self) -> String {
        if self.finished.len() < 2 {
            return String::new();
        }
        let total: Duration = self.finished.iter().map(|step| step.took).sum();
        let mut table = "\n== summary\n".to_owned();
        for FinishedStep { name, verdict, took } in &self.finished {
            table.push_str(&format!("{verdict:<8} {:>8.1} s  {name}\n", took.as_secs_f64()));
        }
        table.push_str(&format!("{:<8} {:>8.1} s\n", "total", total.as_secs_f64()));
        table
    }

    fn finish(&mut self, name: &str, start: Instant, failed: Option<u8>) -> Outcome {
        let took = start.elapsed();
        let verdict = if failed.is_none() { "ok" } else { "FAILED" };
        println!("-- {name}: {verdict} after {:.1} s", took.as_secs_f64());
        self.finished.push(FinishedStep { name: name.to_owned(), verdict, took });
        match failed {
            None => Ok(()),
            Some(code) => Err(FailedStep { step: name.to_owned(), code }),
        }
    }
}

/// Returns the command as a person would type it.
fn shown(command: &Command) -> String {
    let variables = command.get_envs().map(|(key, value)| {
        format!("{}={}", key.display(), quoted(value.unwrap_or_else(|| OsStr::new(""))))
    });
    let program = Path::new(command.get_program());
    let program = if program.is_absolute() { program.file_name() } else { None }
        .unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args()).map(quoted);
    variables.chain(words).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    if word.contains(char::is_whitespace) { format!("'{word}'") } else { word.into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_failing_command_hands_on_its_exit_code() {
        let mut steps = Steps::in_directory(Path::new("/"));
        let outcome = steps.command("fails", shell("exit 7"));
        assert_eq!(outcome, Err(FailedStep { step: "fails".to_owned(), code: 7 }));
    }

    #[test]
    fn a_command_that_cannot_start_is_a_failed_step() {
        let mut steps = Steps::in_directory(Path::new("/"));
        let outcome = steps.command("absent", Command::new("no-such-program-anywhere"));
        assert_eq!(outcome, Err(FailedStep { step: "absent".to_owned(), code: 1 }));
    }

    #[test]
    fn the_summary_names_every_step_and_its_verdict() {
        let mut steps = Steps::in_directory(Path::new("/"));
        steps.command("first", shell("true")).unwrap();
        steps.function("second", |_| anyhow::bail!("on purpose")).unwrap_err();
        let summary = steps.summary();
        let verdicts: Vec<_> =
            summary.lines().filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(verdicts, ["==", "ok", "FAILED", "total"]);
    }

    #[test]
    fn a_command_is_shown_as_it_would_be_typed() {
        let mut command = shell("exit 0");
        command.env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(shown(&command), "RUSTDOCFLAGS='-D warnings' sh -c 'exit 0'");
    }
}
