//! Content streaming out.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// An open blob, at its first byte. It stays readable whatever happens to its name.
#[derive(Debug)]
pub struct Reader {
    file: File,
    size: u64,
}

impl Reader {
    pub(crate) const fn new(file: File, size: u64) -> Self {
        Self { file, size }
    }

    /// Returns the size of the blob in bytes.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    pub(crate) const fn file(&self) -> &File {
        &self.file
    }
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read(buffer)
    }
}

impl Seek for Reader {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.file.seek(position)
    }
}
