//! What a step wants done.

use ringback_proto::record::Record;

/// The outcome of a step: what must be durable, and what may be said and done once it is.
///
/// The shell commits `write` as one commit and only then carries out `release`, in order. So nobody
/// ever learns an id that a crash could erase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effects<R> {
    /// What must be durable first.
    pub write: Vec<Record>,
    /// What may happen then.
    pub release: Vec<R>,
}

impl<R> Default for Effects<R> {
    fn default() -> Self {
        Self { write: Vec::new(), release: Vec::new() }
    }
}
