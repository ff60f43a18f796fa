//! Files in and out of workspaces: `workspace_get`, `workspace_put`, `workspace_diff`.

use super::wire_struct;
use crate::data::Data;
use crate::ids::{ArtifactId, BlobHash, ProjectId, WorkspaceId};

/// What is under a name in a workspace.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, which is never followed.
    Symlink,
    /// A pipe, a socket or a device, which is never opened.
    Other,
}

impl FileKind {
    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Directory => "directory",
            Self::Symlink => "symlink",
            Self::Other => "other",
        }
    }
}

/// What became of a file since the start.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// It is new.
    Added,
    /// It is gone.
    Removed,
    /// It is another.
    Modified,
}

impl ChangeKind {
    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Modified => "modified",
        }
    }
}

wire_struct! {
    /// What to get of a workspace.
    WorkspaceGetRequest {
        /// The project.
        project_id: ProjectId,
        /// The workspace.
        workspace_id: WorkspaceId,
        /// A file or a directory, from the top of the workspace; the workspace itself if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
        /// Whether to list a directory with all that is below it.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<bool>")]
        recursive: bool,
        /// Whether to make an artifact of a directory: a tar archive of all that is below it.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<bool>")]
        archive: bool,
        /// At most so many entries of a listing: 1000 if absent, 10000 at most.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<u32>,
        /// Where the page before this one ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<String>,
    }

    /// A file, a listing or an archive.
    WorkspaceContentResponse {
        /// What was asked for; empty for the workspace itself.
        path: String,
        /// What it is.
        kind: FileKind,
        /// How many bytes the file or the archive has.
        size: u64,
        /// Whether the file can be run.
        executable: bool,
        /// What is in the directory, in the order of paths.
        #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<Vec<WorkspaceEntry>>")]
        entries: Vec<WorkspaceEntry>,
        /// Where the next page of the listing starts; absent on the last.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next_cursor: Option<String>,
        /// Where a symbolic link says it leads.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        target: Option<String>,
        /// The file's bytes, of up to 1 MiB.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<Data>,
        /// The hash of a larger file, or of the archive: read it with `cas_get`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content_hash: Option<BlobHash>,
        /// The archive.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        artifact_id: Option<ArtifactId>,
        /// What is there and could not be looked at: of a listing, or of an archive. The first 1000.
        #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<Vec<WorkspaceSkipped>>")]
        skipped: Vec<WorkspaceSkipped>,
    }

    /// Something in a workspace that could not be looked at.
    #[derive(Eq)]
    WorkspaceSkipped {
        /// Where, from the top of the workspace.
        path: String,
        /// Why not.
        reason: String,
    }

    /// Something in a workspace.
    WorkspaceEntry {
        /// Where, from the top of the workspace.
        path: String,
        /// What it is.
        kind: FileKind,
        /// How many bytes a file has.
        size: u64,
        /// Whether a file can be run.
        executable: bool,
        /// Where a symbolic link says it leads.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        target: Option<String>,
        /// Whether its name is not UTF-8, so that the path only shows what it looks like.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<bool>")]
        lossy: bool,
    }

    /// A file to write, or an archive of files.
    WorkspacePutRequest {
        /// The project.
        project_id: ProjectId,
        /// The workspace.
        workspace_id: WorkspaceId,
        /// The file, from the top of the workspace; of an archive the directory it goes into.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
        /// The bytes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<Data>,
        /// Stored content instead of bytes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content_hash: Option<BlobHash>,
        /// Whether the file can be run.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<bool>")]
        executable: bool,
        /// Whether the content is a tar archive to unpack.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<bool>")]
        archive: bool,
    }

    /// Which workspace to compare with how it was.
    WorkspaceDiffRequest {
        /// The project.
        project_id: ProjectId,
        /// The workspace.
        workspace_id: WorkspaceId,
        /// Only what is at or below this path.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
    }

    /// What changed in a workspace since before its first agent was started.
    WorkspaceDiffResponse {
        /// A unified diff, which `git apply` takes; files that are no text are named, not shown.
        diff: String,
        /// What changed, in the order of paths.
        changes: Vec<WorkspaceChange>,
        /// Whether the diff does not show all changes in full, because it would be too long.
        truncated: bool,
        /// What is there and could not be compared, with all that is in it. The first 1000.
        #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<Vec<WorkspaceSkipped>>")]
        skipped: Vec<WorkspaceSkipped>,
    }

    /// What became of a file.
    WorkspaceChange {
        /// Where, from the top of the workspace.
        path: String,
        /// What became of it.
        change: ChangeKind,
        /// How it was; absent if it is new.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<FileState>,
        /// How it is; absent if it is gone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<FileState>,
        /// Whether its name is not UTF-8, so that the path only shows what it looks like.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<bool>")]
        lossy: bool,
    }

    /// A file at some moment.
    #[derive(Eq)]
    FileState {
        /// What it is: a file or a symbolic link.
        kind: FileKind,
        /// How many bytes it has.
        size: u64,
        /// Whether it can be run.
        executable: bool,
        /// The BLAKE3 hash of its bytes; of a link, of where it says it leads.
        hash: BlobHash,
    }
}
