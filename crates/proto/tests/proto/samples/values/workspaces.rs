//! Samples of the tools for files of workspaces.

use super::*;

const fn workspace() -> WorkspaceId {
    WorkspaceId::from_random([0x55; 16])
}

const fn state(kind: FileKind) -> FileState {
    FileState { kind, size: TWO_TO_THE_63, executable: true, hash: hash() }
}

sample!(
    WorkspaceGetRequest,
    Self {
        project_id: project(),
        workspace_id: workspace(),
        path: None,
        recursive: false,
        archive: false,
        limit: None,
        cursor: None,
    },
    Self {
        project_id: project(),
        workspace_id: workspace(),
        path: Some(awkward()),
        recursive: true,
        archive: true,
        limit: Some(u32::MAX),
        cursor: Some(awkward()),
    }
);
sample!(
    WorkspaceContentResponse,
    Self {
        path: String::new(),
        kind: FileKind::Directory,
        size: 0,
        executable: false,
        entries: vec![],
        next_cursor: None,
        target: None,
        data: None,
        content_hash: None,
        artifact_id: None,
        skipped: vec![],
    },
    Self {
        path: awkward(),
        kind: FileKind::Symlink,
        size: u64::MAX,
        executable: true,
        entries: vec![WorkspaceEntry {
            path: awkward(),
            kind: FileKind::Other,
            size: TWO_TO_THE_63,
            executable: true,
            target: Some(awkward()),
            lossy: true,
        }],
        next_cursor: Some(awkward()),
        target: Some(awkward()),
        data: Some(all_bytes()),
        content_hash: Some(hash()),
        artifact_id: Some(artifact()),
        skipped: vec![WorkspaceSkipped { path: awkward(), reason: awkward() }],
    }
);
sample!(
    WorkspacePutRequest,
    Self {
        project_id: project(),
        workspace_id: workspace(),
        path: None,
        data: None,
        content_hash: None,
        executable: false,
        archive: false,
    },
    Self {
        project_id: project(),
        workspace_id: workspace(),
        path: Some(awkward()),
        data: Some(all_bytes()),
        content_hash: Some(hash()),
        executable: true,
        archive: true,
    }
);
sample!(
    WorkspaceDiffRequest,
    Self { project_id: project(), workspace_id: workspace(), path: None },
    Self { project_id: project(), workspace_id: workspace(), path: Some(awkward()) }
);
sample!(
    WorkspaceDiffResponse,
    Self { diff: String::new(), changes: vec![], truncated: false, skipped: vec![] },
    Self {
        diff: awkward(),
        changes: vec![WorkspaceChange {
            path: awkward(),
            change: ChangeKind::Modified,
            before: Some(state(FileKind::File)),
            after: Some(state(FileKind::Symlink)),
            lossy: true,
        }],
        truncated: true,
        skipped: vec![WorkspaceSkipped { path: awkward(), reason: awkward() }],
    }
);
