//! `ringback artifacts`: content with tags, a creator and a history.

mod lineage;

use clap::{Args, Subcommand};
use ringback_client::Client;
use ringback_proto::ids::{BlobHash, VariationSetId};
use ringback_proto::request::{
    AddAnnotationRequest, ArtifactCreateRequest, ArtifactGetRequest, ArtifactInfoResponse,
    ArtifactListRequest, ArtifactListResponse,
};
use ringback_proto::tool::tools::{AddAnnotation, ArtifactCreate, ArtifactGet, ArtifactList};
use ringback_proto::value::Value;

use self::lineage::Lineage;
use crate::config::Environment;
use crate::connection::ConnectArgs;
use crate::failure::Failure;
use crate::pick::ArtifactArg;
use crate::screen::{Screen, json_text, moment, one_line, size};

/// The largest page size.
const PAGE: u32 = 500;

/// `ringback artifacts`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ringback artifacts\n  ringback artifacts list --tag draft\n  ringback artifacts \
                  create HASH --tag draft --creator ada\n  ringback artifacts annotate art_… \"too loud\"\n  \
                  ringback artifacts lineage art_…\n\n\
                  `ringback cas put FILE` prints a HASH."
)]
pub struct ArtifactsArgs {
    /// What to do [default: list]
    #[command(subcommand)]
    pub action: Option<ArtifactsAction>,
    /// Print one JSON document
    #[arg(long, global = true)]
    pub json: bool,
    /// The daemon.
    #[command(flatten)]
    pub connect: ConnectArgs,
}

/// Actions on artifacts.
#[derive(Debug, Subcommand)]
pub enum ArtifactsAction {
    /// List artifacts, newest first
    List(ListArgs),
    /// Show an artifact
    Get {
        /// The artifact: its id, the start of it, or `last`
        id: ArtifactArg,
    },
    /// Create an artifact from stored content
    Create(CreateArgs),
    /// Show what an artifact was made from, and what was made from it
    Lineage {
        /// The artifact: its id, the start of it, or `last`
        id: ArtifactArg,
        /// Draw it as SVG
        #[arg(long, conflicts_with = "json")]
        svg: bool,
    },
    /// Add an annotation to an artifact
    Annotate {
        /// The artifact: its id, the start of it, or `last`
        id: ArtifactArg,
        /// The text
        message: String,
        /// Its author
        #[arg(long)]
        source: Option<String>,
        /// Its mood
        #[arg(long)]
        vibe: Option<String>,
    },
}

/// A selection of artifacts.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Only artifacts with this tag
    #[arg(long)]
    pub tag: Option<String>,
    /// Only artifacts by this creator
    #[arg(long)]
    pub creator: Option<String>,
    /// Maximum number of results
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub limit: u32,
}

/// A new artifact.
#[derive(Debug, Args)]
pub struct CreateArgs {
    /// Hash of the content
    pub hash: BlobHash,
    /// A tag; may be given several times
    #[arg(long = "tag", value_name = "TAG")]
    pub tags: Vec<String>,
    /// Its creator
    #[arg(long)]
    pub creator: Option<String>,
    /// The artifact it was made from
    #[arg(long, value_name = "ID")]
    pub parent: Option<ArtifactArg>,
    /// The set of variations it joins
    #[arg(long, value_name = "ID")]
    pub variation_set: Option<VariationSetId>,
    /// Any metadata, as JSON
    #[arg(long, value_name = "JSON", value_parser = json_value)]
    pub metadata: Option<Value>,
}

pub(crate) async fn run(args: ArtifactsArgs, environment: &Environment) -> Result<(), Failure> {
    let screen = Screen::new(args.json);
    let target = args.connect.target(environment)?;
    let default = ListArgs { tag: None, creator: None, limit: 50 };
    let action = args.action.unwrap_or(ArtifactsAction::List(default));
    target.run(async |client| act(client, screen, action).await).await
}

async fn act(client: &Client, screen: Screen, action: ArtifactsAction) -> Result<(), Failure> {
    match action {
        ArtifactsAction::List(args) => {
            let listed = list(client, args).await?;
            screen.answer(&listed, |listed| table(screen, listed))
        }
        ArtifactsAction::Get { id } => {
            let id = id.find(client).await?;
            let artifact = client.call::<ArtifactGet>(ArtifactGetRequest { id }).await?;
            let text = if screen.is_json() { String::new() } else { one(screen, &artifact)? };
            screen.answer(&artifact, |_| text)
        }
        ArtifactsAction::Create(args) => {
            let parent_id = match args.parent {
                Some(parent) => Some(parent.find(client).await?),
                None => None,
            };
            let request = ArtifactCreateRequest {
                content_hash: args.hash,
                metadata: args.metadata,
                tags: args.tags,
                creator: args.creator,
                parent_id,
                variation_set_id: args.variation_set,
            };
            let created = client.call::<ArtifactCreate>(request).await?;
            screen.answer(&created, |created| created.artifact_id.to_string())
        }
        ArtifactsAction::Lineage { id, svg } => {
            let lineage = Lineage::find(client, id.find(client).await?).await?;
            if svg {
                return screen.text(lineage.svg());
            }
            screen.answer(&lineage, |lineage| lineage.tree(screen))
        }
        ArtifactsAction::Annotate { id, message, source, vibe } => {
            let artifact_id = id.find(client).await?;
            let request = AddAnnotationRequest { artifact_id, message, source, vibe };
            let added = client.call::<AddAnnotation>(request).await?;
            screen.answer(&added, |added| added.annotation_id.to_string())
        }
    }
}

/// Fetches pages up to the limit.
async fn list(client: &Client, args: ListArgs) -> Result<ArtifactListResponse, Failure> {
    let ListArgs { tag, creator, limit } = args;
    let request = |limit: u32, cursor| ArtifactListRequest {
        tag: tag.clone(),
        creator: creator.clone(),
        limit: Some(limit),
        cursor,
    };
    let mut listed = client.call::<ArtifactList>(request(limit.min(PAGE), None)).await?;
    while let Some(cursor) = listed.next_cursor.clone() {
        let so_far = u32::try_from(listed.artifacts.len()).unwrap_or(u32::MAX);
        let Some(left @ 1..) = limit.checked_sub(so_far) else { break };
        let page = client.call::<ArtifactList>(request(left.min(PAGE), Some(cursor))).await?;
        listed.artifacts.extend(page.artifacts);
        listed.next_cursor = page.next_cursor;
        listed.count += page.count;
    }
    Ok(listed)
}

fn table(screen: Screen, listed: &ArtifactListResponse) -> String {
    let rows = listed.artifacts.iter().map(|artifact| {
        [
            artifact.id.to_string(),
            one_line(&artifact.mime_type),
            size(artifact.size),
            one_line(&artifact.creator),
            one_line(&artifact.tags.join(",")),
            moment(artifact.created_at),
        ]
    });
    let head = ["ARTIFACT", "TYPE", "SIZE", "CREATOR", "TAGS", "CREATED"];
    let more = if listed.next_cursor.is_some() { "\n… more with a larger `--limit`" } else { "" };
    screen.table(head, rows, "no artifacts") + more
}

fn one(screen: Screen, artifact: &ArtifactInfoResponse) -> Result<String, Failure> {
    let mut pairs = vec![
        ("artifact", artifact.id.to_string()),
        ("content", artifact.content_hash.to_string()),
        ("type", one_line(&artifact.mime_type)),
        ("size", size(artifact.size)),
        ("creator", one_line(&artifact.creator)),
        ("tags", one_line(&artifact.tags.join(","))),
        ("created", moment(artifact.created_at)),
    ];
    pairs.extend(artifact.tool.as_deref().map(|tool| ("tool", one_line(tool))));
    pairs.extend(artifact.job_id.map(|id| ("job", id.to_string())));
    pairs.extend(artifact.session_id.map(|id| ("session", id.to_string())));
    for source in &artifact.sources {
        let artifact = source.artifact_id.map(|id| id.to_string());
        let what = artifact.or_else(|| source.content_hash.map(|hash| hash.to_string()));
        let what = what.unwrap_or_else(|| "of another owner".to_owned());
        pairs.push(("made from", format!("{} {what}", source.role.as_str())));
    }
    pairs.extend(artifact.parent_id.map(|id| ("parent", id.to_string())));
    pairs.extend(artifact.variation_set_id.map(|id| ("variation of", id.to_string())));
    if let Some(metadata) = &artifact.metadata {
        pairs.push(("metadata", json_text(metadata, false)?));
    }
    for remark in &artifact.annotations {
        let (message, source) = (one_line(&remark.message), one_line(&remark.source));
        pairs.push(("annotation", format!("{message} ({source}, {})", moment(remark.created_at))));
    }
    Ok(screen.pairs(&pairs))
}

fn json_value(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))
}
