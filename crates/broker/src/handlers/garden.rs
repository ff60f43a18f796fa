//! The garden: `garden_*`.

use std::sync::Arc;

use ringback_blobs::Info;
use ringback_core::garden::{self as rules, Rounded};
use ringback_core::policy;
use ringback_proto::garden::command::{SeekArguments, TransportAnswer};
use ringback_proto::garden::{GardenRegion, GardenStatus, GardenTimeline, Ticks};
use ringback_proto::ids::{ArtifactId, BlobHash, RegionId};
use ringback_proto::principal::Principal;
use ringback_proto::record::RegionRecord;
use ringback_proto::request::{
    AckResponse, GardenCreateRegionRequest, GardenDeleteRegionRequest, GardenEmergencyPauseRequest,
    GardenGetRegionsRequest, GardenMoveRegionRequest, GardenPauseRequest, GardenPlayRequest,
    GardenRegionContent, GardenRegionCreatedResponse, GardenRegionInfo, GardenRegionsResponse,
    GardenReportRequest, GardenSeekRequest, GardenSetTempoRequest, GardenStatusRequest,
    GardenStopRequest, GardenTimelineRequest, Lineage, RegionBehavior,
};
use ringback_proto::tool::tools;
use ringback_proto::{Error, Result};

use super::artifact::{check_lineage, visible_artifact};
use super::cas::check_readable;
use super::{Native, check_text};
use crate::failure;
use crate::garden::{NewTempo, Order, Transport};
use crate::handler::{Context, Handler};

/// The most characters of a region's name.
const NAME_CHARS_MAX: usize = 200;

impl Handler<tools::GardenStatus> for Native {
    async fn handle(ctx: Context, _: GardenStatusRequest) -> Result<GardenStatus> {
        ctx.rooms.garden.status().await
    }
}

impl Handler<tools::GardenPlay> for Native {
    async fn handle(ctx: Context, request: GardenPlayRequest) -> Result<AckResponse> {
        transport(&ctx, Transport::Play(request.at)).await
    }
}

impl Handler<tools::GardenPause> for Native {
    async fn handle(ctx: Context, request: GardenPauseRequest) -> Result<AckResponse> {
        transport(&ctx, Transport::Pause(request.at)).await
    }
}

impl Handler<tools::GardenStop> for Native {
    async fn handle(ctx: Context, request: GardenStopRequest) -> Result<AckResponse> {
        transport(&ctx, Transport::Stop(request.at)).await
    }
}

impl Handler<tools::GardenEmergencyPause> for Native {
    async fn handle(ctx: Context, _: GardenEmergencyPauseRequest) -> Result<AckResponse> {
        // It was sent when the call was admitted; the job only keeps its outcome.
        let sent = ctx.job.as_ref().and_then(|job| job.sent.clone());
        let sent = sent.ok_or_else(|| Error::internal("garden", "a pause that was not sent"))?;
        sent.wait().await.clone().map(|answer| acknowledged(&answer))
    }
}

impl Handler<tools::GardenSeek> for Native {
    async fn handle(ctx: Context, request: GardenSeekRequest) -> Result<AckResponse> {
        let beat = rules::position("beat", request.beat)?;
        let to = SeekArguments { position: beat.ticks, at: request.at };
        let answer = ctx.rooms.garden.seek(ctx.job_id(), to).await?;
        let mut ack = acknowledged(&answer);
        if beat.is_rounded {
            ack.message.push_str(&rounded_to(beat.ticks));
        }
        Ok(ack)
    }
}

impl Handler<tools::GardenSetTempo> for Native {
    async fn handle(ctx: Context, request: GardenSetTempoRequest) -> Result<AckResponse> {
        let GardenSetTempoRequest { bpm, beat, time_signature, at } = request;
        rules::check_bpm(bpm)?;
        rules::check_at(at)?;
        let beat = beat.map(|beat| rules::position("beat", beat)).transpose()?;
        let time_signature = time_signature.as_deref().map(rules::time_signature).transpose()?;
        let position = beat.map(|beat| beat.ticks);
        let tempo = NewTempo { bpm, position, time_signature, at };
        let (garden, order) = (Arc::clone(&ctx.rooms.garden), order(&ctx));
        let change = ctx.finishing(garden.set_tempo(order, tempo)).await;
        let change = change.map_err(failure::internal)??;
        let (bpm, from) = (change.bpm, change.at.beats());
        let mut message = format!(
            "{bpm} quarter notes per minute in {}/{} from beat {from}",
            change.beats_per_bar, change.beat_unit
        );
        if let Some(beat) = beat.filter(|beat| beat.is_rounded) {
            message.push_str(&rounded_to(beat.ticks));
        }
        Ok(AckResponse { message })
    }
}

impl Handler<tools::GardenGetRegions> for Native {
    async fn handle(
        ctx: Context,
        request: GardenGetRegionsRequest,
    ) -> Result<GardenRegionsResponse> {
        let tick = |field, beat| rules::position(field, beat).map(|rounded| rounded.ticks);
        let start = request.start.map(|beat| tick("start", beat)).transpose()?;
        let end = request.end.map(|beat| tick("end", beat)).transpose()?;
        let timeline = ctx.rooms.garden.timeline(start, end).await?;
        let regions: Vec<_> = timeline
            .regions
            .into_iter()
            .map(|record| region_info(&ctx.principal, record))
            .collect();
        let (count, revision) = (regions.len() as u64, timeline.revision);
        Ok(GardenRegionsResponse { regions, count, revision })
    }
}

impl Handler<tools::GardenCreateRegion> for Native {
    async fn handle(
        ctx: Context,
        request: GardenCreateRegionRequest,
    ) -> Result<GardenRegionCreatedResponse> {
        let RegionBehavior::PlayContent = request.behavior_type;
        let mut places = Places::default();
        let position = places.place("position", rules::position("position", request.position))?;
        let duration = request.duration.map(|beats| rules::duration("duration", beats));
        let duration = duration.map(|length| places.place("duration", length)).transpose()?;
        let fade_in = rules::position("fade_in", request.fade_in.unwrap_or_default());
        let fade_in = places.place("fade_in", fade_in)?;
        let fade_out = rules::position("fade_out", request.fade_out.unwrap_or_default());
        let fade_out = places.place("fade_out", fade_out)?;
        rules::check_fades(fade_in, fade_out, duration)?;
        let (gain_db, pan) = (request.gain_db.unwrap_or_default(), request.pan.unwrap_or_default());
        let offset_seconds = request.offset_seconds.unwrap_or_default();
        rules::check_sound(gain_db, pan, offset_seconds)?;
        let name = request.name.as_deref();
        name.map_or(Ok(()), |name| check_text("name", name, NAME_CHARS_MAX))?;
        let tags = Lineage { tags: request.tags, ..Lineage::default() };
        check_lineage(&ctx, &tags).await?;
        let content = content(&ctx, &request.content_id).await?;
        let region = GardenRegion {
            region_id: RegionId::from_random(ctx.rooms.kernel.entropy.bytes()),
            position,
            duration,
            content_hash: content.hash,
            mime_type: content.mime_type,
            gain_db,
            pan,
            offset_seconds,
            fade_in,
            fade_out,
            name: request.name,
        };
        let record = RegionRecord {
            region,
            owner: ctx.principal.id,
            project: None,
            artifact: content.artifact,
            tags: tags.tags,
            created_at: ctx.now().unix,
        };
        let (garden, order) = (Arc::clone(&ctx.rooms.garden), order(&ctx));
        let placed = ctx.finishing(garden.place(order, record)).await;
        let GardenRegion { region_id, position, duration, .. } =
            placed.map_err(failure::internal)??.region;
        Ok(GardenRegionCreatedResponse {
            region_id,
            position: position.beats(),
            duration: duration.unwrap_or_default().beats(),
            rounded: places.rounded,
        })
    }
}

impl Handler<tools::GardenMoveRegion> for Native {
    async fn handle(ctx: Context, request: GardenMoveRegionRequest) -> Result<AckResponse> {
        let id = request.region_id;
        let place = rules::position("new_position", request.new_position)?;
        let (garden, order) = (Arc::clone(&ctx.rooms.garden), order(&ctx));
        let moved = ctx.finishing(garden.move_region(order, id, place.ticks)).await;
        moved.map_err(failure::internal)??;
        let mut message = format!("{id} starts at beat {}", place.ticks.beats());
        if place.is_rounded {
            message.push_str(&rounded_to(place.ticks));
        }
        Ok(AckResponse { message })
    }
}

impl Handler<tools::GardenDeleteRegion> for Native {
    async fn handle(ctx: Context, request: GardenDeleteRegionRequest) -> Result<AckResponse> {
        let id = request.region_id;
        let (garden, order) = (Arc::clone(&ctx.rooms.garden), order(&ctx));
        let deleted = ctx.finishing(garden.delete_region(order, id)).await;
        deleted.map_err(failure::internal)??;
        Ok(AckResponse { message: format!("{id} is deleted") })
    }
}

impl Handler<tools::GardenTimeline> for Native {
    async fn handle(ctx: Context, _: GardenTimelineRequest) -> Result<GardenTimeline> {
        ctx.rooms.garden.whole().await
    }
}

impl Handler<tools::GardenReport> for Native {
    async fn handle(ctx: Context, request: GardenReportRequest) -> Result<AckResponse> {
        let n_told = ctx.rooms.garden.report(request.events)?;
        Ok(AckResponse { message: format!("{n_told} events are published") })
    }
}

async fn transport(ctx: &Context, command: Transport) -> Result<AckResponse> {
    let answer = ctx.rooms.garden.transport(ctx.job_id(), command).await?;
    Ok(acknowledged(&answer))
}

fn order(ctx: &Context) -> Order {
    Order { principal: Arc::clone(&ctx.principal), job: ctx.job_id() }
}

fn acknowledged(answer: &TransportAnswer) -> AckResponse {
    let (state, position) = (answer.state.as_str(), answer.position);
    AckResponse { message: format!("accepted; {state} at beat {position}") }
}

fn rounded_to(ticks: Ticks) -> String {
    format!(" (rounded to beat {}, a multiple of 1/{})", ticks.beats(), Ticks::PER_BEAT)
}

/// Positions and lengths of one request, and which of them were rounded.
#[derive(Debug, Default)]
struct Places {
    rounded: Vec<String>,
}

impl Places {
    fn place(&mut self, field: &str, rounded: Result<Rounded>) -> Result<Ticks> {
        let Rounded { ticks, is_rounded } = rounded?;
        if is_rounded {
            self.rounded.push(field.to_owned());
        }
        Ok(ticks)
    }
}

/// The content of a new region, which its caller may read.
struct RegionContent {
    artifact: Option<ArtifactId>,
    hash: BlobHash,
    mime_type: String,
}

/// Finds content by artifact or hash, with the sight of the caller.
async fn content(ctx: &Context, content_id: &str) -> Result<RegionContent> {
    if let Ok(id) = content_id.parse::<ArtifactId>() {
        let artifact = visible_artifact(ctx, id).await?;
        let (hash, mime_type) = (artifact.content_hash, artifact.mime_type);
        return Ok(RegionContent { artifact: Some(id), hash, mime_type });
    }
    let hash: BlobHash = content_id.parse().map_err(|_| {
        let message = "`content_id` must be an artifact's id or the hash of stored content";
        Error::invalid_field("content_id", message)
    })?;
    let own_type = check_readable(ctx, hash).await?;
    let blobs = ctx.rooms.kernel.blobs.clone();
    let inspect = move || blobs.inspect(hash).map_err(failure::read_blob);
    let info = ctx.rooms.kernel.blocking(inspect).await?;
    let Info { mime_type, .. } = info.ok_or_else(|| Error::not_found("blob", hash))?;
    Ok(RegionContent { artifact: None, hash, mime_type: own_type.unwrap_or(mime_type) })
}

/// Describes a region: its place to everyone, its content to those who may see it.
fn region_info(principal: &Principal, record: RegionRecord) -> GardenRegionInfo {
    let is_seen = policy::sight(principal).includes(record.owner, record.project);
    let RegionRecord { region, owner, artifact, tags, .. } = record;
    let content = is_seen.then(|| GardenRegionContent {
        behavior_type: RegionBehavior::PlayContent,
        artifact_id: artifact,
        content_hash: region.content_hash,
        mime_type: region.mime_type,
        gain_db: region.gain_db,
        pan: region.pan,
        offset_seconds: region.offset_seconds,
        fade_in: region.fade_in.beats(),
        fade_out: region.fade_out.beats(),
        name: region.name,
        tags,
    });
    GardenRegionInfo {
        region_id: region.region_id,
        position: region.position.beats(),
        duration: region.duration.unwrap_or_default().beats(),
        yours: rules::may_change(principal, owner),
        content,
    }
}
