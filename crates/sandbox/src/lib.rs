//! Starts a program in a sandbox: with a readable system, a writable workspace, the directory of
//! its session, and nothing else of this machine. Limits its resources, and ends it with everything
//! it started. Sandboxes are made by bubblewrap or by a container engine.
//!
//! Main types:
//!
//! * [`Sandbox`]: makes sandboxes. It finds out what this machine can provide, and cleans up.
//! * [`SandboxSpec`], [`Limits`]: what to run, and its limits.
//! * [`ConfinedProgram`]: a program running in its sandbox, with its three pipes; [`SandboxGuard`]
//!   ends the sandbox, and [`BoxHandle`] reaches it.
//! * [`Toolchains`]: the toolchains of a user, and what of them a sandbox may read.
//! * [`Probe`]: which [`Layer`]s this machine provides, and how to get the missing ones.
//!
//! Invariants:
//!
//! * A promised layer that cannot be provided is an error before the program runs. Nothing is left
//!   out silently.
//! * Every sandbox has a first process of its own. When it is gone, so is everything in the
//!   sandbox; and it goes with its [`SandboxGuard`]. With bubblewrap it also goes with the process
//!   that started it; a container goes at the latest with the next start of that process, which
//!   finds it by its labels.
//! * Bubblewrap is started from one thread that lives as long as the [`Sandbox`]: the system ends a
//!   child with the *thread* that started it.
//! * What a sandbox has outside of itself (cgroups) is written down before it is made, so that the
//!   next start finds it.
//! * A container belongs to one sandbox, and nothing of it is kept: no log, no volume, no change of
//!   its image.
//! * What the kernel counts per user is shared by all sandboxes: the one that uses it up is ended.
//! * Neither the environment of a sandbox nor its mounts are visible in a process list.
//! * This crate knows no agents, sessions or tools.

mod bubblewrap;
mod cgroups;
mod confined_program;
mod docker;
mod error;
mod etc;
mod exec;
mod image;
mod leftovers;
mod mounts;
mod probe;
mod process;
mod rlimits;
mod root;
mod sandbox;
mod seccomp;
mod spawner;
mod spec;
mod sweeper;
mod toolchain;
mod watches;

pub use confined_program::{BoxHandle, ConfinedProgram, Input, Output, Pipes, SandboxGuard};
pub use error::{BuildError, EngineError, ExecError, OpenError, StartError};
pub use exec::{CapturedOutput, ExecEnd, ExecOutput, ExecSpec};
pub use image::{BuildNetwork, BuildSpec, BuiltImage};
pub use probe::{Layer, LayerReport, LayerState, Probe};
pub use process::Process;
pub use sandbox::{BackendChoice, BackendKind, DockerSettings, Sandbox, SandboxSettings};
pub use spec::{Limits, Network, ReadOnly, SandboxSpec, Workspace, places};
pub use toolchain::{FoundToolchain, Toolchains, UserPath};
