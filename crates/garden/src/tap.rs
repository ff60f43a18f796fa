//! The tap: copies what the device plays into a ring while somebody listens. Its end in the
//! callback does not allocate, lock, make a system call or log.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rtrb::{Consumer, Producer, RingBuffer};

use crate::settings::BUFFER_FRAMES;
use crate::sound::CHANNELS;

/// How many seconds of sound the ring holds: far longer than the daemon takes for a piece. The
/// system provides the memory when it is first written, so a garden that nobody hears needs none.
const RING_SECONDS: usize = 1;
/// The frames of a part. A buffer of any size is copied in parts, so that it fits into the ring.
const PART_FRAMES: usize = 1024;
/// The words before the samples of a part: the period, the frames missed before it, its samples.
const HEAD_WORDS: usize = 3;
/// The period in which nobody listens.
const NOBODY: u32 = 0;

/// The bytes of a frame on its way to the daemon.
pub const FRAME_BYTES: usize = CHANNELS * size_of::<f32>();

/// The callback's end.
#[derive(Debug)]
pub struct Tap {
    ring: Producer<u32>,
    /// The period of listening; [`NOBODY`] while nobody listens.
    period: Arc<AtomicU32>,
    /// The period of the last copy.
    copied_period: u32,
    /// The frames that did not fit since the last part that did.
    n_missed: u32,
}

/// The other end. What it has not read is dropped when it starts to listen.
#[derive(Debug)]
pub struct TapReader {
    ring: Consumer<u32>,
    period: Arc<AtomicU32>,
    /// The current period, or the last one.
    read_period: u32,
}

/// Consecutive frames.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TapPiece {
    /// 32-bit floats, little-endian, left and right in turn.
    pub frames: Vec<u8>,
    /// Frames before these that are missing.
    pub n_missed: u64,
}

/// Makes both ends of a tap for a sample rate. Nobody listens yet.
#[must_use]
pub fn tap(rate: u32) -> (Tap, TapReader) {
    let n_frames = rate as usize * RING_SECONDS;
    let n_parts = n_frames / *BUFFER_FRAMES.start() as usize;
    let (producer, consumer) = RingBuffer::new(n_frames * CHANNELS + n_parts * HEAD_WORDS);
    let period = Arc::new(AtomicU32::new(NOBODY));
    let reader = TapReader { ring: consumer, period: Arc::clone(&period), read_period: NOBODY };
    (Tap { ring: producer, period, copied_period: NOBODY, n_missed: 0 }, reader)
}

impl Tap {
    /// Copies interleaved samples if somebody listens. What does not fit is counted.
    pub fn copy(&mut self, samples: &[f32]) {
        let period = self.period.load(Ordering::Relaxed);
        if period == NOBODY {
            return;
        }
        if period != self.copied_period {
            (self.copied_period, self.n_missed) = (period, 0);
        }
        for part in samples.chunks(PART_FRAMES * CHANNELS) {
            self.push(part);
        }
    }

    /// Returns whether somebody listens.
    #[cfg(test)]
    pub(crate) fn is_open(&self) -> bool {
        self.period.load(Ordering::Relaxed) != NOBODY
    }

    fn push(&mut self, part: &[f32]) {
        let Ok(room) = self.ring.write_chunk_uninit(HEAD_WORDS + part.len()) else {
            self.n_missed = self.n_missed.saturating_add((part.len() / CHANNELS) as u32);
            return;
        };
        let head = [self.copied_period, self.n_missed, part.len() as u32];
        room.fill_from_iter(head.into_iter().chain(part.iter().map(|sample| sample.to_bits())));
        self.n_missed = 0;
    }
}

impl TapReader {
    /// Starts to listen: from the next buffer on.
    pub fn start(&mut self) {
        self.read_period = self.read_period.checked_add(1).unwrap_or(NOBODY + 1);
        self.period.store(self.read_period, Ordering::Relaxed);
    }

    /// Listens no longer.
    pub fn stop(&self) {
        self.period.store(NOBODY, Ordering::Relaxed);
    }

    /// Returns the next frames, at most `n_frames_max` unless one part has more; `None` if the ring
    /// is empty.
    pub fn take(&mut self, n_frames_max: usize) -> Option<TapPiece> {
        let n_bytes_max = n_frames_max * FRAME_BYTES;
        let mut piece = TapPiece::default();
        while let Some([period, n_missed, n_samples]) = self.head() {
            let is_current = period == self.read_period;
            let n_bytes = n_samples as usize * size_of::<f32>();
            let is_piece_full = n_missed > 0 || piece.frames.len() + n_bytes > n_bytes_max;
            if is_current && !piece.frames.is_empty() && is_piece_full {
                break;
            }
            // A part is written as a whole, so the rest of it is there.
            let Ok(part) = self.ring.read_chunk(HEAD_WORDS + n_samples as usize) else { break };
            if is_current {
                piece.n_missed += u64::from(n_missed);
                let (first, second) = part.as_slices();
                let words = first.iter().chain(second).skip(HEAD_WORDS);
                piece.frames.extend(words.flat_map(|bits| bits.to_le_bytes()));
            }
            part.commit_all();
        }
        (!piece.frames.is_empty()).then_some(piece)
    }

    fn head(&mut self) -> Option<[u32; HEAD_WORDS]> {
        let head = self.ring.read_chunk(HEAD_WORDS).ok()?;
        let (first, second) = head.as_slices();
        let mut words = [0; HEAD_WORDS];
        for (word, from) in words.iter_mut().zip(first.iter().chain(second)) {
            *word = *from;
        }
        Some(words)
    }
}

impl Drop for TapReader {
    fn drop(&mut self) {
        self.stop();
    }
}

#[cfg(test)]
mod tests;
