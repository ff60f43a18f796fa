//! The `ringback` command: parses the command line, runs it, and sets the exit code.

use std::process::ExitCode;

use clap::Parser;
use ringback::cli::Cli;
use ringback::commands;
use ringback::config::Environment;
use ringback::failure::Failure;
use ringback::screen::remark;

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(on_panic));
    if let Some(code) = ringback::session_programs::run(std::env::args_os()) {
        return code;
    }
    let command = Cli::parse().command;
    let json = command.wants_json();
    let environment = Environment::of_process();
    let done = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|source| Failure::System { action: "start threads", source })
        .and_then(|runtime| runtime.block_on(commands::run(command, &environment)));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(report) = failure.report(json) {
                remark(report);
            }
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Reports a panic as a bug, on one line, in the log if there is one.
fn on_panic(panic: &std::panic::PanicHookInfo<'_>) {
    let message = panic.payload_as_str().unwrap_or("no message");
    let location = panic.location().map(ToString::to_string).unwrap_or_default();
    if tracing::dispatcher::has_been_set() {
        tracing::error!(message, location, "panicked; this is a bug");
    } else {
        remark(format_args!("bug: {message} ({location}); please report it"));
    }
}
