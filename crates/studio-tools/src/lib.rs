//! The music tools of the daemon: tunes in ABC, SoundFonts, rendering, analysis, and the music
//! services. `ringback-studio` computes, `ringback-music-services` asks others to; this crate makes
//! tools of both.
//!
//! Main types: [`Studio`] implements the broker's [`StudioTools`]; [`Settings`] are its limits and
//! the addresses of the services.
//!
//! Invariants:
//! * The studio computes on threads that may block, at most one per core, so that calls are answered
//!   while it is busy.
//! * Work on such a thread looks at its flag, and keeps its core until it has ended, even if its
//!   caller has left.
//! * Content is read and stored only through the broker, with the rights of the caller. The one file
//!   read directly is the daemon's own SoundFont.

mod abc;
mod analysis;
mod compose;
mod context;
mod failure;
mod font;
mod generate;
mod render;
mod service;
mod service_analysis;
mod tools;

use std::sync::Arc;

use camino::Utf8PathBuf;
use ringback_broker::studio::StudioTools;
use ringback_music_services::{Health, Service, Services};
use ringback_proto::ids::BlobHash;
use tokio::sync::{Mutex, Semaphore};

use self::context::Context;
use self::font::FontState;

/// The settings of the music tools.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The SoundFont used when a caller names none; without it the usual places are searched.
    pub soundfont: Option<Utf8PathBuf>,
    /// The longest MIDI file that is rendered, in seconds.
    pub render_seconds_max: u32,
    /// The longest sound that is analysed, in seconds.
    pub audio_seconds_max: u32,
    /// The music services: where they are and how to call them.
    pub services: ringback_music_services::Settings,
    /// The `traceparent` that passes a span's trace to a music service.
    pub traceparent: fn(&tracing::Span) -> Option<String>,
}

impl Default for Settings {
    /// An hour makes a WAV file of 635 MB; half an hour of sound takes 160 MB to analyse. No music
    /// services, and no traces.
    fn default() -> Self {
        Self {
            soundfont: None,
            render_seconds_max: 3600,
            audio_seconds_max: 1800,
            services: ringback_music_services::Settings::default(),
            traceparent: |_| None,
        }
    }
}

/// The music tools.
#[derive(Debug)]
pub struct Studio {
    settings: Settings,
    services: Services,
    /// One permit per core.
    places: Arc<Semaphore>,
    /// The hash of the daemon's own SoundFont, once it was needed.
    own_font: Mutex<Option<(FontState, BlobHash)>>,
}

impl Studio {
    /// Returns the tools with these settings.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let n_cores = std::thread::available_parallelism().map_or(1, usize::from);
        let services = Services::new(settings.services.clone());
        let places = Arc::new(Semaphore::new(n_cores));
        Self { settings, services, places, own_font: Mutex::default() }
    }
}

impl StudioTools for Studio {
    fn services(&self) -> Vec<(&'static str, &'static str)> {
        let named = |(service, health): (Service, Health)| (service.name(), health.as_str());
        self.services.health().into_iter().map(named).collect()
    }
}
