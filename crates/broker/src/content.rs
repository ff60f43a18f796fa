//! Content that is read and written in pieces, so that no edge ever has it whole in memory. The
//! rules, the limits and the audit are those of `cas_store` and `cas_get`; one transfer is one
//! call.

use bytes::Bytes;
use ringback_blobs::Writer;
use ringback_core::deadline::Deadline;
use ringback_proto::data::Data;
use ringback_proto::envelope::RequestEnvelope;
use ringback_proto::ids::{BlobHash, CallId};
use ringback_proto::request::{CasGetRequest, CasStoreRequest};
use ringback_proto::{Error, ErrorKind, Result, ToolRequest};
use tokio::time::Instant;

use crate::broker::{Broker, admit};
use crate::call::{ActiveCall, Call, Edge};
use crate::failure;
use crate::handler::Context;
use crate::handlers::cas::{check_readable, claim};
use crate::identity::Credential;
use crate::native_call::NativeCall;

/// The bytes gathered for one write: small pieces would cost more in thread switches than in
/// writing.
const WRITE_BYTES: usize = 256 << 10;
/// The bytes written between two checks of the disk.
const ROOM_BYTES: u64 = 16 << 20;

impl Broker {
    /// Opens content for reading.
    ///
    /// # Errors
    /// `not_found` also for content that the caller may not see.
    pub async fn read_blob(
        &self,
        credential: &Credential,
        edge: Edge,
        hash: BlobHash,
    ) -> Result<BlobReader> {
        let request = CasGetRequest { hash, offset: None, length: None };
        let mut transfer = Transfer::begin(self, credential, edge, request.into())?;
        let found = transfer.find(hash).await;
        let (size, mime_type) = transfer.noted(found)?;
        Ok(BlobReader { transfer, hash, size, mime_type })
    }

    /// Starts to store content.
    ///
    /// # Errors
    /// When the caller may not store any, or has too many calls in progress.
    pub fn write_blob(&self, credential: &Credential, edge: Edge) -> Result<BlobWriter> {
        let request = CasStoreRequest {
            data: Data::default(),
            mime_type: String::new(),
            upload_id: None,
            offset: None,
            last: None,
        };
        let transfer = Transfer::begin(self, credential, edge, request.into())?;
        let writer = Some(transfer.ctx.rooms.kernel.blobs.writer());
        Ok(BlobWriter { transfer, writer, waiting: Vec::new(), size: 0, n_checked: 0 })
    }
}

/// Content on its way out. If dropped before [`BlobReader::finish`], the call counts as cancelled.
#[derive(Debug)]
pub struct BlobReader {
    transfer: Transfer,
    hash: BlobHash,
    size: u64,
    mime_type: String,
}

impl BlobReader {
    /// Returns the length of the content.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Returns the type that this principal stored it with, or else the first type stored by
    /// anyone.
    #[must_use]
    pub fn mime_type(&self) -> &str {
        &self.mime_type
    }

    /// Reads up to `length` bytes from `offset`.
    ///
    /// # Errors
    /// When the disk fails, or the call's time is up.
    pub async fn read(&mut self, offset: u64, length: u64) -> Result<Bytes> {
        let (hash, blobs) = (self.hash, self.transfer.ctx.rooms.kernel.blobs.clone());
        let read = move || blobs.read_range(hash, offset, length).map_err(failure::read_blob);
        let read = self.transfer.step(read).await;
        self.transfer.noted(read)
    }

    /// Ends the call: the caller has everything it wanted.
    pub fn finish(mut self) {
        self.transfer.end(None);
    }
}

/// Content on its way in. If dropped before [`BlobWriter::finish`], none of it is kept.
#[derive(Debug)]
pub struct BlobWriter {
    transfer: Transfer,
    /// `None` after a failure.
    writer: Option<Writer>,
    waiting: Vec<u8>,
    size: u64,
    /// The size up to which there is known to be space.
    n_checked: u64,
}

/// Content that was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredBlob {
    /// Its hash.
    pub hash: BlobHash,
    /// Its length.
    pub size: u64,
    /// The type that this principal first stored it with.
    pub mime_type: String,
    /// Whether this principal had not stored it before; other principals do not count.
    pub is_new: bool,
}

impl BlobWriter {
    /// Writes the next piece.
    ///
    /// # Errors
    /// `too_large` beyond the limit of one blob; other errors when the disk fails or the call's
    /// time is up.
    pub async fn write(&mut self, piece: &[u8]) -> Result<()> {
        self.size += piece.len() as u64;
        let bytes_max = self.transfer.ctx.rooms.kernel.config.upload_bytes_max;
        if self.size > bytes_max {
            let message = format!("a blob can have at most {bytes_max} bytes (limits.upload_max)");
            return self.transfer.noted(Err(Error::new(ErrorKind::TooLarge, message)));
        }
        self.waiting.extend_from_slice(piece);
        if self.waiting.len() < WRITE_BYTES {
            return Ok(());
        }
        let written = self.flush().await;
        self.transfer.noted(written)
    }

    /// Makes the content durable, if it has the expected hash.
    ///
    /// # Errors
    /// `invalid` for a different hash or a malformed type; other errors when the disk fails.
    pub async fn finish(
        mut self,
        mime_type: String,
        expected: Option<BlobHash>,
    ) -> Result<StoredBlob> {
        let stored = self.store(mime_type, expected).await;
        let stored = self.transfer.noted(stored)?;
        self.transfer.end(None);
        Ok(stored)
    }

    async fn store(&mut self, mime_type: String, expected: Option<BlobHash>) -> Result<StoredBlob> {
        self.flush().await?;
        let writer = self.writer.take().ok_or_else(broken)?;
        let finish = move || writer.finish_as(expected, &mime_type).map_err(failure::write_blob);
        let stored = self.transfer.step(finish).await?;
        let (hash, size) = (stored.hash, stored.size);
        let (mime_type, is_new) = claim(&self.transfer.ctx, stored).await?;
        Ok(StoredBlob { hash, size, mime_type, is_new })
    }

    async fn flush(&mut self) -> Result<()> {
        let ctx = &self.transfer.ctx;
        // Not for every piece: a check of the disk costs more than writing a little.
        if self.size > self.n_checked {
            ctx.rooms.disk.check_account(&ctx.principal, self.size)?;
            if self.size >= WRITE_BYTES as u64 {
                ctx.rooms.disk.check_free(ROOM_BYTES).await?;
            }
            self.n_checked = self.size + ROOM_BYTES;
        }
        let mut writer = self.writer.take().ok_or_else(broken)?;
        let mut piece = std::mem::take(&mut self.waiting);
        let write = move || {
            writer.write(&piece).map_err(failure::write_blob)?;
            piece.clear();
            Ok((writer, piece))
        };
        let (writer, piece) = self.transfer.step(write).await?;
        (self.writer, self.waiting) = (Some(writer), piece);
        Ok(())
    }
}

/// One call whose content moves in pieces.
#[derive(Debug)]
struct Transfer {
    ctx: Context,
    call: NativeCall,
    admitted: ActiveCall,
    began: Instant,
    is_over: bool,
}

impl Transfer {
    fn begin(
        broker: &Broker,
        credential: &Credential,
        edge: Edge,
        request: ToolRequest,
    ) -> Result<Self> {
        let rooms = &broker.0;
        let (now, row) = (rooms.kernel.now(), request.row());
        let id = CallId::from_random(rooms.kernel.entropy.bytes());
        let envelope = RequestEnvelope::plain(request);
        let call = Call { credential, edge, envelope, request_id: None };
        let refused = |error| {
            rooms.kernel.auditor.refused(now, credential, (edge, row.name), id, &error);
            error
        };
        let principal = admit(&call, now).map_err(refused)?.clone();
        // Only the daemon's own limit: a slow connection may transfer a large file.
        let deadline = Deadline::smallest(now, None, None, rooms.kernel.config.call_ms_max);
        let admitted = rooms.calls.admit(id, principal.id, deadline).map_err(refused)?;
        let stop = admitted.stop.token.clone();
        let ctx = Context {
            rooms: rooms.clone(),
            principal: principal.clone(),
            tool: row.name,
            job: None,
            edge: Some(edge),
            stop,
        };
        let (request_id, repeat, trace) = (None, None, tracing::Span::current());
        let held = credential.session().map(|_| credential.clone());
        let call =
            NativeCall { id, row, principal, held, edge, deadline, request_id, repeat, trace };
        rooms.kernel.auditor.admitted(now, &call, None);
        Ok(Self { ctx, call, admitted, began: Instant::now(), is_over: false })
    }

    async fn find(&self, hash: BlobHash) -> Result<(u64, String)> {
        let own_type = check_readable(&self.ctx, hash).await?;
        let blobs = self.ctx.rooms.kernel.blobs.clone();
        let inspect = move || blobs.inspect(hash).map_err(failure::read_blob);
        let info = self.step(inspect).await?.ok_or_else(|| Error::not_found("blob", hash))?;
        Ok((info.size, own_type.unwrap_or(info.mime_type)))
    }

    /// Runs a closure that may block, unless the call is to stop.
    async fn step<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        if self.ctx.stop.is_cancelled() {
            return Err(self.admitted.stop.stopped(self.call.row.name).await);
        }
        self.ctx.rooms.kernel.blocking(work).await
    }

    /// Ends the call if the result is a failure.
    fn noted<T>(&mut self, result: Result<T>) -> Result<T> {
        if let Err(error) = &result {
            self.end(Some(error));
        }
        result
    }

    fn end(&mut self, error: Option<&Error>) {
        if !std::mem::replace(&mut self.is_over, true) {
            let rooms = &self.ctx.rooms;
            rooms.kernel.auditor.each(rooms.kernel.now(), &self.call, error, self.began);
        }
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        self.end(Some(&Error::cancelled("the caller left")));
    }
}

fn broken() -> Error {
    Error::invalid("an earlier piece could not be stored; start again")
}
