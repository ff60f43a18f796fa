//! Content streaming in. Hashing and writing run side by side, all is synced once at the end, and small content never touches the disk if it is there already.

use std::fs::File;
use std::io::Read;

use camino::Utf8Path;
use ringback_proto::ids::BlobHash;

use crate::blobs::Blobs;
use crate::error::{FileError, WriteBlobError};
use crate::hashing::Hashing;
use crate::layout::Temp;

/// Longest accepted MIME type: what RFC 6838 allows for type and subtype, with the slash.
pub const MIME_CHARS_MAX: usize = 255;

/// Small writes are gathered to this size, so that system calls and hashing work on large pieces.
const BUFFER_BYTES: usize = 1 << 20;

/// What was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Its name.
    pub hash: BlobHash,
    /// Its length in bytes.
    pub size: u64,
    /// The type it was first stored with.
    pub mime_type: String,
    /// Whether it was not there before.
    pub new: bool,
}

/// Takes content piece by piece. Dropped before [`Writer::finish`], it leaves nothing.
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

    /// How many bytes were taken so far.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Takes the next bytes. After an error the writer is of no more use.
    pub fn write(&mut self, mut data: &[u8]) -> Result<(), WriteBlobError> {
        while !data.is_empty() {
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

    /// Takes everything up to the end of a file; `path` is for messages.
    pub(crate) fn read_from(
        &mut self,
        file: &mut File,
        path: &Utf8Path,
    ) -> Result<(), WriteBlobError> {
        loop {
            let room = (BUFFER_BYTES - self.buffer.len()) as u64;
            let n_read = file.take(room).read_to_end(&mut self.buffer);
            let n_read = n_read.map_err(FileError::on("read", path))? as u64;
            self.size += n_read;
            if n_read < room {
                return Ok(());
            }
            self.flush()?;
        }
    }

    /// Gives buffers and threads back to the system, for a writer that may wait long for its next
    /// bytes.
    pub(crate) fn rest(&mut self) -> Result<(), WriteBlobError> {
        self.flush()?;
        self.hashing.gather();
        self.buffer = Vec::new();
        Ok(())
    }

    /// Makes the content durable under its name. The first type a blob is stored with stays.
    pub fn finish(mut self, mime_type: &str) -> Result<Stored, WriteBlobError> {
        check_mime(mime_type)?;
        if self.temp.is_none() && !self.broken {
            let hash = BlobHash::from_bytes(*blake3::hash(&self.buffer).as_bytes());
            if let Some(stored) = self.blobs.existing(hash)? {
                return Ok(stored);
            }
        }
        self.flush()?;
        let temp = self.temp.take().ok_or(WriteBlobError::Broken)?;
        let hash = self.hashing.finish().ok_or(WriteBlobError::Broken)?;
        self.blobs.publish(temp, hash, self.size, mime_type)
    }

    /// Writes the buffer out and has it hashed.
    fn flush(&mut self) -> Result<(), WriteBlobError> {
        if self.broken {
            return Err(WriteBlobError::Broken);
        }
        let temp = match &mut self.temp {
            Some(temp) => temp,
            none => none.insert(self.blobs.layout().temp()?),
        };
        // A write that failed half-way leaves a hole that no later write can fill.
        self.broken = true;
        temp.write(&self.buffer)?;
        self.broken = false;
        self.buffer = self.hashing.update(std::mem::take(&mut self.buffer));
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
