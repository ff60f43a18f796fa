//! `GET /v1/garden/monitor.wav` and `monitor.pcm`: what the garden plays, as it plays.

use std::convert::Infallible;

use axum::body::Body;
use axum::extract::State as With;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use ringback_broker::{Credential, Edge, Monitor};

use crate::api::{Auth, Content, Operation, Route};
use crate::caller::StreamCaller;
use crate::edge::State;
use crate::error::HttpError;
use crate::sse::{X_ACCEL_BUFFERING, over};

const WAV: &str = "audio/wav";
/// The name that GStreamer and others use for such frames; the answer adds rate and channels.
const PCM: &str = "audio/x-float32le";

/// Left and right.
const CHANNELS: u16 = 2;
/// The bytes of a sample.
const SAMPLE_BYTES: u16 = 4;
/// The number of IEEE floats among the formats of WAVE.
const FORMAT_FLOAT: u16 = 3;
/// The bytes of the format chunk: formats other than integers have the length of an extension.
const FORMAT_BYTES: u32 = 18;
/// What programs write as the length of a stream: its end is not known.
const LENGTH_UNKNOWN: u32 = u32::MAX;

/// A listener.
struct Listener {
    monitor: Monitor,
    state: State,
    credential: Credential,
}

pub(super) fn routes() -> Vec<Route> {
    let about = |id, about, kind| {
        Operation::new("garden", id, about)
            .auth(Auth::TokenOrTicket)
            .answers(200, "The sound, until you hang up or the garden ends.", Content::Media(kind))
            .fails([502, 504])
    };
    vec![
        Route::get(
            "/v1/garden/monitor.wav",
            wav,
            about(
                "listen_wav",
                "Streams what the garden plays, as a WAV file without an end.",
                WAV,
            ),
        ),
        Route::get(
            "/v1/garden/monitor.pcm",
            pcm,
            about(
                "listen_pcm",
                "Streams what the garden plays: 32-bit floats, little-endian, left and right in \
                 turn.",
                PCM,
            ),
        ),
    ]
}

async fn wav(
    With(state): With<State>,
    StreamCaller(credential): StreamCaller,
) -> Result<Response, HttpError> {
    let monitor = state.broker().monitor(&credential, Edge::Http).await?;
    let head = wav_head(monitor.sample_rate());
    Ok(sound(state, credential, monitor, WAV.to_owned(), Some(head)))
}

async fn pcm(
    With(state): With<State>,
    StreamCaller(credential): StreamCaller,
) -> Result<Response, HttpError> {
    let monitor = state.broker().monitor(&credential, Edge::Http).await?;
    let kind = format!("{PCM};rate={};channels={CHANNELS}", monitor.sample_rate());
    Ok(sound(state, credential, monitor, kind, None))
}

/// A stream that ends with the garden, with its caller's token, or with the daemon.
fn sound(
    state: State,
    credential: Credential,
    monitor: Monitor,
    kind: String,
    head: Option<Bytes>,
) -> Response {
    let end = over(&state, credential.clone());
    let pieces = stream::unfold(Listener { monitor, state, credential }, Listener::step);
    let body = stream::iter(head).chain(pieces).take_until(end).map(Ok::<_, Infallible>);
    let headers = [
        (CACHE_CONTROL, "no-store"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_ACCEL_BUFFERING, "no"),
    ];
    (headers, [(CONTENT_TYPE, kind)], Body::from_stream(body)).into_response()
}

impl Listener {
    async fn step(mut self) -> Option<(Bytes, Self)> {
        let frames = self.monitor.next().await?;
        self.credential.principal(self.state.broker().now()).ok()?;
        Some((frames, self))
    }
}

/// Returns everything of a WAV file that comes before its frames.
fn wav_head(sample_rate: u32) -> Bytes {
    let frame_bytes = CHANNELS * SAMPLE_BYTES;
    let mut head = Vec::new();
    head.extend(b"RIFF");
    head.extend(LENGTH_UNKNOWN.to_le_bytes());
    head.extend(b"WAVEfmt ");
    head.extend(FORMAT_BYTES.to_le_bytes());
    head.extend(FORMAT_FLOAT.to_le_bytes());
    head.extend(CHANNELS.to_le_bytes());
    head.extend(sample_rate.to_le_bytes());
    head.extend(sample_rate.saturating_mul(frame_bytes.into()).to_le_bytes());
    head.extend(frame_bytes.to_le_bytes());
    head.extend((8 * SAMPLE_BYTES).to_le_bytes());
    // No extension.
    head.extend(0_u16.to_le_bytes());
    head.extend(b"data");
    head.extend(LENGTH_UNKNOWN.to_le_bytes());
    head.into()
}
