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
    // What is built for use is what is measured.
    let build = "build --profile dist --package ringback --package ringback-bench";
    steps.command("build", steps.cargo(build))?;
    let mut bench = Command::new(steps.root().join("target/dist/ringback-bench"));
    bench.args(arguments);
    steps.command("bench", bench)
}
