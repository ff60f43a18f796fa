//! Brings a copy into the workspace of a session: file by file if this process can write there, else
//! as an archive.

use std::fs::File;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{Read as _, Seek as _};
use std::path::Path;

use ringback_blobs::Tree;
use ringback_client::Client;
use ringback_proto::data::Data;
use ringback_proto::request::{SessionResponse, WorkspaceGetRequest, WorkspacePutRequest};
use ringback_proto::tool::tools::{WorkspaceGet, WorkspacePut};

use super::copy::DirCopy;
use crate::failure::Failure;
use crate::screen::size;

/// The media type of a packed copy.
const MIME_ARCHIVE: &str = "application/x-tar";
/// The largest copy sent in one message; a larger one becomes stored content, which stays.
const INLINE_BYTES_MAX: u64 = 16 << 20;
/// Left on the disk after a copy: enough for the records of the daemon.
const FREE_BYTES_MIN: u64 = 64 << 20;

/// Puts a copy into the new workspace of a session. `is_own`: the daemon is this user's own.
pub(super) async fn put(
    client: &Client,
    session: &SessionResponse,
    copy: &DirCopy,
    is_own: bool,
) -> Result<(), Failure> {
    if is_own && let Some(tree) = reachable(client, session).await? {
        check_room(Path::new(&session.workspace_path), copy.bytes())?;
        return tokio::task::block_in_place(|| copy.copy_to(&tree));
    }
    let archive = tokio::task::block_in_place(|| copy.pack())?;
    let (data, content_hash) = match inline(&archive)? {
        Some(bytes) => (Some(Data::from(bytes)), None),
        None => {
            let archive = tokio::fs::File::from_std(archive);
            (None, client.upload(archive, MIME_ARCHIVE).await?.hash)
        }
    };
    let request = WorkspacePutRequest {
        project_id: session.project_id,
        workspace_id: session.workspace_id,
        path: None,
        data,
        content_hash,
        executable: false,
        archive: true,
    };
    client.call::<WorkspacePut>(request).await?;
    Ok(())
}

/// Returns the workspace as a directory of this machine, if it is one. The daemon may run in a
/// container with other directories, so it is asked for a file that was just written.
async fn reachable(client: &Client, session: &SessionResponse) -> Result<Option<Tree>, Failure> {
    let Ok(tree) = Tree::open(Path::new(&session.workspace_path)) else { return Ok(None) };
    let number = RandomState::new().hash_one(std::process::id());
    let (name, text) = (format!(".ringback-{number:016x}"), number.to_string());
    if tree.write_new(Path::new(&name), &mut text.as_bytes()).is_err() {
        return Ok(None);
    }
    let request = WorkspaceGetRequest {
        project_id: session.project_id,
        workspace_id: session.workspace_id,
        path: Some(name.clone()),
        recursive: false,
        archive: false,
        limit: None,
        cursor: None,
    };
    let found = client.call::<WorkspaceGet>(request).await;
    let removed = tree.remove(Path::new(&name));
    removed.map_err(|error| Failure::Wrong(ringback_proto::chain(&error)))?;
    let is_same = found.is_ok_and(|found| found.data.is_some_and(|data| data.0 == text.as_bytes()));
    Ok(is_same.then_some(tree))
}

/// Checks that a copy leaves room for the daemon, which cannot check it here.
fn check_room(at: &Path, bytes: u64) -> Result<(), Failure> {
    let Ok(disk) = rustix::fs::statvfs(at) else { return Ok(()) };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    if free >= bytes.saturating_add(FREE_BYTES_MIN) {
        return Ok(());
    }
    let text = format!(
        "cannot copy {}: the disk of the daemon has {} left; leave out what the agent does not need \
         with `--exclude`, or delete old workspaces",
        size(bytes),
        size(free)
    );
    Err(Failure::Wrong(text))
}

/// Returns a whole archive, unless it is too long for a message.
fn inline(mut archive: &File) -> Result<Option<Vec<u8>>, Failure> {
    let failed = |source| Failure::System { action: "read a temporary file", source };
    let mut bytes = Vec::new();
    archive.take(INLINE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    archive.rewind().map_err(failed)?;
    Ok((bytes.len() as u64 <= INLINE_BYTES_MAX).then_some(bytes))
}
