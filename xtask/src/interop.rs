//! `cargo xtask interop`: programs that are not ours talk to a real daemon: a Python script that knows
//! only the wire, a TypeScript program that offers tools, the official SDKs of MCP, and agents.

use std::process::Command;

use crate::steps::{Outcome, Steps};
use crate::{Run, Subcommand, prepare};

pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "interop",
    about: "Let Python, TypeScript, the SDKs of MCP and agents talk to the built daemon",
    run: Run::Alone(run),
};

pub(crate) fn run(steps: &mut Steps) -> Outcome {
    prepare::run(steps)?;
    build(steps)?;
    steps.command("interop", script(steps, "tests/interop/hoot01.py"))?;
    for (name, path) in [
        ("interop of client tools", "tests/interop/client_tools.py"),
        ("interop of MCP", "tests/interop/mcp_sdks.py"),
        ("interop of agents", "tests/interop/agents.py"),
    ] {
        let mut with_node = script(steps, path);
        with_node.arg(prepare::node_dir(steps.root()));
        steps.command(name, with_node)?;
    }
    Ok(())
}

/// Builds the daemon as the tests of the workspace do, so that nothing is compiled twice.
pub(crate) fn build(steps: &mut Steps) -> Outcome {
    steps.command("build", steps.cargo("build --release --workspace --bins"))
}

/// A Python script that is given the built daemon.
pub(crate) fn script(steps: &Steps, path: &str) -> Command {
    let mut script = Command::new(prepare::python(steps.root()));
    script.args([path, "target/release/ringback"]);
    // The sources stay as they are, also beside them.
    script.env("PYTHONDONTWRITEBYTECODE", "1");
    script
}
