//! The callback: hands the device the next frames of the ring. It does not allocate, lock, make a
//! system call or log.

use std::sync::Arc;

use rtrb::Consumer;

use crate::block::{Block, Played, Shared};
use crate::mix::jump_fade_frames;
use crate::sound::CHANNELS;
use crate::tap::Tap;

/// The device's end of the ring.
#[derive(Debug)]
pub struct Player {
    ring: Consumer<Block>,
    shared: Arc<Shared>,
    /// The plan that is played.
    generation: u32,
    /// The frames played so far.
    clock: u64,
    /// The frames of the first block that were played.
    at: usize,
    mode: Mode,
    fade: Fade,
    tap: Option<Tap>,
}

/// What the player expects of the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// The plan has ended; silence.
    Resting,
    /// A new plan was ordered. Its first block should be there: if not, that is an underrun.
    Starting,
    /// The plan is under way: an empty ring is an underrun.
    Playing,
}

/// The end of the previous plan, which fades while the next one plays.
#[derive(Debug)]
struct Fade {
    /// Room for the longest fade.
    samples: Vec<f32>,
    n_frames: usize,
    at: usize,
    /// Whether the next plan fades in against it.
    is_crossfade: bool,
}

impl Player {
    /// Makes the device's end of a ring.
    #[must_use]
    pub fn new(ring: Consumer<Block>, shared: Arc<Shared>, rate: u32) -> Self {
        let generation = shared.wanted();
        let samples = vec![0.0; jump_fade_frames(rate) as usize * CHANNELS];
        let fade = Fade { samples, n_frames: 0, at: 0, is_crossfade: false };
        let (mode, tap) = (Mode::Resting, None);
        Self { ring, shared, generation, clock: 0, at: 0, mode, fade, tap }
    }

    /// Copies to a tap what it hands the device.
    #[must_use]
    pub fn tapped(mut self, tap: Tap) -> Self {
        self.tap = Some(tap);
        self
    }

    /// Fills interleaved samples with what comes next, silence if nothing does.
    pub fn fill(&mut self, out: &mut [f32]) {
        let wanted = self.shared.wanted();
        if wanted != self.generation {
            self.switch(wanted);
        }
        if self.mode == Mode::Starting {
            self.start();
        }
        let n_frames = out.len() / CHANNELS;
        let (n_played, n_clipped) = self.copy(out);
        let underrun = n_played < n_frames && self.mode != Mode::Resting;
        out[n_played * CHANNELS..].fill(0.0);
        self.fade.mix(out, n_played);
        if let Some(tap) = &mut self.tap {
            tap.copy(out);
        }
        self.shared.raise_peaks(peaks(out));
        self.shared.count(n_played as u64, n_clipped, underrun);
        if self.mode != Mode::Starting {
            self.shared.publish(Played { generation: self.generation, clock: self.clock });
        }
    }

    /// Returns whether there is sound to play or to fade, or a plan to start.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.mode != Mode::Resting
            || self.fade.at < self.fade.n_frames
            || self.shared.wanted() != self.generation
    }

    /// Returns whether so much of the plan is in the ring that it will not run dry within a number
    /// of frames.
    #[must_use]
    pub fn has(&mut self, n_frames: usize) -> bool {
        let (wanted, at) = (self.shared.wanted(), self.at);
        let Ok(chunk) = self.ring.read_chunk(self.ring.slots()) else { return false };
        let (first, second) = chunk.as_slices();
        let mut n_ready = 0;
        for block in first.iter().chain(second).filter(|block| block.generation == wanted) {
            n_ready += block.n_frames;
            if block.is_last {
                return true;
            }
        }
        n_ready >= n_frames + at
    }

    /// Keeps the next frames of the old plan for the fade, drops the rest, and waits for the new
    /// plan.
    fn switch(&mut self, wanted: u32) {
        let Ok(chunk) = self.ring.read_chunk(self.ring.slots()) else { return };
        let (first, second) = chunk.as_slices();
        // What was fading already is heard no more: it cannot be louder than one fade.
        self.fade.clear();
        let (mut n_old, mut at) = (0, self.at);
        for block in first.iter().chain(second) {
            if block.generation == wanted {
                break;
            }
            if block.generation == self.generation {
                self.fade.keep(&block.samples[at * CHANNELS..block.n_frames * CHANNELS]);
                at = 0;
            }
            n_old += 1;
        }
        chunk.commit(n_old);
        (self.generation, self.at, self.mode) = (wanted, 0, Mode::Starting);
    }

    /// Begins the new plan if its first block is there. One that continues the old plan starts
    /// where that was left.
    fn start(&mut self) {
        let Some(block) = self.block() else { return };
        let (clock, continues) = (block.clock, block.continues);
        self.mode = Mode::Playing;
        self.fade.is_crossfade = continues && self.fade.n_frames > 0;
        if continues && self.clock >= clock {
            self.skip((self.clock - clock) as usize);
        } else {
            self.clock = clock;
        }
    }

    fn skip(&mut self, mut n_frames: usize) {
        while n_frames > 0 {
            let Some(block) = self.block() else { return };
            if block.is_last {
                return;
            }
            let n_block = block.n_frames;
            let n_here = n_frames.min(n_block - self.at);
            n_frames -= n_here;
            self.advance(n_here, n_block);
        }
    }

    /// Copies what the ring has; returns the frames and how many samples were too loud.
    fn copy(&mut self, out: &mut [f32]) -> (usize, u64) {
        let (mut n_played, mut n_clipped) = (0, 0);
        let n_frames = out.len() / CHANNELS;
        while self.mode == Mode::Playing {
            let Some(block) = self.block() else { break };
            if block.is_last {
                self.mode = Mode::Resting;
                self.next_block();
                break;
            }
            if n_played == n_frames {
                break;
            }
            let n_here = (n_frames - n_played).min(block.n_frames - self.at);
            let from = &block.samples[self.at * CHANNELS..(self.at + n_here) * CHANNELS];
            out[n_played * CHANNELS..(n_played + n_here) * CHANNELS].copy_from_slice(from);
            if self.at == 0 {
                n_clipped += u64::from(block.n_clipped);
            }
            n_played += n_here;
            let (moves, n_block) = (block.moves, block.n_frames);
            self.clock += if moves { n_here as u64 } else { 0 };
            self.advance(n_here, n_block);
        }
        (n_played, n_clipped)
    }

    /// Returns the next block of the plan. One of a later plan waits until that is ordered.
    fn block(&self) -> Option<&Block> {
        self.ring.peek().ok().filter(|block| block.generation == self.generation)
    }

    /// Goes on by some frames of the first block, which has `n_block` of them.
    fn advance(&mut self, n_frames: usize, n_block: usize) {
        self.at += n_frames;
        if self.at == n_block {
            self.next_block();
        }
    }

    fn next_block(&mut self) {
        self.at = 0;
        if let Ok(chunk) = self.ring.read_chunk(1) {
            chunk.commit_all();
        }
    }
}

impl Fade {
    fn clear(&mut self) {
        (self.n_frames, self.at, self.is_crossfade) = (0, 0, false);
    }

    fn keep(&mut self, samples: &[f32]) {
        let from = self.n_frames * CHANNELS;
        let n_samples = samples.len().min(self.samples.len() - from);
        self.samples[from..from + n_samples].copy_from_slice(&samples[..n_samples]);
        self.n_frames += n_samples / CHANNELS;
    }

    /// Adds the fading end, of which the first `n_played` frames meet the next plan.
    fn mix(&mut self, out: &mut [f32], n_played: usize) {
        let n_left = self.n_frames - self.at;
        for (idx, frame) in out.chunks_exact_mut(CHANNELS).take(n_left).enumerate() {
            let at = self.at + idx;
            let new = at as f32 / self.n_frames as f32;
            let old = &self.samples[at * CHANNELS..];
            for (sample, old) in frame.iter_mut().zip(old) {
                if self.is_crossfade && idx < n_played {
                    *sample = *old + (*sample - *old) * new;
                } else {
                    *sample = (*sample + *old * (1.0 - new)).clamp(-1.0, 1.0);
                }
            }
        }
        self.at += n_left.min(out.len() / CHANNELS);
    }
}

fn peaks(samples: &[f32]) -> [f32; CHANNELS] {
    let mut peaks = [0.0_f32; CHANNELS];
    for frame in samples.chunks_exact(CHANNELS) {
        for (peak, sample) in peaks.iter_mut().zip(frame) {
            *peak = peak.max(sample.abs());
        }
    }
    peaks
}
