//! Locks that survive a panic: what they protect is consistent between two steps, so the next
//! holder goes on with it.
//!
//! Invariants:
//!
//! * No dependencies: every crate can name this one.
//! * No guard is held across an await; the lints of the workspace find one that is.

use std::sync::{
    Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
};

/// Locks a mutex.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks for reading.
pub fn read<T: ?Sized>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

/// Locks for writing.
pub fn write<T: ?Sized>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

/// Releases the lock until it is notified, then locks it again.
pub fn wait<'a, T>(changed: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    changed.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_one_holder_does_not_keep_out_the_next() {
        let (mutex, shared) = (Mutex::new(1), RwLock::new(2));
        let panicked = std::thread::scope(|scope| {
            let holder = scope.spawn(|| {
                let _held = (lock(&mutex), write(&shared));
                panic!("on purpose");
            });
            holder.join().is_err()
        });
        assert!(panicked && mutex.is_poisoned() && shared.is_poisoned());
        *lock(&mutex) += 10;
        *write(&shared) += 10;
        assert_eq!((*lock(&mutex), *read(&shared)), (11, 12));
    }
}
