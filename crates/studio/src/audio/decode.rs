//! Decodes sound files into samples, piece by piece.

use std::any::Any;
use std::io::{Read, Seek};
use std::ops::RangeInclusive;
use std::panic::{self, AssertUnwindSafe};

use symphonia::core::codecs::CodecParameters;
use symphonia::core::codecs::audio::{AudioDecoder, AudioDecoderOptions};
use symphonia::core::errors::Error;
use symphonia::core::formats::probe::Hint;
use symphonia::core::formats::{FormatOptions, FormatReader, TrackType};
use symphonia::core::io::{MediaSource, MediaSourceStream};
use symphonia::core::meta::MetadataOptions;

/// The most broken packets that are skipped before a file counts as broken.
const BAD_PACKETS_MAX: u32 = 16;

/// The accepted sample rates. Outside this range, a small file could last for days, or resampling
/// could need tables of any size.
const SAMPLE_RATES: RangeInclusive<u32> = 4000..=384_000;

/// The limits of decoding.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DecodeLimits {
    /// The longest sound.
    pub seconds_max: f64,
    /// The most channels.
    pub channels_max: usize,
}

impl Default for DecodeLimits {
    /// Half an hour: 160 MB during the analysis.
    fn default() -> Self {
        Self { seconds_max: 1800.0, channels_max: 8 }
    }
}

/// Why a sound file cannot be decoded.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// An unknown format.
    #[error("not a supported sound file; use WAV, FLAC, MP3 or Ogg Vorbis")]
    Unknown,
    /// A known format, but damaged.
    #[error("the sound file is broken after {seconds:.3} s: {what}")]
    Malformed {
        /// How much was decoded before.
        seconds: f64,
        /// What is wrong there.
        what: String,
    },
    /// It is too long.
    #[error("the sound is longer than the limit of {seconds_max:.0} s; cut it first")]
    TooLong {
        /// The limit.
        seconds_max: f64,
    },
    /// It has too many channels.
    #[error("the sound has {channels} channels, the limit is {channels_max}")]
    TooManyChannels {
        /// Its channels.
        channels: usize,
        /// The limit.
        channels_max: usize,
    },
    /// It contains no sound.
    #[error("the sound file contains no sound")]
    Empty,
    /// The receiver of the samples stopped it.
    #[error("stopped")]
    Stopped,
}

/// A piece of sound.
#[derive(Debug, Clone, Copy)]
pub struct Samples<'a> {
    /// Samples of all channels interleaved, full scale at 1.
    pub interleaved: &'a [f32],
    /// The number of channels.
    pub channels: usize,
    /// Frames per second.
    pub sample_rate: u32,
}

/// Properties of the decoded sound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AudioInfo {
    /// The number of channels.
    pub channels: usize,
    /// Frames per second.
    pub sample_rate: u32,
    /// The number of frames.
    pub frames: u64,
    /// Packets that could not be decoded and are missing.
    pub n_bad_packets: u32,
}

impl AudioInfo {
    /// Returns its duration.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.frames as f64 / f64::from(self.sample_rate)
    }
}

/// Decodes the first sound in a file and passes it on piece by piece; `false` from `take` stops it.
///
/// # Errors
/// If the file has another format, is broken, empty or over a limit, or `take` stopped it.
pub fn decode(
    file: impl Read + Seek + Send + Sync + 'static,
    limits: DecodeLimits,
    take: &mut dyn FnMut(Samples<'_>) -> bool,
) -> Result<AudioInfo, DecodeError> {
    let mut decoding = DecodeRun { limits, take, format: None, frames: 0, n_bad_packets: 0 };
    // The decoders are memory-safe, but not all of their arithmetic is checked.
    let decoded = panic::catch_unwind(AssertUnwindSafe(|| decoding.run(file)));
    decoded.unwrap_or_else(|panic| Err(decoding.malformed(panic_text(panic.as_ref()))))
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    panic.downcast_ref::<&str>().map_or("a value is out of range", |text| *text).to_owned()
}

struct DecodeRun<'a> {
    limits: DecodeLimits,
    take: &'a mut dyn FnMut(Samples<'_>) -> bool,
    /// Channels and sample rate, known after the first packet.
    format: Option<(usize, u32)>,
    frames: u64,
    n_bad_packets: u32,
}

impl DecodeRun<'_> {
    fn run(
        &mut self,
        file: impl Read + Seek + Send + Sync + 'static,
    ) -> Result<AudioInfo, DecodeError> {
        let stream = MediaSourceStream::new(Box::new(Source::new(file)), Default::default());
        let probed = symphonia::default::get_probe().probe(
            &Hint::new(),
            stream,
            FormatOptions::default(),
            MetadataOptions::default(),
        );
        let mut reader = probed.map_err(|_| DecodeError::Unknown)?;
        let (track_id, mut decoder) = self.decoder(reader.as_ref())?;
        let mut samples = Vec::new();
        loop {
            let packet = match reader.next_packet() {
                Ok(Some(packet)) => packet,
                Ok(None) => break,
                Err(error) => return Err(self.malformed(error.to_string())),
            };
            if packet.track_id != track_id {
                continue;
            }
            match decoder.decode(&packet) {
                Ok(buffer) => {
                    let (channels, rate) = (buffer.spec().channels().count(), buffer.spec().rate());
                    buffer.copy_to_vec_interleaved(&mut samples);
                    self.hand_over(&samples, channels, rate)?;
                }
                Err(Error::DecodeError(_)) if self.n_bad_packets < BAD_PACKETS_MAX => {
                    self.n_bad_packets += 1;
                }
                Err(error) => return Err(self.malformed(error.to_string())),
            }
        }
        match self.format {
            Some((channels, sample_rate)) if self.frames > 0 => {
                let (frames, n_bad_packets) = (self.frames, self.n_bad_packets);
                Ok(AudioInfo { channels, sample_rate, frames, n_bad_packets })
            }
            _ => Err(DecodeError::Empty),
        }
    }

    fn decoder(
        &self,
        reader: &dyn FormatReader,
    ) -> Result<(u32, Box<dyn AudioDecoder>), DecodeError> {
        let track = reader.default_track(TrackType::Audio).ok_or(DecodeError::Empty)?;
        let Some(CodecParameters::Audio(parameters)) = &track.codec_params else {
            return Err(DecodeError::Empty);
        };
        let channels = parameters.channels.as_ref().map_or(0, |channels| channels.count());
        self.check_channels(channels)?;
        let decoder = symphonia::default::get_codecs()
            .make_audio_decoder(parameters, &AudioDecoderOptions::default())
            .map_err(|error| self.malformed(error.to_string()))?;
        Ok((track.id, decoder))
    }

    fn check_channels(&self, channels: usize) -> Result<(), DecodeError> {
        let channels_max = self.limits.channels_max;
        if channels > channels_max {
            return Err(DecodeError::TooManyChannels { channels, channels_max });
        }
        Ok(())
    }

    fn hand_over(
        &mut self,
        samples: &[f32],
        channels: usize,
        rate: u32,
    ) -> Result<(), DecodeError> {
        self.check_channels(channels)?;
        if channels == 0 || !SAMPLE_RATES.contains(&rate) {
            let what = format!("{channels} channels at {rate} frames a second make no sense");
            return Err(self.malformed(what));
        }
        if *self.format.get_or_insert((channels, rate)) != (channels, rate) {
            return Err(self.malformed("its channels or its sample rate change"));
        }
        self.frames += (samples.len() / channels) as u64;
        let seconds_max = self.limits.seconds_max;
        if self.seconds() > seconds_max {
            return Err(DecodeError::TooLong { seconds_max });
        }
        let piece = Samples { interleaved: samples, channels, sample_rate: rate };
        if (self.take)(piece) { Ok(()) } else { Err(DecodeError::Stopped) }
    }

    fn seconds(&self) -> f64 {
        self.format.map_or(0.0, |(_, rate)| self.frames as f64 / f64::from(rate.max(1)))
    }

    fn malformed(&self, what: impl Into<String>) -> DecodeError {
        DecodeError::Malformed { seconds: self.seconds(), what: what.into() }
    }
}

/// A file with what the decoders need: seeking, and a known length.
struct Source<F> {
    file: F,
    length: Option<u64>,
}

impl<F: Seek> Source<F> {
    fn new(mut file: F) -> Self {
        let start = file.stream_position().ok();
        let length = file.seek(std::io::SeekFrom::End(0)).ok();
        let back = start.and_then(|start| file.seek(std::io::SeekFrom::Start(start)).ok());
        Self { file, length: length.filter(|_| back.is_some()) }
    }
}

impl<F: Read> Read for Source<F> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.file.read(buffer)
    }
}

impl<F: Seek> Seek for Source<F> {
    fn seek(&mut self, position: std::io::SeekFrom) -> std::io::Result<u64> {
        self.file.seek(position)
    }
}

impl<F: Read + Seek + Send + Sync> MediaSource for Source<F> {
    fn is_seekable(&self) -> bool {
        self.length.is_some()
    }

    fn byte_len(&self) -> Option<u64> {
        self.length
    }
}
