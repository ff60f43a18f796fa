//! What a music tool gets of the broker.

use std::fs::File;
use std::io::{Seek as _, SeekFrom};

use bytes::Bytes;
use camino::Utf8Path;
use ringback_blobs::{Info, Reader, StoredContent};
use ringback_proto::ids::{BlobHash, JobId};
use ringback_proto::request::{ArtifactCreatedResponse, Lineage};
use ringback_proto::{Error, ErrorKind, Result, StreamChunk};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::failure;
use crate::handler::Context;
use crate::handlers::{artifact, cas};

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
#[derive(Debug, Clone)]
pub struct StudioContext(pub(super) Context);

impl StudioContext {
    /// Returns the job that the work belongs to, if any.
    #[must_use]
    pub fn job_id(&self) -> Option<JobId> {
        self.0.job.as_ref().map(|job| job.id)
    }

    /// Returns random bytes.
    #[must_use]
    pub fn random_bytes<const N: usize>(&self) -> [u8; N] {
        self.0.rooms.kernel.entropy.bytes()
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
        self.0.blocking(work).await
    }

    /// Reports progress, or sends a part of the result.
    pub async fn send(&self, chunk: StreamChunk) {
        self.0.send(chunk).await;
    }

    /// Returns the content with a hash, if the caller may read it.
    ///
    /// # Errors
    /// `not_found` also for content that the caller may not see.
    pub async fn content(&self, hash: BlobHash) -> Result<Content> {
        cas::check_readable(&self.0, hash).await?;
        Ok(Content(hash))
    }

    /// Checks the lineage of an artifact to be created.
    ///
    /// # Errors
    /// When a label is too long, or the caller does not see the parent.
    pub async fn check_lineage(&self, lineage: &Lineage) -> Result<()> {
        artifact::check_lineage(&self.0, lineage).await
    }

    /// Reads the whole of some content, up to a size limit.
    ///
    /// # Errors
    /// `too_large` beyond the limit; other errors when it cannot be read.
    pub fn read(&self, Content(hash): Content, bytes_max: u64) -> Result<Bytes> {
        let blobs = &self.0.rooms.kernel.blobs;
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
        self.0.rooms.kernel.blobs.open_blob(content.0).map_err(failure::read_blob)
    }

    /// Opens a file of this machine that lies in one of the allowed directories.
    ///
    /// # Errors
    /// When it does not exist, or lies elsewhere.
    pub fn open_file(&self, path: &str) -> Result<File> {
        let opened = self.0.rooms.kernel.roots.open_file(Utf8Path::new(path));
        opened.map_err(|error| failure::rooted(&error))
    }

    /// Opens a file that no other program sees and that is removed when it is closed.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn temporary_file(&self) -> Result<File> {
        tempfile::tempfile_in(&self.0.rooms.kernel.config.data_dir).map_err(failure::internal)
    }

    /// Stores content. It belongs to the caller once an artifact is made of it.
    ///
    /// # Errors
    /// When the disk is full or fails.
    pub fn store(&self, content: &[u8], mime_type: &str) -> Result<StoredContent> {
        self.0.rooms.kernel.blobs.put(content, mime_type).map_err(failure::write_blob)
    }

    /// Stores the content of a file, from its start; otherwise like [`Self::store`].
    ///
    /// # Errors
    /// When the disk is full or fails.
    pub fn store_file(&self, mut file: File, mime_type: &str) -> Result<StoredContent> {
        file.seek(SeekFrom::Start(0)).map_err(failure::internal)?;
        let mut writer = self.0.rooms.kernel.blobs.writer();
        let name = Utf8Path::new("a temporary file");
        while writer.read_piece(&mut file, name).map_err(failure::write_blob)? > 0 {}
        writer.finish(mime_type).map_err(failure::write_blob)
    }

    /// Makes an artifact of stored content, and the caller the owner of it and of its sources.
    ///
    /// # Errors
    /// When it cannot be stored.
    pub async fn create_artifact(
        &self,
        content: StoredContent,
        sources: &[StoredContent],
        lineage: Lineage,
        metadata: &(impl Serialize + Sync),
    ) -> Result<ArtifactCreatedResponse> {
        let metadata = rmp_serde::to_vec_named(metadata).map_err(failure::internal)?;
        let owned = sources.iter().chain(std::iter::once(&content));
        let records =
            owned.map(|stored| cas::uploaded(&self.0, stored, &stored.mime_type)).collect();
        let StoredContent { hash, size, mime_type, .. } = content;
        let info = Info { size, mime_type };
        artifact::create(&self.0, hash, info, lineage, Some(metadata.into()), records).await
    }
}
