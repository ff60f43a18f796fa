//! `[clientTools]`, spelled as client programs know it.

#![expect(non_snake_case, reason = "keys are spelled as their users know them")]

use super::section::section;

/// Long enough for a program, short enough that a caller does not give up first.
const DEFAULT_TIMEOUT_MS: u64 = 30_000;

/// Half a minute, often enough for proxies.
const KEEPALIVE_MS: u64 = 30_000;

/// An hour: some tools ask a person.
const MAX_TIMEOUT_MS: u64 = 3_600_000;

section! {
    /// Tools that HTTP clients offer.
    pub struct ClientTools = "clientTools" {
        /// Time limit of a call if neither its caller nor its tool sets one, in milliseconds.
        pub defaultTimeout: u64 = DEFAULT_TIMEOUT_MS,
        /// Interval between two pings on a client's stream, in milliseconds.
        pub keepaliveInterval: u64 = KEEPALIVE_MS,
        /// Longest time limit that a caller or a tool may set, in milliseconds.
        pub maxTimeout: u64 = MAX_TIMEOUT_MS,
    }
}
