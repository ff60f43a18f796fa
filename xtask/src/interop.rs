//! `cargo xtask interop`: a Python program that knows only the wire talks to a real daemon.

use std::process::Command;

use crate::steps::{Outcome, Steps};
use crate::{Run, Subcommand, prepare};

pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "interop",
    about: "Let Python, with pyzmq and msgpack, talk to the built daemon",
    run: Run::Alone(run),
};

pub(crate) fn run(steps: &mut Steps) -> Outcome {
    prepare::run(steps)?;
    steps.command("build", steps.cargo("build --release --package ringback"))?;
    let mut script = Command::new(prepare::python(steps.root()));
    script.args(["tests/interop/hoot01.py", "target/release/ringback"]);
    // The sources stay as they are, also beside them.
    script.env("PYTHONDONTWRITEBYTECODE", "1");
    steps.command("interop", script)
}
