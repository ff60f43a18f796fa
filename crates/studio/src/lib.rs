//! Music as values: tunes written as text, MIDI files, sound and what can be measured in it. Each
//! module is a library of its own; none knows of tools, jobs or the daemon.
//!
//! Invariants:
//!
//! - Nothing here opens a socket, reads the environment or prints.
//! - Everything that comes from outside has a limit, and passing it is an error that says which.
//! - Musical time is an exact fraction until it becomes ticks.

pub mod abc;
pub mod analysis;
pub mod audio;
pub mod compose;
pub mod picture;
pub mod render;
pub mod smf;
pub mod soundfont;
