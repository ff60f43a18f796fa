//! `ringback image`: the configured images, for sandboxes made by Docker.

use clap::{Args, Subcommand};
use ringback_proto::ids::ProjectId;
use ringback_proto::request::{ConfigGetRequest, ImageRebuildRequest};
use ringback_proto::tool::tools::ConfigGet;
use ringback_proto::value::Value;
use ringback_proto::{CallOptions, ToolCall};

use crate::config::Environment;
use crate::connection::ConnectArgs;
use crate::failure::Failure;
use crate::followed_call::{self, OutputDetail};
use crate::screen::Screen;

/// `ringback image`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ringback image list\n  ringback image rebuild rust\n  ringback image rebuild \
                  --project proj_…\n  ringback project create app --image rust"
)]
pub struct ImageArgs {
    /// What to do
    #[command(subcommand)]
    pub action: ImageAction,
    /// Print JSON: one document, or one object per line of the build log
    #[arg(long, global = true)]
    pub json: bool,
    /// The daemon.
    #[command(flatten)]
    pub connect: ConnectArgs,
}

/// Actions on images.
#[derive(Debug, Subcommand)]
pub enum ImageAction {
    /// List configured images (`sandbox.images`)
    List,
    /// Rebuild an image and show the build log
    Rebuild {
        /// Name of the image in the configuration
        #[arg(required_unless_present = "project", conflicts_with = "project")]
        name: Option<String>,
        /// The image of this project
        #[arg(long, value_name = "PROJECT")]
        project: Option<ProjectId>,
    },
}

pub(crate) async fn run(args: ImageArgs, environment: &Environment) -> Result<(), Failure> {
    let screen = Screen::new(args.json);
    let target = args.connect.target(environment)?;
    target
        .run(async |client| match args.action {
            ImageAction::List => {
                let (section, key) = (Some("sandbox".to_owned()), Some("images".to_owned()));
                let images = client.call::<ConfigGet>(ConfigGetRequest { section, key }).await?;
                screen.answer(&images.value, |images| table(screen, images))
            }
            ImageAction::Rebuild { name, project } => {
                let request = ImageRebuildRequest { project_id: project, image: name };
                let call = ToolCall::Native(request.into());
                followed_call::to_end(
                    client,
                    screen,
                    call,
                    CallOptions::default(),
                    OutputDetail::All,
                )
                .await
            }
        })
        .await
}

fn table(screen: Screen, images: &Value) -> String {
    let images = if let Value::Map(images) = images { images.as_slice() } else { &[] };
    let text = |image: &Value, key: &str| match image.get(key) {
        Some(Value::Text(text)) => text.clone(),
        Some(_) | None => "-".to_owned(),
    };
    let rows = images
        .iter()
        .map(|(name, image)| [name.clone(), text(image, "dir"), text(image, "network")]);
    let none = "no images; configure one as `[sandbox.images.NAME]`";
    screen.table(["IMAGE", "DIRECTORY", "BUILD NETWORK"], rows, none)
}
