//! `musicgen_generate` and `yue_generate`: sound from music services only.

use std::io::Cursor;

use bytes::Bytes;
use ringback_broker::studio::check_text;
use ringback_music_services::Service;
use ringback_music_services::predict::{Audio, MusicgenPredict, YuePredict};
use ringback_proto::request::{
    ArtifactsCreatedResponse, Lineage, MadeArtifact, MusicgenGenerateRequest, YueGenerateRequest,
};
use ringback_proto::value::Value;
use ringback_proto::{Error, Result};
use ringback_studio::audio::{DecodeLimits, decode};

use crate::context::{compute, keep, map};
use crate::font::check_range;
use crate::service::{backend, predict};
use crate::{Context, failure};

/// The most characters of a description and of lyrics.
const TEXT_CHARS_MAX: usize = 20_000;
/// The most characters of a genre.
const GENRE_CHARS_MAX: usize = 500;
const SECONDS: std::ops::RangeInclusive<f32> = 0.5..=120.0;
const TEMPERATURES: std::ops::RangeInclusive<f32> = 0.0..=2.0;
const PROBABILITIES: std::ops::RangeInclusive<f32> = 0.0..=1.0;
const GUIDANCES: std::ops::RangeInclusive<f32> = 0.0..=20.0;

pub(crate) async fn musicgen(
    ctx: Context,
    mut request: MusicgenGenerateRequest,
) -> Result<ArtifactsCreatedResponse> {
    let lineage = request.take_lineage();
    let asked = MusicgenPredict {
        prompt: request.prompt.unwrap_or_default(),
        duration: request.duration.unwrap_or(10.0),
        temperature: request.temperature.unwrap_or(1.0),
        top_k: request.top_k.unwrap_or(250),
        top_p: request.top_p.unwrap_or(0.9),
        guidance_scale: request.guidance_scale.unwrap_or(3.0),
        do_sample: request.do_sample.unwrap_or(true),
    };
    if !asked.prompt.is_empty() {
        check_text("prompt", &asked.prompt, TEXT_CHARS_MAX)?;
    }
    check_range("duration", asked.duration, SECONDS)?;
    check_range("temperature", asked.temperature, TEMPERATURES)?;
    check_range("top_p", asked.top_p, PROBABILITIES)?;
    check_range("guidance_scale", asked.guidance_scale, GUIDANCES)?;
    ctx.broker.check_lineage(&lineage).await?;
    let about = vec![("prompt", Value::Text(asked.prompt.clone()))];
    let audio = predict(&ctx, asked).await?;
    keep_sound(&ctx, Service::Musicgen, audio, about, lineage).await
}

pub(crate) async fn yue(
    ctx: Context,
    mut request: YueGenerateRequest,
) -> Result<ArtifactsCreatedResponse> {
    let mut lineage = request.take_lineage();
    check_text("lyrics", &request.lyrics, TEXT_CHARS_MAX)?;
    let genre = request.genre.unwrap_or_else(|| "Pop".to_owned());
    check_text("genre", &genre, GENRE_CHARS_MAX)?;
    let asked = YuePredict {
        lyrics: request.lyrics,
        genre,
        max_new_tokens: request.max_new_tokens.unwrap_or(3000),
        run_n_segments: request.run_n_segments.unwrap_or(2),
        seed: request.seed.unwrap_or(42),
    };
    ctx.broker.check_lineage(&lineage).await?;
    lineage.tags.push("has:vocals".to_owned());
    let about = vec![
        ("lyrics", Value::Text(asked.lyrics.clone())),
        ("genre", Value::Text(asked.genre.clone())),
    ];
    let audio = predict(&ctx, asked).await?;
    keep_sound(&ctx, Service::Yue, audio, about, lineage).await
}

/// Makes an artifact of a service's sound, if it is valid.
async fn keep_sound(
    ctx: &Context,
    service: Service,
    audio: Audio,
    mut about: Vec<(&'static str, Value)>,
    mut lineage: Lineage,
) -> Result<ArtifactsCreatedResponse> {
    let extension = audio.format.unwrap_or_else(|| "wav".to_owned());
    let mime_type = match extension.as_str() {
        "wav" => "audio/wav",
        "mp3" => "audio/mpeg",
        "flac" => "audio/flac",
        "ogg" => "audio/ogg",
        other => {
            let reason = format!("it made a file of the unknown format `{other}`");
            return Err(failure::malformed(service, reason));
        }
    };
    let file = audio.audio_base64.0;
    let seconds_max = ctx.studio.settings.audio_seconds_max.into();
    let (stored, seconds, sample_rate) = compute(ctx, move |ctx, stop| {
        let (seconds, sample_rate) =
            heard(service, file.clone(), seconds_max, &|| !stop.is_cancelled())?;
        Ok((ctx.broker.store(&file, mime_type)?, seconds, sample_rate))
    })
    .await?;
    let backend = backend(service);
    about.extend([
        ("backend", Value::Text(backend.clone())),
        ("duration_seconds", Value::Float(seconds)),
        ("sample_rate", Value::Int(sample_rate.into())),
    ]);
    lineage.creator.get_or_insert_with(|| format!("agent_{service}"));
    let labels = [
        "type:audio",
        &format!("format:{extension}"),
        &format!("source:{service}"),
        &format!("tool:{service}_generate"),
    ];
    let (content_hash, variation_set_id) = (stored.hash, lineage.variation_set_id);
    let artifact_id = keep(ctx, stored, lineage, &labels, map(about)).await?;
    let made = MadeArtifact {
        artifact_id,
        content_hash,
        mime_type: mime_type.to_owned(),
        duration_seconds: Some(seconds),
    };
    Ok(ArtifactsCreatedResponse { artifacts: vec![made], backend, variation_set_id })
}

/// Decodes a whole file: returns its duration and its frames per second.
fn heard(
    service: Service,
    file: Bytes,
    seconds_max: f64,
    go_on: &dyn Fn() -> bool,
) -> Result<(f64, u32)> {
    let limits = DecodeLimits { seconds_max, ..DecodeLimits::default() };
    let decoded = decode(Cursor::new(file), limits, &mut |_| go_on());
    let decoded = decoded.map_err(|error| {
        if go_on() {
            failure::malformed(service, error.to_string())
        } else {
            Error::cancelled("the decoding was stopped")
        }
    })?;
    Ok((decoded.seconds(), decoded.sample_rate))
}
