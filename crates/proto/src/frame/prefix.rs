//! The parts before a frame that identify its sender and route its reply.

use bytes::Bytes;

use super::{MAGIC, PREFIX_PARTS_MAX, PartSink, Parts};

/// A routing prefix: the identity from a ROUTER and, for a REQ peer or a proxy, the parts up to and
/// including the first empty one. It is sent back verbatim.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Prefix {
    identity: Bytes,
    /// Empty for a DEALER, so that the common case allocates nothing.
    rest: Vec<Bytes>,
}

impl Prefix {
    /// Makes the prefix of a DEALER.
    #[must_use]
    pub const fn of_identity(identity: Bytes) -> Self {
        Self { identity, rest: Vec::new() }
    }

    /// Returns the identity of the peer.
    #[must_use]
    pub const fn identity(&self) -> &Bytes {
        &self.identity
    }

    /// Writes the parts between the identity and the frame.
    pub fn encode_rest(&self, sink: &mut impl PartSink) {
        for part in &self.rest {
            sink.shared(part.clone());
        }
    }

    /// Reads the prefix of a message that a ROUTER received. `None` without an identity, or without
    /// the empty part that must follow. The magic is expected in one place only: a peer may call
    /// itself `HOOT01`.
    pub(super) fn read(parts: &(impl Parts + ?Sized)) -> Option<Self> {
        if parts.n_parts() == 0 {
            return None;
        }
        let identity = parts.shared(0);
        if parts.slice(1) == MAGIC {
            return Some(Self::of_identity(identity));
        }
        let end = (1..parts.n_parts().min(PREFIX_PARTS_MAX))
            .find(|index| parts.slice(*index).is_empty())?;
        Some(Self { identity, rest: (1..=end).map(|index| parts.shared(index)).collect() })
    }

    /// Returns the number of its parts.
    pub(super) fn n_parts(&self) -> usize {
        1 + self.rest.len()
    }
}
