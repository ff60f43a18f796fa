//! Tries to escape from a sandbox in every way that a promise covers. Most tests run four times: in
//! a bubblewrap sandbox and in a container, as the user of these tests and as an unprivileged user.
#![expect(clippy::unwrap_used, reason = "a test names what it expects and fails on the rest")]

mod bench;
mod calls;
mod concurrency;
mod docker;
mod file_access;
mod lifetime;
mod limits;
mod network;
mod refusals;
mod watches;
