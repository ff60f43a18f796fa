//! `ringback garden picture`: the timeline as SVG.

use std::path::{Path, PathBuf};

use clap::Args;
use ringback_client::Client;
use ringback_edge_http::picture::{TimelinePicture, WIDTH, WIDTHS};
use ringback_proto::request::{GardenGetRegionsRequest, GardenStatusRequest};
use ringback_proto::tool::tools::{GardenGetRegions, GardenStatus};

use crate::failure::Failure;
use crate::screen::Screen;

/// `ringback garden picture`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ringback garden picture timeline.svg\n  ringback garden picture - --start 0 \
                  --end 32 > part.svg\n\nThe daemon draws the same at /v1/garden/timeline.svg."
)]
pub struct PictureArgs {
    /// Where to write it; `-` is standard output
    pub file: PathBuf,
    /// The first beat
    #[arg(long, value_name = "BEAT")]
    pub start: Option<f64>,
    /// The last beat
    #[arg(long, value_name = "BEAT")]
    pub end: Option<f64>,
    /// The width in pixels
    #[arg(long, value_name = "PIXELS", default_value_t = WIDTH, value_parser = width)]
    pub width: u32,
}

pub(super) async fn run(
    client: &Client,
    screen: Screen,
    args: &PictureArgs,
) -> Result<(), Failure> {
    let request = GardenGetRegionsRequest { start: args.start, end: args.end };
    let timeline = client.call::<GardenGetRegions>(request).await?;
    // A garden that does not run has no play head.
    let status = client.call::<GardenStatus>(GardenStatusRequest {}).await.ok();
    let position = status.map(|status| status.position_beats);
    let range = (args.start, args.end);
    let svg = TimelinePicture { timeline: &timeline, range, position, width: args.width }.svg();
    if args.file == Path::new("-") {
        return screen.text(svg.trim_end());
    }
    std::fs::write(&args.file, svg).map_err(|source| Failure::File {
        action: "write",
        path: args.file.clone(),
        source,
    })?;
    screen.remark(format_args!("wrote {}", args.file.display()));
    Ok(())
}

fn width(text: &str) -> Result<u32, String> {
    let width = text.parse().map_err(|_| "use a number of pixels".to_owned())?;
    if WIDTHS.contains(&width) {
        return Ok(width);
    }
    Err(format!("use {} to {} pixels", WIDTHS.start(), WIDTHS.end()))
}
