//! Content streaming in. Hashing and writing run side by side, each piece is synced once at the
//! end, and small content never touches the disk if it is there already.

use std::thread;

use ringback_proto::ids::BlobHash;

use crate::blobs::Blobs;
use crate::error::WriteBlobError;
use crate::layout::Temp;

/// Longest accepted MIME type: what RFC 6838 allows for type and subtype, with the slash.
pub const MIME_CHARS_MAX: usize = 255;

/// Small writes are gathered to this size, so that system calls and hashing work on large pieces.
const BUFFER_BYTES: usize = 1 << 20;

/// Large slices are cut to this size, so that hashing and writing meet often enough to share caches.
const PIECE_BYTES: usize = 4 << 20;

/// From here on a second thread costs less than it saves: starting one takes about as long as
/// hashing 64 KiB.
const PARALLEL_BYTES_MIN: usize = 512 << 10;

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
    hasher: blake3::Hasher,
    buffer: Vec<u8>,
    temp: Option<Temp>,
    size: u64,
    broken: bool,
}

impl Writer {
    pub(crate) fn new(blobs: Blobs) -> Self {
        Self {
            blobs,
            hasher: blake3::Hasher::new(),
            buffer: Vec::new(),
            temp: None,
            size: 0,
            broken: false,
        }
    }

    /// How many bytes were taken so far.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Takes the next bytes. After an error the writer is of no more use.
    pub fn write(&mut self, mut data: &[u8]) -> Result<(), WriteBlobError> {
        self.size += data.len() as u64;
        if !self.buffer.is_empty() {
            let (head, rest) = data.split_at(data.len().min(BUFFER_BYTES - self.buffer.len()));
            self.buffer.extend_from_slice(head);
            data = rest;
            if self.buffer.len() < BUFFER_BYTES {
                return Ok(());
            }
            self.flush()?;
        }
        let tail = data.len() % BUFFER_BYTES;
        let (pieces, tail) = data.split_at(data.len() - tail);
        for piece in pieces.chunks(PIECE_BYTES) {
            self.put(piece)?;
        }
        self.buffer.extend_from_slice(tail);
        Ok(())
    }

    /// Gives the buffer back to the system, for a writer that may wait long for its next bytes.
    pub(crate) fn rest(&mut self) -> Result<(), WriteBlobError> {
        self.flush()?;
        self.buffer = Vec::new();
        Ok(())
    }

    /// Makes the content durable under its name. The first type a blob is stored with stays.
    pub fn finish(mut self, mime_type: &str) -> Result<Stored, WriteBlobError> {
        check_mime(mime_type)?;
        if self.broken {
            return Err(WriteBlobError::Broken);
        }
        if self.temp.is_none() {
            self.hasher.update(&self.buffer);
            let hash = BlobHash::from_bytes(*self.hasher.finalize().as_bytes());
            if let Some(stored) = self.blobs.existing(hash)? {
                return Ok(stored);
            }
            let mut temp = self.blobs.layout().temp()?;
            temp.write(&self.buffer)?;
            return self.blobs.publish(temp, hash, self.size, mime_type);
        }
        self.flush()?;
        let hash = BlobHash::from_bytes(*self.hasher.finalize().as_bytes());
        match self.temp.take() {
            Some(temp) => self.blobs.publish(temp, hash, self.size, mime_type),
            None => Err(WriteBlobError::Broken),
        }
    }

    fn flush(&mut self) -> Result<(), WriteBlobError> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let put = if buffer.is_empty() { Ok(()) } else { self.put(&buffer) };
        buffer.clear();
        self.buffer = buffer;
        put
    }

    fn put(&mut self, piece: &[u8]) -> Result<(), WriteBlobError> {
        if self.broken {
            return Err(WriteBlobError::Broken);
        }
        let temp = match &mut self.temp {
            Some(temp) => temp,
            none => none.insert(self.blobs.layout().temp()?),
        };
        let hasher = &mut self.hasher;
        let written = if piece.len() < PARALLEL_BYTES_MIN {
            hasher.update(piece);
            temp.write(piece)
        } else {
            thread::scope(|scope| {
                scope.spawn(|| hasher.update(piece));
                temp.write(piece)
            })
        };
        // A write that failed half-way leaves a hole that no later write can fill.
        self.broken = written.is_err();
        Ok(written?)
    }
}

pub(crate) fn check_mime(mime_type: &str) -> Result<(), WriteBlobError> {
    let visible = mime_type.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if mime_type.trim().is_empty() || mime_type.len() > MIME_CHARS_MAX || !visible {
        return Err(WriteBlobError::InvalidMime);
    }
    Ok(())
}
