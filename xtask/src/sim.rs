//! `cargo xtask sim --seed N [--rounds R]`: the deterministic simulator, for one seed or many.

use crate::steps::{Outcome, Steps};
use crate::{Run, Subcommand};

pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "sim",
    about: "Run the simulator: --seed N [--rounds R] [--history FROM]; a seed always runs the same",
    run: Run::With(run),
};

fn run(steps: &mut Steps, arguments: &[&str]) -> Outcome {
    let mut simulator = steps.cargo("run --release --quiet --package ringback-sim --");
    simulator.args(arguments);
    steps.command("sim", simulator)
}
