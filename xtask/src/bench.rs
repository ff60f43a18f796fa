//! `cargo xtask bench`: measures the built daemon against the bare alternatives.

use std::process::Command;

use crate::steps::{Outcome, Steps};
use crate::{Run, Subcommand};

pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "bench",
    about: "Measure the daemon; `bench --help` names the benchmarks",
    run: Run::With(run),
};

fn run(steps: &mut Steps, arguments: &[&str]) -> Outcome {
    // As the tests are built: alone, it would have other features of its dependencies, and all of them
    // would be compiled a second time.
    let build = "build --release --workspace --bins --tests";
    steps.command("build", steps.cargo(build))?;
    let mut bench = Command::new(steps.root().join("target/release/ringback-bench"));
    bench.args(arguments);
    steps.command("bench", bench)
}
