//! Starts a program in a box: with a system that it can read, a workspace that it can write, the
//! directory of its session, and nothing else of this machine. Limits what it may use, and ends it
//! with everything it started. Boxes are made by bubblewrap, or by a container engine.
//!
//! Main types:
//!
//! * [`Sandbox`]: makes boxes. It finds out what this machine can give, and cleans up.
//! * [`SandboxSpec`], [`Limits`]: what to run, and how far it may go.
//! * [`Confined`]: a program that runs in its box, with its three pipes; [`Hold`] ends the box, and
//!   [`BoxHandle`] reaches it.
//! * [`Probe`]: which [`Layer`]s this machine gives, and how to get those that are missing.
//!
//! Invariants:
//!
//! * A layer that was promised and cannot be given is an error before the program runs. Nothing is
//!   left out silently.
//! * Every box has a first process of its own. When that is gone, so is everything in the box; and it
//!   goes with its [`Hold`]. One of bubblewrap's also goes with the process that started it; a container
//!   at the latest with the next start of that process, which finds it by its labels.
//! * Bubblewrap is started from one thread that lives as long as the [`Sandbox`]: the system ends a
//!   child with the *thread* that started it.
//! * What a box leaves outside of it (control groups) is written down before it is made, so that the
//!   next start finds it.
//! * A container is one box's, and nothing of it is kept: no log, no volume, no change of its image.
//! * What the kernel counts by user is not one box's: the one that uses it up is ended.
//! * Neither the environment of a box nor what is mounted in it can be seen in a list of processes.
//! * No agent, session or tool is known here.

mod bubblewrap;
mod cgroups;
mod confined;
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
mod watches;

pub use confined::{BoxHandle, Confined, Hold, Input, Output, Pipes};
pub use error::{BuildError, EngineError, ExecError, OpenError, StartError};
pub use exec::{Captured, ExecEnd, ExecSpec, Executed};
pub use image::{BuildNetwork, BuildSpec, BuiltImage};
pub use probe::{Layer, LayerReport, LayerState, Probe};
pub use process::Process;
pub use sandbox::{BackendChoice, BackendKind, DockerSettings, Sandbox, SandboxSettings};
pub use spec::{Limits, Network, ReadOnly, SandboxSpec, Workspace, places};
