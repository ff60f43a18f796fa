//! The list of services.

use std::fmt;
use std::time::Duration;

/// A music service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Service {
    /// Music as MIDI.
    Orpheus,
    /// Whether MIDI was made by a human.
    OrpheusClassifier,
    /// A MIDI bridge between two sections.
    OrpheusBridge,
    /// MIDI loops.
    OrpheusLoops,
    /// Sound from a prompt.
    Musicgen,
    /// Sound analysis.
    Clap,
    /// Songs from lyrics.
    Yue,
    /// Beat tracking.
    Beatthis,
}

impl Service {
    /// Every service.
    pub const ALL: [Self; 8] = [
        Self::Orpheus,
        Self::OrpheusClassifier,
        Self::OrpheusBridge,
        Self::OrpheusLoops,
        Self::Musicgen,
        Self::Clap,
        Self::Yue,
        Self::Beatthis,
    ];

    /// Returns its name, which is also its key in `studio.services` of the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Orpheus => "orpheus",
            Self::OrpheusClassifier => "orpheus_classifier",
            Self::OrpheusBridge => "orpheus_bridge",
            Self::OrpheusLoops => "orpheus_loops",
            Self::Musicgen => "musicgen",
            Self::Clap => "clap",
            Self::Yue => "yue",
            Self::Beatthis => "beatthis",
        }
    }

    /// Returns its time limit: the known time for its largest request, and a margin.
    #[must_use]
    pub const fn patience(self) -> Duration {
        Duration::from_secs(match self {
            Self::Orpheus | Self::OrpheusBridge | Self::OrpheusLoops | Self::Musicgen => 120,
            Self::Clap => 60,
            Self::Yue => 600,
            Self::Beatthis | Self::OrpheusClassifier => 30,
        })
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
