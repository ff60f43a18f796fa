//! The garden process: plays the timeline that the daemon keeps, in real time.
//!
//! Main types:
//!
//! * [`engine::Engine`]: timeline, transport and mixer; it decides without a clock or IO.
//! * [`mixer::Mixer`]: the voices of the timeline, and how they sound together.
//! * [`renderer::Renderer`]: executes commands and keeps the ring of blocks filled.
//! * [`player::Player`]: the callback, which hands the device the next frames.
//! * [`tap::Tap`]: copies what is played, for those who listen over the daemon.
//! * [`reader::Reader`]: prepares sound on a thread of its own.
//! * [`garden::Garden`]: all of them with their threads; [`run`] makes it a worker of the daemon.
//! * [`export::Export`]: the timeline as a file, by an engine of its own.
//!
//! Invariants:
//!
//! * The position is the number of frames played, mapped through the tempo map.
//! * The callback does not allocate, lock, make a system call or log.
//! * A block belongs to a plan; after a command, blocks of the old plan are heard only while they
//!   fade.
//! * Playback waits for nothing: content that is not ready is silent, and events that nobody fetches
//!   are dropped.
//! * Nothing is copied while nobody listens.
//! * Sound is prepared in advance; nothing is decoded or synthesised while it plays.
//! * Every queue, cache and list has a limit.

pub mod block;
pub mod content;
pub mod course;
pub mod device;
pub mod engine;
pub mod export;
mod exporter;
pub mod garden;
pub mod mix;
pub mod mixer;
mod monitor;
pub mod player;
mod prepared;
mod promises;
pub mod reader;
mod realtime;
pub mod renderer;
mod report;
pub mod settings;
pub mod sound;
pub mod tap;
pub mod tempo;
#[cfg(test)]
mod testing;
pub mod timeline;
pub mod transport;
mod worker;

pub use settings::{DeviceChoice, Settings};
pub use worker::{RunError, run};
