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
        ("interop of agents in sessions", "tests/interop/session_agents.py"),
        ("interop of callers", "tests/interop/caller_tools.py"),
        ("interop of the seeds' clients", "tests/interop/seed_clients.py"),
    ] {
        let mut with_node = script(steps, path);
        with_node.arg(prepare::node_dir(steps.root()));
        steps.command(name, with_node)?;
    }
    let mut api = script(steps, "tests/interop/api.py");
    api.arg("schemas/openapi.json");
    steps.command("interop of the API document", api)
}

/// Builds the daemon with the tests of the workspace: alone it would have other features of its
/// dependencies, and be compiled a second time.
pub(crate) fn build(steps: &mut Steps) -> Outcome {
    steps.command("build", steps.cargo("test --release --workspace --no-run --quiet"))
}

/// A Python script that is given the built daemon.
pub(crate) fn script(steps: &Steps, path: &str) -> Command {
    let mut script = Command::new(prepare::python(steps.root()));
    script.args([path, "target/release/ringback"]);
    // The sources stay as they are, also beside them.
    script.env("PYTHONDONTWRITEBYTECODE", "1");
    script
}
