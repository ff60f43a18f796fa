//! What the tests of every crate share. No other crate uses it outside its tests.
//!
//! Without a feature it is small, and needs no other crate of the workspace:
//!
//! * [`within`], [`soon`], [`wait_for`] and [`until`] wait for something that must happen; [`pass`] moves the
//!   clock instead of waiting; [`blocking`] has the same for tests without a runtime.
//! * [`is_root`] and [`engine`]: what some tests need of the machine. A test that goes without is
//!   [`skipped`], and counted.
//!
//! With the feature `world`:
//!
//! * `World`: a broker in a temporary directory. `Setup` changes its configuration and adds the
//!   edges that a test asks for: `hoot`, `http`, `mcp` and `relay` are features too.
//! * `GatedStudio`: music tools that answer when a test says so.
//! * `plain`, `reply` and `result` call the broker itself; `Caller` runs tools for a
//!   session.
//!
//! With the feature `hoot`:
//!
//! * `RawPeer` speaks ZMTP by hand over a bare TCP connection, so that it can stall, freeze and send
//!   what no library would.
//! * `Proxy` sits between a client and a daemon, delays, dribbles, freezes and cuts.
//!
//! With the feature `logs`, `Logs` has the logs of this process.
//!
//! Invariants:
//!
//! * Nothing here depends on the ZeroMQ library: a raw peer is a second implementation of the
//!   protocol.
//! * A wait is for a condition and has a limit; nothing sleeps and hopes.
//! * Everything that runs has an owner and ends with it.

pub mod blocking;
#[cfg(feature = "world")]
mod call;
#[cfg(feature = "world")]
mod config;
pub mod engine;
#[cfg(feature = "hoot")]
mod hoot;
#[cfg(feature = "logs")]
mod logs;
#[cfg(feature = "hoot")]
mod proxy;
#[cfg(feature = "hoot")]
mod raw;
#[cfg(feature = "relay")]
mod relay;
#[cfg(feature = "world")]
mod session;
mod skip;
#[cfg(feature = "world")]
mod studio;
mod wait;
#[cfg(feature = "web")]
mod web;
#[cfg(feature = "world")]
mod world;

#[cfg(feature = "world")]
pub use call::{plain, reply, result};
#[cfg(feature = "world")]
pub use config::{IDLER, NoConfig, broker_config, shell_agent};
#[cfg(feature = "hoot")]
pub use hoot::PEER_IDLE;
#[cfg(feature = "logs")]
pub use logs::Logs;
#[cfg(feature = "hoot")]
pub use proxy::{Fault, Proxy};
#[cfg(feature = "hoot")]
pub use raw::{HandshakeError, Hello, RawPeer, envelope, parts_of};
#[cfg(feature = "world")]
pub use session::Caller;
pub use skip::{is_root, skipped};
#[cfg(feature = "world")]
pub use studio::GatedStudio;
pub use wait::{LIMIT, pass, soon, until, wait_for, within};
#[cfg(feature = "world")]
pub use world::{GRACE, Root, Setup, World};
