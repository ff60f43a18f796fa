//! Who owns a task, in which order everything ends, and the HTTP listener that edges hang their
//! routers on. Nothing here knows what a tool, a job or a session is: this crate gives the other
//! parts a place to run in and a way to be stopped without losing what they had begun.
//!
//! Main types:
//!
//! * [`Stage`]: a named group of tasks with one cancellation token; [`Spawner`] adds to it.
//! * [`Shutdown`]: the five stages of the daemon, stopped outside in; [`Phase`] says where it is.
//! * [`HttpListener`]: bind, accept, check `Host` and `Origin`, bound the body, drain.
//! * [`OpenFiles`]: how many there may be, and what of them connections may use.
//! * [`PrivateSocket`]: a Unix socket that only this user's processes reach.
//! * [`Secret`]: a value that never prints itself.
//! * [`chain`]: an error with all its causes on one line.
//!
//! Invariants:
//!
//! * No task is detached: each one belongs to a stage or to its listener, and is joined or aborted
//!   by it. A task that panics is logged by name and counted, never lost.
//! * A stage is told to stop only after every stage outside it has ended, so that an edge may still
//!   call the core while it drains.
//! * Beyond loopback HTTP is TLS, or the configuration states that a proxy with TLS stands in front.
//! * No request reaches a router unless its `Host` and `Origin` are on the lists.
//! * This crate never reads the environment and never prints.

mod chain;
pub mod http;
mod open_files;
mod secret;
mod shutdown;
mod stage;
mod unix;

pub use chain::chain;
pub use http::{BindError, HttpConfig, HttpListener, Stop, Tls, TlsError};
pub use open_files::OpenFiles;
pub use secret::Secret;
pub use shutdown::{Graces, Layer, Phase, Shutdown, StageReport};
pub use stage::{Panics, Spawner, Stage, StageClosed, Stopped, TaskPanic};
pub use unix::{PrivateSocket, SocketFile, accept_until};
