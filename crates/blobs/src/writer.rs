//! Content streaming in. Hashing and writing run in parallel, everything is synced once at the end,
//! and small content that already exists never touches the disk.

use std::fs::File;

use camino::Utf8Path;
use ringback_proto::ids::BlobHash;
use rustix::buffer::spare_capacity;
use rustix::io::Errno;

use crate::blobs::Blobs;
use crate::error::{FileError, WriteBlobError};
use crate::hashing::Hashing;
use crate::layout::Temp;

/// The maximum length of a MIME type: what RFC 6838 allows for type and subtype, with the slash.
pub const MIME_CHARS_MAX: usize = 255;

/// Small writes are buffered up to this size: large enough for few system calls and wide hashing,
/// small enough that a piece is still in the processor's cache when it is hashed and written.
const BUFFER_BYTES: usize = 256 << 10;

/// A stored blob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredContent {
    /// Its hash.
    pub hash: BlobHash,
    /// Its length in bytes.
    pub size: u64,
    /// The type given now; [`Blobs::inspect`] returns the first one.
    pub mime_type: String,
    /// Whether it is new to the store.
    pub new: bool,
}

/// Stores content piece by piece. Dropped before [`Writer::finish`], it leaves nothing.
#[derive(Debug)]
#[must_use]
pub struct Writer {
    blobs: Blobs,
    hashing: Hashing,
    buffer: Vec<u8>,
    temp: Option<Temp>,
    size: u64,
    broken: bool,
}

impl Writer {
    pub(crate) fn new(blobs: Blobs) -> Self {
        let hashing = Hashing::new();
        Self { blobs, hashing, buffer: Vec::new(), temp: None, size: 0, broken: false }
    }

    /// Returns the number of bytes written so far.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Writes the next bytes. After an error the writer cannot be used any more.
    pub fn write(&mut self, mut data: &[u8]) -> Result<(), WriteBlobError> {
        while !data.is_empty() {
            if self.buffer.is_empty() && data.len() >= BUFFER_BYTES && self.hashing.is_here() {
                let (head, rest) = data.split_at(BUFFER_BYTES);
                self.put(head)?;
                self.hashing.update_here(head);
                self.size += head.len() as u64;
                data = rest;
                continue;
            }
            let (head, rest) = data.split_at(data.len().min(BUFFER_BYTES - self.buffer.len()));
            self.buffer.extend_from_slice(head);
            self.size += head.len() as u64;
            data = rest;
            if self.buffer.len() == BUFFER_BYTES {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Reads the next bytes of a file without an additional copy, and returns their number: 0 at
    /// the end. `path` is for messages.
    pub fn read_piece(
        &mut self,
        file: &mut File,
        path: &Utf8Path,
    ) -> Result<usize, WriteBlobError> {
        self.buffer.reserve_exact(BUFFER_BYTES - self.buffer.len());
        let n_read = loop {
            match rustix::io::read(&*file, spare_capacity(&mut self.buffer)) {
                Err(Errno::INTR) => {}
                read => break read.map_err(|error| FileError::on("read", path)(error.into()))?,
            }
        };
        self.size += n_read as u64;
        if self.buffer.len() >= BUFFER_BYTES {
            self.flush()?;
        }
        Ok(n_read)
    }

    /// Reads everything up to the end of a file; `path` is for messages.
    pub(crate) fn read_from(
        &mut self,
        file: &mut File,
        path: &Utf8Path,
    ) -> Result<(), WriteBlobError> {
        while self.read_piece(file, path)? > 0 {}
        Ok(())
    }

    /// Releases buffers and threads, for a writer that may wait a long time for its next bytes.
    pub(crate) fn rest(&mut self) -> Result<(), WriteBlobError> {
        self.flush()?;
        self.hashing.gather();
        self.buffer = Vec::new();
        Ok(())
    }

    /// Makes the content durable under its name. A blob keeps the first type it was stored with.
    pub fn finish(self, mime_type: &str) -> Result<StoredContent, WriteBlobError> {
        self.finish_as(None, mime_type)
    }

    /// Like [`Writer::finish`], if the content has the expected hash; otherwise nothing of it is
    /// kept.
    pub fn finish_as(
        mut self,
        expected: Option<BlobHash>,
        mime_type: &str,
    ) -> Result<StoredContent, WriteBlobError> {
        check_mime(mime_type)?;
        let check = |found: BlobHash| match expected {
            Some(expected) if expected != found => {
                Err(WriteBlobError::OtherContent { expected, found })
            }
            Some(_) | None => Ok(found),
        };
        if self.temp.is_none() && !self.broken {
            let hash = check(BlobHash::from_bytes(*blake3::hash(&self.buffer).as_bytes()))?;
            if let Some(stored) = self.blobs.existing(hash, mime_type)? {
                return Ok(stored);
            }
        }
        self.flush()?;
        let temp = self.temp.take().ok_or(WriteBlobError::Broken)?;
        let hash = check(self.hashing.finish().ok_or(WriteBlobError::Broken)?)?;
        self.blobs.publish(temp, hash, self.size, mime_type)
    }

    /// Writes the buffer to the file and hashes it.
    fn flush(&mut self) -> Result<(), WriteBlobError> {
        let buffer = std::mem::take(&mut self.buffer);
        self.put(&buffer)?;
        self.buffer = self.hashing.update(buffer);
        Ok(())
    }

    fn put(&mut self, piece: &[u8]) -> Result<(), WriteBlobError> {
        if self.broken {
            return Err(WriteBlobError::Broken);
        }
        let temp = match &mut self.temp {
            Some(temp) => temp,
            none => none.insert(self.blobs.layout().temp()?),
        };
        // A write that failed half-way leaves a hole that no later write can fill.
        self.broken = true;
        temp.write(piece)?;
        self.broken = false;
        Ok(())
    }
}

pub(crate) fn check_mime(mime_type: &str) -> Result<(), WriteBlobError> {
    let visible = mime_type.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if mime_type.trim().is_empty() || mime_type.len() > MIME_CHARS_MAX || !visible {
        return Err(WriteBlobError::InvalidMime);
    }
    Ok(())
}
