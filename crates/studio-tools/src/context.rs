//! A call of a tool, and what every tool does with it: compute on a free core, and keep the result.

use std::sync::Arc;

use ringback_broker::studio::{StoredContent, StudioContext, internal};
use ringback_proto::ids::ArtifactId;
use ringback_proto::request::Lineage;
use ringback_proto::value::Value;
use ringback_proto::{Result, StreamChunk};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio_util::sync::CancellationToken;

use crate::Studio;

/// The context of one call.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    pub(crate) broker: StudioContext,
    pub(crate) studio: Arc<Studio>,
}

/// Waits for a core to compute on. The work keeps it until it has ended, even if its caller has
/// left.
pub(crate) async fn place(ctx: &Context) -> Result<OwnedSemaphorePermit> {
    Arc::clone(&ctx.studio.places).acquire_owned().await.map_err(internal)
}

/// Runs a closure on a thread of its own, when a core is free.
pub(crate) async fn compute<T: Send + 'static>(
    ctx: &Context,
    work: impl FnOnce(&Context, &CancellationToken) -> Result<T> + Send + 'static,
) -> Result<T> {
    let place = place(ctx).await?;
    let inside = ctx.clone();
    ctx.broker
        .blocking(move |stop| {
            let computed = work(&inside, stop);
            drop(place);
            computed
        })
        .await
}

/// The chunks between a computation and the caller's stream: enough that neither waits for the
/// other's scheduling, few enough that a slow reader slows the computation.
const CHUNKS_MAX: usize = 4;

/// Like [`compute`], and passes on the chunks that the closure sends, in order.
pub(crate) async fn compute_aloud<T: Send + 'static>(
    ctx: &Context,
    work: impl FnOnce(&Context, &mpsc::Sender<StreamChunk>, &CancellationToken) -> Result<T>
    + Send
    + 'static,
) -> Result<T> {
    let (sender, mut chunks) = mpsc::channel(CHUNKS_MAX);
    let computing = compute(ctx, move |ctx, stop| work(ctx, &sender, stop));
    tokio::pin!(computing);
    let computed = loop {
        tokio::select! {
            biased;
            Some(chunk) = chunks.recv() => ctx.broker.send(chunk).await,
            computed = &mut computing => break computed,
        }
    };
    while let Ok(chunk) = chunks.try_recv() {
        ctx.broker.send(chunk).await;
    }
    computed
}

/// Makes an artifact from stored content, with the tags that all of its kind have.
pub(crate) async fn keep(
    ctx: &Context,
    stored: StoredContent,
    mut lineage: Lineage,
    labels: &[&str],
    metadata: Value,
) -> Result<ArtifactId> {
    for label in labels {
        if !lineage.tags.iter().any(|tag| tag == label) {
            lineage.tags.push((*label).to_owned());
        }
    }
    let created = ctx.broker.create_artifact(stored, &[], lineage, &metadata).await?;
    Ok(created.artifact_id)
}

/// Builds a map from names and values.
pub(crate) fn map<'a>(entries: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    Value::Map(entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}
