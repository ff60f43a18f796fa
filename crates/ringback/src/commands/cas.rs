//! `ringback cas`: content in and out, by its hash.

mod transfer;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use ringback_client::Client;
use ringback_proto::ids::BlobHash;
use ringback_proto::request::{CasInspectRequest, CasInspectedResponse, CasStatsRequest};
use ringback_proto::tool::tools::{CasInspect, CasStats};

use crate::config::Environment;
use crate::connect::ConnectArgs;
use crate::failure::Failure;
use crate::screen::{Screen, size};

/// `ringback cas`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ringback cas put song.mid\n  tar c src | ringback cas put - --mime \
                  application/x-tar\n  ringback cas get HASH -o song.mid\n  ringback cas get HASH --offset 0 \
                  --length 100\n  ringback cas inspect HASH\n\nContent is found by its hash; `ringback artifacts` \
                  lists what was given a name."
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

/// What to do with content.
#[derive(Debug, Subcommand)]
pub enum CasAction {
    /// Store a file and print its hash
    Put {
        /// The file; `-` is standard input
        file: PathBuf,
        /// Its type [default: by the file's name]
        #[arg(long, value_name = "TYPE")]
        mime: Option<String>,
    },
    /// Get content
    Get(GetArgs),
    /// Tell whether content is stored, its size, its type and how it begins
    Inspect {
        /// The content's hash
        hash: BlobHash,
    },
    /// Count what is stored
    Stat,
}

/// Which content, which part of it, and where to.
#[derive(Debug, Args)]
pub struct GetArgs {
    /// The content's hash
    pub hash: BlobHash,
    /// File to write, whole or not at all [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Where to start
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub offset: u64,
    /// How much at most
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
    Err(Failure::Wrong(format!("there is no content {hash}, or it is not yours to read")))
}

fn inspected(screen: Screen, found: &CasInspectedResponse) -> String {
    let mut pairs = vec![
        ("hash", found.hash.to_string()),
        ("stored", if found.exists { "yes" } else { "no" }.to_owned()),
    ];
    pairs.extend(found.size.map(|bytes| ("size", size(bytes))));
    pairs.extend(found.mime_type.clone().map(|mime_type| ("type", mime_type)));
    pairs.extend(found.preview.as_ref().map(|text| ("begins", format!("{text:?}"))));
    screen.pairs(&pairs)
}
