//! The program in the sandbox: an MCP server of both eras on standard input and output. Its tools
//! are those that the daemon offers to this session on a Unix socket, or at a URL. The tools of
//! callers are `{caller_id}_{tool}`, those of the daemon, with a key, `oubliette_{tool}`.
//!
//! Main types:
//!
//! * [`Options`]: the address of the session ([`Target`]) and its [`Key`]; [`Parsed`] reads them.
//! * [`run`] serves until the agent closes its end; [`main_entry`] is the whole program.
//! * [`Forward`] and [`forward`]: a second function, an address for the session's model while a
//!   command runs; and [`wait`], which does nothing.
//! * `Server` implements the protocol; it has no IO and is given the time. `Shell` has the pipes
//!   and the socket, and does what `Server` decided.
//! * `Remote`: a session at a URL, which behaves like one at a socket for the rest of the program.
//! * `Catalog`: the tools and their names.
//!
//! Invariants:
//!
//! * One thread. A call is an entry in a table: a slow one delays no other.
//! * Every accepted call is answered once, whatever becomes of the daemon.
//! * Payloads pass unchanged.
//! * The key is in no argument, no log line and no message to the agent.
//! * Lines, tables and queues have limits, and hitting one is an answer.

mod calls;
mod catalog;
mod forward;
mod lines;
mod options;
mod outbox;
mod relay;
mod result;
mod server;
mod shell;
mod stdio;
mod url;
mod wait;

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

pub use forward::{Forward, forward};
pub use options::{Key, Options, Parsed, Target, UsageError};
pub use ringback_mcp_bridge::Uri;
pub use shell::run;
pub use wait::wait;

/// The exit code of `sysexits.h` for wrong usage.
const EXIT_USAGE: u8 = 64;

/// The whole program: reads the arguments (without the program's own name) and the environment, and
/// serves standard input and output until the agent closes its end, or runs the command that they
/// name.
///
/// # Panics
/// Never: a runtime of one thread needs nothing that could be missing but memory.
pub fn main_entry(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let parsed = match Parsed::read(args, |name| std::env::var(name).ok()) {
        Ok(parsed) => parsed,
        Err(error) => {
            log(&error.to_string());
            return ExitCode::from(EXIT_USAGE);
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            log(&format!("cannot start: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let code = match parsed {
        Parsed::Run(options) => runtime.block_on(run(options)),
        Parsed::Forward(options) => runtime.block_on(forward(&options, std::env::vars_os())),
        Parsed::Wait => runtime.block_on(wait()),
        Parsed::Say(text) => {
            drop(writeln!(std::io::stdout(), "{text}"));
            ExitCode::SUCCESS
        }
    };
    // A read of a terminal or a file may still be running on its own thread.
    runtime.shutdown_background();
    code
}

/// Writes one line to the log of the agent's parent. It never contains the key or a payload.
fn log(line: &str) {
    // No one may read it, which is not a reason to stop.
    drop(writeln!(std::io::stderr(), "ringback-inside: {line}"));
}
