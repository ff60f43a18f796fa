//! Converts the studio's failures to the one error type.

use ringback_broker::studio::internal;
use ringback_music_services::{RequestError, Service};
use ringback_proto::{Certainty, Error, ErrorKind};
use ringback_studio::audio::DecodeError;
use ringback_studio::compose::PieceError;
use ringback_studio::render::{RenderError, ScoreError, SinkError};
use ringback_studio::smf::ReadError;
use ringback_studio::soundfont::{FindFontError, FontError};

pub(crate) fn find_font(error: &FindFontError) -> Error {
    match error {
        FindFontError::NotThere { .. } | FindFontError::None { .. } => {
            Error::new(ErrorKind::NotFound, error.to_string())
        }
    }
}

pub(crate) fn font(error: &FontError) -> Error {
    match error {
        FontError::TooLarge { .. } => Error::new(ErrorKind::TooLarge, error.to_string()),
        FontError::NoPreset { .. } => Error::new(ErrorKind::NotFound, error.to_string()),
        FontError::Malformed { .. } | FontError::Unplayable { .. } | FontError::Compressed => {
            Error::invalid_field("soundfont_hash", error.to_string())
        }
    }
}

pub(crate) fn score(error: &ScoreError) -> Error {
    match error {
        ScoreError::TooLarge { .. } => Error::new(ErrorKind::TooLarge, error.to_string()),
        ScoreError::Malformed { .. } | ScoreError::Format2 | ScoreError::FilmTime => {
            Error::invalid_field("input_hash", error.to_string())
        }
    }
}

pub(crate) fn render(error: RenderError) -> Error {
    match error {
        RenderError::TooLong { .. } => {
            Error::new(ErrorKind::TooLarge, format!("{error} (`studio.render_max` of the daemon)"))
        }
        RenderError::SampleRate { .. } => Error::invalid_field("sample_rate", error.to_string()),
        RenderError::Font => Error::invalid_field("soundfont_hash", error.to_string()),
        RenderError::Sink(error) => sink(error),
    }
}

pub(crate) fn sink(error: SinkError) -> Error {
    match error {
        SinkError::Stopped => Error::cancelled("the render was stopped"),
        SinkError::Failed(error) => internal(error).with_certainty(Certainty::Ran),
    }
}

pub(crate) fn decode(field: &str, error: &DecodeError) -> Error {
    match error {
        DecodeError::TooLong { .. } | DecodeError::TooManyChannels { .. } => {
            Error::new(ErrorKind::TooLarge, error.to_string())
        }
        DecodeError::Stopped => Error::cancelled("the analysis was stopped"),
        DecodeError::Unknown | DecodeError::Malformed { .. } | DecodeError::Empty => {
            Error::invalid_field(field, error.to_string())
        }
    }
}

pub(crate) fn piece(field: &str, error: &PieceError) -> Error {
    match error {
        PieceError::Read(ReadError::TooLarge { .. } | ReadError::TooManyEvents { .. }) => {
            Error::new(ErrorKind::TooLarge, error.to_string())
        }
        PieceError::Read(
            ReadError::Damaged { .. } | ReadError::NotMidi { .. } | ReadError::Format2,
        )
        | PieceError::Empty => Error::invalid_field(field, error.to_string()),
    }
}

/// Converts the failure of a music service; the error says whether it ran.
pub(crate) fn ask(error: &RequestError) -> Error {
    let (kind, certainty) = match error {
        RequestError::NotConfigured { .. } => (ErrorKind::ToolFailed, Certainty::NotStarted),
        RequestError::Unreachable { .. } => (ErrorKind::Gone, Certainty::NotStarted),
        RequestError::Broken { .. } => (ErrorKind::Gone, Certainty::MayHaveRun),
        RequestError::Timeout { .. } => (ErrorKind::Timeout, Certainty::MayHaveRun),
        RequestError::Busy { .. } => (ErrorKind::Busy, Certainty::NotStarted),
        RequestError::Refused { .. } => (ErrorKind::Invalid, Certainty::NotStarted),
        RequestError::TooLarge { .. } => (ErrorKind::TooLarge, Certainty::Ran),
        RequestError::Failed { .. } | RequestError::Malformed { .. } => {
            (ErrorKind::ToolFailed, Certainty::Ran)
        }
    };
    if let Some(cause) = std::error::Error::source(error) {
        tracing::info!(service = %error.service(), %error, %cause, "a music service failed");
    }
    Error::new(kind, error.to_string()).with_certainty(certainty)
}

/// Reports an answer of a service that is malformed.
pub(crate) fn malformed(service: Service, reason: String) -> Error {
    ask(&RequestError::Malformed { service, reason })
}
