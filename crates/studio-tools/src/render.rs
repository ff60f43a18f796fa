//! `midi_to_wav`.

use std::io::{BufWriter, Seek};

use bytes::Bytes;
use ringback_broker::studio::{Content, StoredContent};
use ringback_proto::data::Data;
use ringback_proto::request::{
    ArtifactsCreatedResponse, MadeArtifact, MidiToWavRequest, SampleFormat, SourceRole,
};
use ringback_proto::value::Value;
use ringback_proto::{Result, StreamChunk};
use ringback_studio::render::{
    AudioSink, FileFormat, FileSink, MIDI_BYTES_MAX, Progress, RenderLimits, RenderSettings,
    Rendered, Score, SinkError, WavFormat, render,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::context::{compute_aloud, keep, map};
use crate::font::check_range;
use crate::{Context, failure, font};

/// Left and right.
const CHANNELS: u8 = 2;

/// Beyond these are silence, or noise that breaks speakers.
const GAIN_DB: std::ops::RangeInclusive<f32> = -60.0..=24.0;

const BACKEND: &str = "embedded: rustysynth";

/// The input of the rendering thread.
struct RenderInput {
    midi: Content,
    /// The daemon's own if `None`.
    font: Option<Content>,
    settings: RenderSettings,
    format: FileFormat,
}

/// Its output.
struct RenderOutput {
    stored: StoredContent,
    rendered: Rendered,
    font_name: String,
}

pub(crate) async fn to_wav(
    ctx: Context,
    mut request: MidiToWavRequest,
) -> Result<ArtifactsCreatedResponse> {
    let lineage = request.take_lineage();
    ctx.broker.check_lineage(&lineage).await?;
    let midi = ctx.broker.content(SourceRole::Input, request.input_hash).await?;
    let font = font::named(&ctx, request.soundfont_hash).await?;
    let (settings, format) = wanted(&request)?;
    let variation_set_id = lineage.variation_set_id;
    let work = RenderInput { midi, font, settings, format };
    let RenderOutput { stored, rendered, font_name } = run(&ctx, work).await?;
    let metadata = map([
        ("duration_seconds", Value::Float(rendered.seconds)),
        ("tail_seconds", Value::Float(rendered.tail_seconds)),
        ("sample_rate", Value::Int(settings.sample_rate.into())),
        ("channels", Value::Int(CHANNELS.into())),
        ("peak", Value::Float(rendered.peak.into())),
        ("clipped_samples", Value::Int(i64::try_from(rendered.n_clipped).unwrap_or(i64::MAX))),
        ("input_hash", Value::Text(midi.hash().to_string())),
        ("soundfont", Value::Text(font_name)),
    ]);
    let kind = format!("format:{}", format.extension());
    let labels = ["type:audio", &kind, "source:midi", "tool:midi_to_wav"];
    let content_hash = stored.hash;
    let artifact_id = keep(&ctx, stored, lineage, &labels, metadata).await?;
    let made = MadeArtifact {
        artifact_id,
        content_hash,
        mime_type: format.mime_type().to_owned(),
        duration_seconds: Some(rendered.seconds),
    };
    let backend = BACKEND.to_owned();
    Ok(ArtifactsCreatedResponse { artifacts: vec![made], variation_set_id, backend })
}

fn wanted(request: &MidiToWavRequest) -> Result<(RenderSettings, FileFormat)> {
    let default = RenderSettings::default();
    let settings = RenderSettings {
        sample_rate: request.sample_rate.unwrap_or(default.sample_rate),
        gain_db: request.gain_db.unwrap_or(default.gain_db),
        ..default
    };
    check_range("gain_db", settings.gain_db, GAIN_DB)?;
    let format = match request.format.unwrap_or_default() {
        SampleFormat::S16 => FileFormat::Wav(WavFormat::Int16),
        SampleFormat::S24 => FileFormat::Wav(WavFormat::Int24),
        SampleFormat::F32 => FileFormat::Wav(WavFormat::Float32),
        SampleFormat::Flac16 => FileFormat::Flac16,
        SampleFormat::Flac24 => FileFormat::Flac24,
    };
    Ok((settings, format))
}

/// Renders on a thread of its own, and passes on what it sends.
async fn run(ctx: &Context, work: RenderInput) -> Result<RenderOutput> {
    compute_aloud(ctx, move |ctx, chunks, stop| render_to_blob(ctx, &work, chunks, stop)).await
}

fn render_to_blob(
    ctx: &Context,
    work: &RenderInput,
    chunks: &mpsc::Sender<StreamChunk>,
    stop: &CancellationToken,
) -> Result<RenderOutput> {
    let RenderInput { midi, font, settings, format } = work;
    let midi = ctx.broker.read(*midi, MIDI_BYTES_MAX as u64)?;
    let score = Score::read(&midi).map_err(|error| failure::score(&error))?;
    let (font, font_name) = font::load(ctx, *font)?;
    // The header of a sound file contains its length, which only the end of the tail decides.
    let mut file = ctx.broker.temporary_file()?;
    let limits = RenderLimits {
        seconds_max: ctx.studio.settings.render_seconds_max.into(),
        ..RenderLimits::default()
    };
    let sample_rate = settings.sample_rate;
    let mut written = FileSink::new(BufWriter::new(&mut file), *format, CHANNELS, sample_rate)
        .map_err(failure::sink)?;
    let mut sink = Sink { file: &mut written, chunks, stop, sample_rate };
    let rendered = render(&score, &font, *settings, limits, &mut sink).map_err(failure::render)?;
    written.finish().map_err(failure::sink)?;
    Ok(RenderOutput {
        stored: ctx.broker.store_file(file, format.mime_type())?,
        rendered,
        font_name,
    })
}

/// Writes to the file, and to the listeners.
struct Sink<'a, W: std::io::Write + Seek> {
    file: &'a mut FileSink<W>,
    chunks: &'a mpsc::Sender<StreamChunk>,
    stop: &'a CancellationToken,
    sample_rate: u32,
}

impl<W: std::io::Write + Seek> AudioSink for Sink<'_, W> {
    fn take(&mut self, samples: &[f32], progress: Progress) -> std::result::Result<(), SinkError> {
        if self.stop.is_cancelled() {
            return Err(SinkError::Stopped);
        }
        self.file.write(samples)?;
        let bytes: Vec<u8> = samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
        let audio = StreamChunk::PartialAudio {
            samples: Data(Bytes::from(bytes)),
            sample_rate: self.sample_rate,
            channels: CHANNELS,
        };
        let (done, total) = (progress.seconds_done, progress.seconds_total);
        let message = format!("{done:.1} s of {total:.1} s rendered");
        let told = StreamChunk::Progress { percent: progress.percent(), message };
        for chunk in [told, audio] {
            // The stream has no reader any more: the call has ended.
            self.chunks.blocking_send(chunk).map_err(|_| SinkError::Stopped)?;
        }
        Ok(())
    }
}
