//! What a transport's message must be able to do, so that no transport is named here.

use bytes::Bytes;

/// A received message in parts.
pub trait Parts {
    /// How many there are.
    fn n_parts(&self) -> usize;

    /// A look at one part; empty if there is none at `index`.
    fn slice(&self, index: usize) -> &[u8];

    /// A part to keep, shared with the message where it can be; empty if there is none at `index`.
    fn shared(&self, index: usize) -> Bytes;
}

/// A message being put together.
pub trait PartSink {
    /// Appends a part of a few bytes, which is copied.
    fn small(&mut self, part: &[u8]);

    /// Appends a part that is shared.
    fn shared(&mut self, part: Bytes);
}

impl Parts for [Bytes] {
    fn n_parts(&self) -> usize {
        self.len()
    }

    fn slice(&self, index: usize) -> &[u8] {
        self.get(index).map_or(&[], |part| part)
    }

    fn shared(&self, index: usize) -> Bytes {
        self.get(index).cloned().unwrap_or_default()
    }
}

impl PartSink for Vec<Bytes> {
    fn small(&mut self, part: &[u8]) {
        self.push(Bytes::copy_from_slice(part));
    }

    fn shared(&mut self, part: Bytes) {
        self.push(part);
    }
}
