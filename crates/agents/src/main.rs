//! `ringback-scripted-agent`: an agent that does what a script says.

use std::process::ExitCode;

fn main() -> ExitCode {
    ringback_agents::scripted::main_entry(std::env::args_os().skip(1))
}
