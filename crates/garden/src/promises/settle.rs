//! What becomes of one region: its job is looked at, its content prepared, the daemon told.

use std::sync::Arc;
use std::time::Duration;

use ringback_client::Client;
use ringback_proto::garden::{GardenContent, GardenRegion, GardenTimeline};
use ringback_proto::ids::{ArtifactId, BlobHash, JobId, RegionId};
use ringback_proto::record::JobState;
use ringback_proto::request::{
    ArtifactGetRequest, GardenSettleRequest, GardenSettledResponse, GardenTimelineRequest,
    JobStatusRequest, JobStatusResponse,
};
use ringback_proto::tool::tools::{self, ArtifactGet, GardenSettle, JobStatus};
use ringback_proto::{Error, ErrorKind, ToolResponse};

use crate::content::ContentError;
use crate::engine::Engine;
use crate::garden::GardenHandle;
use crate::reader::{HeldSound, Probed};
use crate::sound::{SoundKey, is_midi, key_of};

/// How long content may take to be prepared before the next region has its turn; it is tried again.
const PROBE_TIME: Duration = Duration::from_secs(60);

/// The most characters of the reason of a failure, as of a decision.
const MESSAGE_CHARS_MAX: usize = 1000;

/// What a look at a job found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// The job has not ended.
    Running,
    /// The region does not wait any more.
    Settled,
}

/// What a job made.
#[derive(Debug, Clone, PartialEq)]
struct Made {
    hash: BlobHash,
    /// Not known if only the artifact has it.
    mime_type: Option<String>,
    artifact_id: Option<ArtifactId>,
}

/// Content that was prepared.
struct Prepared {
    content: GardenContent,
    key: SoundKey,
    /// `None` if there is no room for it yet.
    sound: Option<HeldSound>,
}

/// Settles a region if its job has ended.
///
/// # Errors
/// If it has to be tried again.
pub(super) async fn settle(
    garden: &GardenHandle,
    client: &Client,
    region_id: RegionId,
    job_id: JobId,
) -> Result<Fate, Error> {
    let Some(made) = made_by(client, job_id).await? else { return Ok(Fate::Running) };
    let artifact_id = made.as_ref().ok().and_then(|(_, artifact_id)| *artifact_id);
    let prepared = match made {
        Ok((content, _)) => prepare(garden, region_id, content).await?,
        Err(message) => Some(Err(message)),
    };
    // A region that was deleted waits for nothing.
    let Some(prepared) = prepared else { return Ok(Fate::Settled) };
    let (prepared, message) = match prepared {
        Ok(prepared) => (Some(prepared), None),
        Err(message) => (None, Some(message.chars().take(MESSAGE_CHARS_MAX).collect())),
    };
    let request = GardenSettleRequest {
        region_id,
        job_id,
        content: prepared.as_ref().map(|prepared| prepared.content.clone()),
        artifact_id: artifact_id.filter(|_| prepared.is_some()),
        message,
    };
    match client.call::<GardenSettle>(request).await {
        Ok(settled) => apply(garden, client, region_id, settled, prepared).await?,
        // It was deleted, or waits for another job.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Invalid) => {
            tracing::info!(%error, %region_id, "the region does not wait any more");
        }
        Err(error) => return Err(error),
    }
    Ok(Fate::Settled)
}

/// Returns what a job made, or why it made no sound; `None` while it runs.
async fn made_by(
    client: &Client,
    job_id: JobId,
) -> Result<Option<Result<(GardenContent, Option<ArtifactId>), String>>, Error> {
    let job = match client.call::<JobStatus>(JobStatusRequest { job_id }).await {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Ok(Some(Err(format!("{job_id} does not exist any more"))));
        }
        job => job?,
    };
    let JobStatusResponse { status, result, error, .. } = job;
    let result = match status {
        JobState::Pending | JobState::Running => return Ok(None),
        JobState::Complete => result,
        JobState::Failed | JobState::Cancelled => {
            let why = error.map(|error| error.message).unwrap_or_default();
            return Ok(Some(Err(format!("{job_id} is {}: {why}", status.as_str()))));
        }
    };
    for Made { hash, mime_type, artifact_id } in result.map(|it| made_of(*it)).unwrap_or_default() {
        let mime_type = match (mime_type, artifact_id) {
            (Some(mime_type), _) => mime_type,
            (None, Some(id)) => type_of(client, id).await?,
            (None, None) => continue,
        };
        if is_sound(&mime_type) {
            return Ok(Some(Ok((GardenContent { hash, mime_type }, artifact_id))));
        }
    }
    Ok(Some(Err(format!("{job_id} made neither audio nor MIDI"))))
}

/// Returns the type of an artifact's content; that of one that is gone is not known.
async fn type_of(client: &Client, id: ArtifactId) -> Result<String, Error> {
    match client.call::<ArtifactGet>(ArtifactGetRequest { id }).await {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
        artifact => Ok(artifact?.mime_type),
    }
}

/// Returns what a result says was made, in its order.
fn made_of(result: ToolResponse) -> Vec<Made> {
    if let ToolResponse::ArtifactsCreated(created) = result {
        let made = created.artifacts.into_iter().map(|made| Made {
            hash: made.content_hash,
            mime_type: Some(made.mime_type),
            artifact_id: Some(made.artifact_id),
        });
        return made.collect();
    }
    let one = |hash, artifact_id| vec![Made { hash, mime_type: None, artifact_id }];
    if let ToolResponse::ArtifactCreated(created) = result {
        return one(created.content_hash, Some(created.artifact_id));
    }
    if let ToolResponse::AbcConverted(converted) = result {
        return one(converted.content_hash, Some(converted.artifact_id));
    }
    if let ToolResponse::CasStored(stored) = result {
        let mime_type = Some(stored.mime_type);
        let made = stored.hash.map(|hash| Made { hash, mime_type, artifact_id: None });
        return made.into_iter().collect();
    }
    Vec::new()
}

/// Returns whether content of this type may be played; whether it can be is shown by preparing it.
fn is_sound(mime_type: &str) -> bool {
    let bare = mime_type.trim_start();
    let is_audio = bare.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("audio/"));
    is_audio || is_midi(mime_type) || bare.to_ascii_lowercase().starts_with("application/ogg")
}

/// Prepares content as its region plays it, or says why that is not possible; `None` if there is no
/// such region any more.
async fn prepare(
    garden: &GardenHandle,
    region_id: RegionId,
    content: GardenContent,
) -> Result<Option<Result<Prepared, String>>, Error> {
    let looked_up = content.clone();
    let key = garden.ask(move |engine| key_for(engine, region_id, &looked_up)).await?;
    let Some(key) = key else { return Ok(None) };
    match garden.probe(key.clone(), PROBE_TIME).await? {
        Some(Ok(Probed { sound, .. })) => Ok(Some(Ok(Prepared { content, key, sound }))),
        Some(Err(ContentError::Download(error))) => Err(error),
        Some(Err(error)) => Ok(Some(Err(ringback_proto::chain(&error)))),
        None => Err(Error::new(ErrorKind::Busy, "the content is still being prepared")),
    }
}

/// Returns what a region would play if this were its content.
fn key_for(engine: &Engine, region_id: RegionId, content: &GardenContent) -> Option<SoundKey> {
    let region = engine.timeline().region(region_id)?;
    let region = GardenRegion { content: Some(content.clone()), ..region.clone() };
    key_of(&region, engine.tempo())
}

/// Makes the garden's timeline that of the daemon.
async fn apply(
    garden: &GardenHandle,
    client: &Client,
    region_id: RegionId,
    settled: GardenSettledResponse,
    prepared: Option<Prepared>,
) -> Result<(), Error> {
    let is_known =
        garden.ask(move |engine| set_state(engine, region_id, &settled, prepared)).await?;
    if is_known {
        return Ok(());
    }
    let timeline = client.call::<tools::GardenTimeline>(GardenTimelineRequest {}).await?;
    garden.ask(move |engine| load_newer(engine, timeline)).await
}

/// Sets the state of a region if nothing else has changed; `false` if the timeline is older.
fn set_state(
    engine: &mut Engine,
    region_id: RegionId,
    settled: &GardenSettledResponse,
    prepared: Option<Prepared>,
) -> bool {
    let GardenSettledResponse { state, revision } = *settled;
    if engine.timeline().revision() >= revision {
        return true;
    }
    let key = prepared.as_ref().and_then(|it| key_for(engine, region_id, &it.content));
    let was_moved = prepared.as_ref().is_some_and(|it| key.as_ref() != Some(&it.key));
    let (content, held) = prepared.map(|prepared| (prepared.content, prepared.sound)).unzip();
    let held = held.flatten();
    let sound = held.as_ref().map(|held| Arc::clone(&held.sound));
    let set = engine.set_region_state(region_id, state, content, sound, revision).is_ok();
    if let Some(key) = key.filter(|_| set && was_moved) {
        // The sound is for another tempo; the reader prepares the right one.
        engine.drop_sound(&key);
    }
    set
}

/// Replaces the timeline, unless the garden has a newer one: a change that is being made now.
fn load_newer(engine: &mut Engine, timeline: GardenTimeline) {
    if timeline.revision > engine.timeline().revision() {
        engine.load(timeline);
    }
}
