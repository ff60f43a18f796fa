//! `[clientTools]`, spelled and shown as client programs know it.

#![expect(non_snake_case, reason = "programs know these keys by their spelling")]

use super::quantity::PlainMillis;
use super::section::section;

/// Long enough for a program, short enough that a caller does not give up first.
const DEFAULT_TIMEOUT: PlainMillis = PlainMillis(30_000);

/// Half a minute, often enough for proxies.
const KEEPALIVE: PlainMillis = PlainMillis(30_000);

/// An hour: some tools ask a person.
const MAX_TIMEOUT: PlainMillis = PlainMillis(3_600_000);

section! {
    /// Tools that HTTP clients offer.
    pub struct ClientTools = "clientTools" {
        /// Time limit of a call if neither its caller nor its tool sets one, in milliseconds.
        pub defaultTimeout: PlainMillis = DEFAULT_TIMEOUT,
        /// Interval between two pings on a client's stream, in milliseconds.
        pub keepaliveInterval: PlainMillis = KEEPALIVE,
        /// Longest time limit that a caller or a tool may set, in milliseconds.
        pub maxTimeout: PlainMillis = MAX_TIMEOUT,
    }
}
