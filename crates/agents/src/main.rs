//! `ringback-scripted-agent`: an agent that runs a script.

use std::process::ExitCode;

fn main() -> ExitCode {
    ringback_agents::scripted::main_entry(std::env::args_os().skip(1))
}
