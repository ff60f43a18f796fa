//! Music as values: tunes written as text, MIDI files, sound and its analysis. Each module is a
//! library of its own; none depends on tools, jobs or the daemon.
//!
//! Invariants:
//!
//! - Nothing here opens a socket, reads the environment or prints.
//! - Everything from outside has a limit, and exceeding it is an error that names the limit.
//! - Musical time is an exact fraction until it becomes ticks.

pub mod abc;
pub mod analysis;
pub mod audio;
pub mod compose;
pub mod picture;
pub mod render;
pub mod smf;
pub mod soundfont;
