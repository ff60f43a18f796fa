//! Lines from a stream that may never end one.

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// A line, or what was too long to be one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// Whole, without its end.
    Whole(BytesMut),
    /// The beginning of one that is longer than allowed; the rest is passed over.
    TooLong(BytesMut),
}

/// Reads lines up to a length.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    source: R,
    buffer: BytesMut,
    bytes_max: usize,
    /// Whether the rest of a line that was too long is still to come.
    skipping: bool,
}

/// How much is read at once.
const READ_BYTES: usize = 16 << 10;

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(source: R, bytes_max: usize) -> Self {
        Self { source, buffer: BytesMut::new(), bytes_max, skipping: false }
    }

    /// The next line; `None` at the end. What follows the last line end is a line, too.
    ///
    /// # Cancel safety
    /// Dropping it loses nothing.
    pub(crate) async fn next(&mut self) -> std::io::Result<Option<Line>> {
        loop {
            if let Some(line) = self.take() {
                return Ok(Some(line));
            }
            self.buffer.reserve(READ_BYTES);
            if self.source.read_buf(&mut self.buffer).await? == 0 {
                let rest = self.buffer.split();
                let is_line = !rest.is_empty() && !self.skipping;
                return Ok(is_line.then_some(Line::Whole(rest)));
            }
        }
    }

    fn take(&mut self) -> Option<Line> {
        loop {
            match self.buffer.iter().position(|byte| *byte == b'\n') {
                Some(end) => {
                    let mut line = self.buffer.split_to(end);
                    self.buffer.advance(1);
                    if std::mem::take(&mut self.skipping) {
                        continue;
                    }
                    if line.last() == Some(&b'\r') {
                        line.truncate(line.len() - 1);
                    }
                    return Some(Line::Whole(line));
                }
                None if self.skipping => {
                    self.buffer.clear();
                    return None;
                }
                None if self.buffer.len() > self.bytes_max => {
                    self.skipping = true;
                    return Some(Line::TooLong(self.buffer.split()));
                }
                None => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> Option<Line> {
        Some(Line::Whole(BytesMut::from(text)))
    }

    #[tokio::test]
    async fn lines_come_whole_and_long_ones_are_passed_over() {
        let long = "x".repeat(100_000);
        let text = format!("one\r\n\ntwo\n{long}\nthree\nfour");
        let mut lines = Lines::new(text.as_bytes(), 1000);
        assert_eq!(lines.next().await.unwrap(), whole("one"));
        assert_eq!(lines.next().await.unwrap(), whole(""));
        assert_eq!(lines.next().await.unwrap(), whole("two"));
        assert!(matches!(lines.next().await.unwrap(), Some(Line::TooLong(_))));
        assert_eq!(lines.next().await.unwrap(), whole("three"));
        assert_eq!(lines.next().await.unwrap(), whole("four"));
        assert_eq!(lines.next().await.unwrap(), None);
    }
}
