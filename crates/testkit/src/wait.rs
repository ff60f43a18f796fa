//! Waiting in tests: for a condition, with a limit.

use std::time::Duration;

/// Far more than anything here takes, so that only a hang reaches it.
pub const LIMIT: Duration = Duration::from_secs(20);
/// The time between two checks of a condition.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// Waits until `condition` holds.
///
/// # Panics
/// If it does not within `limit`.
pub async fn wait_for(what: &str, limit: Duration, mut condition: impl AsyncFnMut() -> bool) {
    let looking = async {
        while !condition().await {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    };
    assert!(tokio::time::timeout(limit, looking).await.is_ok(), "not within {limit:?}: {what}");
}

/// Returns the result of something that must not hang.
///
/// # Panics
/// If it takes longer than [`LIMIT`].
pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(LIMIT, future).await {
        Ok(value) => value,
        Err(_) => panic!("{what} takes longer than {LIMIT:?}"),
    }
}
