//! Artifacts and annotations.

use super::wire_struct;
use crate::ids::{AnnotationId, ArtifactId, BlobHash, JobId, ProjectId, SessionId, VariationSetId};
use crate::value::Value;
use crate::wire_enum::wire_enum;

wire_enum! {
    /// What a tool used a source for: the field of its request that named it, without `_hash`.
    SourceRole {
        /// The content of the artifact itself.
        Content = "content",
        /// What is rendered or continued.
        Input = "input",
        /// What the music starts from.
        Seed = "seed",
        /// What a bridge starts from.
        SectionA = "section_a",
        /// What a bridge leads to.
        SectionB = "section_b",
        /// The sound that is analysed.
        Audio = "audio",
        /// The sound it is compared with.
        AudioB = "audio_b",
        /// The text of a tune.
        Abc = "abc",
        /// The instruments of a rendering.
        Soundfont = "soundfont",
        /// What a region of the garden plays.
        Region = "region",
    }
}

wire_struct! {
    /// A file on the daemon's machine to turn into an artifact.
    ArtifactUploadRequest with_lineage {
        /// Its path, inside one of `files.roots`.
        file_path: String,
        /// Its MIME type.
        mime_type: String,
    }

    /// Stored content to turn into an artifact.
    ArtifactCreateRequest with_lineage {
        /// The hash of the content.
        content_hash: BlobHash,
        /// Any metadata to keep with it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Value>,
    }

    /// The new artifact.
    ArtifactCreatedResponse {
        /// The id of the artifact.
        artifact_id: ArtifactId,
        /// The hash of its content.
        content_hash: BlobHash,
        /// Its tags.
        tags: Vec<String>,
        /// Its creator.
        creator: String,
        /// Its index in its variation set, from 0.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        variation_index: Option<u32>,
    }

    /// The artifact to look up.
    ArtifactGetRequest {
        /// The id of the artifact.
        id: ArtifactId,
    }

    /// Everything about an artifact.
    ArtifactInfoResponse {
        /// Its id.
        id: ArtifactId,
        /// The hash of its content.
        content_hash: BlobHash,
        /// The MIME type of its content.
        mime_type: String,
        /// The size of its content in bytes.
        size: u64,
        /// Its tags.
        tags: Vec<String>,
        /// Its creator.
        creator: String,
        /// When it was created.
        created_at: u64,
        /// The project it belongs to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        project_id: Option<ProjectId>,
        /// The artifact it was derived from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_id: Option<ArtifactId>,
        /// The variation set it belongs to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        variation_set_id: Option<VariationSetId>,
        /// Its index in that set, from 0.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        variation_index: Option<u32>,
        /// The metadata kept with it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Value>,
        /// Its annotations, oldest first. Lists leave them out.
        #[serde(
            default,
            skip_serializing_if = "Vec::is_empty",
            deserialize_with = "super::null_as_default"
        )]
        #[schemars(with = "Option<Vec<AnnotationInfo>>")]
        annotations: Vec<AnnotationInfo>,
        /// The tool that made it; absent if it is older than this record.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
        /// The job that made it, even if the job has expired.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        job_id: Option<JobId>,
        /// The session whose agent made it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_id: Option<SessionId>,
        /// The contents it was made from. Lists leave them out.
        #[serde(
            default,
            skip_serializing_if = "Vec::is_empty",
            deserialize_with = "super::null_as_default"
        )]
        #[schemars(with = "Option<Vec<SourceInfo>>")]
        sources: Vec<SourceInfo>,
        /// The artifacts made from it that you may see, newest first, at most 100. Lists leave them
        /// out.
        #[serde(
            default,
            skip_serializing_if = "Vec::is_empty",
            deserialize_with = "super::null_as_default"
        )]
        #[schemars(with = "Option<Vec<ArtifactId>>")]
        derived_ids: Vec<ArtifactId>,
    }

    /// A content that an artifact was made from.
    SourceInfo {
        /// What its tool used it for.
        role: SourceRole,
        /// The newest artifact of this content when it was used, if you may see it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        artifact_id: Option<ArtifactId>,
        /// The hash of the content, unless it was hidden from the maker and is from you.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content_hash: Option<BlobHash>,
    }

    /// An annotation.
    AnnotationInfo {
        /// Its id.
        id: AnnotationId,
        /// Its text.
        message: String,
        /// Its author.
        source: String,
        /// Its mood.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        vibe: Option<String>,
        /// When it was created.
        created_at: u64,
    }

    /// The filter for artifacts.
    #[derive(Default)]
    ArtifactListRequest {
        /// Only artifacts with this tag.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tag: Option<String>,
        /// Only artifacts by this creator.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        creator: Option<String>,
        /// The maximum number of artifacts to return: default 50, at most 500.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<u32>,
        /// The `next_cursor` of the previous page.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<String>,
    }

    /// A page of artifacts, newest first.
    ArtifactListResponse {
        /// The artifacts, without their annotations.
        artifacts: Vec<ArtifactInfoResponse>,
        /// The number of artifacts on this page.
        count: u64,
        /// The cursor of the next page; absent on the last page.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next_cursor: Option<String>,
    }

    /// An annotation to add.
    AddAnnotationRequest {
        /// What it is about.
        artifact_id: ArtifactId,
        /// Its text.
        message: String,
        /// Its author; `agent` if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        source: Option<String>,
        /// Its mood.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        vibe: Option<String>,
    }

    /// The new annotation.
    AnnotationAddedResponse {
        /// What it is about.
        artifact_id: ArtifactId,
        /// The id of the annotation.
        annotation_id: AnnotationId,
    }
}
