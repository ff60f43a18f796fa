//! The interface of a transport's message, so that no transport is named here.

use bytes::Bytes;

/// A received message in parts.
pub trait Parts {
    /// Returns the number of parts.
    fn n_parts(&self) -> usize;

    /// Borrows a part; empty if `index` is out of range.
    fn slice(&self, index: usize) -> &[u8];

    /// Returns a part to keep, shared with the message if possible; empty if `index` is out of
    /// range.
    fn shared(&self, index: usize) -> Bytes;
}

/// A message under construction.
pub trait PartSink {
    /// Appends a small part, which is copied.
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
