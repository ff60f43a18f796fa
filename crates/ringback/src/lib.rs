//! The parts of the `ringback` binary: its configuration and its telemetry. Wiring and the command
//! line build on them. Everything a tool does lives in other crates; this one only decides with
//! which settings they run.
//!
//! Main types:
//!
//! * [`config::Config`]: every setting, checked as a whole; [`config::ServeFlags`] overrides it.
//! * [`telemetry::Telemetry`]: logs, traces and metrics of the process.
//!
//! Invariants:
//!
//! * A configuration is checked whole before anything is bound, created or started.
//! * No setting is read from the process environment outside [`config::Environment`].
//! * Secrets are masked wherever settings are shown.

pub mod config;
pub mod telemetry;
