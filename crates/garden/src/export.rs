//! Export: a part of the timeline as sound, faster than it is played. The blocks come from the same
//! engine as those of playback, so a file has the samples that the device gets.

use std::collections::HashMap;
use std::io::{Seek, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ringback_proto::garden::command::ExportedRegion;
use ringback_proto::garden::{GardenTimeline, RegionState, Ticks};
use ringback_proto::ids::RegionId;
use ringback_proto::request::SampleFormat;
use ringback_proto::{Error, ErrorKind};
use ringback_studio::render::{FileFormat, FileSink, SinkError, WavFormat};

use crate::block::{BLOCK_FRAMES, Block, Played, Shared};
use crate::content::{ContentError, Preparer, TAIL_SECONDS_MAX};
use crate::engine::Engine;
use crate::mix::Voice;
use crate::sound::{CHANNELS, Sound, SoundKey};
use crate::transport::Action;

/// The largest file: WAV readers stop at 2 GiB, which is three hours of 16-bit stereo.
const FILE_BYTES_MAX: u64 = 2 << 30;

/// Why a timeline cannot be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// There is nothing in this part.
    #[error("{0}")]
    Nothing(Error),
    /// The file would be too large.
    #[error("the file would be larger than {} GiB; end earlier", FILE_BYTES_MAX >> 30)]
    TooLong,
    /// Content that cannot be played.
    #[error("the content of region `{region_id}` cannot be played; delete or replace it")]
    Content {
        /// The region.
        region_id: RegionId,
        /// Why: for the log, because it may name content.
        #[source]
        source: ContentError,
    },
    /// What sounds together does not fit into memory.
    #[error(
        "region `{region_id}` and those that sound with it need more memory than `garden.cache`"
    )]
    Memory {
        /// The region.
        region_id: RegionId,
    },
    /// The file cannot be written.
    #[error("cannot write the file: {0}")]
    Sink(#[from] SinkError),
    /// It was stopped.
    #[error("the export was stopped")]
    Stopped,
    /// A sound was not there in time: a fault of the export.
    #[error("a sound was missing")]
    Missing,
}

impl From<ExportError> for Error {
    fn from(error: ExportError) -> Self {
        let message = error.to_string();
        match error {
            ExportError::Nothing(nothing) => nothing,
            ExportError::TooLong => Self::invalid_field("end", message),
            ExportError::Content { .. } | ExportError::Memory { .. } | ExportError::Sink(_) => {
                Self::new(ErrorKind::ToolFailed, message)
            }
            ExportError::Stopped => Self::cancelled("at the caller's request"),
            ExportError::Missing => Self::internal("export", message),
        }
    }
}

/// Returns the format of a file and of its samples.
#[must_use]
pub const fn file_format(format: SampleFormat) -> FileFormat {
    match format {
        SampleFormat::S16 => FileFormat::Wav(WavFormat::Int16),
        SampleFormat::S24 => FileFormat::Wav(WavFormat::Int24),
        SampleFormat::F32 => FileFormat::Wav(WavFormat::Float32),
        SampleFormat::Flac16 => FileFormat::Flac16,
        SampleFormat::Flac24 => FileFormat::Flac24,
    }
}

/// Returns the most frames of a file. A FLAC file is as large as a WAV file at worst.
const fn frames_max(format: FileFormat) -> u64 {
    let bytes = match format {
        FileFormat::Wav(wav) => wav.bytes() as u64,
        FileFormat::Flac16 => WavFormat::Int16.bytes() as u64,
        FileFormat::Flac24 => WavFormat::Int24.bytes() as u64,
    };
    FILE_BYTES_MAX / (bytes * CHANNELS as u64)
}

/// A part of a timeline to export.
#[derive(Debug)]
pub struct Export {
    /// The timeline. Its loop is not repeated, and only its `ready` regions sound.
    pub timeline: GardenTimeline,
    /// Sounds that are prepared already, at the same sample rate.
    pub sounds: HashMap<SoundKey, Arc<Sound>>,
    /// Where to start.
    pub start: Ticks,
    /// Where to end; where everything has ended if absent.
    pub end: Option<Ticks>,
    /// Frames per second.
    pub sample_rate: u32,
    /// How much memory the sounds that it prepares may take, in bytes.
    pub cache_bytes: u64,
}

/// A file that was written.
#[derive(Debug, PartialEq)]
pub struct Exported {
    /// Its number of frames.
    pub n_frames: u64,
    /// The regions that are heard in it, in the order of the timeline.
    pub regions: Vec<ExportedRegion>,
    /// Whether any of them is MIDI.
    pub has_midi: bool,
}

impl Export {
    /// Writes a file and returns what is in it.
    ///
    /// # Errors
    /// If there is nothing to write, too much, or content that cannot be played; if the writer
    /// failed, or `stop` was set.
    pub fn write(
        self,
        preparer: &mut Preparer,
        writer: impl Write + Seek,
        format: FileFormat,
        stop: &AtomicBool,
    ) -> Result<Exported, ExportError> {
        let (sample_rate, end) = (self.sample_rate, self.end);
        let mut rendering = Rendering::start(self, preparer)?;
        let first = rendering.frame;
        // An end that is given is exact: the file is cut or filled up there.
        let n_wanted = end.map(|end| rendering.engine.tempo().frame(end).saturating_sub(first));
        let n_max = frames_max(format);
        let n_known = rendering.engine.course().end.saturating_sub(first);
        if n_wanted.unwrap_or(n_known) > n_max {
            return Err(ExportError::TooLong);
        }
        let mut sink = FileSink::new(writer, format, CHANNELS as u8, sample_rate)?;
        let mut block = Block::default();
        let mut n_written = 0;
        while n_wanted.is_none_or(|n_wanted| n_written < n_wanted) {
            if stop.load(Ordering::Relaxed) {
                return Err(ExportError::Stopped);
            }
            let is_over = !rendering.next(&mut block)?;
            if is_over && n_wanted.is_none() {
                break;
            }
            if is_over {
                block.n_frames = BLOCK_FRAMES;
                block.samples.fill(0.0);
            }
            let n_left = n_wanted.unwrap_or(n_max + 1) - n_written;
            let n_frames = n_left.min(block.n_frames as u64);
            sink.write(&block.samples[..n_frames as usize * CHANNELS])?;
            n_written += n_frames;
            if n_written > n_max {
                return Err(ExportError::TooLong);
            }
        }
        sink.finish()?;
        Ok(rendering.exported(n_written, first + n_written))
    }
}

/// An engine that renders as fast as it can.
struct Rendering<'a> {
    engine: Engine,
    shared: Arc<Shared>,
    preparer: &'a mut Preparer,
    /// Prepared for playback.
    given: HashMap<SoundKey, Arc<Sound>>,
    /// Prepared here, with their sizes.
    own: HashMap<SoundKey, u64>,
    own_bytes: u64,
    cache_bytes: u64,
    /// The next frame of the timeline.
    frame: u64,
    /// The first voice that did not need its sound yet.
    next_voice: usize,
    /// The voices that were heard, by their index.
    heard: Vec<usize>,
}

impl<'a> Rendering<'a> {
    /// Loads the timeline and plays from the start, with the sounds that are needed there.
    fn start(export: Export, preparer: &'a mut Preparer) -> Result<Self, ExportError> {
        let Export { mut timeline, sounds, start, sample_rate, cache_bytes, .. } = export;
        timeline.loop_range = None;
        timeline.regions.retain(|region| region.state == RegionState::Ready);
        let mut engine = Engine::new(sample_rate);
        engine.load(timeline);
        let frame = engine.tempo().frame(start);
        let mut rendering = Self {
            engine,
            shared: Shared::new(),
            preparer,
            given: sounds,
            own: HashMap::new(),
            own_bytes: 0,
            cache_bytes,
            frame,
            next_voice: 0,
            heard: Vec::new(),
        };
        rendering.provide()?;
        for action in [Action::Seek(start), Action::Play] {
            let done = rendering.engine.transport(action, None, None);
            done.map_err(ExportError::Nothing)?;
        }
        Ok(rendering)
    }

    /// Makes the next block; `false` if everything is over.
    fn next(&mut self, block: &mut Block) -> Result<bool, ExportError> {
        self.provide()?;
        // A sound that rings on moves the end, which makes a plan that continues this one.
        self.engine.start_plan();
        if !self.engine.render(block) || block.is_last {
            return Ok(false);
        }
        let n_played = if block.moves { block.n_frames as u64 } else { 0 };
        self.frame += n_played;
        let played = Played { generation: block.generation, clock: block.clock + n_played };
        self.engine.played(played, &self.shared);
        let is_complete = self.engine.take_news().requests.is_empty();
        if is_complete { Ok(true) } else { Err(ExportError::Missing) }
    }

    /// Gives the voices that start before the end of the next block their sounds.
    fn provide(&mut self) -> Result<(), ExportError> {
        let until = self.frame + BLOCK_FRAMES as u64;
        while let Some(voice) = self.engine.mixer().voices().get(self.next_voice)
            && voice.start < until
        {
            if self.may_sound(voice) {
                self.heard.push(self.next_voice);
                if voice.sound.is_none() {
                    let (region_id, key) = (voice.region_id, voice.key.clone());
                    let sound = self.sound(region_id, &key)?;
                    self.engine.put_sound(&key, &sound);
                }
            }
            self.next_voice += 1;
        }
        Ok(())
    }

    /// Returns what is in a file that ends at a frame: each region once, also if it is repeated.
    fn exported(&self, n_frames: u64, end: u64) -> Exported {
        let voices = self.engine.mixer().voices();
        let heard = self.heard.iter().filter_map(|index| voices.get(*index));
        let heard = heard.filter(|voice| voice.start < end);
        let mut exported = Exported { n_frames, regions: Vec::new(), has_midi: false };
        for voice in heard {
            let region = ExportedRegion { region_id: voice.region_id, hash: voice.key.hash };
            if !exported.regions.contains(&region) {
                exported.regions.push(region);
            }
            exported.has_midi |= voice.key.notes.is_some();
        }
        exported
    }

    /// Returns whether a voice may sound at the next frame or later. How long MIDI rings on is known
    /// once it is prepared.
    fn may_sound(&self, voice: &Voice) -> bool {
        let rate = f64::from(self.engine.tempo().rate());
        let tail = if voice.key.notes.is_some() { TAIL_SECONDS_MAX * rate } else { 0.0 };
        voice.end.saturating_add(tail.ceil() as u64) > self.frame
    }

    fn sound(&mut self, region_id: RegionId, key: &SoundKey) -> Result<Arc<Sound>, ExportError> {
        if let Some(sound) = self.given.get(key) {
            return Ok(Arc::clone(sound));
        }
        let sound = self.preparer.prepare(key);
        let sound = sound.map_err(|source| ExportError::Content { region_id, source })?;
        if self.own_bytes + sound.bytes() > self.cache_bytes {
            self.drop_silent();
        }
        if self.own_bytes + sound.bytes() > self.cache_bytes {
            return Err(ExportError::Memory { region_id });
        }
        self.own_bytes += sound.bytes();
        self.own.insert(key.clone(), sound.bytes());
        Ok(Arc::new(sound))
    }

    /// Drops the sounds that are not heard now. One that is needed again is prepared again.
    fn drop_silent(&mut self) {
        let (frame, started) = (self.frame, &self.engine.mixer().voices()[..self.next_voice]);
        let is_silent =
            |key: &SoundKey| !started.iter().any(|voice| voice.key == *key && voice.end > frame);
        let silent: Vec<SoundKey> = self.own.keys().filter(|key| is_silent(key)).cloned().collect();
        for key in silent {
            self.own_bytes -= self.own.remove(&key).unwrap_or_default();
            self.engine.drop_sound(&key);
        }
    }
}
