//! The programs in this binary that run in a session: they have their own runtime, options and exit
//! codes, so they are started before anything else is read.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::cli::{INSIDE, SCRIPTED};

/// Runs one of these programs if the arguments (the program's name first) ask for it.
#[must_use]
pub fn run(args: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut args = args.into_iter().skip(1);
    let first = args.next()?;
    match first.to_str()? {
        INSIDE => Some(ringback_inside::main_entry(args)),
        SCRIPTED => Some(ringback_agents::scripted::main_entry(args)),
        _ => None,
    }
}
