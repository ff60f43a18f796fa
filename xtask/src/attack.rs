//! `cargo xtask attack`: the attack suite against the built daemon, as root. The slow profile takes
//! hours and has to be requested: `cargo xtask attack --slow [--rounds N] [--minutes N] [NAME…]`.

use crate::steps::{Outcome, Steps};
use crate::{Run, Subcommand, interop, prepare};

pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "attack",
    about: "Attack the built daemon from outside and from sandboxes; --slow for the long profile",
    run: Run::With(run),
};

fn run(steps: &mut Steps, arguments: &[&str]) -> Outcome {
    prepare::run(steps)?;
    interop::build(steps)?;
    suite(steps, arguments)
}

/// Runs the suite alone; the daemon has to be built.
pub(crate) fn suite(steps: &mut Steps, arguments: &[&str]) -> Outcome {
    let mut suite = interop::script(steps, "tests/attack/main.py");
    suite.args(arguments);
    steps.command("attack", suite)
}
