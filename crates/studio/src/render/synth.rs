//! The synthesizer under a clock: messages at their frames, sound out, and a tail that ends when it
//! becomes inaudible.

use std::io;
use std::panic::{self, AssertUnwindSafe};

use rustysynth::{Synthesizer, SynthesizerSettings};

use super::score::{Score, TimedMessage};
use crate::soundfont::Font;

/// Frames between which messages take effect: the synthesizer works in such blocks, 1.5 ms at 44.1
/// kHz.
const BLOCK_FRAMES: usize = 64;

/// Frames per call of the sink, about a third of a second at 44.1 kHz: small enough to follow and
/// to stop, large enough that the call costs nothing.
const PIECE_FRAMES: usize = 256 * BLOCK_FRAMES;

/// Left and right.
const CHANNELS: usize = 2;

/// The synthesizer's maximum of concurrent voices: with fewer, dense music loses notes.
const VOICES_MAX: usize = 256;

/// The tail ends when a whole stretch of it stays below this: half a step of 16 bits.
const TAIL_FLOOR: f32 = 1.0 / 65_536.0;

/// The stretch that has to be silent: longer than the pauses between a reverb's echoes.
const TAIL_SILENT_SECONDS: f64 = 0.1;

/// The hold pedal's controller.
const HOLD_PEDAL: i32 = 0x40;

/// How to render a file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RenderSettings {
    /// Frames per second: 16,000 to 192,000.
    pub sample_rate: u32,
    /// Gain in decibels.
    pub gain_db: f32,
    /// Whether to add reverb and chorus.
    pub effects: bool,
}

impl Default for RenderSettings {
    fn default() -> Self {
        Self { sample_rate: 44_100, gain_db: 0.0, effects: true }
    }
}

/// The limits of a render.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RenderLimits {
    /// The longest file, without its tail.
    pub seconds_max: f64,
    /// The longest tail; a longer one is cut.
    pub tail_seconds_max: f64,
}

impl Default for RenderLimits {
    /// An hour of music: 635 MB of 16-bit stereo.
    fn default() -> Self {
        Self { seconds_max: 3600.0, tail_seconds_max: 30.0 }
    }
}

/// Receives sound as it is made.
pub trait AudioSink {
    /// Takes the next frames, left and right in turn.
    ///
    /// # Errors
    /// If the sink is stopped, or failed.
    fn take(&mut self, samples: &[f32], progress: Progress) -> Result<(), SinkError>;
}

/// The progress of a render.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Seconds rendered so far, including this piece.
    pub seconds_done: f64,
    /// Seconds of the file, without its tail.
    pub seconds_total: f64,
}

impl Progress {
    /// Returns 0 to 100. The tail is the last percent, since its length is not known before.
    #[must_use]
    pub fn percent(&self) -> f32 {
        let share = self.seconds_done / self.seconds_total.max(f64::MIN_POSITIVE);
        (share * 99.0).min(99.0) as f32
    }
}

/// Why a sink accepts no more.
#[derive(Debug, thiserror::Error)]
pub enum SinkError {
    /// It was stopped.
    #[error("stopped")]
    Stopped,
    /// It failed.
    #[error("cannot write the sound")]
    Failed(#[source] io::Error),
}

/// Why nothing was rendered.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// It is too long.
    #[error(
        "the file plays {seconds:.0} s, the limit is {seconds_max:.0} s; cut it, or raise the \
         limit"
    )]
    TooLong {
        /// Its duration.
        seconds: f64,
        /// The limit.
        seconds_max: f64,
    },
    /// The synthesizer does not support the rate.
    #[error("a sample rate of {sample_rate} is not supported; use 16000 to 192000")]
    SampleRate {
        /// The requested rate.
        sample_rate: u32,
    },
    /// The font cannot play this.
    #[error("the SoundFont cannot play this file: a value in one of its regions is out of range")]
    Font,
    /// The sink was stopped, or failed.
    #[error(transparent)]
    Sink(#[from] SinkError),
}

/// The result of a render.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rendered {
    /// Frames, the tail included.
    pub frames: u64,
    /// Their duration.
    pub seconds: f64,
    /// The duration of the tail after the end of the file.
    pub tail_seconds: f64,
    /// The largest sample; above 1 an integer format has clipped.
    pub peak: f32,
    /// Samples above 1.
    pub n_clipped: u64,
}

/// Renders a file to its end and until its sound has died away.
///
/// # Errors
/// If the file is too long, the settings or the font are invalid, or the sink ended it.
pub fn render(
    score: &Score,
    font: &Font,
    settings: RenderSettings,
    limits: RenderLimits,
    sink: &mut dyn AudioSink,
) -> Result<Rendered, RenderError> {
    let RenderLimits { seconds_max, .. } = limits;
    if score.seconds > seconds_max {
        return Err(RenderError::TooLong { seconds: score.seconds, seconds_max });
    }
    let mut renderer = Renderer::new(score, font, settings, sink)?;
    // The synthesizer indexes samples by values from the font, which may be anything.
    let played = panic::catch_unwind(AssertUnwindSafe(|| renderer.run(limits)));
    played.unwrap_or(Err(RenderError::Font))
}

struct Renderer<'a> {
    score: &'a Score,
    synth: Synthesizer,
    sink: &'a mut dyn AudioSink,
    sample_rate: f64,
    gain: f32,
    left: Vec<f32>,
    right: Vec<f32>,
    interleaved: Vec<f32>,
    frames: u64,
    peak: f32,
    n_clipped: u64,
}

impl<'a> Renderer<'a> {
    fn new(
        score: &'a Score,
        font: &Font,
        settings: RenderSettings,
        sink: &'a mut dyn AudioSink,
    ) -> Result<Self, RenderError> {
        let RenderSettings { sample_rate, gain_db, effects } = settings;
        let bad_rate = RenderError::SampleRate { sample_rate };
        let Ok(rate) = i32::try_from(sample_rate) else { return Err(bad_rate) };
        let mut synth_settings = SynthesizerSettings::new(rate);
        synth_settings.block_size = BLOCK_FRAMES;
        synth_settings.maximum_polyphony = VOICES_MAX;
        synth_settings.enable_reverb_and_chorus = effects;
        let Ok(synth) = Synthesizer::new(font.inner(), &synth_settings) else {
            return Err(bad_rate);
        };
        Ok(Self {
            score,
            synth,
            sink,
            sample_rate: f64::from(sample_rate),
            gain: 10_f32.powf(gain_db / 20.0),
            left: vec![0.0; PIECE_FRAMES],
            right: vec![0.0; PIECE_FRAMES],
            interleaved: vec![0.0; PIECE_FRAMES * CHANNELS],
            frames: 0,
            peak: 0.0,
            n_clipped: 0,
        })
    }

    fn run(&mut self, limits: RenderLimits) -> Result<Rendered, RenderError> {
        let score = self.score;
        let mut messages = score.messages.iter().peekable();
        let end = self.block_of(score.seconds);
        let mut block = 0;
        while block < end {
            let first = block;
            while block < end && block - first < PIECE_FRAMES / BLOCK_FRAMES {
                while let Some(message) = messages.next_if(|next| self.block_of(next.at) <= block) {
                    self.play(message);
                }
                // Up to the next message in one go.
                let piece_end = end.min(first + PIECE_FRAMES / BLOCK_FRAMES);
                let next = messages.peek().map_or(piece_end, |next| self.block_of(next.at));
                let next = next.clamp(block + 1, piece_end);
                self.render_blocks(block - first, next - first);
                block = next;
            }
            self.hand_over((block - first) * BLOCK_FRAMES)?;
        }
        messages.for_each(|message| self.play(message));
        let frames_before_tail = self.frames;
        self.tail(limits.tail_seconds_max)?;
        Ok(Rendered {
            frames: self.frames,
            seconds: self.frames as f64 / self.sample_rate,
            tail_seconds: (self.frames - frames_before_tail) as f64 / self.sample_rate,
            peak: self.peak,
            n_clipped: self.n_clipped,
        })
    }

    /// Returns the block with the nearest start.
    fn block_of(&self, seconds: f64) -> usize {
        (seconds * self.sample_rate / BLOCK_FRAMES as f64).round() as usize
    }

    fn play(&mut self, message: &TimedMessage) {
        let TimedMessage { channel, status, data1, data2, .. } = *message;
        self.synth.process_midi_message(
            i32::from(channel),
            i32::from(status),
            i32::from(data1),
            i32::from(data2),
        );
    }

    fn render_blocks(&mut self, first: usize, end: usize) {
        let range = first * BLOCK_FRAMES..end * BLOCK_FRAMES;
        self.synth.render(&mut self.left[range.clone()], &mut self.right[range]);
    }

    /// Releases every key and pedal and continues until the sound is inaudible.
    fn tail(&mut self, seconds_max: f64) -> Result<(), RenderError> {
        for channel in 0..Synthesizer::CHANNEL_COUNT as i32 {
            self.synth.process_midi_message(channel, 0xB0, HOLD_PEDAL, 0);
        }
        self.synth.note_off_all(false);
        let blocks_max = self.block_of(seconds_max);
        let silent_blocks = self.block_of(TAIL_SILENT_SECONDS).max(1);
        let (mut n_blocks, mut n_silent) = (0, 0);
        while n_blocks < blocks_max && n_silent < silent_blocks {
            let mut in_piece = 0;
            while in_piece < PIECE_FRAMES / BLOCK_FRAMES
                && n_blocks < blocks_max
                && n_silent < silent_blocks
            {
                self.render_blocks(in_piece, in_piece + 1);
                n_silent = if self.is_silent(in_piece) { n_silent + 1 } else { 0 };
                in_piece += 1;
                n_blocks += 1;
            }
            self.hand_over(in_piece * BLOCK_FRAMES)?;
        }
        Ok(())
    }

    fn is_silent(&self, block: usize) -> bool {
        let range = block * BLOCK_FRAMES..(block + 1) * BLOCK_FRAMES;
        let quiet =
            |samples: &[f32]| samples.iter().all(|sample| (sample * self.gain).abs() < TAIL_FLOOR);
        quiet(&self.left[range.clone()]) && quiet(&self.right[range])
    }

    fn hand_over(&mut self, n_frames: usize) -> Result<(), RenderError> {
        let frames = self.left[..n_frames].iter().zip(&self.right[..n_frames]);
        for (out, (left, right)) in self.interleaved.chunks_exact_mut(CHANNELS).zip(frames) {
            out[0] = left * self.gain;
            out[1] = right * self.gain;
        }
        let samples = &mut self.interleaved[..n_frames * CHANNELS];
        for sample in samples.iter_mut() {
            // A font can make a filter overflow; silence is better than a broken file.
            if !sample.is_finite() {
                *sample = 0.0;
            }
            self.peak = self.peak.max(sample.abs());
            self.n_clipped += u64::from(sample.abs() > 1.0);
        }
        self.frames += n_frames as u64;
        let seconds_done = self.frames as f64 / self.sample_rate;
        let progress = Progress { seconds_done, seconds_total: self.score.seconds };
        Ok(self.sink.take(samples, progress)?)
    }
}
