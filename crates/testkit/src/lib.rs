//! A daemon inside a test, and misbehaving peers: the parts of the scenario tests in `tests/`. No
//! other crate uses it outside its tests.
//!
//! Main types:
//!
//! * [`Daemon`]: a broker and a HOOT01 edge in a temporary directory, on ports of their own;
//!   [`Options`] has the deviations from the usual one.
//! * [`RawPeer`]: speaks ZMTP by hand over a bare TCP connection, so that it can stall, freeze and
//!   send what no library would.
//! * [`Proxy`]: sits between a client and a daemon, delays, dribbles, freezes and cuts.
//! * [`Logs`]: the logs of this process.
//!
//! Invariants:
//!
//! * Nothing here depends on the ZeroMQ library: a raw peer is a second implementation of the
//!   protocol.
//! * A wait is for a condition and has a limit; nothing sleeps and hopes.
//! * Everything that runs has an owner and ends with it.

mod daemon;
mod logs;
mod proxy;
mod raw;
mod wait;

pub use daemon::{Daemon, Options};
pub use logs::Logs;
pub use proxy::{Fault, Proxy};
pub use raw::{HandshakeError, Hello, RawPeer, envelope, parts_of};
pub use wait::{LIMIT, wait_for, within};
