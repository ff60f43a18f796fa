//! Exports for the daemon: one at a time, on a thread of their own, stored as content.

use std::io::{BufWriter, Seek};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use camino::Utf8PathBuf;
use ringback_blobs::hash_of;
use ringback_client::Client;
use ringback_proto::garden::command::{ExportAnswer, ExportArguments};
use ringback_proto::garden::{GardenContent, RegionState};
use ringback_proto::ids::BlobHash;
use ringback_proto::{Error, ErrorKind};
use ringback_studio::render::FileFormat;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::content::{Preparer, Source};
use crate::export::{Export, Exported, file_format};
use crate::garden::GardenHandle;
use crate::mix::Voice;
use crate::renderer::ended;
use crate::settings::{SAMPLE_RATES, Settings};

/// Exports the timeline of a garden.
#[derive(Debug)]
pub(crate) struct Exporter {
    garden: GardenHandle,
    client: Client,
    source: Source,
    sample_rate: u32,
    cache_bytes: u64,
    soundfont: Option<Utf8PathBuf>,
    /// One export at a time: each may take as much memory as playback.
    turn: Arc<Semaphore>,
}

/// Stops the thread when the call is dropped.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What the thread works with.
struct Work {
    export: Export,
    preparer: Preparer,
    format: FileFormat,
    font: Option<Utf8PathBuf>,
    stop: Arc<AtomicBool>,
    /// Held until the thread ends, also if no one waits for it any more.
    _turn: OwnedSemaphorePermit,
}

/// What it returns.
struct Output {
    /// The file, from its start on.
    file: std::fs::File,
    exported: Exported,
    /// The hash of the SoundFont, if it was used.
    soundfont: Option<BlobHash>,
}

impl Exporter {
    pub(crate) fn new(
        settings: &Settings,
        garden: &GardenHandle,
        client: &Client,
        source: Source,
    ) -> Self {
        Self {
            garden: garden.clone(),
            client: client.clone(),
            source,
            sample_rate: settings.sample_rate,
            cache_bytes: settings.cache_bytes,
            soundfont: settings.soundfont.clone(),
            turn: Arc::new(Semaphore::new(1)),
        }
    }

    /// Exports a part of the timeline, and stores the file. Dropping this stops the thread.
    pub(crate) async fn export(&self, arguments: ExportArguments) -> Result<ExportAnswer, Error> {
        let sample_rate = arguments.sample_rate.unwrap_or(self.sample_rate);
        if !SAMPLE_RATES.contains(&sample_rate) {
            let (low, high) = (SAMPLE_RATES.start(), SAMPLE_RATES.end());
            let message = format!("{sample_rate} is not a sample rate from {low} to {high}");
            return Err(Error::invalid_field("sample_rate", message));
        }
        let turn = Arc::clone(&self.turn).acquire_owned().await.map_err(|_| ended())?;
        let export = self.copy(&arguments, sample_rate).await?;
        let stop = Arc::new(AtomicBool::new(false));
        let guard = StopOnDrop(Arc::clone(&stop));
        let (source, font) = (self.source.clone(), self.soundfont.clone());
        let preparer = Preparer::new(source, sample_rate, self.cache_bytes, font);
        let format = file_format(arguments.format);
        let font = self.soundfont.clone();
        let work = Work { export, preparer, format, font, stop, _turn: turn };
        let rendered = tokio::task::spawn_blocking(move || work.run()).await;
        let Output { file, exported, soundfont } =
            rendered.map_err(|error| Error::internal("export", error.to_string()))??;
        drop(guard);
        let mime_type = format.mime_type();
        let stored = self.client.upload(tokio::fs::File::from_std(file), mime_type).await?;
        let hash = stored.hash.ok_or_else(|| Error::internal("export", "no hash of the file"))?;
        Ok(ExportAnswer {
            content: GardenContent { hash, mime_type: mime_type.to_owned() },
            size: stored.size,
            duration_seconds: exported.n_frames as f64 / f64::from(sample_rate),
            regions: exported.regions,
            soundfont,
        })
    }

    /// Copies what is needed of the timeline, with its prepared sounds.
    async fn copy(&self, arguments: &ExportArguments, sample_rate: u32) -> Result<Export, Error> {
        let (timeline, sounds) = self
            .garden
            .ask(move |engine| {
                let mut timeline = engine.timeline().to_wire();
                timeline.regions.retain(|region| region.state == RegionState::Ready);
                let is_same_rate = engine.tempo().rate() == sample_rate;
                let voices = engine.mixer().voices().iter().filter(|_| is_same_rate);
                let sound =
                    |voice: &Voice| Some((voice.key.clone(), Arc::clone(voice.sound.as_ref()?)));
                (timeline, voices.filter_map(sound).collect())
            })
            .await?;
        let (start, end) = (arguments.start.unwrap_or_default(), arguments.end);
        Ok(Export { timeline, sounds, start, end, sample_rate, cache_bytes: self.cache_bytes })
    }
}

impl Work {
    /// Renders into a temporary file.
    fn run(self) -> Result<Output, Error> {
        let Self { export, mut preparer, format, font, stop, _turn } = self;
        let failed = |error: std::io::Error| {
            Error::new(ErrorKind::ToolFailed, format!("cannot write a temporary file: {error}"))
        };
        let mut file = tempfile::tempfile().map_err(failed)?;
        let writer = BufWriter::new(&mut file);
        let exported = export.write(&mut preparer, writer, format, &stop).inspect_err(|error| {
            tracing::warn!(error = ringback_proto::chain(error), "the export failed");
        })?;
        file.rewind().map_err(failed)?;
        let font = font.filter(|_| exported.has_midi);
        let hash = |path: Utf8PathBuf| std::fs::File::open(path).and_then(hash_of);
        let unread = |error: std::io::Error| {
            Error::new(ErrorKind::ToolFailed, format!("cannot read the SoundFont: {error}"))
        };
        let soundfont = font.map(hash).transpose().map_err(unread)?;
        Ok(Output { file, exported, soundfont })
    }
}
