//! `[background]`: the daemon that `ringback run` starts when none is running.

use super::quantity::{ByteSize, Millis};
use super::section::section;

/// From one task to the next; starting again takes a fraction of a second.
const IDLE: Millis = Millis::secs(15 * 60);

/// Years of warnings.
const LOG_MAX: ByteSize = ByteSize(4 << 20);

section! {
    /// The daemon that `ringback run` starts when none is running.
    pub struct Background = "background" {
        /// How long it may have nothing to do, no session, job, call or tool of a client, before it
        /// ends.
        pub idle: Millis = IDLE,
        /// Size of its log file, beyond which the file is renamed to `daemon.log.old` and another
        /// begins.
        pub log_max: ByteSize = LOG_MAX,
    }
}
