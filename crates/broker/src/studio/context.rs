//! What a music tool gets of the broker.

use std::fs::File;
use std::io::{Seek as _, SeekFrom};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use camino::Utf8Path;
use ringback_blobs::{Info, Reader, StoredContent};
use ringback_proto::ids::{BlobHash, JobId};
use ringback_proto::request::{ArtifactCreatedResponse, Lineage, SourceRole};
use ringback_proto::{Error, ErrorKind, Result, StreamChunk};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::failure;
use crate::handler::Context;
use crate::handlers::artifact::{self, NewArtifact, Source};
use crate::handlers::cas;
use crate::sync::lock;

/// Content that the caller of a tool may read.
#[derive(Debug, Clone, Copy)]
pub struct Content(BlobHash);

impl Content {
    /// Returns its hash.
    #[must_use]
    pub const fn hash(self) -> BlobHash {
        self.0
    }
}

/// The context of one call of a music tool: content and artifacts within the rights of its caller,
/// its job, and threads that may block. What touches files and is not async blocks.
///
/// It keeps what the tool reads: an artifact has all of it as sources, without a word of the tool.
#[derive(Debug, Clone)]
pub struct StudioContext {
    ctx: Context,
    sources: Arc<Mutex<Vec<Source>>>,
}

impl StudioContext {
    pub(super) fn new(ctx: Context) -> Self {
        Self { ctx, sources: Arc::default() }
    }

    /// Returns the job that the work belongs to, if any.
    #[must_use]
    pub fn job_id(&self) -> Option<JobId> {
        self.ctx.job.as_ref().map(|job| job.id)
    }

    /// Returns random bytes.
    #[must_use]
    pub fn random_bytes<const N: usize>(&self) -> [u8; N] {
        self.ctx.rooms.kernel.entropy.bytes()
    }

    /// Runs a closure on a thread that may block. It should check the flag now and then: a job
    /// counts as stopped only when this has returned.
    ///
    /// # Errors
    /// Those of the closure, and a panic in it.
    pub async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&CancellationToken) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.ctx.blocking(work).await
    }

    /// Reports progress, or sends a part of the result.
    pub async fn send(&self, chunk: StreamChunk) {
        self.ctx.send(chunk).await;
    }

    /// Returns the content with a hash, if the caller may read it. It is a source of the artifacts
    /// that this call makes.
    ///
    /// # Errors
    /// `not_found` also for content that the caller may not see.
    pub async fn content(&self, role: SourceRole, hash: BlobHash) -> Result<Content> {
        cas::check_readable(&self.ctx, hash).await?;
        self.add_source(role, hash);
        Ok(Content(hash))
    }

    /// Records a source that is not stored content, such as a file of this machine, by the hash it
    /// would be stored with.
    pub fn add_source(&self, role: SourceRole, hash: BlobHash) {
        let (source, mut sources) = (Source::readable(role, hash), lock(&self.sources));
        if !sources.contains(&source) {
            sources.push(source);
        }
    }

    /// Checks the lineage of an artifact to be created.
    ///
    /// # Errors
    /// When a label is too long, or the caller does not see the parent.
    pub async fn check_lineage(&self, lineage: &Lineage) -> Result<()> {
        artifact::check_lineage(&self.ctx, lineage).await
    }

    /// Reads the whole of some content, up to a size limit.
    ///
    /// # Errors
    /// `too_large` beyond the limit; other errors when it cannot be read.
    pub fn read(&self, Content(hash): Content, bytes_max: u64) -> Result<Bytes> {
        let blobs = &self.ctx.rooms.kernel.blobs;
        let info = blobs.inspect(hash).map_err(failure::read_blob)?;
        let info = info.ok_or_else(|| Error::not_found("blob", hash))?;
        if info.size > bytes_max {
            let message = format!("`{hash}` has {} bytes, the limit is {bytes_max}", info.size);
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        blobs.read_range(hash, 0, info.size).map_err(failure::read_blob)
    }

    /// Opens content for reading.
    ///
    /// # Errors
    /// When it does not exist, or cannot be read.
    pub fn open(&self, content: Content) -> Result<Reader> {
        self.ctx.rooms.kernel.blobs.open_blob(content.0).map_err(failure::read_blob)
    }

    /// Opens a file of this machine that lies in one of the allowed directories.
    ///
    /// # Errors
    /// When it does not exist, or lies elsewhere.
    pub fn open_file(&self, path: &str) -> Result<File> {
        let opened = self.ctx.rooms.kernel.roots.open_file(Utf8Path::new(path));
        opened.map_err(|error| failure::rooted(&error))
    }

    /// Opens a file that no other program sees and that is removed when it is closed.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn temporary_file(&self) -> Result<File> {
        tempfile::tempfile_in(&self.ctx.rooms.kernel.config.data_dir).map_err(failure::internal)
    }

    /// Stores content. It belongs to the caller once an artifact is made of it.
    ///
    /// # Errors
    /// When the disk is full or fails.
    pub fn store(&self, content: &[u8], mime_type: &str) -> Result<StoredContent> {
        self.ctx.rooms.kernel.blobs.put(content, mime_type).map_err(failure::write_blob)
    }

    /// Stores the content of a file, from its start; otherwise like [`Self::store`].
    ///
    /// # Errors
    /// When the disk is full or fails.
    pub fn store_file(&self, mut file: File, mime_type: &str) -> Result<StoredContent> {
        file.seek(SeekFrom::Start(0)).map_err(failure::internal)?;
        let mut writer = self.ctx.rooms.kernel.blobs.writer();
        let name = Utf8Path::new("a temporary file");
        while writer.read_piece(&mut file, name).map_err(failure::write_blob)? > 0 {}
        writer.finish(mime_type).map_err(failure::write_blob)
    }

    /// Stores a text that the caller sent, as a source; otherwise like [`Self::store`].
    ///
    /// # Errors
    /// When the disk is full or fails.
    pub fn store_source(
        &self,
        role: SourceRole,
        content: &[u8],
        mime_type: &str,
    ) -> Result<StoredContent> {
        let stored = self.store(content, mime_type)?;
        self.add_source(role, stored.hash);
        Ok(stored)
    }

    /// Makes an artifact of stored content, and the caller the owner of it and of other content
    /// that was stored. Its sources are what this call has read so far.
    ///
    /// # Errors
    /// When it cannot be stored.
    pub async fn create_artifact(
        &self,
        content: StoredContent,
        others: &[StoredContent],
        lineage: Lineage,
        metadata: &(impl Serialize + Sync),
    ) -> Result<ArtifactCreatedResponse> {
        let metadata = rmp_serde::to_vec_named(metadata).map_err(failure::internal)?;
        let owned = others.iter().chain(std::iter::once(&content));
        let records =
            owned.map(|stored| cas::uploaded(&self.ctx, stored, &stored.mime_type)).collect();
        let StoredContent { hash: content_hash, size, mime_type, .. } = content;
        let (info, metadata) = (Info { size, mime_type }, Some(metadata.into()));
        let sources = lock(&self.sources).clone();
        let new = NewArtifact { content_hash, info, lineage, metadata, sources };
        artifact::create(&self.ctx, new, records).await
    }
}
