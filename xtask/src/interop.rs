//! `cargo xtask interop`: programs that are not ours talk to a real daemon: a Python script that knows
//! only the wire, and the official SDKs of MCP.

use std::process::Command;

use crate::steps::{Outcome, Steps};
use crate::{Run, Subcommand, prepare};

pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "interop",
    about: "Let Python with pyzmq, and the SDKs of MCP, talk to the built daemon",
    run: Run::Alone(run),
};

pub(crate) fn run(steps: &mut Steps) -> Outcome {
    prepare::run(steps)?;
    steps.command("build", steps.cargo("build --release --package ringback"))?;
    steps.command("interop", script(steps, "tests/interop/hoot01.py"))?;
    let mut sdks = script(steps, "tests/interop/mcp_sdks.py");
    sdks.arg(prepare::node_dir(steps.root()));
    steps.command("interop of MCP", sdks)
}

/// A Python script that is given the built daemon.
pub(crate) fn script(steps: &Steps, path: &str) -> Command {
    let mut script = Command::new(prepare::python(steps.root()));
    script.args([path, "target/release/ringback"]);
    // The sources stay as they are, also beside them.
    script.env("PYTHONDONTWRITEBYTECODE", "1");
    script
}
