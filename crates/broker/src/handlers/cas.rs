//! The content store: `cas_*`.

use camino::Utf8PathBuf;
use ringback_blobs::StoredContent;
use ringback_core::policy::Provenance;
use ringback_proto::data::Data;
use ringback_proto::ids::BlobHash;
use ringback_proto::record::Record;
use ringback_proto::request::{
    CasContentResponse, CasGetRequest, CasInspectRequest, CasInspectedResponse, CasStatsRequest,
    CasStatsResponse, CasStoreRequest, CasStoredResponse, CasUploadFileRequest,
};
use ringback_proto::tool::tools;
use ringback_proto::{Error, Result, StreamChunk};
use ringback_store::WriteOutcome;

use super::Native;
use crate::failure;
use crate::handler::{Context, Handler};

/// The most bytes in one answer of `cas_get`: fits a message in every encoding.
const GET_BYTES_MAX: u64 = 32 << 20;
/// The part of a text that `cas_inspect` shows.
const PREVIEW_BYTES: usize = 100;
/// The bytes of a file read between two progress reports.
const PROGRESS_BYTES: u64 = 4 << 20;

impl Handler<tools::CasStore> for Native {
    async fn handle(ctx: Context, request: CasStoreRequest) -> Result<CasStoredResponse> {
        let CasStoreRequest { data, mime_type, upload_id, offset, last } = request;
        let Some(upload_id) = upload_id else {
            if offset.is_some() || last.is_some() {
                let message = "`offset` and `last` belong to an upload in pieces: give `upload_id`";
                return Err(Error::invalid_field("upload_id", message));
            }
            ctx.rooms.disk.check_room(&ctx.principal, data.0.len() as u64).await?;
            let blobs = ctx.rooms.kernel.blobs.clone();
            let put = move || blobs.put(&data.0, &mime_type).map_err(failure::write_blob);
            let stored = ctx.rooms.kernel.blocking(put).await?;
            return keep(&ctx, stored).await;
        };
        ctx.rooms.disk.check_room(&ctx.principal, data.0.len() as u64).await?;
        let (rooms, owner, now) = (ctx.rooms.clone(), ctx.principal.id, ctx.now().unix);
        let piece = move || {
            let uploads = &rooms.kernel.uploads;
            let size = uploads.append(owner, &upload_id, offset.unwrap_or(0), &data.0, now)?;
            if last != Some(true) {
                return Ok(Err(CasStoredResponse { hash: None, size, mime_type }));
            }
            uploads.finish(owner, &upload_id, &mime_type, now).map(Ok)
        };
        match ctx.rooms.kernel.blocking(move || piece().map_err(failure::upload)).await? {
            Ok(stored) => keep(&ctx, stored).await,
            Err(unfinished) => Ok(unfinished),
        }
    }
}

impl Handler<tools::CasGet> for Native {
    async fn handle(ctx: Context, request: CasGetRequest) -> Result<CasContentResponse> {
        let CasGetRequest { hash, offset, length } = request;
        let own_type = check_readable(&ctx, hash).await?;
        let blobs = ctx.rooms.kernel.blobs.clone();
        let length = length.unwrap_or(GET_BYTES_MAX).min(GET_BYTES_MAX);
        let read = move || {
            let info = blobs.inspect(hash).map_err(failure::read_blob)?;
            let info = info.ok_or_else(|| Error::not_found("blob", hash))?;
            let data = blobs.read_range(hash, offset.unwrap_or(0), length);
            Ok((info, data.map_err(failure::read_blob)?))
        };
        let (info, data) = ctx.rooms.kernel.blocking(read).await?;
        let mime_type = own_type.unwrap_or(info.mime_type);
        Ok(CasContentResponse { hash, size: info.size, mime_type, data: Data(data) })
    }
}

impl Handler<tools::CasInspect> for Native {
    async fn handle(ctx: Context, request: CasInspectRequest) -> Result<CasInspectedResponse> {
        let hash = request.hash;
        let unknown = CasInspectedResponse {
            hash,
            exists: false,
            size: None,
            mime_type: None,
            preview: None,
        };
        let Ok(own_type) = check_readable(&ctx, hash).await else { return Ok(unknown) };
        let blobs = ctx.rooms.kernel.blobs.clone();
        let look = move || {
            let Some(info) = blobs.inspect(hash).map_err(failure::read_blob)? else {
                return Ok(None);
            };
            let preview = blobs.preview(hash, PREVIEW_BYTES).map_err(failure::read_blob)?;
            Ok(Some((info, preview)))
        };
        let Some((info, preview)) = ctx.rooms.kernel.blocking(look).await? else {
            return Ok(unknown);
        };
        let mime_type = own_type.unwrap_or(info.mime_type);
        Ok(CasInspectedResponse {
            hash,
            exists: true,
            size: Some(info.size),
            mime_type: Some(mime_type),
            preview,
        })
    }
}

impl Handler<tools::CasUploadFile> for Native {
    async fn handle(ctx: Context, request: CasUploadFileRequest) -> Result<CasStoredResponse> {
        let stored = ingest(&ctx, request.file_path, request.mime_type).await?;
        keep(&ctx, stored).await
    }
}

impl Handler<tools::CasStats> for Native {
    async fn handle(ctx: Context, _: CasStatsRequest) -> Result<CasStatsResponse> {
        let stats = ctx.rooms.kernel.blobs.stats();
        Ok(CasStatsResponse { blobs: stats.blobs, bytes: stats.bytes })
    }
}

/// Records the owner of an upload, so that the owner may read it, and answers.
async fn keep(ctx: &Context, stored: StoredContent) -> Result<CasStoredResponse> {
    let (hash, size) = (stored.hash, stored.size);
    let (mime_type, _) = claim(ctx, stored).await?;
    Ok(CasStoredResponse { hash: Some(hash), size, mime_type })
}

/// Records that this principal stored content. Returns the type it first used, and whether that was
/// now: what others stored before affects neither.
pub(crate) async fn claim(ctx: &Context, stored: StoredContent) -> Result<(String, bool)> {
    let applied = ctx.commit(vec![uploaded(ctx, &stored, &stored.mime_type)]).await?;
    match applied.into_iter().next() {
        Some(WriteOutcome::BlobUploaded { is_new, mime_type }) => {
            Ok((mime_type.unwrap_or(stored.mime_type), is_new))
        }
        Some(
            WriteOutcome::Written
            | WriteOutcome::ArtifactCreated { .. }
            | WriteOutcome::SessionsRemoved(_),
        )
        | None => Ok((stored.mime_type, true)),
    }
}

/// Returns the record of content that was stored with a call. New content counts towards the
/// account of the session whose key made the call.
pub(crate) fn uploaded(ctx: &Context, stored: &StoredContent, mime_type: &str) -> Record {
    if stored.new {
        ctx.rooms.disk.count_stored(&ctx.principal, stored.size);
    }
    upload_record(ctx, stored.hash, mime_type.to_owned())
}

/// Returns the record of content that is stored already.
pub(crate) fn upload_record(ctx: &Context, hash: BlobHash, mime_type: String) -> Record {
    let Provenance { project, session } = ctx.provenance();
    let (owner, at) = (ctx.principal.id, ctx.now().unix);
    Record::BlobUploaded { hash, owner, project, session, mime_type, at }
}

/// Checks access to a blob. It is readable by its uploaders and by those who see an artifact of it;
/// for everyone else it does not exist. Returns the type that the reader stored it with, if it did:
/// for the reader that is its type, whatever others called it before.
pub(crate) async fn check_readable(ctx: &Context, hash: BlobHash) -> Result<Option<String>> {
    let (visible, owner) = (ctx.visible(), ctx.principal.id);
    let found = ctx.read(move |store| {
        let may_read = store.may_read_blob(hash, &visible)?;
        may_read.then(|| store.upload_mime(hash, &owner)).transpose()
    });
    found.await?.ok_or_else(|| Error::not_found("blob", hash))
}

/// Stores a file of this machine that lies in one of the allowed directories.
pub(super) async fn ingest(
    ctx: &Context,
    file_path: String,
    mime_type: String,
) -> Result<StoredContent> {
    let rooms = ctx.rooms.clone();
    let (progress, mut told) = tokio::sync::watch::channel((0, 1));
    let stored = ctx.blocking(move |stop| {
        let path = Utf8PathBuf::from(file_path);
        let mut file =
            rooms.kernel.roots.open_file(&path).map_err(|error| failure::rooted(&error))?;
        let size = file.metadata().map_or(0, |metadata| metadata.len());
        let mut writer = rooms.kernel.blobs.writer();
        let mut told_at = 0;
        loop {
            if stop.is_cancelled() {
                return Err(Error::cancelled("the upload was stopped"));
            }
            if writer.read_piece(&mut file, &path).map_err(failure::write_blob)? == 0 {
                return writer.finish(&mime_type).map_err(failure::write_blob);
            }
            if writer.size() - told_at >= PROGRESS_BYTES {
                told_at = writer.size();
                progress.send_replace((told_at, size.max(1)));
            }
        }
    });
    tokio::pin!(stored);
    loop {
        tokio::select! {
            biased;
            stored = &mut stored => return stored,
            Ok(()) = told.changed() => {
                let (done, size) = *told.borrow_and_update();
                let percent = (done as f64 / size as f64 * 100.0).min(100.0) as f32;
                let message = format!("{done} of {size} bytes");
                ctx.send(StreamChunk::Progress { percent, message }).await;
            }
        }
    }
}
