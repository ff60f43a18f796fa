//! `ringback garden export`: the timeline as an audio file.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use futures_util::StreamExt as _;
use ringback_client::{Client, StreamItem};
use ringback_proto::StreamChunk;
use ringback_proto::request::{
    ArtifactsCreatedResponse, GardenExportRequest, MadeArtifact, SampleFormat,
};
use ringback_proto::tool::tools::GardenExport;
use serde::Serialize;

use crate::failure::Failure;
use crate::progress;
use crate::screen::Screen;

/// `ringback garden export`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ringback garden export song.wav\n  ringback garden export chorus.flac --start 16 \
                  --end 48\n  ringback garden export take.wav --format f32 --sample-rate 96000\n\nThe loop is not \
                  repeated in the file. The file also stays with the daemon, as an artifact."
)]
pub struct ExportArgs {
    /// Where to write it; `.flac` makes a FLAC file
    pub file: PathBuf,
    /// The beat at which to start
    #[arg(long, value_name = "BEAT")]
    pub start: Option<f64>,
    /// The beat at which to end [default: where the last region has ended]
    #[arg(long, value_name = "BEAT")]
    pub end: Option<f64>,
    /// The sample and file format [default: s16, or flac16 for a `.flac` file]
    #[arg(long, value_enum)]
    pub format: Option<FormatChoice>,
    /// Frames per second [default: those of the device]
    #[arg(long, value_name = "HZ")]
    pub sample_rate: Option<u32>,
    /// A tag of the artifact; may be repeated
    #[arg(long = "tag", value_name = "TAG")]
    pub tags: Vec<String>,
}

/// A sample and file format.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum FormatChoice {
    /// 16-bit integers in a WAV file
    S16,
    /// 24-bit integers in a WAV file
    S24,
    /// 32-bit floats in a WAV file
    F32,
    /// 16-bit integers in a FLAC file
    Flac16,
    /// 24-bit integers in a FLAC file
    Flac24,
}

impl From<FormatChoice> for SampleFormat {
    fn from(choice: FormatChoice) -> Self {
        match choice {
            FormatChoice::S16 => Self::S16,
            FormatChoice::S24 => Self::S24,
            FormatChoice::F32 => Self::F32,
            FormatChoice::Flac16 => Self::Flac16,
            FormatChoice::Flac24 => Self::Flac24,
        }
    }
}

/// A file that was written.
#[derive(Debug, Serialize)]
struct Exported<'a> {
    file: &'a Path,
    #[serde(flatten)]
    artifact: MadeArtifact,
}

pub(super) async fn run(client: &Client, screen: Screen, args: ExportArgs) -> Result<(), Failure> {
    let is_flac = args.file.extension().is_some_and(|suffix| suffix.eq_ignore_ascii_case("flac"));
    let request = GardenExportRequest {
        start: args.start,
        end: args.end,
        format: args.format.map(Into::into).or(is_flac.then_some(SampleFormat::Flac16)),
        sample_rate: args.sample_rate,
        tags: args.tags,
        creator: None,
        parent_id: None,
        variation_set_id: None,
    };
    // Before the work: a file that cannot be written should not cost a render.
    let file = beside(&args.file)?;
    let made = rendered(client, screen, request).await?;
    let artifact = made.artifacts.into_iter().next();
    let artifact =
        artifact.ok_or_else(|| Failure::Wrong("the daemon exported no file".to_owned()))?;
    let failed = |source| Failure::File { action: "write", path: args.file.clone(), source };
    let sink = file.reopen().map_err(failed)?;
    client.download(artifact.content_hash, tokio::fs::File::from_std(sink)).await?;
    file.persist(&args.file).map_err(|error| failed(error.error))?;
    let exported = Exported { file: &args.file, artifact };
    screen.answer(&exported, |exported| {
        let seconds = exported.artifact.duration_seconds.unwrap_or_default();
        let (file, id) = (exported.file.display(), exported.artifact.artifact_id);
        format!("{seconds:.1} s in {file} ({id})")
    })
}

/// Makes a file beside the final one, so that a partial file is never visible.
fn beside(path: &Path) -> Result<tempfile::NamedTempFile, Failure> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    let made = tempfile::NamedTempFile::new_in(dir.unwrap_or_else(|| Path::new(".")));
    made.map_err(|source| Failure::File { action: "write", path: path.to_owned(), source })
}

async fn rendered(
    client: &Client,
    screen: Screen,
    request: GardenExportRequest,
) -> Result<ArtifactsCreatedResponse, Failure> {
    let bar = progress::job(screen, "garden_export");
    let mut items = client.stream::<GardenExport>(request)?;
    while let Some(item) = items.next().await {
        match item? {
            StreamItem::Chunk(StreamChunk::Progress { percent, message }) => {
                progress::job_at(&bar, percent, &message);
            }
            StreamItem::Started { .. } | StreamItem::Chunk(_) | StreamItem::End(None) => {}
            StreamItem::End(Some(made)) => {
                bar.finish_and_clear();
                return Ok(made);
            }
        }
    }
    Err(Failure::Wrong("the export ended without an answer".to_owned()))
}
