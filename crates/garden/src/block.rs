//! Blocks of mixed sound on their way to the device, and what both ends of the ring share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::sound::CHANNELS;

/// The most frames of a block. Commands act between blocks, so a block ends where one does.
pub const BLOCK_FRAMES: usize = 128;

/// The bits of the clock in a published position: 265 days of frames at 48 kHz.
const CLOCK_BITS: u32 = 40;
const CLOCK_MASK: u64 = (1 << CLOCK_BITS) - 1;
/// The rest is the generation, which may start again at 0: no two are in use for so long.
const GENERATION_MASK: u32 = u32::MAX >> (CLOCK_BITS - 32);

/// A piece of the mix.
#[derive(Debug, Clone)]
pub struct Block {
    /// The plan it was made for; blocks of an earlier plan are not played.
    pub generation: u32,
    /// The number of frames played before it.
    pub clock: u64,
    /// Its frames; 0 only if it is the last.
    pub n_frames: usize,
    /// Whether the position moves with it. The fade after a halt does not move it.
    pub moves: bool,
    /// Whether its plan continues the previous one where that is played up to, so that both have
    /// the same place in the music.
    pub continues: bool,
    /// Whether nothing of its plan follows.
    pub is_last: bool,
    /// Samples that were too loud.
    pub n_clipped: u32,
    /// Left and right in turn.
    pub samples: [f32; BLOCK_FRAMES * CHANNELS],
}

impl Default for Block {
    fn default() -> Self {
        Self {
            generation: 0,
            clock: 0,
            n_frames: 0,
            moves: true,
            continues: false,
            is_last: false,
            n_clipped: 0,
            samples: [0.0; BLOCK_FRAMES * CHANNELS],
        }
    }
}

/// What the renderer and the callback tell each other, without a lock.
#[derive(Debug, Default)]
pub struct Shared {
    /// The plan to play.
    wanted: AtomicU32,
    /// The plan that is played and the frames played, in one word.
    played: AtomicU64,
    frames: AtomicU64,
    underruns: AtomicU64,
    clipped: AtomicU64,
    peaks: [AtomicU32; CHANNELS],
}

/// How far playback is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Played {
    /// The plan that is played.
    pub generation: u32,
    /// The frames played so far.
    pub clock: u64,
}

impl Shared {
    /// Makes the state of a silent device.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Returns the generation after this one.
    #[must_use]
    pub const fn next_generation(generation: u32) -> u32 {
        (generation + 1) & GENERATION_MASK
    }

    /// Orders a plan to be played.
    pub fn want(&self, generation: u32) {
        self.wanted.store(generation, Ordering::Release);
    }

    pub(crate) fn wanted(&self) -> u32 {
        self.wanted.load(Ordering::Acquire)
    }

    pub(crate) fn publish(&self, played: Played) {
        let word = u64::from(played.generation) << CLOCK_BITS | played.clock & CLOCK_MASK;
        self.played.store(word, Ordering::Release);
    }

    /// Returns how far playback is.
    #[must_use]
    pub fn played(&self) -> Played {
        let word = self.played.load(Ordering::Acquire);
        Played { generation: (word >> CLOCK_BITS) as u32, clock: word & CLOCK_MASK }
    }

    pub(crate) fn count(&self, n_frames: u64, n_clipped: u64, underrun: bool) {
        self.frames.fetch_add(n_frames, Ordering::Relaxed);
        self.clipped.fetch_add(n_clipped, Ordering::Relaxed);
        self.underruns.fetch_add(u64::from(underrun), Ordering::Relaxed);
    }

    pub(crate) fn raise_peaks(&self, peaks: [f32; CHANNELS]) {
        for (shared, peak) in self.peaks.iter().zip(peaks) {
            // The bits of floats that are not negative are in the order of the floats.
            shared.fetch_max(peak.to_bits(), Ordering::Relaxed);
        }
    }

    /// Returns the highest levels since the last call.
    #[must_use]
    pub fn take_peaks(&self) -> [f32; CHANNELS] {
        [0, 1].map(|idx: usize| f32::from_bits(self.peaks[idx].swap(0, Ordering::Relaxed)))
    }

    /// Returns the frames played.
    #[must_use]
    pub fn n_frames(&self) -> u64 {
        self.frames.load(Ordering::Relaxed)
    }

    /// Returns how often there was nothing to play.
    #[must_use]
    pub fn n_underruns(&self) -> u64 {
        self.underruns.load(Ordering::Relaxed)
    }

    /// Returns how many samples were too loud.
    #[must_use]
    pub fn n_clipped(&self) -> u64 {
        self.clipped.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_one_word() {
        let shared = Shared::new();
        let played = Played { generation: GENERATION_MASK, clock: CLOCK_MASK };
        shared.publish(played);
        assert_eq!(shared.played(), played);
        assert_eq!(Shared::next_generation(GENERATION_MASK), 0);
    }

    #[test]
    fn peaks_are_the_highest_since_they_were_read() {
        let shared = Shared::new();
        shared.raise_peaks([0.5, 0.1]);
        shared.raise_peaks([0.25, 0.2]);
        assert_eq!(shared.take_peaks(), [0.5, 0.2]);
        assert_eq!(shared.take_peaks(), [0.0, 0.0]);
    }
}
