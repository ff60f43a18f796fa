//! Lines of text waiting to be written.

use std::io;

use tokio::io::{AsyncWrite, AsyncWriteExt as _};

/// A buffer that grew beyond this is released when it is empty.
const KEPT_BYTES: usize = 64 * 1024;

/// Data to write, in order.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    bytes: Vec<u8>,
    n_written: usize,
}

impl Outbox {
    pub(crate) fn push(&mut self, line: &str) {
        if self.n_written > KEPT_BYTES {
            self.bytes.drain(..self.n_written);
            self.n_written = 0;
        }
        self.bytes.extend_from_slice(line.as_bytes());
        self.bytes.push(b'\n');
    }

    /// The number of waiting bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.n_written
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Takes the waiting lines.
    #[cfg(test)]
    pub(crate) fn take(&mut self) -> Vec<String> {
        let text = String::from_utf8(self.bytes.split_off(self.n_written)).unwrap();
        self.clear();
        text.lines().map(str::to_owned).collect()
    }

    /// Writes the waiting data.
    ///
    /// # Cancel safety
    /// Unwritten data is written by the next call.
    pub(crate) async fn flush(&mut self, writer: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        while !self.is_empty() {
            let n = writer.write(&self.bytes[self.n_written..]).await?;
            if n == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.n_written += n;
        }
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES);
        self.n_written = 0;
        writer.flush().await
    }
}
