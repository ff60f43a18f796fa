//! `cargo xtask ci`: the one command that proves a clone: it installs what is missing, then runs
//! everything.

use crate::steps::{Outcome, Steps};
use crate::{Run, Subcommand, check, conformance, interop, prepare};

pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "ci",
    about: "Everything: install what tests need, check, and the runs against a real daemon",
    run: Run::Alone(run),
};

fn run(steps: &mut Steps) -> Outcome {
    prepare::run(steps)?;
    check::run(steps)?;
    steps.command("demo", steps.cargo("run --release -- demo"))?;
    interop::run(steps)?;
    conformance::run(steps)
}
