//! File transfer to and from workspaces: `workspace_get`, `workspace_put`, `workspace_diff`.

use std::ffi::OsString;
use std::io::{self, Cursor, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use camino::Utf8Path;
use ringback_blobs::tree::{
    Diff, Entry, EntryKind, TreeLimits, TreeListing, compare, pack, unpack,
};
use ringback_blobs::{Info, StoredContent, Tree, Writer};
use ringback_proto::data::Data;
use ringback_proto::request::{
    AckResponse, FileKind, Lineage, WorkspaceContentResponse, WorkspaceDiffRequest,
    WorkspaceDiffResponse, WorkspaceEntry, WorkspaceGetRequest, WorkspacePutRequest,
    WorkspaceSkipped,
};
use ringback_proto::tool::tools;
use ringback_proto::{Error, ErrorKind, Result};
use tokio_util::sync::CancellationToken;

use super::artifact::NewArtifact;
use super::cas::{check_readable, uploaded};
use super::{Native, artifact};
use crate::failure;
use crate::handler::{Context, Handler};
use crate::workspaces::{NOW_LIMITS, START_LIMITS, Workspaces, kind, told};

/// The largest file returned in the answer itself; a larger one is stored.
const INLINE_BYTES_MAX: u64 = 1 << 20;
/// Entries of a listing by default, and at most.
const LISTED: u32 = 1000;
const LISTED_MAX: u32 = 10_000;
/// The type of content that is not inspected.
const MIME_BYTES: &str = "application/octet-stream";
const MIME_ARCHIVE: &str = "application/x-tar";

impl Handler<tools::WorkspaceGet> for Native {
    async fn handle(
        ctx: Context,
        request: WorkspaceGetRequest,
    ) -> Result<WorkspaceContentResponse> {
        let id = request.workspace_id;
        ctx.rooms.workspaces.files_of(&ctx.principal, request.project_id, id).await?;
        let (rooms, sizing) = (ctx.rooms.clone(), request.clone());
        // Content is counted before it is stored: a hole in a file takes no space there, but its
        // full size here.
        let to_store = ctx.blocking(move |_| rooms.workspaces.to_store(&sizing)).await?;
        if to_store > 0 {
            ctx.rooms.disk.check_room(&ctx.principal, to_store).await?;
        }
        let rooms = ctx.rooms.clone();
        let got = ctx.blocking(move |stop| rooms.workspaces.get(&request, to_store, stop)).await?;
        let FileAnswer { mut answer, stored } = got;
        let Some(stored) = stored else { return Ok(answer) };
        let (hash, is_archive) = (stored.hash, answer.kind == FileKind::Directory);
        (answer.content_hash, answer.size) = (Some(hash), stored.size);
        let upload = uploaded(&ctx, &stored, &stored.mime_type);
        if is_archive {
            let info = Info { size: stored.size, mime_type: stored.mime_type };
            let lineage = Lineage {
                tags: vec!["workspace".to_owned(), id.to_string()],
                ..Lineage::default()
            };
            // The files of a workspace are not stored content.
            let sources = Vec::new();
            let new = NewArtifact { content_hash: hash, info, lineage, metadata: None, sources };
            let made = artifact::create(&ctx, new, vec![upload]).await?;
            answer.artifact_id = Some(made.artifact_id);
        } else {
            ctx.commit(vec![upload]).await?;
        }
        Ok(answer)
    }
}

impl Handler<tools::WorkspacePut> for Native {
    async fn handle(ctx: Context, request: WorkspacePutRequest) -> Result<AckResponse> {
        let WorkspacePutRequest { project_id, workspace_id, path, data, content_hash, .. } =
            request;
        ctx.rooms.workspaces.files_of(&ctx.principal, project_id, workspace_id).await?;
        let content = match (data, content_hash) {
            (Some(Data(bytes)), None) => Content::Bytes(bytes),
            (None, Some(hash)) => {
                check_readable(&ctx, hash).await?;
                let blobs = ctx.rooms.kernel.blobs.clone();
                let open = move || blobs.open_blob(hash).map_err(failure::read_blob);
                Content::Blob(ctx.rooms.kernel.blocking(open).await?)
            }
            (Some(_), Some(_)) | (None, None) => {
                let message = "give either the bytes as `data` or stored content as `content_hash`";
                return Err(Error::invalid_field("data", message));
            }
        };
        let (executable, is_archive) = (request.executable, request.archive);
        let bytes_max = ctx.rooms.kernel.config.upload_bytes_max;
        if content.size() > bytes_max {
            let message = format!("a file can have at most {bytes_max} bytes (limits.upload_max)");
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        ctx.rooms.disk.check_room(&ctx.principal, content.size()).await?;
        let rooms = ctx.rooms.clone();
        let message = ctx.blocking(move |_| {
            let tree = rooms.workspaces.tree(workspace_id)?;
            if is_archive {
                let below = path.unwrap_or_default();
                return put_archive(&tree, Path::new(&below), content);
            }
            let Some(path) = path else {
                return Err(Error::invalid_field("path", "a file needs a path: give `path`"));
            };
            let n_bytes = match content {
                Content::Bytes(bytes) => tree.write(Path::new(&path), &mut &*bytes, executable),
                Content::Blob(mut blob) => tree.write(Path::new(&path), &mut blob, executable),
            };
            let n_bytes = n_bytes.map_err(failure::tree)?;
            Ok(format!("wrote `{path}`, {n_bytes} bytes"))
        });
        Ok(AckResponse { message: message.await? })
    }
}

impl Handler<tools::WorkspaceDiff> for Native {
    async fn handle(ctx: Context, request: WorkspaceDiffRequest) -> Result<WorkspaceDiffResponse> {
        let WorkspaceDiffRequest { project_id, workspace_id, path } = request;
        ctx.rooms.workspaces.files_of(&ctx.principal, project_id, workspace_id).await?;
        let below = PathBuf::from(path.unwrap_or_default());
        let rooms = ctx.rooms.clone();
        let compared = ctx.blocking(move |stop| {
            let (tree, start) =
                (rooms.workspaces.tree(workspace_id)?, rooms.workspaces.start_of(workspace_id)?);
            compare(&tree, &start, &below, NOW_LIMITS, &|| !stop.is_cancelled())
                .map_err(failure::diff)
        });
        let Diff { text: diff, changes, truncated, skipped } = compared.await?;
        Ok(WorkspaceDiffResponse { diff, changes, truncated, skipped: told(&skipped) })
    }
}

/// The answer, and the content that was stored for it.
struct FileAnswer {
    answer: WorkspaceContentResponse,
    stored: Option<StoredContent>,
}

enum Content {
    Bytes(Bytes),
    Blob(ringback_blobs::Reader),
}

impl Content {
    fn size(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Blob(blob) => blob.size(),
        }
    }
}

fn put_archive(tree: &Tree, below: &Path, content: Content) -> Result<String> {
    let unpacked = match content {
        Content::Bytes(bytes) => unpack(tree, below, Cursor::new(bytes), START_LIMITS),
        Content::Blob(blob) => unpack(tree, below, blob, START_LIMITS),
    };
    let unpacked = unpacked.map_err(failure::tree)?;
    Ok(format!("wrote {} files, {} bytes", unpacked.files, unpacked.bytes))
}

impl Workspaces {
    /// Returns how much a request would store. Blocks.
    fn to_store(&self, request: &WorkspaceGetRequest) -> Result<u64> {
        let tree = self.tree(request.workspace_id)?;
        let path = request.path.as_deref().unwrap_or_default();
        let entry = tree.entry(Path::new(path)).map_err(failure::tree)?;
        match entry.kind {
            EntryKind::File if entry.size > INLINE_BYTES_MAX => {
                let bytes_max = self.kernel.config.upload_bytes_max;
                if entry.size > bytes_max { Err(too_large(bytes_max)) } else { Ok(entry.size) }
            }
            EntryKind::Directory if request.archive => {
                let limits = self.archive_limits();
                let walked = tree.walk(&entry.path, limits, |_| true).map_err(failure::tree)?;
                Ok(walked.entries.iter().map(|entry| entry.size).sum())
            }
            EntryKind::File | EntryKind::Directory | EntryKind::Symlink | EntryKind::Other => Ok(0),
        }
    }

    /// Returns a file, a listing or an archive; no more of a file than was to be stored. Blocks.
    fn get(
        &self,
        request: &WorkspaceGetRequest,
        to_store: u64,
        stop: &CancellationToken,
    ) -> Result<FileAnswer> {
        let tree = self.tree(request.workspace_id)?;
        let path = request.path.as_deref().unwrap_or_default();
        let entry = tree.entry(Path::new(path)).map_err(failure::tree)?;
        let mut answer = WorkspaceContentResponse {
            path: shown(&entry.path),
            kind: kind(entry.kind),
            size: entry.size,
            executable: entry.executable,
            entries: Vec::new(),
            next_cursor: None,
            target: None,
            data: None,
            content_hash: None,
            artifact_id: None,
            skipped: Vec::new(),
        };
        if request.archive && entry.kind != EntryKind::Directory {
            let message = "only a directory can be archived, and this is not a directory";
            return Err(Error::invalid_field("path", message));
        }
        let mut stored = None;
        match entry.kind {
            EntryKind::Directory if request.archive => {
                let (archive, skipped) = self.archive(&tree, &entry.path)?;
                (stored, answer.skipped) = (Some(archive), skipped);
            }
            EntryKind::Directory => {
                let Listing { page, next, skipped } = listing(&tree, &entry.path, request)?;
                (answer.entries, answer.next_cursor, answer.skipped) = (page, next, skipped);
            }
            EntryKind::Symlink => {
                answer.target = Some(shown(&tree.read_link(&entry.path).map_err(failure::tree)?));
            }
            EntryKind::File => match self.read_file(&tree, &entry.path, to_store, stop)? {
                FileContent::Inline(bytes) => {
                    answer.size = bytes.len() as u64;
                    answer.data = Some(Data::from(bytes));
                }
                FileContent::Stored(large) => stored = Some(large),
            },
            EntryKind::Other => {}
        }
        Ok(FileAnswer { answer, stored })
    }

    fn read_file(
        &self,
        tree: &Tree,
        path: &Path,
        to_store: u64,
        stop: &CancellationToken,
    ) -> Result<FileContent> {
        let mut file = tree.open_file(path).map_err(failure::tree)?;
        let mut bytes = Vec::new();
        let read = (&mut file).take(INLINE_BYTES_MAX + 1).read_to_end(&mut bytes);
        read.map_err(failure::internal)?;
        if bytes.len() as u64 <= INLINE_BYTES_MAX {
            return Ok(FileContent::Inline(bytes));
        }
        let name = Utf8Path::new("a file of a workspace");
        let mut writer = self.kernel.blobs.writer();
        writer.write(&bytes).map_err(failure::write_blob)?;
        drop(bytes);
        loop {
            if writer.size() > to_store.max(INLINE_BYTES_MAX + 1) {
                let message = "the file grew while it was read; try again when it is complete";
                return Err(Error::new(ErrorKind::Conflict, message));
            }
            if stop.is_cancelled() {
                return Err(Error::cancelled("the read was stopped"));
            }
            if writer.read_piece(&mut file, name).map_err(failure::write_blob)? == 0 {
                break;
            }
        }
        writer.finish(MIME_BYTES).map_err(failure::write_blob).map(FileContent::Stored)
    }

    fn archive_limits(&self) -> TreeLimits {
        let bytes_max = self.kernel.config.upload_bytes_max.min(NOW_LIMITS.bytes_max);
        TreeLimits { bytes_max, ..NOW_LIMITS }
    }

    /// Returns an archive, and the paths left out because they cannot be read or are too large.
    fn archive(&self, tree: &Tree, below: &Path) -> Result<(StoredContent, Vec<WorkspaceSkipped>)> {
        let (limits, bytes_max) = (self.archive_limits(), self.kernel.config.upload_bytes_max);
        let TreeListing { entries, mut skipped } =
            tree.walk(below, limits, |_| true).map_err(failure::tree)?;
        let mut sink = Sink { writer: self.kernel.blobs.writer(), bytes_max };
        skipped.extend(pack(tree, &entries, &mut sink).map_err(failure::tree)?.skipped);
        let stored = sink.writer.finish(MIME_ARCHIVE).map_err(failure::write_blob)?;
        Ok((stored, told(&skipped)))
    }
}

/// A file's content, and where it is.
enum FileContent {
    Inline(Vec<u8>),
    Stored(StoredContent),
}

/// A page of a directory listing.
struct Listing {
    page: Vec<WorkspaceEntry>,
    /// Where the next page starts.
    next: Option<String>,
    skipped: Vec<WorkspaceSkipped>,
}

fn listing(tree: &Tree, dir: &Path, request: &WorkspaceGetRequest) -> Result<Listing> {
    let limit = match request.limit.unwrap_or(LISTED) {
        0 => return Err(Error::invalid_field("limit", "`limit` must be at least 1")),
        limit => limit.min(LISTED_MAX) as usize,
    };
    let limits = TreeLimits { bytes_max: u64::MAX, ..NOW_LIMITS };
    let walked = if request.recursive {
        tree.walk(dir, limits, |_| true)
    } else {
        tree.list(dir, limits.entries_max)
            .map(|entries| TreeListing { entries, skipped: Vec::new() })
    };
    let TreeListing { entries, skipped } = walked.map_err(failure::tree)?;
    let after = request.cursor.as_deref().map(path_of).transpose()?;
    let is_next = |entry: &&Entry| after.as_ref().is_none_or(|after| entry.path > *after);
    let mut rest = entries.iter().filter(is_next);
    let page: Vec<_> = rest.by_ref().take(limit).collect();
    let more = rest.next().is_some();
    let next = page.last().filter(|_| more).map(|last| cursor_of(&last.path));
    let page = page.into_iter().map(|entry| described(tree, entry)).collect();
    Ok(Listing { page, next, skipped: told(&skipped) })
}

/// Encodes a path as a cursor, which keeps names that are not UTF-8 distinct.
fn cursor_of(path: &Path) -> String {
    path.as_os_str().as_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn path_of(cursor: &str) -> Result<PathBuf> {
    let misfit = || Error::invalid_field("cursor", "this is not a cursor of a listing");
    let digits = |pair: &[u8]| {
        let text = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(text, 16).ok()
    };
    let bytes: Option<Vec<u8>> = cursor.as_bytes().chunks(2).map(digits).collect();
    bytes.map(|bytes| OsString::from_vec(bytes).into()).ok_or_else(misfit)
}

fn described(tree: &Tree, entry: &Entry) -> WorkspaceEntry {
    let is_link = entry.kind == EntryKind::Symlink;
    // A link that is gone meanwhile has no target.
    let target = if is_link { tree.read_link(&entry.path).ok() } else { None };
    WorkspaceEntry {
        path: shown(&entry.path),
        kind: kind(entry.kind),
        size: entry.size,
        executable: entry.executable,
        target: target.as_deref().map(shown),
        lossy: entry.path.to_str().is_none(),
    }
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn too_large(bytes_max: u64) -> Error {
    let message = format!("a blob can have at most {bytes_max} bytes (limits.upload_max)");
    Error::new(ErrorKind::TooLarge, message)
}

/// A blob that is written while an archive is created.
struct Sink {
    writer: Writer,
    bytes_max: u64,
}

impl Write for Sink {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        if self.writer.size() + piece.len() as u64 > self.bytes_max {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, too_large(self.bytes_max)));
        }
        self.writer.write(piece).map_err(io::Error::other)?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
