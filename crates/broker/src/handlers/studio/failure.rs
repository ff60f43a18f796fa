//! How the studio's failures become the one error.

use ringback_proto::{Certainty, Error, ErrorKind};
use ringback_studio::audio::DecodeError;
use ringback_studio::render::{RenderError, ScoreError, SinkError};
use ringback_studio::soundfont::{FindFontError, FontError};

use crate::failure::internal;

pub(super) fn find_font(error: &FindFontError) -> Error {
    match error {
        FindFontError::NotThere { .. } | FindFontError::None { .. } => {
            Error::new(ErrorKind::NotFound, error.to_string())
        }
    }
}

pub(super) fn font(error: &FontError) -> Error {
    match error {
        FontError::TooLarge { .. } => Error::new(ErrorKind::TooLarge, error.to_string()),
        FontError::NoPreset { .. } => Error::new(ErrorKind::NotFound, error.to_string()),
        FontError::Malformed { .. } | FontError::Unplayable { .. } | FontError::Compressed => {
            Error::invalid_field("soundfont_hash", error.to_string())
        }
    }
}

pub(super) fn score(error: &ScoreError) -> Error {
    match error {
        ScoreError::TooLarge { .. } => Error::new(ErrorKind::TooLarge, error.to_string()),
        ScoreError::Malformed { .. } | ScoreError::Format2 => {
            Error::invalid_field("input_hash", error.to_string())
        }
    }
}

pub(super) fn render(error: RenderError) -> Error {
    match error {
        RenderError::TooLong { .. } => Error::new(
            ErrorKind::TooLarge,
            format!("{error}: it is `studio.render_seconds_max` of the daemon"),
        ),
        RenderError::SampleRate { .. } => Error::invalid_field("sample_rate", error.to_string()),
        RenderError::Font => Error::invalid_field("soundfont_hash", error.to_string()),
        RenderError::Sink(error) => sink(error),
    }
}

pub(super) fn sink(error: SinkError) -> Error {
    match error {
        SinkError::Stopped => Error::cancelled("the render was told to stop"),
        SinkError::Failed(error) => internal(error).with_certainty(Certainty::Ran),
    }
}

pub(super) fn decode(field: &str, error: &DecodeError) -> Error {
    match error {
        DecodeError::TooLong { .. } | DecodeError::TooManyChannels { .. } => {
            Error::new(ErrorKind::TooLarge, error.to_string())
        }
        DecodeError::Stopped => Error::cancelled("the analysis was told to stop"),
        DecodeError::Unknown | DecodeError::Malformed { .. } | DecodeError::Empty => {
            Error::invalid_field(field, error.to_string())
        }
    }
}
