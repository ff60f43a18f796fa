//! Lines as they arrive.

use std::io;

use ringback_mcp_wire::{Line, Lines};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// As much as a line may have on either side.
pub(crate) const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Lines out of a stream.
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

    /// The next line that is there.
    pub(crate) fn pop(&mut self) -> Option<Line<'_>> {
        self.lines.pop()
    }

    /// What is left at the end, which lacks the end of a line.
    pub(crate) fn rest(&mut self) -> Option<Line<'_>> {
        self.lines.rest()
    }
}
