//! The parts of the `ringback` binary: its configuration, its telemetry, the daemon as a whole and
//! the command line. The tools live in other crates; this one only configures them and shows their
//! answers.
//!
//! Main types:
//!
//! * [`config::Config`]: every setting, checked as a whole; [`config::ServeFlags`] overrides it.
//! * [`telemetry::Telemetry`]: logs, traces and metrics of the process.
//! * [`daemon::Daemon`]: everything `serve` runs, started whole and stopped in stages.
//! * [`cli::Cli`]: the command line; [`commands::run()`] runs it.
//! * [`failure::Failure`]: the failure of a command, and its exit code.
//!
//! Invariants:
//!
//! * A configuration is checked whole before anything is bound, created or started.
//! * No setting is read from the process environment outside [`config::Environment`]; only
//!   [`screen::Screen`] looks for itself at what describes the terminal.
//! * Secrets are masked wherever settings are shown; a token is never an argument, and only `token
//!   create` prints one.
//! * Answers go to standard output, remarks and progress to standard error.

mod arguments;
mod background;
pub mod cli;
pub mod commands;
pub mod config;
mod confinement;
pub mod connection;
pub mod daemon;
pub mod failure;
mod feed;
mod followed_call;
mod nearest;
pub mod pick;
mod progress;
mod repository;
mod running;
pub mod screen;
pub mod session_programs;
pub mod telemetry;
mod units;
