//! Music: SoundFonts, rendering, analysis, and music services. The studio computes on its own
//! threads, at most one per core, so that calls are answered while it is busy.

mod analysis;
mod compose;
mod failure;
mod font;
mod generate;
mod listen;
mod render;
mod service;

use std::sync::Arc;

use bytes::Bytes;
use ringback_blobs::{Info, Stored};
use ringback_music_services::Services;
use ringback_proto::ids::BlobHash;
use ringback_proto::request::Lineage;
use ringback_proto::value::Value;
use ringback_proto::{Error, ErrorKind, Result};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::artifact::create;
use super::cas::uploaded;
use crate::config::StudioSettings;
use crate::failure::{internal, read_blob};
use crate::handler::Context;

/// The state of the studio.
#[derive(Debug)]
pub(crate) struct Studio {
    settings: StudioSettings,
    models: Arc<Services>,
    /// One permit per core.
    places: Arc<Semaphore>,
}

impl Studio {
    pub(crate) fn new(settings: StudioSettings, models: Arc<Services>) -> Self {
        let n_cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self { settings, models, places: Arc::new(Semaphore::new(n_cores)) }
    }
}

/// Waits for a core to compute on. The work keeps it until it has ended, even if its caller has
/// left.
async fn place(ctx: &Context) -> Result<OwnedSemaphorePermit> {
    Arc::clone(&ctx.rooms.studio.places).acquire_owned().await.map_err(internal)
}

/// Runs a closure on a thread of its own, when a core is free.
async fn compute<T: Send + 'static>(
    ctx: &Context,
    work: impl FnOnce(&Context, &CancellationToken) -> Result<T> + Send + 'static,
) -> Result<T> {
    let place = place(ctx).await?;
    let inside = ctx.clone();
    ctx.blocking(move |stop| {
        let computed = work(&inside, stop);
        drop(place);
        computed
    })
    .await
}

/// Reads the whole content of a blob, up to a size limit.
fn read_whole(ctx: &Context, hash: BlobHash, bytes_max: u64) -> Result<Bytes> {
    let blobs = &ctx.rooms.kernel.blobs;
    let info = blobs.inspect(hash).map_err(read_blob)?;
    let info = info.ok_or_else(|| Error::not_found("blob", hash))?;
    if info.size > bytes_max {
        let message = format!("`{hash}` has {} bytes, the limit is {bytes_max}", info.size);
        return Err(Error::new(ErrorKind::TooLarge, message));
    }
    blobs.read_range(hash, 0, info.size).map_err(read_blob)
}

/// Makes an artifact from stored content, with the tags that all of its kind have.
async fn keep(
    ctx: &Context,
    stored: Stored,
    mut lineage: Lineage,
    labels: &[&str],
    metadata: Value,
) -> Result<ringback_proto::ids::ArtifactId> {
    for label in labels {
        if !lineage.tags.iter().any(|tag| tag == label) {
            lineage.tags.push((*label).to_owned());
        }
    }
    let metadata = rmp_serde::to_vec_named(&metadata).map_err(internal)?;
    let upload = uploaded(ctx, &stored, &stored.mime_type);
    let info = Info { size: stored.size, mime_type: stored.mime_type };
    let created =
        create(ctx, stored.hash, info, lineage, Some(metadata.into()), vec![upload]).await?;
    Ok(created.artifact_id)
}

/// Builds a map from names and values.
fn map<'a>(entries: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    Value::Map(entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}
