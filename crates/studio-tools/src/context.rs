//! A call of a tool, and what every tool does with it: compute on a free core, and keep the result.

use std::sync::Arc;

use ringback_broker::studio::{StoredContent, StudioContext, internal};
use ringback_proto::Result;
use ringback_proto::ids::ArtifactId;
use ringback_proto::request::Lineage;
use ringback_proto::value::Value;
use tokio::sync::OwnedSemaphorePermit;
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
