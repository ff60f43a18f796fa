//! Answers that a service streams: a line of JSON for each part, and the answer itself in the last
//! one.

use bytes::{Buf as _, Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderMap};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use crate::predict::Base64;

/// The type of such an answer: JSON values, separated by line feeds.
pub(crate) const MIME_TYPE: &str = "application/x-ndjson";
/// More channels are a mistake.
const CHANNELS_MAX: u8 = 32;
/// The bytes of one 32-bit sample.
const SAMPLE_BYTES: usize = 4;

/// A part of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum ServicePart {
    /// How far the service is.
    Progress {
        /// In percent, from 0 to 100.
        percent: f32,
        /// What it does.
        message: String,
    },
    /// Sound.
    Audio {
        /// 32-bit floats, little-endian, interleaved.
        samples: Bytes,
        /// The sample rate in hertz.
        sample_rate: u32,
        /// The number of channels.
        channels: u8,
    },
    /// MIDI: raw messages at their ticks.
    Midi(Vec<(u64, Bytes)>),
}

/// Why a streamed answer cannot be used.
#[derive(Debug)]
pub(crate) enum StreamFailure {
    /// The connection broke.
    Broken(hyper::Error),
    /// More bytes than allowed.
    TooLarge,
    /// It is not what it should be.
    Malformed(String),
}

/// A line, with the fields of every kind.
#[derive(Deserialize)]
struct Line<'a> {
    progress: Option<f32>,
    #[serde(default)]
    message: String,
    audio_base64: Option<Base64>,
    #[serde(default)]
    sample_rate: u32,
    #[serde(default)]
    channels: u8,
    midi: Option<Vec<(u64, Base64)>>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<String>,
}

/// The meaning of a line.
#[derive(Debug)]
enum Said {
    Part(ServicePart),
    /// The answer, or `{"error": ..}`, as JSON.
    Answer(Bytes),
}

/// Returns whether an answer is streamed.
pub(crate) fn is_streamed(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case(MIME_TYPE))
}

/// Reads a streamed answer: passes on its parts at the pace of their reader, and returns the answer.
pub(crate) async fn read(
    mut body: Incoming,
    bytes_max: usize,
    parts: &mpsc::Sender<ServicePart>,
) -> Result<Bytes, StreamFailure> {
    let mut waiting = BytesMut::new();
    let mut searched = 0;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(StreamFailure::Broken)?.into_data() else { continue };
        waiting.extend_from_slice(&data);
        while let Some(at) = waiting[searched..].iter().position(|byte| *byte == b'\n') {
            let line = waiting.split_to(searched + at);
            waiting.advance(1);
            searched = 0;
            if let Some(answer) = on_line(&line, parts).await? {
                return Ok(answer);
            }
        }
        searched = waiting.len();
        if searched > bytes_max {
            return Err(StreamFailure::TooLarge);
        }
    }
    // The last line may lack its end.
    let last = on_line(&waiting, parts).await?;
    last.ok_or_else(|| malformed("it ended without a line with `result` or `error`"))
}

async fn on_line(
    line: &[u8],
    parts: &mpsc::Sender<ServicePart>,
) -> Result<Option<Bytes>, StreamFailure> {
    if line.trim_ascii().is_empty() {
        return Ok(None);
    }
    match said(line)? {
        Said::Answer(answer) => Ok(Some(answer)),
        Said::Part(part) => {
            // Without a reader the call has ended, and this future with it.
            drop(parts.send(part).await);
            Ok(None)
        }
    }
}

fn said(line: &[u8]) -> Result<Said, StreamFailure> {
    let read: Line<'_> =
        serde_json::from_slice(line).map_err(|error| malformed(&format!("a line: {error}")))?;
    let part = match read {
        Line { error: Some(_), .. } => return Ok(Said::Answer(Bytes::copy_from_slice(line))),
        Line { result: Some(result), .. } => {
            return Ok(Said::Answer(Bytes::copy_from_slice(result.get().as_bytes())));
        }
        Line { audio_base64: Some(Base64(samples)), sample_rate, channels, .. } => {
            let frame = SAMPLE_BYTES * usize::from(channels);
            let is_fine = (1..=CHANNELS_MAX).contains(&channels)
                && sample_rate > 0
                && samples.len().is_multiple_of(frame);
            if !is_fine {
                let what =
                    "sound needs `sample_rate`, `channels` and whole frames of 32-bit floats";
                return Err(malformed(what));
            }
            ServicePart::Audio { samples, sample_rate, channels }
        }
        Line { midi: Some(events), .. } => {
            ServicePart::Midi(events.into_iter().map(|(tick, data)| (tick, data.0)).collect())
        }
        Line { progress: Some(percent), message, .. } if (0.0..=100.0).contains(&percent) => {
            ServicePart::Progress { percent, message }
        }
        Line { .. } => {
            let what =
                "a line needs `progress` (0 to 100), `audio_base64`, `midi`, `result` or `error`";
            return Err(malformed(what));
        }
    };
    Ok(Said::Part(part))
}

fn malformed(what: &str) -> StreamFailure {
    StreamFailure::Malformed(what.to_owned())
}
