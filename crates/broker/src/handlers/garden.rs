//! The garden: `garden_*`.

use std::sync::Arc;

use ringback_blobs::Info;
use ringback_core::garden::{self as rules, Rounded, Verdict};
use ringback_core::policy;
use ringback_proto::garden::command::{
    ExportAnswer, ExportArguments, ExportedRegion, SeekArguments, TransportAnswer,
};
use ringback_proto::garden::{
    GardenAt, GardenContent, GardenPromise, GardenRegion, GardenStatus, GardenTimeline, IfLate,
    LoopRange, RegionState, TempoChange, Ticks,
};
use ringback_proto::ids::{ArtifactId, BlobHash, JobId, RegionId};
use ringback_proto::principal::Principal;
use ringback_proto::record::{JobState, RegionRecord, UnixMs};
use ringback_proto::request::{
    AckResponse, ArtifactsCreatedResponse, GardenApproveRequest, GardenCreateRegionRequest,
    GardenDeleteRegionRequest, GardenEmergencyPauseRequest, GardenExportRequest,
    GardenGetRegionsRequest, GardenMonitorRequest, GardenMonitorResponse, GardenMoveRegionRequest,
    GardenPauseRequest, GardenPlayRequest, GardenRegionContent, GardenRegionCreatedResponse,
    GardenRegionInfo, GardenRegionsResponse, GardenRejectRequest, GardenReportRequest,
    GardenSeekRequest, GardenSetLoopRequest, GardenSetTempoRequest, GardenSettleRequest,
    GardenSettledResponse, GardenStatusRequest, GardenStopRequest, GardenTempoPoint,
    GardenTimelineRequest, Lineage, MadeArtifact, RegionApproval, RegionBehavior, SourceRole,
};
use ringback_proto::tool::tools;
use ringback_proto::{Error, Result};

use super::artifact::{self, NewArtifact, Source, check_lineage, visible_artifact};
use super::cas::{check_readable, upload_record};
use super::job::visible_job;
use super::{Native, check_text};
use crate::failure;
use crate::garden::{NewTempo, Order, Transport};
use crate::handler::{Context, Handler};

/// The most characters of a region's name.
const NAME_CHARS_MAX: usize = 200;
/// The most characters of the reason of a decision.
const REASON_CHARS_MAX: usize = 1000;
/// The sample rates of an exported file, as the garden renders them.
const EXPORT_RATES: std::ops::RangeInclusive<u32> = 16_000..=192_000;

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
        sent.wait().await.clone().map(|answer| acknowledged(&answer, None))
    }
}

impl Handler<tools::GardenSeek> for Native {
    async fn handle(ctx: Context, request: GardenSeekRequest) -> Result<AckResponse> {
        let beat = rules::position("beat", request.beat)?;
        let to = SeekArguments { position: beat.ticks, at: request.at };
        let answer = ctx.rooms.garden.seek(ctx.job_id(), to).await?;
        let mut ack = acknowledged(&answer, request.at);
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
        message.push_str(&rounded_at(at));
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
        let heard = ctx.read(|store| store.last_heard()).await?;
        let info = |record: RegionRecord| {
            let last_heard_at = heard.get(&record.region.region_id).copied();
            region_info(&ctx.principal, record, last_heard_at)
        };
        let regions: Vec<_> = timeline.regions.into_iter().map(info).collect();
        Ok(GardenRegionsResponse {
            count: regions.len() as u64,
            regions,
            tempo: timeline.tempo.iter().map(tempo_point).collect(),
            loop_range: timeline.loop_range.as_ref().map(LoopRange::beats),
            revision: timeline.revision,
        })
    }
}

impl Handler<tools::GardenCreateRegion> for Native {
    async fn handle(
        ctx: Context,
        mut request: GardenCreateRegionRequest,
    ) -> Result<GardenRegionCreatedResponse> {
        let name = request.name.as_deref();
        name.map_or(Ok(()), |name| check_text("name", name, NAME_CHARS_MAX))?;
        let tags = std::mem::take(&mut request.tags);
        let tags = Lineage { tags, ..Lineage::default() };
        check_lineage(&ctx, &tags).await?;
        let mut places = Places::default();
        let region_id = RegionId::from_random(ctx.rooms.kernel.entropy.bytes());
        let mut region = empty_region(region_id, &request, &mut places)?;
        let source = source(&ctx, &request).await?;
        let approval = request.approval.unwrap_or(RegionApproval::Auto);
        region.state = match &source.promise {
            Some(_) => RegionState::Pending,
            None => rules::settled(approval, true),
        };
        (region.content, region.promise) = (source.content, source.promise);
        let record = RegionRecord {
            region,
            owner: ctx.principal.id,
            project: ctx.provenance().project,
            artifact: source.artifact,
            approval,
            reason: None,
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
        let n_told = ctx.rooms.garden.report(request.events).await?;
        Ok(AckResponse { message: format!("{n_told} events are published") })
    }
}

impl Handler<tools::GardenSetLoop> for Native {
    async fn handle(ctx: Context, request: GardenSetLoopRequest) -> Result<AckResponse> {
        let start = request.start.map(|beat| rules::position("start", beat)).transpose()?;
        let end = request.end.map(|beat| rules::position("end", beat)).transpose()?;
        let tick = |rounded: Rounded| rounded.ticks;
        let range = rules::loop_range(start.map(tick), end.map(tick))?;
        let mut message = range.as_ref().map_or_else(
            || "there is no loop".to_owned(),
            |range| format!("beats {} to {} are repeated", range.start.beats(), range.end.beats()),
        );
        for (field, place) in [("start", start), ("end", end)] {
            if let Some(place) = place {
                message.push_str(&rounded_field(field, place));
            }
        }
        let (garden, order) = (Arc::clone(&ctx.rooms.garden), order(&ctx));
        let set = ctx.finishing(garden.set_loop(order, range)).await;
        set.map_err(failure::internal)??;
        Ok(AckResponse { message })
    }
}

impl Handler<tools::GardenApprove> for Native {
    async fn handle(ctx: Context, request: GardenApproveRequest) -> Result<AckResponse> {
        let GardenApproveRequest { region_id, reason } = request;
        decide(&ctx, region_id, Verdict::Approve, reason).await
    }
}

impl Handler<tools::GardenReject> for Native {
    async fn handle(ctx: Context, request: GardenRejectRequest) -> Result<AckResponse> {
        let GardenRejectRequest { region_id, reason } = request;
        decide(&ctx, region_id, Verdict::Reject, reason).await
    }
}

impl Handler<tools::GardenExport> for Native {
    async fn handle(
        ctx: Context,
        mut request: GardenExportRequest,
    ) -> Result<ArtifactsCreatedResponse> {
        let mut lineage = request.take_lineage();
        let GardenExportRequest { start, end, format, sample_rate, .. } = request;
        let tick = |field, beat| rules::position(field, beat).map(|rounded| rounded.ticks);
        let start = start.map(|beat| tick("start", beat)).transpose()?;
        let end = end.map(|beat| tick("end", beat)).transpose()?;
        if end.is_some_and(|end| end <= start.unwrap_or_default()) {
            return Err(Error::invalid_field("end", "`end` must lie after `start`"));
        }
        if sample_rate.is_some_and(|rate| !EXPORT_RATES.contains(&rate)) {
            let (low, high) = (EXPORT_RATES.start(), EXPORT_RATES.end());
            let message = format!("`sample_rate` must be from {low} to {high} hertz");
            return Err(Error::invalid_field("sample_rate", message));
        }
        check_lineage(&ctx, &lineage).await?;
        let arguments =
            ExportArguments { start, end, format: format.unwrap_or_default(), sample_rate };
        let ExportAnswer { content, size, duration_seconds, regions, soundfont } =
            ctx.rooms.garden.export(ctx.job_id(), &arguments).await?;
        let variation_set_id = lineage.variation_set_id;
        for label in ["type:audio", "source:garden", "tool:garden_export"] {
            if !lineage.tags.iter().any(|tag| tag == label) {
                lineage.tags.push(label.to_owned());
            }
        }
        let GardenContent { hash, mime_type } = content;
        let sources = export_sources(&ctx, regions, soundfont).await?;
        let upload = upload_record(&ctx, hash, mime_type.clone());
        let info = Info { size, mime_type: mime_type.clone() };
        let new = NewArtifact { content_hash: hash, info, lineage, metadata: None, sources };
        let created = artifact::create(&ctx, new, vec![upload]).await?;
        let made = MadeArtifact {
            artifact_id: created.artifact_id,
            content_hash: hash,
            mime_type,
            duration_seconds: Some(duration_seconds),
        };
        let backend = "garden".to_owned();
        Ok(ArtifactsCreatedResponse { artifacts: vec![made], backend, variation_set_id })
    }
}

impl Handler<tools::GardenSettle> for Native {
    async fn handle(ctx: Context, request: GardenSettleRequest) -> Result<GardenSettledResponse> {
        let garden = Arc::clone(&ctx.rooms.garden);
        ctx.finishing(garden.settle(request)).await.map_err(failure::internal)?
    }
}

impl Handler<tools::GardenMonitor> for Native {
    async fn handle(ctx: Context, request: GardenMonitorRequest) -> Result<GardenMonitorResponse> {
        ctx.rooms.garden.pass_on(request)
    }
}

/// Returns what an exported file was made from: the content of each region, and the instruments of
/// those that are MIDI. A region may belong to another principal.
async fn export_sources(
    ctx: &Context,
    regions: Vec<ExportedRegion>,
    soundfont: Option<BlobHash>,
) -> Result<Vec<Source>> {
    let visible = ctx.visible();
    let found = ctx.read(move |store| {
        let mut sources = Vec::with_capacity(regions.len());
        for ExportedRegion { region_id, hash } in regions {
            let record = store.region(region_id)?;
            let is_same = |record: &&RegionRecord| {
                record.region.content.as_ref().is_some_and(|content| content.hash == hash)
            };
            let artifact = record.as_ref().filter(is_same).and_then(|record| record.artifact);
            let is_hidden = !store.may_read_blob(hash, &visible)?;
            sources.push(Source { role: SourceRole::Region, hash, artifact, is_hidden });
        }
        Ok(sources)
    });
    let mut sources = found.await?;
    sources.extend(soundfont.map(|hash| Source::readable(SourceRole::Soundfont, hash)));
    Ok(sources)
}

async fn decide(
    ctx: &Context,
    region_id: RegionId,
    verdict: Verdict,
    reason: Option<String>,
) -> Result<AckResponse> {
    let reason_text = reason.as_deref();
    reason_text.map_or(Ok(()), |reason| check_text("reason", reason, REASON_CHARS_MAX))?;
    let (garden, order) = (Arc::clone(&ctx.rooms.garden), order(ctx));
    let decided = ctx.finishing(garden.decide(order, region_id, verdict, reason)).await;
    let state = decided.map_err(failure::internal)??;
    Ok(AckResponse { message: format!("{region_id} is {}", state.as_str()) })
}

async fn transport(ctx: &Context, command: Transport) -> Result<AckResponse> {
    let (Transport::Play(at) | Transport::Pause(at) | Transport::Stop(at)) = command;
    let answer = ctx.rooms.garden.transport(ctx.job_id(), command).await?;
    Ok(acknowledged(&answer, at))
}

fn order(ctx: &Context) -> Order {
    Order { principal: Arc::clone(&ctx.principal), job: ctx.job_id() }
}

fn acknowledged(answer: &TransportAnswer, at: Option<GardenAt>) -> AckResponse {
    let (state, position) = (answer.state.as_str(), answer.position);
    AckResponse { message: format!("accepted; {state} at beat {position}{}", rounded_at(at)) }
}

/// Says that the moment of a command was rounded, if it was.
fn rounded_at(at: Option<GardenAt>) -> String {
    let Some(GardenAt::Beat(beat)) = at else { return String::new() };
    let place = rules::position("at", beat);
    place.map(|place| rounded_field("at", place)).unwrap_or_default()
}

fn rounded_field(field: &str, place: Rounded) -> String {
    if !place.is_rounded {
        return String::new();
    }
    let beats = place.ticks.beats();
    format!(" (`{field}` rounded to beat {beats}, a multiple of 1/{})", Ticks::PER_BEAT)
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

/// Makes a region of a request, without what it plays.
fn empty_region(
    region_id: RegionId,
    request: &GardenCreateRegionRequest,
    places: &mut Places,
) -> Result<GardenRegion> {
    let position = places.place("position", rules::position("position", request.position))?;
    let duration = request.duration.map(|beats| rules::duration("duration", beats));
    let duration = duration.map(|length| places.place("duration", length)).transpose()?;
    let mut length = |field: &str, beats: Option<f64>| {
        places.place(field, rules::position(field, beats.unwrap_or_default()))
    };
    let fade_in = length("fade_in", request.fade_in)?;
    let fade_out = length("fade_out", request.fade_out)?;
    let crossfade = length("crossfade", request.crossfade)?;
    rules::check_fades(fade_in, fade_out, duration)?;
    rules::check_crossfade(crossfade, duration)?;
    let repeat = request.repeat.unwrap_or(1);
    rules::check_repeat(repeat)?;
    let (gain_db, pan) = (request.gain_db.unwrap_or_default(), request.pan.unwrap_or_default());
    let offset_seconds = request.offset_seconds.unwrap_or_default();
    rules::check_sound(gain_db, pan, offset_seconds)?;
    Ok(GardenRegion {
        region_id,
        position,
        duration,
        state: RegionState::Pending,
        content: None,
        promise: None,
        repeat,
        gain_db,
        pan,
        offset_seconds,
        fade_in,
        fade_out,
        crossfade,
        name: request.name.clone(),
    })
}

/// What a new region plays: content that is there, or what a job is making.
struct RegionSource {
    artifact: Option<ArtifactId>,
    content: Option<GardenContent>,
    promise: Option<GardenPromise>,
}

/// Finds what a region plays, with the sight of its caller.
async fn source(ctx: &Context, request: &GardenCreateRegionRequest) -> Result<RegionSource> {
    match request.behavior_type {
        RegionBehavior::PlayContent if request.if_late.is_some() => {
            let message = "`if_late` is for a `latent` region; this content is there";
            Err(Error::invalid_field("if_late", message))
        }
        RegionBehavior::PlayContent => content(ctx, &request.content_id).await,
        RegionBehavior::Latent => promise(ctx, request).await,
    }
}

/// Finds the job of a region whose content is being made.
async fn promise(ctx: &Context, request: &GardenCreateRegionRequest) -> Result<RegionSource> {
    if request.duration.is_none() {
        let message = "a `latent` region needs `duration`: the length of its content is not known";
        return Err(Error::invalid_field("duration", message));
    }
    let job_id: JobId = request.content_id.parse().map_err(|_| {
        let message = "`content_id` of a `latent` region must be the id of a job";
        Error::invalid_field("content_id", message)
    })?;
    let job = visible_job(ctx, job_id).await?;
    if matches!(job.state, JobState::Failed | JobState::Cancelled) {
        let state = job.state.as_str();
        let message = format!("`content_id` names a job that made nothing: {job_id} is {state}");
        return Err(Error::invalid_field("content_id", message));
    }
    let if_late = request.if_late.unwrap_or(IfLate::Silence);
    let promise = Some(GardenPromise { job_id, if_late });
    Ok(RegionSource { artifact: None, content: None, promise })
}

/// Finds content by artifact or hash.
async fn content(ctx: &Context, content_id: &str) -> Result<RegionSource> {
    let found = |artifact, hash, mime_type| RegionSource {
        artifact,
        content: Some(GardenContent { hash, mime_type }),
        promise: None,
    };
    if let Ok(id) = content_id.parse::<ArtifactId>() {
        let artifact = visible_artifact(ctx, id).await?;
        return Ok(found(Some(id), artifact.content_hash, artifact.mime_type));
    }
    let hash: BlobHash = content_id.parse().map_err(|_| {
        let message = "`content_id` must be an artifact's id or the hash of stored content; for \
                       what a job is making, use `behavior_type` `latent`";
        Error::invalid_field("content_id", message)
    })?;
    let own_type = check_readable(ctx, hash).await?;
    let blobs = ctx.rooms.kernel.blobs.clone();
    let inspect = move || blobs.inspect(hash).map_err(failure::read_blob);
    let info = ctx.rooms.kernel.blocking(inspect).await?;
    let Info { mime_type, .. } = info.ok_or_else(|| Error::not_found("blob", hash))?;
    Ok(found(None, hash, own_type.unwrap_or(mime_type)))
}

/// Describes a region: its place to everyone, its content to those who may see it.
fn region_info(
    principal: &Principal,
    record: RegionRecord,
    last_heard_at: Option<UnixMs>,
) -> GardenRegionInfo {
    let is_seen = policy::sight(principal).includes(record.owner, record.project);
    let RegionRecord { region, owner, artifact, approval, reason, tags, .. } = record;
    let (content_hash, mime_type) =
        region.content.map(|content| (content.hash, content.mime_type)).unzip();
    let (job_id, if_late) = region.promise.map(|promise| (promise.job_id, promise.if_late)).unzip();
    let content = is_seen.then(|| GardenRegionContent {
        behavior_type: match job_id {
            Some(_) => RegionBehavior::Latent,
            None => RegionBehavior::PlayContent,
        },
        artifact_id: artifact,
        content_hash,
        mime_type,
        job_id,
        if_late,
        approval,
        reason,
        gain_db: region.gain_db,
        pan: region.pan,
        offset_seconds: region.offset_seconds,
        fade_in: region.fade_in.beats(),
        fade_out: region.fade_out.beats(),
        crossfade: region.crossfade.beats(),
        name: region.name,
        tags,
    });
    GardenRegionInfo {
        region_id: region.region_id,
        position: region.position.beats(),
        duration: region.duration.unwrap_or_default().beats(),
        repeat: region.repeat,
        state: region.state,
        yours: rules::may_change(principal, owner),
        last_heard_at,
        content,
    }
}

fn tempo_point(change: &TempoChange) -> GardenTempoPoint {
    GardenTempoPoint {
        beat: change.at.beats(),
        bpm: change.bpm,
        time_signature: format!("{}/{}", change.beats_per_bar, change.beat_unit),
    }
}
