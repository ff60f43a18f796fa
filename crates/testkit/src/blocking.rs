//! Waiting in tests without a runtime.

use std::time::Instant;

use crate::wait::{LIMIT, LOOK_AGAIN};

/// Waits for a value, and returns it.
///
/// # Panics
/// If it does not come within [`LIMIT`].
#[track_caller]
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(started.elapsed() < LIMIT, "not within {LIMIT:?}: {what}");
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// Waits until a condition holds.
///
/// # Panics
/// If it does not within [`LIMIT`].
#[track_caller]
pub fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    until(what, || condition().then_some(()));
}
