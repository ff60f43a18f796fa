//! The end of a container's output.

use std::collections::VecDeque;

/// Output kept per container: a few thousand lines.
pub(super) const RING_BYTES_MAX: usize = 256 << 10;

/// The last bytes of output.
#[derive(Debug, Default)]
pub(super) struct Ring {
    bytes: VecDeque<u8>,
    /// Whether earlier output was dropped.
    has_dropped: bool,
}

impl Ring {
    pub(super) fn push(&mut self, written: &[u8]) {
        let kept = &written[written.len().saturating_sub(RING_BYTES_MAX)..];
        let n_over = (self.bytes.len() + kept.len()).saturating_sub(RING_BYTES_MAX);
        self.has_dropped |= n_over > 0 || kept.len() < written.len();
        self.bytes.drain(..n_over);
        self.bytes.extend(kept);
    }

    /// Returns the last lines as text, and whether there was more before them.
    pub(super) fn last_lines(&self, lines_max: usize) -> (String, bool) {
        let bytes: Vec<u8> = self.bytes.iter().copied().collect();
        // The final newline does not start another line.
        let body = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        let mut ends = body.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
        let start = ends.nth(lines_max.saturating_sub(1)).map_or(0, |(at, _)| at + 1);
        let text = String::from_utf8_lossy(&bytes[start..]).into_owned();
        (text, start > 0 || self.has_dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_told_and_whether_there_were_more() {
        let mut ring = Ring::default();
        assert_eq!(ring.last_lines(5), (String::new(), false));
        ring.push(b"one\ntwo\nth");
        ring.push(b"ree\n");
        assert_eq!(ring.last_lines(5), ("one\ntwo\nthree\n".to_owned(), false));
        assert_eq!(ring.last_lines(3), ("one\ntwo\nthree\n".to_owned(), false));
        assert_eq!(ring.last_lines(2), ("two\nthree\n".to_owned(), true));
        ring.push(b"without end");
        assert_eq!(ring.last_lines(1), ("without end".to_owned(), true));
    }

    /// Rule: a container's output takes bounded memory.
    #[test]
    fn what_is_kept_has_a_limit() {
        let mut ring = Ring::default();
        ring.push(&vec![b'a'; RING_BYTES_MAX]);
        assert!(!ring.last_lines(1).1);
        ring.push(b"\xffb");
        let (text, truncated) = ring.last_lines(1);
        assert!(truncated && text.ends_with("a\u{fffd}b"), "{}", text.len());
        ring.push(&vec![b'c'; 3 * RING_BYTES_MAX]);
        let (text, _) = ring.last_lines(1);
        assert!(text.len() == RING_BYTES_MAX && text.bytes().all(|byte| byte == b'c'));
    }
}
