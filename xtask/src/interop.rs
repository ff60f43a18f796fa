//! `cargo xtask interop`: foreign programs talk to a real daemon: a Python script that knows only
//! the wire format, a TypeScript program that offers tools, the official MCP SDKs, and agents.

use std::process::Command;

use crate::steps::{Outcome, Steps};
use crate::{Run, Subcommand, prepare};

pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "interop",
    about: "Test Python, TypeScript, the MCP SDKs and agents against the built daemon",
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

/// Builds the daemon with the tests of the workspace: on its own it would have other dependency
/// features, and be compiled a second time.
pub(crate) fn build(steps: &mut Steps) -> Outcome {
    steps.command("build", steps.cargo("test --release --workspace --no-run --quiet"))
}

/// Returns the command for a Python script with the built daemon as its argument.
pub(crate) fn script(steps: &Steps, path: &str) -> Command {
    let mut script = Command::new(prepare::python(steps.root()));
    script.args([path, "target/release/ringback"]);
    // Writes nothing next to the sources.
    script.env("PYTHONDONTWRITEBYTECODE", "1");
    script
}
