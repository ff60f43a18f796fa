//! `cargo xtask conformance`: the official MCP suite against the built daemon.

use crate::steps::{Outcome, Steps};
use crate::{Run, Subcommand, interop, prepare};

pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "conformance",
    about: "Run the official MCP suite; known exceptions are listed and must stay the same",
    run: Run::Alone(run),
};

pub(crate) fn run(steps: &mut Steps) -> Outcome {
    prepare::run(steps)?;
    interop::build(steps)?;
    let mut suite = interop::script(steps, "tests/interop/mcp_conformance.py");
    suite.arg(prepare::node_dir(steps.root()));
    steps.command("conformance", suite)
}
