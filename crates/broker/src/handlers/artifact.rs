//! Artifacts and annotations.

use bytes::Bytes;
use ringback_blobs::Info;
use ringback_proto::ids::{AnnotationId, ArtifactId, BlobHash};
use ringback_proto::record::{AnnotationRecord, ArtifactRecord, Record};
use ringback_proto::request::{
    AddAnnotationRequest, AnnotationAddedResponse, AnnotationInfo, ArtifactCreateRequest,
    ArtifactCreatedResponse, ArtifactGetRequest, ArtifactInfoResponse, ArtifactListRequest,
    ArtifactListResponse, ArtifactUploadRequest, Lineage,
};
use ringback_proto::tool::tools;
use ringback_proto::{Error, ErrorKind, Event, Result};
use ringback_store::{ArtifactFilter, WriteOutcome};

use super::cas::{check_readable, ingest, uploaded};
use super::{Native, check_text, list_limit};
use crate::failure;
use crate::handler::{Context, Handler};

/// The most tags of one artifact.
const TAGS_MAX: usize = 64;
/// The most characters of a tag, a creator, a source or a vibe.
const LABEL_CHARS_MAX: usize = 200;
/// The most characters of an annotation.
const MESSAGE_CHARS_MAX: usize = 16_384;
/// The most encoded bytes of an artifact's metadata; more belongs in a blob.
const METADATA_BYTES_MAX: usize = 64 * 1024;
/// The most annotations that `artifact_get` shows, the oldest first.
const ANNOTATIONS_SHOWN_MAX: usize = 1000;

impl Handler<tools::ArtifactUpload> for Native {
    async fn handle(
        ctx: Context,
        mut request: ArtifactUploadRequest,
    ) -> Result<ArtifactCreatedResponse> {
        let lineage = request.take_lineage();
        let ArtifactUploadRequest { file_path, mime_type, .. } = request;
        check_lineage(&ctx, &lineage).await?;
        let stored = ingest(&ctx, file_path, mime_type).await?;
        let upload = uploaded(&ctx, &stored, &stored.mime_type);
        let info = Info { size: stored.size, mime_type: stored.mime_type };
        create(&ctx, stored.hash, info, lineage, None, vec![upload]).await
    }
}

impl Handler<tools::ArtifactCreate> for Native {
    async fn handle(
        ctx: Context,
        mut request: ArtifactCreateRequest,
    ) -> Result<ArtifactCreatedResponse> {
        let lineage = request.take_lineage();
        let ArtifactCreateRequest { content_hash, metadata, .. } = request;
        check_lineage(&ctx, &lineage).await?;
        let own_type = check_readable(&ctx, content_hash).await?;
        let blobs = ctx.rooms.kernel.blobs.clone();
        let inspect = move || blobs.inspect(content_hash).map_err(failure::read_blob);
        let info = ctx.rooms.kernel.blocking(inspect).await?;
        let mut info = info.ok_or_else(|| Error::not_found("blob", content_hash))?;
        info.mime_type = own_type.unwrap_or(info.mime_type);
        let metadata = metadata.map(|metadata| {
            let bytes = rmp_serde::to_vec_named(&metadata).expect("a value can be encoded");
            Bytes::from(bytes)
        });
        if metadata.as_ref().is_some_and(|bytes| bytes.len() > METADATA_BYTES_MAX) {
            let message = format!(
                "metadata can have at most {METADATA_BYTES_MAX} bytes; store more as a blob"
            );
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        create(&ctx, content_hash, info, lineage, metadata, Vec::new()).await
    }
}

impl Handler<tools::ArtifactGet> for Native {
    async fn handle(ctx: Context, request: ArtifactGetRequest) -> Result<ArtifactInfoResponse> {
        let record = visible_artifact(&ctx, request.id).await?;
        let id = record.id;
        let annotations =
            ctx.read(move |store| store.annotations(id, ANNOTATIONS_SHOWN_MAX)).await?;
        let mut info = artifact_info(record)?;
        info.annotations = annotations.into_iter().map(annotation_info).collect();
        Ok(info)
    }
}

impl Handler<tools::ArtifactList> for Native {
    async fn handle(ctx: Context, request: ArtifactListRequest) -> Result<ArtifactListResponse> {
        let limit = list_limit(request.limit)?;
        let visible = ctx.visible();
        let page = ctx
            .read(move |store| {
                let filter = ArtifactFilter {
                    tag: request.tag.as_deref(),
                    creator: request.creator.as_deref(),
                };
                store.artifacts(&visible, filter, request.cursor.as_deref(), limit)
            })
            .await?;
        let artifacts = page.items.into_iter().map(artifact_info).collect::<Result<Vec<_>>>()?;
        Ok(ArtifactListResponse {
            count: artifacts.len() as u64,
            artifacts,
            next_cursor: page.next_cursor,
        })
    }
}

impl Handler<tools::AddAnnotation> for Native {
    async fn handle(
        ctx: Context,
        request: AddAnnotationRequest,
    ) -> Result<AnnotationAddedResponse> {
        let AddAnnotationRequest { artifact_id, message, source, vibe } = request;
        check_text("message", &message, MESSAGE_CHARS_MAX)?;
        for (field, text) in [("source", &source), ("vibe", &vibe)] {
            text.as_ref().map_or(Ok(()), |text| check_text(field, text, LABEL_CHARS_MAX))?;
        }
        visible_artifact(&ctx, artifact_id).await?;
        let annotation_id = AnnotationId::from_random(ctx.rooms.kernel.entropy.bytes());
        let record = AnnotationRecord {
            id: annotation_id,
            artifact_id,
            message,
            source: source.unwrap_or_else(|| "agent".to_owned()),
            vibe,
            created_at: ctx.now().unix,
        };
        ctx.commit(vec![Record::AnnotationAdded(record)]).await?;
        Ok(AnnotationAddedResponse { artifact_id, annotation_id })
    }
}

pub(crate) async fn check_lineage(ctx: &Context, lineage: &Lineage) -> Result<()> {
    if lineage.tags.len() > TAGS_MAX {
        return Err(Error::invalid_field(
            "tags",
            format!("an artifact can have at most {TAGS_MAX} tags"),
        ));
    }
    for tag in &lineage.tags {
        check_text("tags", tag, LABEL_CHARS_MAX)?;
    }
    if let Some(creator) = &lineage.creator {
        check_text("creator", creator, LABEL_CHARS_MAX)?;
    }
    if let Some(parent_id) = lineage.parent_id {
        visible_artifact(ctx, parent_id).await?;
    }
    Ok(())
}

pub(crate) async fn create(
    ctx: &Context,
    content_hash: BlobHash,
    info: Info,
    lineage: Lineage,
    metadata: Option<Bytes>,
    mut records: Vec<Record>,
) -> Result<ArtifactCreatedResponse> {
    let artifact_id = ArtifactId::from_random(ctx.rooms.kernel.entropy.bytes());
    let record = ArtifactRecord {
        id: artifact_id,
        content_hash,
        mime_type: info.mime_type.clone(),
        size: info.size,
        owner: ctx.principal.id,
        project: None,
        tags: lineage.tags,
        creator: lineage.creator.unwrap_or_else(|| "unknown".to_owned()),
        parent_id: lineage.parent_id,
        variation_set_id: lineage.variation_set_id,
        variation_index: None,
        metadata,
        created_at: ctx.now().unix,
    };
    let (tags, creator) = (record.tags.clone(), record.creator.clone());
    records.push(Record::ArtifactCreated(Box::new(record)));
    let applied = ctx.commit(records).await?;
    let variation_index = applied.into_iter().find_map(|applied| match applied {
        WriteOutcome::ArtifactCreated { variation_index } => variation_index,
        WriteOutcome::Written
        | WriteOutcome::BlobUploaded { .. }
        | WriteOutcome::SessionsRemoved(_) => None,
    });
    ctx.publish(Event::ArtifactCreated { artifact_id, content_hash, mime_type: info.mime_type });
    Ok(ArtifactCreatedResponse { artifact_id, content_hash, tags, creator, variation_index })
}

pub(super) async fn visible_artifact(ctx: &Context, id: ArtifactId) -> Result<ArtifactRecord> {
    let sight = ctx.sight();
    ctx.read(move |store| store.artifact(id))
        .await?
        .filter(|record| sight.includes(record.owner, record.project))
        .ok_or_else(|| Error::not_found("artifact", id))
}

fn artifact_info(record: ArtifactRecord) -> Result<ArtifactInfoResponse> {
    let metadata = record.metadata.as_deref().map(rmp_serde::from_slice).transpose();
    Ok(ArtifactInfoResponse {
        id: record.id,
        content_hash: record.content_hash,
        mime_type: record.mime_type,
        size: record.size,
        tags: record.tags,
        creator: record.creator,
        created_at: record.created_at,
        project_id: record.project,
        parent_id: record.parent_id,
        variation_set_id: record.variation_set_id,
        variation_index: record.variation_index,
        metadata: metadata.map_err(failure::internal)?,
        annotations: Vec::new(),
    })
}

fn annotation_info(record: AnnotationRecord) -> AnnotationInfo {
    let AnnotationRecord { id, message, source, vibe, created_at, .. } = record;
    AnnotationInfo { id, message, source, vibe, created_at }
}
