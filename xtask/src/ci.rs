//! `cargo xtask ci`: the one command that verifies a clone: it installs what is missing, then runs
//! everything.

use std::process::Command;

use crate::steps::{Outcome, Steps};
use crate::{Run, Subcommand, attack, check, conformance, interop, prepare};

pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "ci",
    about: "Run everything: install what tests need, check, and test against a real daemon",
    run: Run::Alone(run),
};

fn run(steps: &mut Steps) -> Outcome {
    prepare::run(steps)?;
    check::run(steps)?;
    // The README's first command is only compiled; the demo runs what the tests have built.
    steps.command("first command", steps.cargo("check --release"))?;
    interop::build(steps)?;
    let mut demo = Command::new("target/release/ringback");
    demo.arg("demo");
    steps.command("demo", demo)?;
    interop::run(steps)?;
    attack::suite(steps, &[])?;
    conformance::run(steps)
}
