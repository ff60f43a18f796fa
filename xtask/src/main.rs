//! The project's own commands: `cargo xtask check`, `fix`, `ci`, `tidy`, `golden`, `interop`,
//! `conformance`, `attack`, `agents`, `bench`, `sim`.
//!
//! Each subcommand is a file with one [`Subcommand`] row; [`SUBCOMMANDS`] is the only list of them.
//!
//! Invariants:
//! * `check` and `tidy` never write outside `target/`.
//! * The first failing step ends the run, and its exit code is the exit code of `xtask`.
//! * Nothing is fetched except packages, by name, from the package registries.

#![expect(clippy::print_stdout, reason = "a command line tool prints to stdout")]
#![expect(clippy::print_stderr, reason = "a command line tool reports errors on stderr")]

mod agents;
mod attack;
mod bench;
mod check;
mod ci;
mod conformance;
mod fix;
mod golden;
mod interop;
mod prepare;
mod sim;
mod skipped;
mod steps;
mod tidy;

use std::process::ExitCode;

use steps::{Outcome, Steps};

/// A subcommand of `cargo xtask`.
struct Subcommand {
    name: &'static str,
    about: &'static str,
    run: Run,
}

/// The function of a subcommand.
enum Run {
    /// It takes no arguments.
    Alone(fn(&mut Steps) -> Outcome),
    /// It passes its arguments on, and the program that gets them checks them.
    With(fn(&mut Steps, &[&str]) -> Outcome),
}

const SUBCOMMANDS: &[Subcommand] = &[
    check::SUBCOMMAND,
    fix::SUBCOMMAND,
    ci::SUBCOMMAND,
    tidy::SUBCOMMAND,
    golden::SUBCOMMAND,
    interop::SUBCOMMAND,
    conformance::SUBCOMMAND,
    attack::SUBCOMMAND,
    agents::SUBCOMMAND,
    bench::SUBCOMMAND,
    sim::SUBCOMMAND,
];

/// The usage error of `sysexits.h`.
const EXIT_USAGE: u8 = 64;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] | ["--help" | "-h" | "help"] => {
            print!("{}", help());
            ExitCode::SUCCESS
        }
        [name, rest @ ..] => match SUBCOMMANDS.iter().find(|subcommand| subcommand.name == *name) {
            Some(Subcommand { run: Run::Alone(_), .. }) if !rest.is_empty() => {
                usage(&format!("`{name}` takes no arguments"))
            }
            Some(subcommand) => run(subcommand, rest),
            None => usage(&format!("unknown subcommand `{name}`")),
        },
    }
}

fn run(subcommand: &Subcommand, arguments: &[&str]) -> ExitCode {
    let mut steps = match Steps::in_workspace() {
        Ok(steps) => steps,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            return ExitCode::FAILURE;
        }
    };
    let outcome = match subcommand.run {
        Run::Alone(run) => run(&mut steps),
        Run::With(run) => run(&mut steps, arguments),
    };
    print!("{}", steps.summary());
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => {
            eprintln!("xtask {}: step `{}` failed", subcommand.name, failed.step);
            ExitCode::from(failed.code)
        }
    }
}

fn usage(complaint: &str) -> ExitCode {
    eprint!("xtask: {complaint}\n\n{}", help());
    ExitCode::from(EXIT_USAGE)
}

fn help() -> String {
    let mut text = "Usage: cargo xtask SUBCOMMAND [ARGUMENTS]\n\n".to_owned();
    for Subcommand { name, about, .. } in SUBCOMMANDS {
        text.push_str(&format!("  {name:<11} {about}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_names_every_subcommand_once() {
        for subcommand in SUBCOMMANDS {
            let line = format!("\n  {:<11} ", subcommand.name);
            assert_eq!(help().matches(&line).count(), 1, "{}", subcommand.name);
        }
    }
}
