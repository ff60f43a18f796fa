//! `ringback-inside`, also started as `oubliette-client`: the MCP server in the sandbox.

use std::process::ExitCode;

fn main() -> ExitCode {
    ringback_inside::main_entry(std::env::args_os().skip(1))
}
