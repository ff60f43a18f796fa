//! `cargo xtask bench`: measures the built daemon against bare alternatives.

use std::process::Command;

use crate::steps::{Outcome, Steps};
use crate::{Run, Subcommand};

pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "bench",
    about: "Measure the daemon; `bench --help` lists the benchmarks",
    run: Run::With(run),
};

fn run(steps: &mut Steps, arguments: &[&str]) -> Outcome {
    // Measures the build that is meant for use.
    let build = "build --profile dist --package ringback --package ringback-bench";
    steps.command("build", steps.cargo(build))?;
    let mut bench = Command::new(steps.root().join("target/dist/ringback-bench"));
    bench.args(arguments);
    steps.command("bench", bench)
}
