//! `cargo xtask agents`: runs agents whose packages are too large for daily use in sessions.

use crate::steps::{Outcome, Steps};
use crate::{Run, Subcommand, interop, prepare};

pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "agents",
    about: "Run Claude Code, Codex and Gemini CLI as agents of sessions; downloads about 800 MB",
    run: Run::Alone(run),
};

fn run(steps: &mut Steps) -> Outcome {
    prepare::run(steps)?;
    prepare::node_packages(steps, prepare::OTHER_AGENTS)?;
    interop::build(steps)?;
    let mut script = interop::script(steps, "tests/interop/other_agents.py");
    script.arg(prepare::OTHER_AGENTS.dir(steps.root()));
    steps.command("other agents in sessions", script)
}
