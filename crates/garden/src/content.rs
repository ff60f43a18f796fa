//! Content becomes sound: audio is decoded and resampled, MIDI is played by the synthesizer at the
//! tempo of the timeline.

use std::io::{Read, Seek};
use std::pin::Pin;
use std::task::{Context, Poll};

use camino::{Utf8Path, Utf8PathBuf};
use ringback_blobs::{BlobReader, ReadBlobError};
use ringback_client::Client;
use ringback_proto::garden::{GardenRegion, Ticks};
use ringback_proto::ids::BlobHash;
use ringback_studio::audio::{self, DecodeError, DecodeLimits, Resampler};
use ringback_studio::render::{
    self, AudioSink, Progress, RenderError, RenderLimits, RenderSettings, ScoreError, SinkError,
    TickScore,
};
use ringback_studio::soundfont::{Font, FontError};
use tokio::io::AsyncWrite;

use crate::sound::{CHANNELS, NoteTiming, Sound, SoundKey};
use crate::tempo::TempoMap;

/// The longest file that is fetched from the daemon: readers of WAV stop there.
const FETCHED_BYTES_MAX: u64 = 2 << 30;

/// The longest tail of MIDI after its last note, in seconds: a long reverb.
pub(crate) const TAIL_SECONDS_MAX: f64 = 10.0;

/// Why content cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum ContentError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] ReadBlobError),
    /// The daemon does not hand it out.
    #[error("cannot fetch the content from the daemon: {0}")]
    Download(#[source] ringback_proto::Error),
    /// The daemon's content is longer than it may be.
    #[error("the content has more than {bytes_max} bytes; cut it")]
    TooLong {
        /// The limit.
        bytes_max: u64,
    },
    /// It cannot be written to a temporary file.
    #[error("cannot write the content to a temporary file: {0}")]
    Temporary(#[source] std::io::Error),
    /// It is not audio that can be decoded.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// It is not MIDI that can be read.
    #[error(transparent)]
    Score(#[from] ScoreError),
    /// It cannot be synthesised.
    #[error(transparent)]
    Render(#[from] RenderError),
    /// There is nothing to play MIDI with.
    #[error("MIDI needs a SoundFont; set `garden.soundfont` to an SF2 file and restart the garden")]
    NoFont,
    /// The SoundFont cannot be read.
    #[error("cannot read the SoundFont `{path}`; set `garden.soundfont` to another one: {message}")]
    Font {
        /// The file.
        path: Utf8PathBuf,
        /// What is wrong.
        message: String,
    },
    /// It does not fit into memory.
    #[error(
        "the content takes {bytes} bytes as sound, the cache has {bytes_max}; cut it, or raise \
         `garden.cache`"
    )]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// The size of the cache.
        bytes_max: u64,
    },
}

/// Where content comes from.
#[derive(Clone)]
pub struct Source {
    blobs: Option<BlobReader>,
    /// A client and the runtime it belongs to.
    client: Option<(Client, tokio::runtime::Handle)>,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("blobs", &self.blobs).finish_non_exhaustive()
    }
}

/// What is read: a file of the store, or a temporary one.
trait Content: Read + Seek + Send + Sync {}

impl<T: Read + Seek + Send + Sync> Content for T {}

impl Source {
    /// Reads from the daemon's directory, and from the daemon where that is not possible.
    #[must_use]
    pub const fn new(
        blobs: Option<BlobReader>,
        client: Option<(Client, tokio::runtime::Handle)>,
    ) -> Self {
        Self { blobs, client }
    }

    /// Opens content; what the daemon has may have `bytes_max`.
    fn open(&self, hash: BlobHash, bytes_max: u64) -> Result<Box<dyn Content>, ContentError> {
        let local = self.blobs.as_ref().map(|blobs| blobs.open_blob(hash));
        match (local, &self.client) {
            (Some(Ok(reader)), _) => Ok(Box::new(reader)),
            (
                Some(Err(error @ (ReadBlobError::NotFound { .. } | ReadBlobError::Damaged { .. }))),
                _,
            )
            | (Some(Err(error)), None) => Err(error.into()),
            (Some(Err(_)) | None, Some((client, runtime))) => {
                Ok(Box::new(runtime.block_on(fetch(client, hash, bytes_max))?))
            }
            (None, None) => Err(ReadBlobError::NotFound { hash }.into()),
        }
    }

    fn read(&self, hash: BlobHash) -> Result<Vec<u8>, ContentError> {
        let mut bytes = Vec::new();
        // One byte over the limit is enough to see that it is too large.
        let limit = render::MIDI_BYTES_MAX as u64 + 1;
        self.open(hash, limit)?.take(limit).read_to_end(&mut bytes).map_err(|error| {
            let what = format!("it cannot be read: {error}");
            DecodeError::Malformed { seconds: 0.0, what }
        })?;
        Ok(bytes)
    }
}

/// Fetches content into a temporary file: compressed or not, it may be longer than its sound.
async fn fetch(
    client: &Client,
    hash: BlobHash,
    bytes_max: u64,
) -> Result<std::fs::File, ContentError> {
    let mut file = tempfile::tempfile().map_err(ContentError::Temporary)?;
    let writer = file.try_clone().map_err(ContentError::Temporary)?;
    let mut sink =
        Limited { writer: tokio::fs::File::from_std(writer), n_left: bytes_max, is_over: false };
    let fetched = client.download(hash, &mut sink).await;
    if sink.is_over {
        return Err(ContentError::TooLong { bytes_max });
    }
    fetched.map_err(ContentError::Download)?;
    file.rewind().map_err(ContentError::Temporary)?;
    Ok(file)
}

/// Takes bytes up to a limit.
struct Limited<W> {
    writer: W,
    n_left: u64,
    is_over: bool,
}

impl<W: AsyncWrite + Unpin> AsyncWrite for Limited<W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        if bytes.len() as u64 > self.n_left {
            self.is_over = true;
            return Poll::Ready(Err(std::io::Error::other("the content is too long")));
        }
        let written = Pin::new(&mut self.writer).poll_write(context, bytes);
        if let Poll::Ready(Ok(n_bytes)) = &written {
            self.n_left -= *n_bytes as u64;
        }
        written
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.writer).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.writer).poll_shutdown(context)
    }
}

/// Makes sound of content.
#[derive(Debug)]
pub struct Preparer {
    source: Source,
    rate: u32,
    bytes_max: u64,
    soundfont: Option<Utf8PathBuf>,
    /// Read when it is first needed.
    font: Option<Font>,
}

impl Preparer {
    /// Makes sound for a device's sample rate; no sound may take more than `bytes_max`.
    #[must_use]
    pub const fn new(
        source: Source,
        rate: u32,
        bytes_max: u64,
        soundfont: Option<Utf8PathBuf>,
    ) -> Self {
        Self { source, rate, bytes_max, soundfont, font: None }
    }

    /// Makes the sound for a key.
    ///
    /// # Errors
    /// If the content is missing, damaged, of another kind, or too large.
    pub fn prepare(&mut self, key: &SoundKey) -> Result<Sound, ContentError> {
        match &key.notes {
            None => self.decode(key.hash),
            Some(timing) => self.synthesise(key.hash, timing),
        }
    }

    /// Returns the length of MIDI content: its notes, without what rings on.
    ///
    /// # Errors
    /// If the content is missing, or not MIDI.
    pub fn midi_length(&self, hash: BlobHash) -> Result<Ticks, ContentError> {
        let score = TickScore::read(&self.source.read(hash)?)?;
        Ok(Ticks((score.quarters() * Ticks::PER_BEAT as f64).ceil() as u64))
    }

    fn decode(&self, hash: BlobHash) -> Result<Sound, ContentError> {
        let file = self.source.open(hash, FETCHED_BYTES_MAX)?;
        let limits = DecodeLimits { channels_max: CHANNELS, ..DecodeLimits::default() };
        let mut channels: Vec<Resampler> = Vec::new();
        let mut scratch = Vec::new();
        let (rate, bytes_max) = (self.rate, self.bytes_max);
        let mut bytes = 0;
        let decoded = audio::decode(file, limits, &mut |piece| {
            while channels.len() < piece.channels {
                let Some(resampler) = Resampler::new(piece.sample_rate, rate) else { return false };
                channels.push(resampler);
            }
            let ratio = f64::from(rate) / f64::from(piece.sample_rate);
            bytes += (piece.interleaved.len() as f64 * ratio) as u64 * size_of::<f32>() as u64;
            for (idx, channel) in channels.iter_mut().enumerate() {
                scratch.clear();
                scratch.extend(piece.interleaved.iter().skip(idx).step_by(piece.channels));
                channel.push(&scratch);
            }
            bytes <= bytes_max
        });
        if bytes > bytes_max {
            return Err(ContentError::TooLarge { bytes, bytes_max });
        }
        decoded?;
        Ok(interleaved(channels))
    }

    fn synthesise(&mut self, hash: BlobHash, timing: &NoteTiming) -> Result<Sound, ContentError> {
        let score = TickScore::read(&self.source.read(hash)?)?;
        let end = timing.duration.map(Ticks::beats);
        let per_beat = Ticks::PER_BEAT as f64;
        let score = score.at_tempo(|quarters| timing.seconds(quarters * per_beat), end);
        let settings = RenderSettings { sample_rate: self.rate, ..RenderSettings::default() };
        let limits = RenderLimits { tail_seconds_max: TAIL_SECONDS_MAX, ..RenderLimits::default() };
        let bytes_max = self.bytes_max;
        let font = self.font()?;
        let mut sink = Collector { samples: Vec::new(), bytes_max };
        match render::render(&score, &font, settings, limits, &mut sink) {
            Err(RenderError::Sink(_)) => {
                let bytes = (score.seconds * f64::from(self.rate)) as u64;
                let bytes = bytes * (CHANNELS * size_of::<f32>()) as u64;
                Err(ContentError::TooLarge { bytes: bytes.max(bytes_max + 1), bytes_max })
            }
            rendered => {
                rendered?;
                Ok(Sound::new(CHANNELS, sink.samples))
            }
        }
    }

    fn font(&mut self) -> Result<Font, ContentError> {
        if let Some(font) = &self.font {
            return Ok(font.clone());
        }
        let path = self.soundfont.as_ref().ok_or(ContentError::NoFont)?;
        let font = read_font(path)
            .map_err(|message| ContentError::Font { path: path.clone(), message })?;
        self.font = Some(font.clone());
        Ok(font)
    }
}

fn read_font(path: &Utf8Path) -> Result<Font, String> {
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    Font::read(&bytes).map_err(|error: FontError| error.to_string())
}

/// Collects what the synthesizer plays, up to a limit.
struct Collector {
    samples: Vec<f32>,
    bytes_max: u64,
}

impl AudioSink for Collector {
    fn take(&mut self, samples: &[f32], _: Progress) -> Result<(), SinkError> {
        let n_samples = self.samples.len() + samples.len();
        if (n_samples * size_of::<f32>()) as u64 > self.bytes_max {
            return Err(SinkError::Stopped);
        }
        self.samples.extend_from_slice(samples);
        Ok(())
    }
}

fn interleaved(channels: Vec<Resampler>) -> Sound {
    let channels: Vec<Vec<f32>> = channels.into_iter().map(Resampler::finish).collect();
    let [left, right] = channels.as_slice() else {
        return Sound::new(1, channels.into_iter().next().unwrap_or_default());
    };
    let frames = left.iter().zip(right);
    Sound::new(CHANNELS, frames.flat_map(|(left, right)| [*left, *right]).collect())
}

/// Returns the length of a region that is given none: that of its content, from its offset on.
#[must_use]
pub fn length_of(region: &GardenRegion, n_frames: u64, map: &TempoMap) -> Ticks {
    let rate = f64::from(map.rate());
    let seconds = (n_frames as f64 / rate - region.offset_seconds).max(0.0);
    let start = map.frame_exactly(region.position.0 as f64);
    let end = map.tick((start + seconds * rate).round() as u64);
    Ticks((end.ceil() as u64).saturating_sub(region.position.0).max(1))
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    /// Rule: content from the daemon takes a bounded place.
    #[tokio::test]
    async fn what_is_fetched_has_a_limit() {
        let mut sink = Limited { writer: Vec::new(), n_left: 8, is_over: false };
        sink.write_all(&[1; 5]).await.unwrap();
        sink.write_all(&[2; 3]).await.unwrap();
        assert!(!sink.is_over, "all of it fits");
        sink.write_all(&[3]).await.unwrap_err();
        assert_eq!((sink.is_over, sink.writer.len()), (true, 8));
    }
}
