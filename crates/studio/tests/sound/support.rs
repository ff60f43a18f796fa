//! Shared by the tests: small MIDI files, the font, and renders in memory.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use ringback_studio::render::{
    AudioSink, Progress, RenderLimits, RenderSettings, Rendered, Score, SinkError, render,
};
use ringback_studio::soundfont::{Font, SEARCHED_DIRS};

/// Ticks per quarter note in these files.
pub(crate) const TICKS: u16 = 480;

/// Returns the small font that the tests' preparation installs, also where a larger one is
/// installed too.
pub(crate) fn font_path() -> PathBuf {
    let paths = SEARCHED_DIRS.iter().map(|dir| Path::new(dir).join("TimGM6mb.sf2"));
    paths.into_iter().find(|path| path.exists()).expect("`cargo xtask ci` installs TimGM6mb.sf2")
}

pub(crate) fn font() -> &'static Font {
    static FONT: OnceLock<Font> = OnceLock::new();
    FONT.get_or_init(|| Font::read(&std::fs::read(font_path()).unwrap()).unwrap())
}

/// A MIDI file of one track under construction. Times are in ticks; events may come in any order.
#[derive(Default)]
pub(crate) struct Midi {
    events: Vec<(u64, u8, Vec<u8>)>,
}

impl Midi {
    pub(crate) fn tempo(&mut self, at: u64, bpm: f64) -> &mut Self {
        let us = (60e6 / bpm).round() as u32;
        let [_, a, b, c] = us.to_be_bytes();
        self.raw(at, 0, vec![0xFF, 0x51, 3, a, b, c])
    }

    pub(crate) fn program(&mut self, at: u64, channel: u8, program: u8) -> &mut Self {
        self.raw(at, 1, vec![0xC0 | channel, program])
    }

    pub(crate) fn note(
        &mut self,
        at: u64,
        length: u64,
        channel: u8,
        key: u8,
        velocity: u8,
    ) -> &mut Self {
        self.raw(at, 3, vec![0x90 | channel, key, velocity]);
        self.raw(at + length.max(1), 2, vec![0x80 | channel, key, 0])
    }

    /// Adds an event; at one tick, those of a lower rank come first.
    fn raw(&mut self, at: u64, rank: u8, bytes: Vec<u8>) -> &mut Self {
        self.events.push((at, rank, bytes));
        self
    }

    pub(crate) fn bytes(&self, end: u64) -> Vec<u8> {
        let mut events = self.events.clone();
        events.sort_by_key(|(at, rank, _)| (*at, *rank));
        events.push((end, 9, vec![0xFF, 0x2F, 0]));
        let (mut track, mut now) = (Vec::new(), 0);
        for (at, _, bytes) in events {
            let delta = at.saturating_sub(now);
            for shift in [21, 14, 7] {
                if delta >> shift > 0 {
                    track.push((delta >> shift & 0x7F) as u8 | 0x80);
                }
            }
            track.push((delta & 0x7F) as u8);
            track.extend_from_slice(&bytes);
            now = now.max(at);
        }
        let mut file = b"MThd\0\0\0\x06\0\0\0\x01".to_vec();
        file.extend_from_slice(&TICKS.to_be_bytes());
        file.extend_from_slice(b"MTrk");
        file.extend_from_slice(&u32::try_from(track.len()).unwrap().to_be_bytes());
        file.extend_from_slice(&track);
        file
    }
}

/// Keeps everything, left and right in turn.
#[derive(Default)]
pub(crate) struct Memory(pub(crate) Vec<f32>);

impl AudioSink for Memory {
    fn take(&mut self, samples: &[f32], _: Progress) -> Result<(), SinkError> {
        self.0.extend_from_slice(samples);
        Ok(())
    }
}

pub(crate) fn rendered(midi: &[u8], settings: RenderSettings) -> (Vec<f32>, Rendered) {
    let mut memory = Memory::default();
    let score = Score::read(midi).unwrap();
    let rendered = render(&score, font(), settings, RenderLimits::default(), &mut memory).unwrap();
    (memory.0, rendered)
}

/// Mixes left and right.
pub(crate) fn mono(samples: &[f32]) -> Vec<f32> {
    samples.chunks_exact(2).map(|frame| (frame[0] + frame[1]) / 2.0).collect()
}
