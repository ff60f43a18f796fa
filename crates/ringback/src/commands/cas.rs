//! `ringback cas`: stores and retrieves content by its hash.

mod transfer;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use ringback_client::Client;
use ringback_proto::ids::BlobHash;
use ringback_proto::request::{CasInspectRequest, CasInspectedResponse, CasStatsRequest};
use ringback_proto::tool::tools::{CasInspect, CasStats};

use crate::config::Environment;
use crate::connection::ConnectArgs;
use crate::failure::Failure;
use crate::screen::{Screen, size};

/// `ringback cas`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ringback cas put song.mid\n  tar c src | ringback cas put - --mime \
                  application/x-tar\n  ringback cas get HASH -o song.mid\n  ringback cas get HASH --offset 0 \
                  --length 100\n  ringback cas inspect HASH\n\nContent is addressed by its hash; `ringback artifacts` \
                  lists artifacts made from it."
)]
pub struct CasArgs {
    /// What to do
    #[command(subcommand)]
    pub action: CasAction,
    /// Print one JSON document
    #[arg(long, global = true)]
    pub json: bool,
    /// The daemon.
    #[command(flatten)]
    pub connect: ConnectArgs,
}

/// Actions on content.
#[derive(Debug, Subcommand)]
pub enum CasAction {
    /// Store a file and print its hash
    Put {
        /// The file; `-` is standard input
        file: PathBuf,
        /// Media type [default: by file extension]
        #[arg(long, value_name = "TYPE")]
        mime: Option<String>,
    },
    /// Retrieve content
    Get(GetArgs),
    /// Show whether content is stored, its size and type, and how it starts
    Inspect {
        /// Hash of the content
        hash: BlobHash,
    },
    /// Show the number of blobs and their total size
    Stat,
}

/// A range of content and its destination.
#[derive(Debug, Args)]
pub struct GetArgs {
    /// Hash of the content
    pub hash: BlobHash,
    /// File to write, atomically [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// First byte
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub offset: u64,
    /// Maximum number of bytes
    #[arg(long, value_name = "BYTES")]
    pub length: Option<u64>,
}

pub(crate) async fn run(args: CasArgs, environment: &Environment) -> Result<(), Failure> {
    let screen = Screen::new(args.json);
    let target = args.connect.target(environment)?;
    target
        .run(async |client| match args.action {
            CasAction::Put { file, mime } => {
                let stored = transfer::put(client, screen, &file, mime).await?;
                screen.answer(&stored, |stored| {
                    stored.hash.map(|hash| hash.to_string()).unwrap_or_default()
                })
            }
            CasAction::Get(args) => transfer::get(client, screen, &args).await,
            CasAction::Inspect { hash } => inspect(client, screen, hash).await,
            CasAction::Stat => {
                let stats = client.call::<CasStats>(CasStatsRequest {}).await?;
                screen
                    .answer(&stats, |stats| format!("{} blobs, {}", stats.blobs, size(stats.bytes)))
            }
        })
        .await
}

async fn inspect(client: &Client, screen: Screen, hash: BlobHash) -> Result<(), Failure> {
    let found = client.call::<CasInspect>(CasInspectRequest { hash }).await?;
    screen.answer(&found, |found| inspected(screen, found))?;
    if found.exists {
        return Ok(());
    }
    Err(Failure::Wrong(format!("content {hash} not found, or not readable with your token")))
}

fn inspected(screen: Screen, found: &CasInspectedResponse) -> String {
    let mut pairs = vec![
        ("hash", found.hash.to_string()),
        ("stored", if found.exists { "yes" } else { "no" }.to_owned()),
    ];
    pairs.extend(found.size.map(|bytes| ("size", size(bytes))));
    pairs.extend(found.mime_type.clone().map(|mime_type| ("type", mime_type)));
    pairs.extend(found.preview.as_ref().map(|text| ("starts with", format!("{text:?}"))));
    screen.pairs(&pairs)
}
