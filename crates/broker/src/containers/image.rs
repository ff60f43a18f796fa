//! Images: which one a project uses, whether it exists, and rebuilding it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use ringback_proto::chunk::LogLevel;
use ringback_proto::ids::ProjectId;
use ringback_proto::principal::{Principal, Target};
use ringback_proto::record::{ProjectImage, ProjectRecord};
use ringback_proto::request::{ImageRebuildRequest, ImageRebuiltResponse};
use ringback_proto::{Certainty, Error, ErrorKind, Result, StreamChunk};
use ringback_sandbox::{BuildError, BuildSpec, BuiltImage};
use tokio::sync::mpsc;

use super::{ImageName, ImageSource, Images};
use crate::confinement::{Boxes, Sandboxes};
use crate::failure;
use crate::handler::Context;
use crate::kernel::Kernel;
use crate::sync::lock;
use crate::workspaces::Workspaces;

/// Maximum length of an image reference.
const REFERENCE_CHARS_MAX: usize = 255;
/// Log lines between the engine and the caller's stream: a slow reader slows the build.
const LOG_LINES_MAX: usize = 64;
/// Last log lines in the error about a failed build.
const LAST_LINES_MAX: usize = 20;

/// An image that is being built.
struct ImageBuild<'a> {
    images: &'a Images,
    name: ImageName,
}

impl Drop for ImageBuild<'_> {
    fn drop(&mut self) {
        lock(&self.images.builds).remove(&self.name);
    }
}

impl Images {
    pub(crate) fn new(
        kernel: Arc<Kernel>,
        workspaces: Arc<Workspaces>,
        sandboxes: Arc<Sandboxes>,
    ) -> Self {
        Self { kernel, workspaces, sandboxes, builds: Mutex::default() }
    }

    /// Checks the image that a principal wants for a project.
    pub(crate) async fn wanted_image(
        &self,
        principal: &Principal,
        image: &str,
    ) -> Result<ProjectImage> {
        let boxes = self.sandboxes.boxes("an image").await?;
        check_images(&boxes, image)?;
        if self.kernel.config.containers.images.contains_key(image) {
            return Ok(ProjectImage::Named(image.to_owned()));
        }
        let what =
            format!("`{image}`, which is not among the configured images ({}),", self.known());
        ringback_core::policy::may_loosen(principal, &what)?;
        let is_plain = image.bytes().all(|byte| byte.is_ascii_graphic());
        if image.is_empty() || image.len() > REFERENCE_CHARS_MAX || !is_plain {
            let message =
                format!("`image` must have 1 to {REFERENCE_CHARS_MAX} characters, without spaces");
            return Err(Error::invalid_field("image", message));
        }
        Ok(ProjectImage::Reference(image.to_owned()))
    }

    /// Refuses a project whose image is not available, before anything is created for it.
    pub(crate) async fn check_image(&self, project: &ProjectRecord) -> Result<()> {
        if project.image.is_some() {
            let boxes = self.sandboxes.boxes("an image").await?;
            self.ready_image(&boxes, project).await?;
        }
        Ok(())
    }

    /// Returns the engine's name of the image for a project's sessions, if the project has one.
    pub(crate) async fn image_of_sessions(
        &self,
        project: &ProjectRecord,
    ) -> Result<Option<String>> {
        if project.image.is_none() {
            return Ok(None);
        }
        self.image_tag(&self.sandboxes.boxes("an image").await?, project)
    }

    /// Returns the engine's name of a project's image, if it has one. The image exists.
    pub(crate) async fn ready_image(
        &self,
        boxes: &Boxes,
        project: &ProjectRecord,
    ) -> Result<Option<String>> {
        let Some(image) = self.image_tag(boxes, project)? else { return Ok(None) };
        let is_there = boxes.sandbox.image_exists(&image).await;
        if is_there.map_err(|error| failed("look up", image.as_str(), &error))? {
            return Ok(Some(image));
        }
        let id = project.id;
        let message = match &project.image {
            Some(ProjectImage::Named(name)) => format!(
                "the image `{name}` of {id} is not built yet; build it with `image_rebuild`"
            ),
            Some(ProjectImage::Reference(_)) | None => format!(
                "the engine does not have the image `{image}` of {id}; pull it with `docker \
                 pull {image}`"
            ),
        };
        Err(Error::new(ErrorKind::Conflict, message))
    }

    /// Returns the engine's name of a project's image, if it has one.
    fn image_tag(&self, boxes: &Boxes, project: &ProjectRecord) -> Result<Option<String>> {
        let Some(image) = &project.image else { return Ok(None) };
        check_images(boxes, image.as_str())?;
        match image {
            ProjectImage::Reference(reference) => Ok(Some(reference.clone())),
            ProjectImage::Named(name) => self.source(name).map(|(name, _)| Some(name.tag())),
        }
    }

    fn source(&self, name: &str) -> Result<(&ImageName, &ImageSource)> {
        self.kernel.config.containers.images.get_key_value(name).ok_or_else(|| {
            let message = format!(
                "unknown image `{name}`: the configuration (sandbox.images) has {}",
                self.known()
            );
            Error::new(ErrorKind::NotFound, message)
        })
    }

    fn known(&self) -> String {
        let names: Vec<_> =
            self.kernel.config.containers.images.keys().map(ImageName::as_str).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    }

    /// Returns the image to build, if this principal may build it.
    async fn named_image(
        &self,
        principal: &Principal,
        request: &ImageRebuildRequest,
    ) -> Result<String> {
        match (request.project_id, &request.image) {
            (Some(project), None) => self.image_of(principal, project).await,
            (None, Some(image)) => match &principal.target {
                Target::Everything => Ok(image.clone()),
                Target::Projects(_) => {
                    let missing = "a token for all projects; set `project_id` instead";
                    Err(Error::forbidden("building an image by name", missing))
                }
            },
            (Some(_), Some(_)) | (None, None) => {
                let message = "set either `project_id` or `image`";
                Err(Error::invalid_field("image", message))
            }
        }
    }

    async fn image_of(&self, principal: &Principal, id: ProjectId) -> Result<String> {
        let project = self.workspaces.visible_project(principal, id).await?;
        match project.image {
            Some(ProjectImage::Named(name)) => Ok(name),
            Some(ProjectImage::Reference(reference)) => {
                let message = format!(
                    "the image `{reference}` of {id} is not built here; pull it with the engine's \
                     own tools, or add it to the configuration (sandbox.images)"
                );
                Err(Error::new(ErrorKind::Conflict, message))
            }
            None => {
                let message = format!("{id} has no image of its own to build");
                Err(Error::new(ErrorKind::Conflict, message))
            }
        }
    }

    /// Rebuilds an image, and sends the lines of its log. One build per image at a time.
    ///
    /// # Cancel safety
    /// Dropping the future ends the build.
    pub(crate) async fn rebuild_image(
        &self,
        ctx: &Context,
        request: &ImageRebuildRequest,
    ) -> Result<ImageRebuiltResponse> {
        let name = self.named_image(&ctx.principal, request).await?;
        let boxes = self.sandboxes.boxes("an image").await?;
        check_images(&boxes, &name)?;
        let (name, source) = self.source(&name)?;
        if !lock(&self.builds).insert(name.clone()) {
            let message = format!("the image `{name}` is already being built; wait for that build");
            return Err(Error::new(ErrorKind::Busy, message));
        }
        let building = ImageBuild { images: self, name: name.clone() };
        let spec =
            BuildSpec { dir: source.dir.clone().into(), tag: name.tag(), network: source.network };
        let built = build(ctx, &boxes, spec).await?;
        drop(building);
        Ok(ImageRebuiltResponse { image: name.to_string(), digest: built.id })
    }
}

async fn build(ctx: &Context, boxes: &Boxes, spec: BuildSpec) -> Result<BuiltImage> {
    let (log, mut lines) = mpsc::channel(LOG_LINES_MAX);
    let tag = spec.tag.clone();
    let building = boxes.sandbox.build_image(spec, log);
    tokio::pin!(building);
    let mut last = VecDeque::new();
    let built = loop {
        tokio::select! {
            biased;
            Some(line) = lines.recv() => tell(ctx, &mut last, line).await,
            built = &mut building => break built,
        }
    };
    while let Ok(line) = lines.try_recv() {
        tell(ctx, &mut last, line).await;
    }
    built.map_err(|error| not_built(&tag, &error, &last))
}

async fn tell(ctx: &Context, last: &mut VecDeque<String>, line: String) {
    if last.len() == LAST_LINES_MAX {
        last.pop_front();
    }
    last.push_back(line.clone());
    ctx.send(StreamChunk::LogLine { level: LogLevel::Info, message: line }).await;
}

/// Returns the error of a failed build, with the end of its log for callers without the stream.
fn not_built(tag: &str, error: &BuildError, last: &VecDeque<String>) -> Error {
    let mut message = format!("cannot build `{tag}`: {}", failure::chain(error));
    if !last.is_empty() {
        let lines: Vec<_> = last.iter().map(String::as_str).collect();
        message.push_str("\nthe last lines of its log:\n");
        message.push_str(&lines.join("\n"));
    }
    Error::new(ErrorKind::ToolFailed, message).with_certainty(Certainty::Ran)
}

fn failed(what: &str, image: &str, error: &dyn std::error::Error) -> Error {
    let message = format!("cannot {what} `{image}`: {}", failure::chain(error));
    Error::new(ErrorKind::ToolFailed, message).with_certainty(Certainty::NotStarted)
}

/// Refuses images where the backend is not a container engine.
fn check_images(boxes: &Boxes, image: &str) -> Result<()> {
    if boxes.has_images() {
        return Ok(());
    }
    let message = format!(
        "bubblewrap has no images: its sandboxes use the programs of this machine, so `{image}` \
         cannot be used; leave `image` out, or set `sandbox.backend = \"docker\"`"
    );
    Err(Error::new(ErrorKind::Conflict, message))
}
