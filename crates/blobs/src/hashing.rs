//! Hashing during writes. Short content is hashed on the writing thread; long content goes to a
//! thread of its own through a few buffers, so that neither waits for the other at every piece.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use ringback_proto::ids::BlobHash;

/// Returns the hash that content would be stored with.
///
/// # Errors
/// When it cannot be read.
pub fn hash_of(mut content: impl io::Read) -> io::Result<BlobHash> {
    let mut hasher = blake3::Hasher::new();
    io::copy(&mut content, &mut hasher)?;
    Ok(BlobHash::from_bytes(*hasher.finalize().as_bytes()))
}

/// The size from which a thread saves more than it costs.
const APART_BYTES_MIN: u64 = 8 << 20;

/// Pieces on their way to the thread: enough that a thread that waits for a processor does not
/// delay the writes.
const PIECES_MAX: usize = 32;

/// The hash of the content so far.
#[derive(Debug)]
pub(crate) enum Hashing {
    Here { hasher: Box<blake3::Hasher>, size: u64 },
    Apart(HashThread),
}

/// A thread that hashes what it is sent and returns the buffers.
#[derive(Debug)]
pub(crate) struct HashThread {
    pieces: Option<SyncSender<Vec<u8>>>,
    spare: Receiver<Vec<u8>>,
    thread: Option<JoinHandle<blake3::Hasher>>,
}

impl Hashing {
    pub(crate) fn new() -> Self {
        Self::Here { hasher: Box::default(), size: 0 }
    }

    /// Returns whether pieces are hashed on this thread, without a buffer of their own.
    pub(crate) const fn is_here(&self) -> bool {
        matches!(self, Self::Here { .. })
    }

    /// Hashes the next piece on this thread; only while [`Self::is_here`].
    pub(crate) fn update_here(&mut self, piece: &[u8]) {
        let Self::Here { hasher, size } = self else { return };
        hasher.update(piece);
        *size += piece.len() as u64;
        if *size >= APART_BYTES_MIN {
            *size = 0;
            if let Some(apart) = HashThread::start((**hasher).clone()) {
                *self = Self::Apart(apart);
            }
        }
    }

    /// Takes the next piece and returns an empty buffer.
    pub(crate) fn update(&mut self, mut piece: Vec<u8>) -> Vec<u8> {
        match self {
            Self::Here { .. } => {
                self.update_here(&piece);
                piece.clear();
                piece
            }
            Self::Apart(apart) => apart.update(piece),
        }
    }

    /// Waits for the thread, if there is one, and ends it.
    pub(crate) fn gather(&mut self) {
        if let Self::Apart(apart) = self
            && let Some(hasher) = apart.join()
        {
            *self = Self::Here { hasher: Box::new(hasher), size: 0 };
        }
    }

    /// Returns the hash; `None` if the thread was lost.
    pub(crate) fn finish(&mut self) -> Option<BlobHash> {
        self.gather();
        match self {
            Self::Here { hasher, .. } => Some(BlobHash::from_bytes(*hasher.finalize().as_bytes())),
            Self::Apart(_) => None,
        }
    }
}

impl HashThread {
    /// Returns `None` if the system cannot start a thread or has no second processor: then hashing
    /// stays on this thread.
    fn start(mut hasher: blake3::Hasher) -> Option<Self> {
        if thread::available_parallelism().is_ok_and(|n_processors| n_processors.get() == 1) {
            return None;
        }
        let (pieces, inbox) = sync_channel::<Vec<u8>>(PIECES_MAX);
        let (outbox, spare) = sync_channel(PIECES_MAX + 1);
        let hash = move || {
            for mut piece in inbox {
                hasher.update(&piece);
                piece.clear();
                // The writer may have ended, and then does not take it.
                drop(outbox.try_send(piece));
            }
            hasher
        };
        let thread = thread::Builder::new().name("blob-hasher".to_owned()).spawn(hash).ok()?;
        Some(Self { pieces: Some(pieces), spare, thread: Some(thread) })
    }

    fn update(&self, piece: Vec<u8>) -> Vec<u8> {
        // The thread ends only after its sender, so it takes every piece.
        drop(self.pieces.as_ref().map(|pieces| pieces.send(piece)));
        self.spare.try_recv().unwrap_or_default()
    }

    fn join(&mut self) -> Option<blake3::Hasher> {
        self.pieces = None;
        self.thread.take()?.join().ok()
    }
}

impl Drop for HashThread {
    fn drop(&mut self) {
        drop(self.join());
    }
}
