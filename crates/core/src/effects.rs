//! The effects of a step.

use ringback_proto::record::Record;

/// The outcome of a step: what must be durable, and what may be sent and done once it is.
///
/// The shell writes `write` as one commit and only then performs `release`, in order. So an id that
/// a crash could erase is never visible outside.
#[derive(Debug, Clone, PartialEq)]
pub struct Effects<R> {
    /// The records that must be durable first.
    pub write: Vec<Record>,
    /// The actions to perform after that.
    pub release: Vec<R>,
}

impl<R> Default for Effects<R> {
    fn default() -> Self {
        Self { write: Vec::new(), release: Vec::new() }
    }
}
