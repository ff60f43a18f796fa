//! `ringback graph`: what was made, and devices by name.

mod query;

use clap::{Args, Subcommand};
use ringback_client::Client;
use ringback_proto::request::{
    GraphBindRequest, GraphConnectRequest, GraphConnectionResponse, GraphContextRequest,
    GraphFindRequest, GraphHint, GraphIdentitiesResponse, GraphIdentityResponse, GraphTag,
    GraphTagRequest, HintKind,
};
use ringback_proto::tool::tools;

use crate::config::Environment;
use crate::connection::ConnectArgs;
use crate::failure::Failure;
use crate::screen::{Screen, moment, one_line};

/// `ringback graph`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ringback graph context --vibe warm\n  ringback graph bind jdxi \"Roland JD-Xi\" \
                  --hint midi_name=JD-Xi --hint usb_serial=42@0.6\n  ringback graph tag jdxi role lead\n  ringback \
                  graph connect jdxi out mixer \"in 1\"\n  ringback graph find --hint midi_name=JD-Xi"
)]
pub struct GraphArgs {
    /// What to do [default: context]
    #[command(subcommand)]
    pub action: Option<GraphAction>,
    /// Print one JSON document
    #[arg(long, global = true)]
    pub json: bool,
    /// The daemon.
    #[command(flatten)]
    pub connect: ConnectArgs,
}

/// Actions on the graph.
#[derive(Debug, Subcommand)]
pub enum GraphAction {
    /// Create an identity, or give it a new name and more hints
    Bind {
        /// Its id: a name of your choice
        id: String,
        /// Its name for people
        name: String,
        /// What it is recognised by; may be given several times
        #[arg(long = "hint", value_name = "KIND=VALUE[@CONFIDENCE]", value_parser = hint)]
        hints: Vec<GraphHint>,
    },
    /// Add a tag to an identity
    Tag {
        /// The identity
        identity: String,
        /// The namespace of the tag
        namespace: String,
        /// The value of the tag
        value: String,
    },
    /// Connect a port of an identity with a port of another
    Connect {
        /// The identity that sends
        from: String,
        /// Its port
        from_port: String,
        /// The identity that receives
        to: String,
        /// Its port
        to_port: String,
        /// What carries the signal
        #[arg(long)]
        transport: Option<String>,
    },
    /// Find identities, newest first
    Find(FindArgs),
    /// Run a query in SQL over what you may see
    Query(query::QueryArgs),
    /// Describe what was made, what failed and what waits
    Context(ContextArgs),
}

/// A selection of identities.
#[derive(Debug, Args)]
pub struct FindArgs {
    /// A part of the name
    #[arg(long)]
    pub name: Option<String>,
    /// The namespace of a tag
    #[arg(long, value_name = "NAMESPACE")]
    pub tag_namespace: Option<String>,
    /// The value of a tag
    #[arg(long, value_name = "VALUE")]
    pub tag_value: Option<String>,
    /// A hint; may be given several times
    #[arg(long = "hint", value_name = "KIND=VALUE[@CONFIDENCE]", value_parser = hint)]
    pub hints: Vec<GraphHint>,
    /// Maximum number of results
    #[arg(long, value_name = "N")]
    pub limit: Option<u32>,
    /// Where the previous page ended
    #[arg(long)]
    pub cursor: Option<String>,
}

/// What to describe.
#[derive(Debug, Default, Args)]
pub struct ContextArgs {
    /// Maximum number of artifacts
    #[arg(long, value_name = "N")]
    pub limit: Option<u32>,
    /// Only artifacts with this tag
    #[arg(long)]
    pub tag: Option<String>,
    /// Only artifacts by this creator
    #[arg(long)]
    pub creator: Option<String>,
    /// Only artifacts with these words in a remark, a tag or the creator
    #[arg(long, value_name = "WORDS")]
    pub vibe: Option<String>,
    /// Only what happened in the last minutes
    #[arg(long, value_name = "MINUTES")]
    pub within: Option<u32>,
    /// Leave out annotations
    #[arg(long)]
    pub without_annotations: bool,
    /// Include metadata
    #[arg(long)]
    pub metadata: bool,
}

pub(crate) async fn run(args: GraphArgs, environment: &Environment) -> Result<(), Failure> {
    let screen = Screen::new(args.json);
    let target = args.connect.target(environment)?;
    let action = args.action.unwrap_or_else(|| GraphAction::Context(ContextArgs::default()));
    target.run(async |client| act(client, screen, action).await).await
}

async fn act(client: &Client, screen: Screen, action: GraphAction) -> Result<(), Failure> {
    match action {
        GraphAction::Query(args) => query::run(client, screen, args).await,
        GraphAction::Bind { id, name, hints } => {
            let request = GraphBindRequest { id, name, hints };
            let bound = client.call::<tools::GraphBind>(request).await?;
            screen.answer(&bound, |bound| identity(screen, bound))
        }
        GraphAction::Tag { identity, namespace, value } => {
            let request = GraphTagRequest { identity_id: identity, namespace, value };
            let tags = client.call::<tools::GraphTag>(request).await?;
            screen.answer(&tags, |tags| {
                let row = |tag: &GraphTag| [one_line(&tag.namespace), one_line(&tag.value)];
                screen.table(["NAMESPACE", "VALUE"], tags.tags.iter().map(row), "no tags")
            })
        }
        GraphAction::Connect { from, from_port, to, to_port, transport } => {
            let request = GraphConnectRequest {
                from_identity: from,
                from_port,
                to_identity: to,
                to_port,
                transport,
            };
            let made = client.call::<tools::GraphConnect>(request).await?;
            screen.answer(&made, |made| connection(screen, made))
        }
        GraphAction::Find(args) => {
            let request = GraphFindRequest {
                name: args.name,
                tag_namespace: args.tag_namespace,
                tag_value: args.tag_value,
                hints: args.hints,
                limit: args.limit,
                cursor: args.cursor,
            };
            let found = client.call::<tools::GraphFind>(request).await?;
            screen.answer(&found, |found| table(screen, found))
        }
        GraphAction::Context(args) => {
            let request = GraphContextRequest {
                limit: args.limit,
                tag: args.tag,
                creator: args.creator,
                vibe_search: args.vibe,
                within_minutes: args.within,
                include_annotations: Some(!args.without_annotations),
                include_metadata: Some(args.metadata),
            };
            let told = client.call::<tools::GraphContext>(request).await?;
            screen.answer(&told, |told| screen.printable(told.context.trim_end()))
        }
    }
}

fn identity(screen: Screen, bound: &GraphIdentityResponse) -> String {
    let mut pairs = vec![
        ("identity", one_line(&bound.id)),
        ("name", one_line(&bound.name)),
        ("created", moment(bound.created_at)),
    ];
    for hint in &bound.hints {
        let (kind, value) = (hint.kind.as_str(), one_line(&hint.value));
        pairs.push(("hint", format!("{kind}={value}@{}", hint.confidence)));
    }
    screen.pairs(&pairs)
}

fn connection(screen: Screen, made: &GraphConnectionResponse) -> String {
    let mut pairs = vec![
        ("from", format!("{} {}", one_line(&made.from_identity), one_line(&made.from_port))),
        ("to", format!("{} {}", one_line(&made.to_identity), one_line(&made.to_port))),
        ("created", moment(made.created_at)),
    ];
    pairs.extend(made.transport.as_deref().map(|by| ("transport", one_line(by))));
    screen.pairs(&pairs)
}

fn table(screen: Screen, found: &GraphIdentitiesResponse) -> String {
    let rows = found.identities.iter().map(|identity| {
        let tags: Vec<_> =
            identity.tags.iter().map(|tag| format!("{}:{}", tag.namespace, tag.value)).collect();
        let hints: Vec<_> = identity
            .hints
            .iter()
            .map(|hint| format!("{}={}", hint.kind.as_str(), hint.value))
            .collect();
        [
            one_line(&identity.id),
            one_line(&identity.name),
            (if identity.yours { "yes" } else { "no" }).to_owned(),
            identity.matches.map_or("-", |matches| matches.as_str()).to_owned(),
            one_line(&tags.join(",")),
            one_line(&hints.join(",")),
            moment(identity.created_at),
        ]
    });
    let head = ["IDENTITY", "NAME", "YOURS", "MATCH", "TAGS", "HINTS", "CREATED"];
    let table = screen.table(head, rows, "no identities");
    match &found.next_cursor {
        Some(cursor) => format!("{table}\n… more with `--cursor {cursor}`"),
        None => table,
    }
}

/// Reads `KIND=VALUE` with an optional `@CONFIDENCE`.
fn hint(text: &str) -> Result<GraphHint, String> {
    let kinds = || HintKind::ALL.map(HintKind::as_str).join(", ");
    let (kind, value) =
        text.split_once('=').ok_or_else(|| "a hint is KIND=VALUE[@CONFIDENCE]".to_owned())?;
    let found = HintKind::ALL.into_iter().find(|known| known.as_str() == kind);
    let kind = found.ok_or_else(|| format!("unknown kind `{kind}`; the kinds are {}", kinds()))?;
    let with_confidence = value.rsplit_once('@').and_then(|(value, confidence)| {
        confidence.parse().ok().map(|confidence: f64| (value, confidence))
    });
    let (value, confidence) =
        with_confidence.map_or((value, None), |(value, confidence)| (value, Some(confidence)));
    Ok(GraphHint { kind, value: value.to_owned(), confidence })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_has_a_known_kind_a_value_and_perhaps_a_confidence() {
        let hinted = |text| hint(text).map(|hint| (hint.kind, hint.value, hint.confidence));
        let serial =
            |value: &str, confidence| Ok((HintKind::UsbSerial, value.to_owned(), confidence));
        assert_eq!(hinted("usb_serial=42"), serial("42", None));
        assert_eq!(hinted("usb_serial=a=b@0.5"), serial("a=b", Some(0.5)));
        assert_eq!(hinted("usb_serial=me@home"), serial("me@home", None));
        assert!(hinted("usb_serial").is_err());
        assert!(hinted("bluetooth=1").unwrap_err().contains("pipewire_alsa_path"));
    }
}
