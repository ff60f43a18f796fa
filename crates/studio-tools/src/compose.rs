//! `orpheus_*`: by the music services where configured, else by the embedded model.

use bytes::Bytes;
use ringback_broker::studio::check_text;
use ringback_music_services::Service;
use ringback_music_services::predict::{
    Base64, BridgePredict, ClassifyPredict, LoopsPredict, OrpheusPredict, Sampling, Variations,
};
use ringback_proto::chunk::MidiEvent;
use ringback_proto::data::Data;
use ringback_proto::ids::{BlobHash, VariationSetId};
use ringback_proto::request::{
    ArtifactsCreatedResponse, Classification, Lineage, MadeArtifact, OrpheusBridgeRequest,
    OrpheusClassifiedResponse, OrpheusClassifyRequest, OrpheusContinueRequest,
    OrpheusGenerateRequest, OrpheusGenerateSeededRequest, OrpheusLoopsRequest, SourceRole,
};
use ringback_proto::value::Value;
use ringback_proto::{Error, Result, StreamChunk};
use ringback_studio::compose::{self, Piece, Settings, Task, judge};
use ringback_studio::smf::{BYTES_MAX, Event, Sequence};

use crate::context::{compute, compute_aloud, keep, map};
use crate::font::check_range;
use crate::service::{backend, predict};
use crate::{Context, failure};

const MIDI: &str = "audio/midi";
/// About how many tokens a model needs per note: onset, duration, pitch.
const TOKENS_PER_NOTE: u32 = 3;
const TOKENS: u32 = 1024;
const TOKENS_MAX: u32 = 8192;
const VARIATIONS_MAX: u32 = 16;
const TEMPERATURES: std::ops::RangeInclusive<f32> = 0.0..=2.0;
const PROBABILITIES: std::ops::RangeInclusive<f32> = 0.0..=1.0;
const TOP_P: f32 = 0.95;
const MODEL: &str = "base";
/// The most characters of a model's name.
const MODEL_CHARS_MAX: usize = 100;

/// The kind of music wanted, and its input.
#[derive(Debug, Clone, Copy)]
enum MusicTask {
    New,
    Seeded(BlobHash),
    Continue(BlobHash),
    Bridge(BlobHash, Option<BlobHash>),
    Loop(Option<BlobHash>),
}

/// The parameters of a request.
#[derive(Debug, Clone)]
struct MusicSettings {
    max_tokens: u32,
    n_variations: u32,
    temperature: f32,
    top_p: f32,
    model: Option<String>,
    seed: Option<u64>,
}

/// As the caller requested.
#[derive(Debug)]
struct RequestOptions {
    max_tokens: Option<u32>,
    num_variations: Option<u32>,
    temperature: Option<f32>,
    top_p: Option<f32>,
    model: Option<String>,
    seed: Option<u64>,
}

/// Generated music, before it is stored.
struct GeneratedMusic {
    files: Vec<Bytes>,
    backend: String,
    /// The seed of the first file; each further file has the next.
    seed: Option<u64>,
    is_embedded: bool,
}

/// Defines a tool: the kind of music that its request wants, and the fields that the request lacks.
macro_rules! orpheus {
    ($function:ident, $Request:ident, $name:literal, |$request:ident| $what:expr, {
        $($field:ident: $value:expr,)*
    }) => {
        pub(crate) async fn $function(
            ctx: Context,
            mut $request: $Request,
        ) -> Result<ArtifactsCreatedResponse> {
            let lineage = $request.take_lineage();
            let what = $what;
            let asked = RequestOptions {
                max_tokens: $request.max_tokens,
                temperature: $request.temperature,
                top_p: $request.top_p,
                seed: $request.seed,
                $($field: $value,)*
            };
            orpheus(&ctx, $name, what, asked, lineage).await
        }
    };
}

orpheus!(generate, OrpheusGenerateRequest, "orpheus_generate", |request| MusicTask::New, {
    num_variations: request.num_variations,
    model: request.model,
});
orpheus!(generate_seeded, OrpheusGenerateSeededRequest, "orpheus_generate_seeded", |request| MusicTask::Seeded(request.seed_hash), {
    num_variations: request.num_variations,
    model: request.model,
});
orpheus!(go_on, OrpheusContinueRequest, "orpheus_continue", |request| MusicTask::Continue(request.input_hash), {
    num_variations: request.num_variations,
    model: request.model,
});
orpheus!(bridge, OrpheusBridgeRequest, "orpheus_bridge", |request| MusicTask::Bridge(request.section_a_hash, request.section_b_hash), {
    num_variations: None,
    model: request.model,
});
orpheus!(loops, OrpheusLoopsRequest, "orpheus_loops", |request| MusicTask::Loop(request.seed_hash), {
    num_variations: request.num_variations,
    model: None,
});

pub(crate) async fn classify(
    ctx: Context,
    request: OrpheusClassifyRequest,
) -> Result<OrpheusClassifiedResponse> {
    let field = "midi_hash";
    let file = read(&ctx, field, SourceRole::Input, request.midi_hash).await?;
    let service = Service::OrpheusClassifier;
    let (labels, backend) = if ctx.studio.services.endpoint(service).is_some() {
        let found = predict(&ctx, ClassifyPredict { midi_input: Base64(file) }).await?;
        let found = found.classification;
        let human = if found.is_human { found.confidence } else { 1.0 - found.confidence };
        (("human", human, "ai"), backend(service))
    } else {
        let judged = compute(&ctx, move |_, _| Ok(judge(&piece(field, &file)?)));
        let performed = judged.await?.performed as f32;
        (("performed", performed, "programmed"), compose::BACKEND.to_owned())
    };
    let (label, confidence, opposite) = labels;
    let classification =
        |label: &str, confidence| Classification { label: label.to_owned(), confidence };
    let mut classifications =
        vec![classification(label, confidence), classification(opposite, 1.0 - confidence)];
    classifications.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
    Ok(OrpheusClassifiedResponse { classifications, backend })
}

async fn orpheus(
    ctx: &Context,
    tool: &'static str,
    what: MusicTask,
    asked: RequestOptions,
    lineage: Lineage,
) -> Result<ArtifactsCreatedResponse> {
    let how = how(asked)?;
    ctx.broker.check_lineage(&lineage).await?;
    let mut sources = Vec::new();
    for (field, role, hash) in what.sources() {
        sources.push((field, read(ctx, field, role, hash).await?));
    }
    let made = if ctx.studio.services.endpoint(what.service()).is_some() {
        by_service(ctx, what, &how, sources).await?
    } else {
        embedded(ctx, what, &how, sources).await?
    };
    keep_all(ctx, tool, what, &how, made, lineage).await
}

fn how(asked: RequestOptions) -> Result<MusicSettings> {
    let count = |field: &str, value: Option<u32>, default: u32, max: u32| {
        let value = value.unwrap_or(default);
        let fine = (1..=max).contains(&value).then_some(value);
        fine.ok_or_else(|| Error::invalid_field(field, format!("`{field}` must be 1 to {max}")))
    };
    let share = |field: &str, value: Option<f32>, default: f32, range| {
        let value = value.unwrap_or(default);
        check_range(field, value, range).map(|()| value)
    };
    if let Some(model) = &asked.model {
        check_text("model", model, MODEL_CHARS_MAX)?;
    }
    Ok(MusicSettings {
        max_tokens: count("max_tokens", asked.max_tokens, TOKENS, TOKENS_MAX)?,
        n_variations: count("num_variations", asked.num_variations, 1, VARIATIONS_MAX)?,
        temperature: share("temperature", asked.temperature, 1.0, TEMPERATURES)?,
        top_p: share("top_p", asked.top_p, TOP_P, PROBABILITIES)?,
        model: asked.model,
        seed: asked.seed,
    })
}

impl MusicTask {
    /// Returns the MIDI files it starts from, with the fields that name them and their roles.
    fn sources(self) -> Vec<(&'static str, SourceRole, BlobHash)> {
        match self {
            Self::New | Self::Loop(None) => Vec::new(),
            Self::Seeded(hash) | Self::Loop(Some(hash)) => {
                vec![("seed_hash", SourceRole::Seed, hash)]
            }
            Self::Continue(hash) => vec![("input_hash", SourceRole::Input, hash)],
            Self::Bridge(a, b) => {
                let b = b.map(|b| ("section_b_hash", SourceRole::SectionB, b));
                std::iter::once(("section_a_hash", SourceRole::SectionA, a)).chain(b).collect()
            }
        }
    }

    const fn service(self) -> Service {
        match self {
            Self::New | Self::Seeded(_) | Self::Continue(_) => Service::Orpheus,
            Self::Bridge(..) => Service::OrpheusBridge,
            Self::Loop(_) => Service::OrpheusLoops,
        }
    }
}

async fn read(
    ctx: &Context,
    field: &'static str,
    role: SourceRole,
    hash: BlobHash,
) -> Result<Bytes> {
    let content = ctx.broker.content(role, hash).await?;
    let broker = ctx.broker.clone();
    let file = ctx.broker.blocking(move |_| broker.read(content, BYTES_MAX as u64)).await?;
    if file.starts_with(b"MThd") {
        return Ok(file);
    }
    Err(Error::invalid_field(field, format!("`{hash}` is not a MIDI file")))
}

fn piece(field: &str, file: &[u8]) -> Result<Piece> {
    Piece::read(file).map_err(|error| failure::piece(field, &error))
}

async fn by_service(
    ctx: &Context,
    what: MusicTask,
    how: &MusicSettings,
    sources: Vec<(&'static str, Bytes)>,
) -> Result<GeneratedMusic> {
    let MusicSettings { max_tokens, temperature, top_p, n_variations: num_variations, .. } = *how;
    let sampling = Sampling { temperature, top_p, max_tokens };
    let mut sources = sources.into_iter().map(|(_, file)| Base64(file));
    let mut next = || sources.next();
    let notes = |task, midi_input| OrpheusPredict {
        model: how.model.clone().unwrap_or_else(|| MODEL.to_owned()),
        task,
        sampling,
        num_variations,
        midi_input,
    };
    let Variations { variations } = match (what, next()) {
        (MusicTask::New, _) => predict(ctx, notes("generate", None)).await?,
        (MusicTask::Seeded(_), midi) => predict(ctx, notes("generate_seeded", midi)).await?,
        (MusicTask::Continue(_), midi) => predict(ctx, notes("continue", midi)).await?,
        (MusicTask::Bridge(..), Some(section_a)) => {
            let (model, section_b) = (how.model.clone(), next());
            predict(ctx, BridgePredict { model, section_a, section_b, sampling }).await?
        }
        (MusicTask::Bridge(..), None) => {
            return Err(Error::invalid("a bridge needs a piece to start from"));
        }
        (MusicTask::Loop(_), seed) => {
            predict(ctx, LoopsPredict { seed, sampling, num_variations }).await?
        }
    };
    let files: Vec<_> = variations.into_iter().map(|made| made.midi_base64.0).collect();
    let service = what.service();
    let n_files = files.len();
    if files.is_empty() || n_files > VARIATIONS_MAX as usize {
        let reason = format!("it made {n_files} variations, not {num_variations}");
        return Err(failure::malformed(service, reason));
    }
    Ok(GeneratedMusic { files, backend: backend(service), seed: None, is_embedded: false })
}

/// Composes on a thread of its own, when a core is free.
async fn embedded(
    ctx: &Context,
    what: MusicTask,
    how: &MusicSettings,
    sources: Vec<(&'static str, Bytes)>,
) -> Result<GeneratedMusic> {
    // A generated seed stays below 2^53, so that JSON can represent it.
    let drawn = || u64::from_le_bytes(ctx.broker.random_bytes()) >> 11;
    let seed = how.seed.unwrap_or_else(drawn);
    let settings = Settings {
        n_notes: (how.max_tokens / TOKENS_PER_NOTE).max(1) as usize,
        temperature: how.temperature.into(),
        top_p: how.top_p.into(),
        seed,
    };
    let pieces = compute(ctx, move |_, _| {
        sources.iter().map(|(field, file)| piece(field, file)).collect::<Result<Vec<_>>>()
    });
    let pieces = std::sync::Arc::new(pieces.await?);
    let mut files = Vec::new();
    for index in 0..how.n_variations {
        let percent = index as f32 / how.n_variations as f32 * 100.0;
        let message = format!("composing {} of {}", index + 1, how.n_variations);
        ctx.broker.send(StreamChunk::Progress { percent, message }).await;
        let settings = Settings { seed: seed.wrapping_add(index.into()), ..settings };
        let pieces = std::sync::Arc::clone(&pieces);
        let composed = compute_aloud(ctx, move |_, chunks, stop| {
            let task = task(what, &pieces)?;
            // Without a reader the call has ended, which stops the composition.
            let hear = |events: &[Event]| drop(chunks.blocking_send(partial(events)));
            let made = compose::compose_aloud(task, &settings, &|| !stop.is_cancelled(), &hear);
            let made = made.map_err(|error| Error::cancelled(&error.to_string()))?;
            Ok(Bytes::from(made.sequence.write()))
        });
        files.push(composed.await?);
    }
    let backend = compose::BACKEND.to_owned();
    Ok(GeneratedMusic { files, backend, seed: Some(seed), is_embedded: true })
}

/// Events as a chunk: raw messages at their ticks.
fn partial(events: &[Event]) -> StreamChunk {
    let event =
        |event: &Event| MidiEvent { tick: event.tick, data: Data::from(event.message.bytes()) };
    StreamChunk::PartialMidi { events: events.iter().map(event).collect() }
}

fn task(what: MusicTask, pieces: &[Piece]) -> Result<Task<'_>> {
    let first = || pieces.first().ok_or_else(|| Error::invalid("no piece to start from"));
    Ok(match what {
        MusicTask::New => Task::New,
        MusicTask::Seeded(_) => Task::Seeded(first()?),
        MusicTask::Continue(_) => Task::Continue(first()?),
        MusicTask::Bridge(..) => Task::Bridge(first()?, pieces.get(1)),
        MusicTask::Loop(_) => Task::Loop(pieces.first()),
    })
}

/// Makes artifacts of the files; several are variations of each other.
async fn keep_all(
    ctx: &Context,
    tool: &'static str,
    what: MusicTask,
    how: &MusicSettings,
    made: GeneratedMusic,
    mut lineage: Lineage,
) -> Result<ArtifactsCreatedResponse> {
    let GeneratedMusic { files, backend, seed, is_embedded } = made;
    if files.len() > 1 && lineage.variation_set_id.is_none() {
        let id = VariationSetId::from_random(ctx.broker.random_bytes());
        lineage.variation_set_id = Some(id);
    }
    let maker = if is_embedded { "embedded_model" } else { "agent_orpheus" };
    lineage.creator.get_or_insert_with(|| maker.to_owned());
    let source = if is_embedded { "source:embedded" } else { "source:orpheus" };
    let (tool_label, service) = (format!("tool:{tool}"), what.service());
    let mut artifacts = Vec::new();
    for (index, file) in files.into_iter().enumerate() {
        let (stored, seconds, n_notes) = compute(ctx, move |ctx, _| {
            let sequence = Sequence::read(&file)
                .map_err(|error| failure::malformed(service, error.to_string()))?;
            let stored = ctx.broker.store(&file, MIDI)?;
            Ok((stored, sequence.seconds(), sequence.n_notes()))
        })
        .await?;
        let mut about = vec![
            ("backend", Value::Text(backend.clone())),
            ("duration_seconds", Value::Float(seconds)),
            ("notes_count", Value::Int(i64::try_from(n_notes).unwrap_or(i64::MAX))),
            ("temperature", Value::Float(how.temperature.into())),
            ("top_p", Value::Float(how.top_p.into())),
            ("max_tokens", Value::Int(how.max_tokens.into())),
        ];
        about.extend(seed.map(|seed| ("seed", number(seed.wrapping_add(index as u64)))));
        about.extend(
            what.sources().into_iter().map(|(name, _, hash)| (name, Value::Text(hash.to_string()))),
        );
        let content_hash = stored.hash;
        let labels = ["type:midi", source, &tool_label];
        let artifact_id = keep(ctx, stored, lineage.clone(), &labels, map(about)).await?;
        let (mime_type, duration_seconds) = (MIDI.to_owned(), Some(seconds));
        artifacts.push(MadeArtifact { artifact_id, content_hash, mime_type, duration_seconds });
    }
    let variation_set_id = lineage.variation_set_id;
    Ok(ArtifactsCreatedResponse { artifacts, backend, variation_set_id })
}

fn number(value: u64) -> Value {
    i64::try_from(value).map_or(Value::UInt(value), Value::Int)
}
