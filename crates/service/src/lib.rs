//! The owner of every task, the order in which everything ends, and the HTTP listener for the
//! edges' routers. Nothing here knows tools, jobs or what a session does: this crate runs the other
//! parts and stops them without losing the work they started.
//!
//! Main types:
//!
//! * [`Stage`]: a named group of tasks with one cancellation token; [`Spawner`] adds to it.
//! * [`Shutdown`]: the five stages of the daemon, stopped from the outside in; [`Phase`] is the
//!   current state.
//! * [`HttpListener`]: bind, accept, check `Host` and `Origin`, bound the body, drain.
//! * [`OpenFiles`]: the limit of open files, and the share for connections.
//! * [`SessionSockets`]: a Unix socket per session that only this user's processes can reach;
//!   [`SessionSocket`] is one of them.
//!
//! Invariants:
//!
//! * No task is detached: each one belongs to a stage or to its listener, and is joined or aborted
//!   by it. A task that panics is logged by name and counted, never lost.
//! * A stage is stopped only after every stage outside it has ended, so that an edge may still call
//!   the core while it drains.
//! * On a non-loopback address HTTP uses TLS, or the configuration states that a proxy with TLS
//!   stands in front.
//! * No request reaches a router unless its `Host` and `Origin` are on the lists.
//! * This crate never reads the environment and never prints.

pub mod http;
mod open_files;
mod session_socket;
mod shutdown;
mod stage;
mod unix;

pub use http::{BindError, HttpConfig, HttpListener, Stop, Tls, TlsError};
pub use open_files::OpenFiles;
pub use session_socket::{Place, SessionSocket, SessionSockets, SocketHandler, SocketScope};
pub use shutdown::{Graces, Layer, Phase, Shutdown, StageReport};
pub use stage::{Panics, Spawner, Stage, StageClosed, StageEnd, TaskPanic};
