//! Image builds.

use std::path::PathBuf;

use bollard::body_try_stream;
use bollard::errors::Error;
use bollard::models::BuildInfo;
use bollard::query_parameters::{BuildImageOptions, BuilderVersion};
use futures_util::StreamExt as _;
use tokio::sync::mpsc;
use tokio_util::io::ReaderStream;

use super::context;
use super::engine::{Engine, is_image_name};
use crate::error::{BuildError, EngineError};
use crate::image::{BuildNetwork, BuildSpec, BuiltImage};

/// Builds an image. The engine cancels a build when its connection closes.
pub(super) async fn build(
    engine: Engine,
    scratch_dir: PathBuf,
    spec: BuildSpec,
    log: mpsc::Sender<String>,
) -> Result<BuiltImage, BuildError> {
    if !is_image_name(&spec.tag) {
        let said = format!("`{}` is not an image name", spec.tag);
        return Err(EngineError::Refused { action: "build an image", said }.into());
    }
    let dir = spec.dir.clone();
    let packed = tokio::task::spawn_blocking(move || context::pack(&dir, &scratch_dir));
    let archive = packed.await.map_err(|_| EngineError::Closed)??;
    let archive = tokio::fs::File::from_std(archive);
    let body = body_try_stream(ReaderStream::new(archive));
    let mut steps = Box::pin(engine.client().build_image(options(&spec), None, Some(body)));
    let mut id = None;
    while let Some(step) = steps.next().await {
        let step = step.map_err(|error| failed(&engine, error))?;
        id = step.aux.as_ref().and_then(|image| image.id.clone()).or(id);
        tell(&log, step).await?;
    }
    let image = match id {
        Some(id) => Some(id),
        // Not every engine reports it during the build.
        None => engine.image(&spec.tag).await?.and_then(|image| image.id),
    };
    let id = image
        .ok_or_else(|| BuildError::Step { said: "the built image was not found".to_owned() })?;
    Ok(BuiltImage { id })
}

fn options(spec: &BuildSpec) -> BuildImageOptions {
    let network = match spec.network {
        BuildNetwork::None => "none",
        BuildNetwork::Host => "host",
    };
    BuildImageOptions {
        dockerfile: "Dockerfile".to_owned(),
        t: Some(spec.tag.clone()),
        networkmode: Some(network.to_owned()),
        rm: true,
        forcerm: true,
        version: BuilderVersion::BuilderV1,
        ..BuildImageOptions::default()
    }
}

/// Passes on the output of a step; engines also report failures this way.
async fn tell(log: &mpsc::Sender<String>, step: BuildInfo) -> Result<(), BuildError> {
    if let Some(error) = step.error_detail {
        let said = error.message.unwrap_or_else(|| "a step failed".to_owned());
        return Err(BuildError::Step { said });
    }
    let said = step.stream.or(step.status).unwrap_or_default();
    for line in said.lines().filter(|line| !line.trim().is_empty()) {
        // The image is still wanted if no one reads the log.
        drop(log.send(line.to_owned()).await);
    }
    Ok(())
}

fn failed(engine: &Engine, error: Error) -> BuildError {
    if let Error::DockerStreamError { error } = error {
        return BuildError::Step { said: error };
    }
    engine.told("build an image")(error).into()
}
