//! Lines of text as they arrive.

use std::io;

use ringback_mcp_wire::{Line, Lines};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The longest line, in either direction.
pub(crate) const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Reads lines from a stream.
#[derive(Debug)]
pub(crate) struct LineReader<R> {
    reader: R,
    lines: Lines,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(crate) const fn new(reader: R) -> Self {
        Self { reader, lines: Lines::new(LINE_BYTES_MAX) }
    }

    /// Waits for more bytes; `false` at their end.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn fill(&mut self) -> io::Result<bool> {
        Ok(self.reader.read_buf(self.lines.room()).await? > 0)
    }

    /// Returns the next complete line.
    pub(crate) fn pop(&mut self) -> Option<Line<'_>> {
        self.lines.pop()
    }

    /// Returns the unterminated rest at the end.
    pub(crate) fn rest(&mut self) -> Option<Line<'_>> {
        self.lines.rest()
    }
}
