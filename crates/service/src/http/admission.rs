//! The limit on connections, and what happens beyond it.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Concurrent refused connections whose request is read before the answer. Beyond this number the
/// answer comes without reading: a flood must not cost more than this many tasks.
const MAX_REFUSING: usize = 64;

/// The two pools of connections.
#[derive(Debug)]
pub(super) struct Admission {
    serving: Arc<Semaphore>,
    refusing: Arc<Semaphore>,
}

/// What to do with a new connection. The permit is held while it is open.
#[derive(Debug)]
pub(super) enum AdmissionDecision {
    /// Serve it.
    Serve(OwnedSemaphorePermit),
    /// Answer its first request with 503 and close.
    Refuse(OwnedSemaphorePermit),
    /// Send 503 and close, without waiting for a request.
    Close,
}

impl Admission {
    pub(super) fn new(max_connections: usize) -> Self {
        Self {
            serving: Arc::new(Semaphore::new(max_connections.min(Semaphore::MAX_PERMITS))),
            refusing: Arc::new(Semaphore::new(MAX_REFUSING.min(max_connections / 4).max(1))),
        }
    }

    pub(super) fn admit(&self) -> AdmissionDecision {
        let permit = |pool: &Arc<Semaphore>| Arc::clone(pool).try_acquire_owned().ok();
        match permit(&self.serving) {
            Some(serving) => AdmissionDecision::Serve(serving),
            None => {
                permit(&self.refusing).map_or(AdmissionDecision::Close, AdmissionDecision::Refuse)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Admission, AdmissionDecision, MAX_REFUSING};

    #[test]
    fn a_full_house_refuses_politely_then_closes_and_heals() {
        let n_served = 4 * MAX_REFUSING;
        let admission = Admission::new(n_served);
        let served: Vec<_> = (0..n_served).map(|_| admission.admit()).collect();
        assert!(served.iter().all(|admitted| matches!(admitted, AdmissionDecision::Serve(_))));
        let refused: Vec<_> = (0..MAX_REFUSING).map(|_| admission.admit()).collect();
        assert!(refused.iter().all(|admitted| matches!(admitted, AdmissionDecision::Refuse(_))));
        assert!(matches!(admission.admit(), AdmissionDecision::Close));
        drop(served);
        assert!(matches!(admission.admit(), AdmissionDecision::Serve(_)));
        // A small limit also means few tasks for refused connections.
        let small = Admission::new(1);
        let admitted = [small.admit(), small.admit(), small.admit()];
        assert!(matches!(
            admitted,
            [AdmissionDecision::Serve(_), AdmissionDecision::Refuse(_), AdmissionDecision::Close]
        ));
    }
}
