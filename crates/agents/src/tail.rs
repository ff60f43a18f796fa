//! The end of an output, up to a limit.

use std::collections::VecDeque;

/// The last bytes of an output.
#[derive(Debug)]
pub(crate) struct Tail {
    bytes: VecDeque<u8>,
    bytes_max: usize,
}

impl Tail {
    pub(crate) const fn new(bytes_max: usize) -> Self {
        Self { bytes: VecDeque::new(), bytes_max }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(self.bytes_max)..];
        let n_over = (self.bytes.len() + bytes.len()).saturating_sub(self.bytes_max);
        self.bytes.drain(..n_over);
        self.bytes.extend(bytes);
    }

    pub(crate) fn text(&mut self) -> String {
        String::from_utf8_lossy(self.bytes.make_contiguous()).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::Tail;

    #[test]
    fn the_last_bytes_are_kept() {
        let mut tail = Tail::new(5);
        tail.push(b"ab");
        assert_eq!(tail.text(), "ab");
        tail.push(b"cdef");
        assert_eq!(tail.text(), "bcdef");
        tail.push(b"0123456789");
        assert_eq!(tail.text(), "56789");
    }
}
