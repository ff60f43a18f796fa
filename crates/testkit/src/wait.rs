//! Waiting in tests: for something that must happen, with a limit.

use std::time::Duration;

/// Far more than anything takes on a busy machine, so that only a hang reaches it.
pub const LIMIT: Duration = Duration::from_secs(30);
/// The time between two checks of a condition.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// Returns the result of something that must not hang.
///
/// # Panics
/// If it takes longer than [`LIMIT`].
#[track_caller]
pub fn within<T>(what: &str, future: impl Future<Output = T>) -> impl Future<Output = T> {
    let asked_at = std::panic::Location::caller();
    async move {
        match tokio::time::timeout(LIMIT, future).await {
            Ok(value) => value,
            Err(_) => panic!("not within {LIMIT:?}: {what} (at {asked_at})"),
        }
    }
}

/// The same for something that needs no name: the message has the line that waits.
///
/// # Panics
/// If it takes longer than [`LIMIT`].
#[track_caller]
pub fn soon<T>(future: impl Future<Output = T>) -> impl Future<Output = T> {
    within("what comes next", future)
}

/// Waits for a value, and returns it.
///
/// # Panics
/// If it does not come within [`LIMIT`].
#[track_caller]
pub fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> impl Future<Output = T> {
    within(what, async move {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    })
}

/// Waits until a condition holds.
///
/// # Panics
/// If it does not within [`LIMIT`].
#[track_caller]
pub fn wait_for(what: &str, mut condition: impl AsyncFnMut() -> bool) -> impl Future<Output = ()> {
    until(what, async move || condition().await.then_some(()))
}

/// Moves the clock of this runtime, instead of waiting: what is due in this time happens now. The
/// runtime must have one thread. What has its own clock, such as a process or the thread of the
/// HOOT01 edge, is not affected.
pub async fn pass(time: Duration) {
    // A task that was just spawned starts its timers first.
    tokio::task::yield_now().await;
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}
