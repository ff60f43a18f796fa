//! Artifacts and annotations.

use super::wire_struct;
use crate::ids::{AnnotationId, ArtifactId, BlobHash, ProjectId, VariationSetId};
use crate::value::Value;

wire_struct! {
    /// A file of the daemon's machine, to become an artifact.
    ArtifactUploadRequest with_lineage {
        /// Its path, inside one of `files.roots`.
        file_path: String,
        /// Its type.
        mime_type: String,
    }

    /// Stored content, to become an artifact.
    ArtifactCreateRequest with_lineage {
        /// The content's hash.
        content_hash: BlobHash,
        /// Whatever you want to keep with it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Value>,
    }

    /// The artifact exists.
    ArtifactCreatedResponse {
        /// Its id.
        artifact_id: ArtifactId,
        /// Its content.
        content_hash: BlobHash,
        /// Its labels.
        tags: Vec<String>,
        /// Who made it.
        creator: String,
        /// Its place in its set of variations, from 0.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        variation_index: Option<u32>,
    }

    /// Which artifact.
    ArtifactGetRequest {
        /// Its id.
        id: ArtifactId,
    }

    /// Everything about an artifact.
    ArtifactInfoResponse {
        /// Its id.
        id: ArtifactId,
        /// Its content.
        content_hash: BlobHash,
        /// Its content's type.
        mime_type: String,
        /// Its content's size.
        size: u64,
        /// Its labels.
        tags: Vec<String>,
        /// Who made it.
        creator: String,
        /// When.
        created_at: u64,
        /// The project it belongs to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        project_id: Option<ProjectId>,
        /// What it was made from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_id: Option<ArtifactId>,
        /// The set of variations it belongs to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        variation_set_id: Option<VariationSetId>,
        /// Its place in that set, from 0.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        variation_index: Option<u32>,
        /// What was kept with it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Value>,
        /// Remarks, oldest first. Lists leave them out.
        #[serde(
            default,
            skip_serializing_if = "Vec::is_empty",
            deserialize_with = "super::null_as_default"
        )]
        #[schemars(with = "Option<Vec<AnnotationInfo>>")]
        annotations: Vec<AnnotationInfo>,
    }

    /// A remark.
    AnnotationInfo {
        /// Its id.
        id: AnnotationId,
        /// What it says.
        message: String,
        /// Who says so.
        source: String,
        /// How it feels.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        vibe: Option<String>,
        /// When.
        created_at: u64,
    }

    /// Which artifacts.
    #[derive(Default)]
    ArtifactListRequest {
        /// Only with this label.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tag: Option<String>,
        /// Only by this creator.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        creator: Option<String>,
        /// At most so many: 50 if absent, 500 at most.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<u32>,
        /// Where the page before this one ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<String>,
    }

    /// A page of artifacts, newest first.
    ArtifactListResponse {
        /// The artifacts, without their annotations.
        artifacts: Vec<ArtifactInfoResponse>,
        /// How many are on this page.
        count: u64,
        /// Where the next page starts; absent on the last.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next_cursor: Option<String>,
    }

    /// A remark to add.
    AddAnnotationRequest {
        /// What it is about.
        artifact_id: ArtifactId,
        /// What it says.
        message: String,
        /// Who says so; `agent` if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        source: Option<String>,
        /// How it feels.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        vibe: Option<String>,
    }

    /// The remark is kept.
    AnnotationAddedResponse {
        /// What it is about.
        artifact_id: ArtifactId,
        /// Its id.
        annotation_id: AnnotationId,
    }
}
