//! `cargo xtask check`: everything that must hold before a commit. It never writes to the sources.

use std::process::{Command, Stdio};

use crate::skipped::Skipped;
use crate::steps::{Outcome, Steps};
use crate::{Run, Subcommand, tidy};

pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "check",
    about: "Check format, lints, tidy, tests, doctests, docs; writes nothing",
    run: Run::Alone(run),
};

pub(crate) fn run(steps: &mut Steps) -> Outcome {
    steps.command("format", steps.cargo("fmt --all --check"))?;
    steps.command(
        "lints",
        steps.cargo("clippy --release --workspace --all-targets -- -D warnings"),
    )?;
    tidy::run(steps)?;
    tests(steps)?;
    steps.command("doctests", steps.cargo("test --release --workspace --doc --quiet"))?;
    let mut docs = steps.cargo("doc --release --workspace --no-deps --quiet");
    docs.env("RUSTDOCFLAGS", "-D warnings");
    steps.command("docs", docs)
}

fn tests(steps: &mut Steps) -> Outcome {
    let skipped = Skipped::in_workspace(steps.root());
    let ran = run_tests(steps, &skipped);
    // The tests' container engine would end on its own, but later.
    let mut engine = Command::new("python3");
    engine.args(["tests/docker/engine.py", "down"]);
    let ended = steps.command("stop the container engine", engine);
    ran.and(ended)?;
    steps.function("skipped tests", |_| skipped.check())
}

/// nextest runs each test in its own process and stops one that hangs; `cargo test` is the fallback
/// that every toolchain has.
fn run_tests(steps: &mut Steps, skipped: &Skipped) -> Outcome {
    let mut tests = if nextest_is_installed(steps.cargo("nextest --version")) {
        steps.cargo("nextest run --release --workspace")
    } else {
        println!("\ncargo-nextest is not installed: `cargo test` runs the tests, without timeouts");
        steps.cargo("test --release --workspace --lib --bins --tests --quiet")
    };
    skipped.record(&mut tests);
    steps.command("tests", tests)
}

fn nextest_is_installed(mut version: Command) -> bool {
    version
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
