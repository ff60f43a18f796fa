//! Artifacts and annotations.

use bytes::Bytes;
use ringback_blobs::Info;
use ringback_core::policy::Provenance;
use ringback_proto::ids::{AnnotationId, ArtifactId, BlobHash};
use ringback_proto::record::{AnnotationRecord, ArtifactRecord, Record, SourceRecord};
use ringback_proto::request::{
    AddAnnotationRequest, AnnotationAddedResponse, AnnotationInfo, ArtifactCreateRequest,
    ArtifactCreatedResponse, ArtifactGetRequest, ArtifactInfoResponse, ArtifactListRequest,
    ArtifactListResponse, ArtifactUploadRequest, Lineage, SourceInfo, SourceRole,
};
use ringback_proto::tool::tools;
use ringback_proto::{Error, ErrorKind, Event, Result};
use ringback_store::{ArtifactFilter, VisibleSource, WriteOutcome};

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
/// The most artifacts made from one that `artifact_get` shows, the newest first.
const DERIVED_SHOWN_MAX: usize = 100;

/// An artifact to be created.
pub(crate) struct NewArtifact {
    pub(crate) content_hash: BlobHash,
    pub(crate) info: Info,
    pub(crate) lineage: Lineage,
    pub(crate) metadata: Option<Bytes>,
    /// What it is made from, in the order its tool read it.
    pub(crate) sources: Vec<Source>,
}

/// Content that a tool read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) role: SourceRole,
    pub(crate) hash: BlobHash,
    /// The artifact that the caller named.
    pub(crate) artifact: Option<ArtifactId>,
    /// Whether the caller may not see the content itself.
    pub(crate) is_hidden: bool,
}

impl Source {
    /// Content that the caller may read.
    pub(crate) const fn readable(role: SourceRole, hash: BlobHash) -> Self {
        Self { role, hash, artifact: None, is_hidden: false }
    }
}

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
        let (content_hash, sources) = (stored.hash, Vec::new());
        let new = NewArtifact { content_hash, info, lineage, metadata: None, sources };
        create(&ctx, new, vec![upload]).await
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
        let sources = vec![Source::readable(SourceRole::Content, content_hash)];
        let new = NewArtifact { content_hash, info, lineage, metadata, sources };
        create(&ctx, new, Vec::new()).await
    }
}

impl Handler<tools::ArtifactGet> for Native {
    async fn handle(ctx: Context, request: ArtifactGetRequest) -> Result<ArtifactInfoResponse> {
        let record = visible_artifact(&ctx, request.id).await?;
        let (id, visible) = (record.id, ctx.visible());
        let (annotations, sources, derived) = ctx
            .read(move |store| {
                let graph = store.graph();
                Ok((
                    store.annotations(id, ANNOTATIONS_SHOWN_MAX)?,
                    graph.sources(id, &visible, usize::MAX)?,
                    graph.derived(id, &visible, DERIVED_SHOWN_MAX)?,
                ))
            })
            .await?;
        let mut info = artifact_info(record)?;
        info.annotations = annotations.into_iter().map(annotation_info).collect();
        info.sources = sources.into_iter().map(source_info).collect();
        info.derived_ids = derived;
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
    new: NewArtifact,
    mut records: Vec<Record>,
) -> Result<ArtifactCreatedResponse> {
    let NewArtifact { content_hash, info, lineage, metadata, sources } = new;
    let artifact_id = ArtifactId::from_random(ctx.rooms.kernel.entropy.bytes());
    let sources = source_records(ctx, artifact_id, lineage.parent_id, sources).await?;
    let Provenance { project, session } = ctx.provenance();
    let record = ArtifactRecord {
        id: artifact_id,
        content_hash,
        mime_type: info.mime_type.clone(),
        size: info.size,
        owner: ctx.principal.id,
        project,
        tags: lineage.tags,
        creator: lineage.creator.unwrap_or_else(|| "unknown".to_owned()),
        parent_id: lineage.parent_id,
        variation_set_id: lineage.variation_set_id,
        variation_index: None,
        metadata,
        tool: Some(ctx.tool.to_owned()),
        job: ctx.job_id(),
        session,
        created_at: ctx.now().unix,
    };
    let (tags, creator) = (record.tags.clone(), record.creator.clone());
    records.push(Record::ArtifactCreated(Box::new(record)));
    records.extend(sources.into_iter().map(Record::SourceAdded));
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

/// Finds the artifact of each source: the one that the caller named, else its stated parent, else
/// the newest that the caller sees.
async fn source_records(
    ctx: &Context,
    artifact_id: ArtifactId,
    parent: Option<ArtifactId>,
    sources: Vec<Source>,
) -> Result<Vec<SourceRecord>> {
    if sources.is_empty() {
        return Ok(Vec::new());
    }
    let visible = ctx.visible();
    let find = move |store: &ringback_store::Store| {
        let parent = match parent {
            Some(parent) => store.artifact(parent, &visible)?,
            None => None,
        };
        let mut records = Vec::with_capacity(sources.len());
        for Source { role, hash, artifact, is_hidden } in sources {
            let is_parent = |parent: &&ArtifactRecord| parent.content_hash == hash;
            let named = artifact.or_else(|| parent.as_ref().filter(is_parent).map(|it| it.id));
            let source = match named {
                Some(named) => Some(named),
                None => store.graph().newest_of_content(hash, &visible)?,
            };
            records.push(SourceRecord { artifact_id, source, source_hash: hash, role, is_hidden });
        }
        Ok(records)
    };
    ctx.read(find).await
}

pub(super) async fn visible_artifact(ctx: &Context, id: ArtifactId) -> Result<ArtifactRecord> {
    let visible = ctx.visible();
    ctx.read(move |store| store.artifact(id, &visible))
        .await?
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
        tool: record.tool,
        job_id: record.job,
        session_id: record.session,
        sources: Vec::new(),
        derived_ids: Vec::new(),
    })
}

fn source_info(source: VisibleSource) -> SourceInfo {
    let VisibleSource { role, artifact, content_hash } = source;
    SourceInfo { role, artifact_id: artifact, content_hash }
}

fn annotation_info(record: AnnotationRecord) -> AnnotationInfo {
    let AnnotationRecord { id, message, source, vibe, created_at, .. } = record;
    AnnotationInfo { id, message, source, vibe, created_at }
}
