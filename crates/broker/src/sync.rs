//! A lock that survives a panic: the tables behind it are consistent between steps.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks the mutex. Never held across an await.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
