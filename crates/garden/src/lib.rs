//! The garden process: plays the timeline that the daemon keeps, in real time.
//!
//! Main types:
//!
//! * [`engine::Engine`]: timeline, transport and mixer; it decides without a clock or IO.
//! * [`renderer::Renderer`]: executes commands and keeps the ring of blocks filled.
//! * [`player::Player`]: the callback, which hands the device the next frames.
//! * [`reader::Reader`]: prepares sound on a thread of its own.
//! * [`garden::Garden`]: all of them with their threads; [`run`] makes it a worker of the daemon.
//!
//! Invariants:
//!
//! * The position is the number of frames played, mapped through the tempo map.
//! * The callback does not allocate, lock, make a system call or log.
//! * A block belongs to a plan; after a command, blocks of the old plan are heard only while they
//!   fade.
//! * Playback waits for nothing: content that is not ready is silent, and events that nobody fetches
//!   are dropped.
//! * Sound is prepared in advance; nothing is decoded or synthesised while it plays.
//! * Every queue, cache and list has a limit.

pub mod block;
pub mod content;
pub mod device;
pub mod engine;
pub mod garden;
pub mod mix;
pub mod player;
pub mod reader;
mod realtime;
pub mod renderer;
mod report;
pub mod settings;
pub mod sound;
pub mod tempo;
#[cfg(test)]
mod testing;
pub mod timeline;
pub mod transport;
mod worker;

pub use settings::{DeviceChoice, Settings};
pub use worker::{RunError, run};
