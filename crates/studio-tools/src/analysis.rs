//! `beatthis_analyze` and `clap_analyze`: by their music services where configured, else by the
//! embedded method.

use std::fs::File;
use std::io::{Read, Seek};

use ringback_broker::studio::{Content, hash_of, internal};
use ringback_music_services::Service;
use ringback_proto::ids::{ArtifactId, BlobHash};
use ringback_proto::request::{
    BeatsAnalyzedResponse, BeatthisAnalyzeRequest, ClapAnalyzeRequest, ClapAnalyzedResponse,
    Lineage, SoundFeatures, SourceRole,
};
use ringback_proto::value::Value;
use ringback_proto::{Error, ErrorKind, Result, StreamChunk};
use ringback_studio::analysis::{
    BACKEND, Features, Novelty, Sound, measure, similarity, track_beats,
};
use ringback_studio::audio::DecodeLimits;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::context::{compute, keep, map};
use crate::{Context, failure, service_analysis};

/// The MIME type of a stored analysis.
const MSGPACK: &str = "application/vnd.msgpack";

/// The tasks of the embedded method.
const TASKS: [&str; 3] = ["embeddings", "features", "similarity"];
/// The tasks that need a trained model.
const MODEL_TASKS: [&str; 3] = ["genre", "mood", "zero_shot"];

pub(crate) async fn beats(
    ctx: Context,
    request: BeatthisAnalyzeRequest,
) -> Result<BeatsAnalyzedResponse> {
    let BeatthisAnalyzeRequest { audio_hash, audio_path, include_frames } = request;
    let source = match (audio_hash, audio_path) {
        (Some(hash), None) => {
            let content = ctx.broker.content(SourceRole::Audio, hash).await?;
            Source::Content("audio_hash", content)
        }
        (None, Some(path)) => Source::Path(path),
        (Some(_), Some(_)) | (None, None) => {
            let message = "give either `audio_hash` or `audio_path`";
            return Err(Error::invalid_field("audio_hash", message));
        }
    };
    say(&ctx, 0.0, "decoding and analysing").await;
    let mut response = if has_service(&ctx, Service::Beatthis) {
        let sound = compute(&ctx, move |ctx, stop| source.read(ctx, stop)).await?;
        service_analysis::beats(&ctx, sound, include_frames).await?
    } else {
        compute(&ctx, move |ctx, stop| {
            let sound = source.read(ctx, stop)?;
            Ok(embedded_beats(&sound, include_frames))
        })
        .await?
    };
    let lineage = Lineage {
        tags: vec![format!("bpm:{:.0}", response.estimated_bpm)],
        creator: Some("agent_beatthis".to_owned()),
        parent_id: None,
        variation_set_id: None,
    };
    let about = ("beatthis_analyze", response.backend.clone(), audio_hash);
    let id = keep_analysis(&ctx, &response, lineage, about).await?;
    response.artifact_id = Some(id);
    Ok(response)
}

pub(crate) async fn describe(
    ctx: Context,
    request: ClapAnalyzeRequest,
) -> Result<ClapAnalyzedResponse> {
    let by_service = has_service(&ctx, Service::Clap);
    let asked = RequestedTasks::of(&request, by_service)?;
    let ClapAnalyzeRequest { audio_hash, audio_b_hash, creator, parent_id, .. } = request;
    let lineage = Lineage { creator, parent_id, ..Lineage::default() };
    ctx.broker.check_lineage(&lineage).await?;
    let content = ctx.broker.content(SourceRole::Audio, audio_hash).await?;
    let source = Source::Content("audio_hash", content);
    let other = match audio_b_hash {
        Some(hash) => {
            let content = ctx.broker.content(SourceRole::AudioB, hash).await?;
            Some(Source::Content("audio_b_hash", content))
        }
        None => None,
    };
    say(&ctx, 0.0, "decoding and analysing").await;
    let mut response = if by_service {
        described(&ctx, source, other, asked, request.text_candidates).await?
    } else {
        compute(&ctx, move |ctx, stop| measured(ctx, stop, &source, other.as_ref(), asked)).await?
    };
    let about = ("clap_analyze", response.backend.clone(), Some(audio_hash));
    let id = keep_analysis(&ctx, &response, lineage, about).await?;
    response.artifact_id = Some(id);
    Ok(response)
}

fn has_service(ctx: &Context, service: Service) -> bool {
    ctx.studio.services.endpoint(service).is_some()
}

fn embedded_beats(sound: &Sound, include_frames: bool) -> BeatsAnalyzedResponse {
    let novelty = Novelty::of(sound);
    let beats = track_beats(sound, &novelty);
    BeatsAnalyzedResponse {
        beats: beats.beats,
        downbeats: beats.downbeats,
        estimated_bpm: beats.bpm,
        confidence: beats.confidence,
        beats_per_bar: beats.beats_per_bar,
        duration_seconds: sound.seconds(),
        frames_per_second: include_frames.then(|| novelty.frames_per_second()),
        frames: include_frames.then(|| novelty.frames().to_vec()),
        backend: BACKEND.to_owned(),
        artifact_id: None,
    }
}

/// Analyses with the embedded method.
fn measured(
    ctx: &Context,
    stop: &CancellationToken,
    source: &Source,
    other: Option<&Source>,
    asked: RequestedTasks,
) -> Result<ClapAnalyzedResponse> {
    let (sound, features) = source.measure(ctx, stop)?;
    let likeness = match (other, asked.similarity) {
        (Some(other), true) => Some(similarity(&features, &other.measure(ctx, stop)?.1).0),
        (Some(_), false) | (None, _) => None,
    };
    Ok(ClapAnalyzedResponse {
        features: asked.features.then(|| sound_features(&sound, &features)),
        embeddings: asked.embeddings.then_some(features.embedding),
        genre: None,
        mood: None,
        zero_shot: None,
        similarity: likeness,
        unavailable: asked.model_tasks,
        backend: BACKEND.to_owned(),
        artifact_id: None,
    })
}

/// Analyses with the service; features are measured here, since no service does.
async fn described(
    ctx: &Context,
    source: Source,
    other: Option<Source>,
    asked: RequestedTasks,
    text_candidates: Vec<String>,
) -> Result<ClapAnalyzedResponse> {
    let wants_features = asked.features;
    let (sound, other, features) = compute(ctx, move |ctx, stop| {
        let sound = source.read(ctx, stop)?;
        let other = other.map(|other| other.read(ctx, stop)).transpose()?;
        let features =
            wants_features.then(|| sound_features(&sound, &measure(&sound, &Novelty::of(&sound))));
        Ok((sound, other, features))
    })
    .await?;
    let mut tasks = asked.model_tasks;
    let own = [("embeddings", asked.embeddings), ("similarity", asked.similarity)];
    tasks.extend(own.into_iter().filter(|(_, wanted)| *wanted).map(|(task, _)| task.to_owned()));
    if tasks.is_empty() {
        return Ok(ClapAnalyzedResponse {
            unavailable: Vec::new(),
            backend: BACKEND.to_owned(),
            embeddings: None,
            features,
            genre: None,
            mood: None,
            zero_shot: None,
            similarity: None,
            artifact_id: None,
        });
    }
    let told = service_analysis::describe(ctx, sound, other, tasks, text_candidates).await?;
    Ok(ClapAnalyzedResponse { features, ..told })
}

/// The tasks of a request.
struct RequestedTasks {
    embeddings: bool,
    features: bool,
    similarity: bool,
    /// Those that need a trained model.
    model_tasks: Vec<String>,
}

impl RequestedTasks {
    fn of(request: &ClapAnalyzeRequest, has_model: bool) -> Result<Self> {
        let default = ["embeddings".to_owned()];
        let tasks = if request.tasks.is_empty() { &default[..] } else { &request.tasks };
        let known = |task: &&String| {
            let task = task.as_str();
            TASKS.contains(&task) || MODEL_TASKS.contains(&task)
        };
        if let Some(unknown) = tasks.iter().find(|task| !known(task)) {
            let known = [TASKS, MODEL_TASKS].concat().join(", ");
            let message = format!("unknown task `{unknown}`; the tasks are {known}");
            return Err(Error::invalid_field("tasks", message));
        }
        let wants = |task: &str| tasks.iter().any(|asked| asked == task);
        if wants("similarity") && request.audio_b_hash.is_none() {
            let message = "`similarity` compares two sounds: give `audio_b_hash`";
            return Err(Error::invalid_field("audio_b_hash", message));
        }
        let model_tasks: Vec<_> =
            tasks.iter().filter(|task| MODEL_TASKS.contains(&task.as_str())).cloned().collect();
        if wants("zero_shot") && request.text_candidates.is_empty() {
            let message = "`zero_shot` needs labels to choose from: give `text_candidates`";
            return Err(Error::invalid_field("text_candidates", message));
        }
        if model_tasks.len() == tasks.len() && !has_model {
            let message = format!(
                "{} need a trained model, and no CLAP service is configured (`studio.services.clap`); the embedded method supports {}",
                model_tasks.join(", "),
                TASKS.join(", ")
            );
            return Err(Error::new(ErrorKind::ToolFailed, message));
        }
        Ok(Self {
            embeddings: wants("embeddings"),
            features: wants("features"),
            similarity: wants("similarity"),
            model_tasks,
        })
    }
}

/// The source of a sound: content with the field that names it, or a file of this machine.
enum Source {
    Content(&'static str, Content),
    Path(String),
}

impl Source {
    fn read(&self, ctx: &Context, stop: &CancellationToken) -> Result<Sound> {
        match self {
            Self::Content(field, content) => decode(ctx, field, ctx.broker.open(*content)?, stop),
            Self::Path(path) => {
                let file = ctx.broker.open_file(path)?;
                let again = file.try_clone().map_err(internal)?;
                let sound = decode(ctx, "audio_path", file, stop)?;
                // Only now: a file that is too long has been refused.
                ctx.broker.add_source(SourceRole::Audio, hash_file(again).map_err(internal)?);
                Ok(sound)
            }
        }
    }

    fn measure(&self, ctx: &Context, stop: &CancellationToken) -> Result<(Sound, Features)> {
        let sound = self.read(ctx, stop)?;
        let features = measure(&sound, &Novelty::of(&sound));
        Ok((sound, features))
    }
}

fn hash_file(mut file: File) -> std::io::Result<BlobHash> {
    file.rewind()?;
    hash_of(file)
}

fn decode(
    ctx: &Context,
    field: &str,
    file: impl Read + Seek + Send + Sync + 'static,
    stop: &CancellationToken,
) -> Result<Sound> {
    let limits = DecodeLimits {
        seconds_max: ctx.studio.settings.audio_seconds_max.into(),
        ..DecodeLimits::default()
    };
    Sound::read(file, limits, &|| !stop.is_cancelled())
        .map_err(|error| failure::decode(field, &error))
}

async fn say(ctx: &Context, percent: f32, message: &str) {
    ctx.broker.send(StreamChunk::Progress { percent, message: message.to_owned() }).await;
}

/// Stores an analysis as content and makes an artifact of it. `about` is the tool, the backend and
/// the input.
async fn keep_analysis<T: Serialize>(
    ctx: &Context,
    analysis: &T,
    lineage: Lineage,
    about: (&str, String, Option<BlobHash>),
) -> Result<ArtifactId> {
    let (tool, backend, input) = about;
    let bytes = rmp_serde::to_vec_named(analysis).map_err(internal)?;
    let broker = ctx.broker.clone();
    let stored = ctx.broker.blocking(move |_| broker.store(&bytes, MSGPACK)).await?;
    let input = input.map_or(Value::Null, |hash| Value::Text(hash.to_string()));
    let metadata = map([("input_hash", input), ("backend", Value::Text(backend))]);
    let labels = ["type:analysis", &format!("tool:{tool}")];
    keep(ctx, stored, lineage, &labels, metadata).await
}

fn sound_features(sound: &Sound, features: &Features) -> SoundFeatures {
    let (decoded, spectral) = (sound.decoded(), features.spectral);
    SoundFeatures {
        duration_seconds: sound.seconds(),
        sample_rate: decoded.sample_rate,
        channels: u32::try_from(decoded.channels).unwrap_or(u32::MAX),
        loudness_lufs: features.loudness.integrated_lufs,
        loudness_range_lu: features.loudness.range_lu,
        true_peak_dbtp: features.loudness.true_peak_dbtp,
        key: features.key.map(|key| key.to_string()),
        key_confidence: features.key.map(|key| key.confidence),
        onsets: features.onsets.clone(),
        centroid_hertz: spectral.centroid_hertz,
        bandwidth_hertz: spectral.bandwidth_hertz,
        rolloff_hertz: spectral.rolloff_hertz,
        flatness: spectral.flatness,
        rms: spectral.rms,
    }
}
