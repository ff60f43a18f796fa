//! What the broker is told at its start.

use std::sync::Arc;

use camino::Utf8PathBuf;
use ringback_proto::value::Value;

use crate::containers::ContainerSettings;
use crate::lines::LineSettings;
use crate::sessions::SessionSettings;

/// The daemon's configuration as tools may see it: secrets masked.
pub trait ConfigView: Send + Sync + std::fmt::Debug {
    /// All of it, a section, or a key of a section; `None` if there is no such thing.
    fn get(&self, section: Option<&str>, key: Option<&str>) -> Option<Value>;
}

/// What the broker is told at its start.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where everything that lasts is kept.
    pub data_dir: Utf8PathBuf,
    /// Directories whose files callers may name.
    pub file_roots: Vec<Utf8PathBuf>,
    /// The daemon's version.
    pub version: String,
    /// The configuration as tools may see it.
    pub view: Arc<dyn ConfigView>,
    /// Calls under way that one principal may have.
    pub calls_per_principal_max: usize,
    /// Jobs that run at the same time.
    pub jobs_running_max: usize,
    /// Jobs that run or wait.
    pub jobs_live_max: usize,
    /// Jobs of one principal that run or wait.
    pub jobs_per_principal_max: usize,
    /// Events that are kept for readers.
    pub events_kept_max: usize,
    /// Uploads in pieces that are open.
    pub uploads_open_max: usize,
    /// Bytes of one upload.
    pub upload_bytes_max: u64,
    /// The longest any call may take, in milliseconds.
    pub call_ms_max: u64,
    /// How lines are run.
    pub lines: LineSettings,
    /// What the music tools are told.
    pub studio: StudioSettings,
    /// How sessions are run.
    pub sessions: SessionSettings,
    /// What containers are told.
    pub containers: ContainerSettings,
}

/// What the music tools are told.
#[derive(Debug, Clone)]
pub struct StudioSettings {
    /// The SoundFont that is used when a caller names none; without it the usual places are searched.
    pub soundfont: Option<Utf8PathBuf>,
    /// The longest MIDI file that is rendered, in seconds.
    pub render_seconds_max: u32,
    /// The longest sound that is analysed, in seconds.
    pub audio_seconds_max: u32,
    /// Where the model services are, and how they are asked.
    pub models: ringback_models::Settings,
    /// The `traceparent` that hands a span's trace on to a model service.
    pub traceparent: fn(&tracing::Span) -> Option<String>,
}

impl Default for StudioSettings {
    /// An hour makes a WAV file of 635 MB; half an hour of sound takes 160 MB to analyse. No model
    /// services, and no traces.
    fn default() -> Self {
        Self {
            soundfont: None,
            render_seconds_max: 3600,
            audio_seconds_max: 1800,
            models: ringback_models::Settings::default(),
            traceparent: |_| None,
        }
    }
}
