//! Files in and out of workspaces: `workspace_get`, `workspace_put`, `workspace_diff`.

use super::wire_struct;
use crate::data::Data;
use crate::ids::{ArtifactId, BlobHash, ProjectId, WorkspaceId};
use crate::wire_enum::wire_enum;

wire_enum! {
    /// The kind of a workspace entry.
    FileKind {
        /// A regular file.
        File = "file",
        /// A directory.
        Directory = "directory",
        /// A symbolic link, which is never followed.
        Symlink = "symlink",
        /// A pipe, a socket or a device, which is never opened.
        Other = "other",
    }
}

wire_enum! {
    /// The kind of a change.
    ChangeKind {
        /// The file is new.
        Added = "added",
        /// The file was removed.
        Removed = "removed",
        /// The file was changed.
        Modified = "modified",
    }
}

wire_struct! {
    /// What to read from a workspace.
    WorkspaceGetRequest {
        /// The id of the project.
        project_id: ProjectId,
        /// The id of the workspace.
        workspace_id: WorkspaceId,
        /// The path of a file or directory, relative to the workspace; the workspace itself if
        /// absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
        /// Whether to list a directory recursively.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<bool>")]
        recursive: bool,
        /// Whether to store a directory, recursively, as a tar archive artifact.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<bool>")]
        archive: bool,
        /// The maximum number of entries to list: default 1000, at most 10000.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<u32>,
        /// The `next_cursor` of the previous page.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<String>,
    }

    /// A file, a listing or an archive.
    WorkspaceContentResponse {
        /// The requested path; empty for the workspace itself.
        path: String,
        /// The kind of entry at that path.
        kind: FileKind,
        /// The size of the file or archive in bytes.
        size: u64,
        /// Whether the file is executable.
        executable: bool,
        /// The entries of the directory, sorted by path.
        #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<Vec<WorkspaceEntry>>")]
        entries: Vec<WorkspaceEntry>,
        /// The cursor of the next page of the listing; absent on the last page.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next_cursor: Option<String>,
        /// The target of a symbolic link.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        target: Option<String>,
        /// The bytes of the file, up to 1 MiB.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<Data>,
        /// The hash of a larger file, or of the archive: read it with `cas_get`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content_hash: Option<BlobHash>,
        /// The id of the archive's artifact.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        artifact_id: Option<ArtifactId>,
        /// Entries that could not be listed or archived. Only the first 1000.
        #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<Vec<WorkspaceSkipped>>")]
        skipped: Vec<WorkspaceSkipped>,
    }

    /// An entry of a workspace that could not be read.
    #[derive(Eq)]
    WorkspaceSkipped {
        /// Its path, relative to the workspace.
        path: String,
        /// The reason.
        reason: String,
    }

    /// An entry of a workspace.
    WorkspaceEntry {
        /// Its path, relative to the workspace.
        path: String,
        /// Its kind.
        kind: FileKind,
        /// The size of a file in bytes.
        size: u64,
        /// Whether a file is executable.
        executable: bool,
        /// The target of a symbolic link.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        target: Option<String>,
        /// Whether its name is not UTF-8, so that the path is only an approximation.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<bool>")]
        lossy: bool,
    }

    /// A file to write, or an archive of files.
    WorkspacePutRequest {
        /// The id of the project.
        project_id: ProjectId,
        /// The id of the workspace.
        workspace_id: WorkspaceId,
        /// The path of the file, relative to the workspace; for an archive, the directory to unpack
        /// it into.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
        /// The bytes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<Data>,
        /// The hash of stored content, instead of bytes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content_hash: Option<BlobHash>,
        /// Whether the file is to be executable.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<bool>")]
        executable: bool,
        /// Whether the content is a tar archive to unpack.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<bool>")]
        archive: bool,
    }

    /// The workspace to compare with its initial state.
    WorkspaceDiffRequest {
        /// The id of the project.
        project_id: ProjectId,
        /// The id of the workspace.
        workspace_id: WorkspaceId,
        /// Only changes at or below this path.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
    }

    /// The changes in a workspace since just before its first agent started.
    WorkspaceDiffResponse {
        /// A unified diff for `git apply`; files that are not text are only named.
        diff: String,
        /// The changes, sorted by path.
        changes: Vec<WorkspaceChange>,
        /// Whether the diff is incomplete because it would be too long.
        truncated: bool,
        /// Entries that could not be compared, including everything below them. Only the first
        /// 1000.
        #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<Vec<WorkspaceSkipped>>")]
        skipped: Vec<WorkspaceSkipped>,
    }

    /// A change to a file.
    WorkspaceChange {
        /// Its path, relative to the workspace.
        path: String,
        /// The kind of change.
        change: ChangeKind,
        /// The file before; absent if it is new.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<FileState>,
        /// The file now; absent if it was removed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<FileState>,
        /// Whether its name is not UTF-8, so that the path is only an approximation.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<bool>")]
        lossy: bool,
    }

    /// The state of a file.
    #[derive(Eq)]
    FileState {
        /// Its kind: a file or a symbolic link.
        kind: FileKind,
        /// Its size in bytes.
        size: u64,
        /// Whether it is executable.
        executable: bool,
        /// The BLAKE3 hash of its bytes; for a symbolic link, of its target.
        hash: BlobHash,
    }
}
