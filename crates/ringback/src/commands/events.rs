//! `ringback events`: past and live events.

use std::collections::VecDeque;

use clap::Args;
use ringback_client::{Client, Gap, Notice};
use ringback_proto::Event;
use ringback_proto::event::{ClientToolCall, SequencedEvent};
use ringback_proto::garden::RegionChange;
use serde::Serialize;

use crate::config::Environment;
use crate::connection::{ConnectArgs, Target, interruptible};
use crate::failure::Failure;
use crate::feed::{Feed, check_types};
use crate::followed_call::chunk_text;
use crate::screen::{Screen, moment};

/// `ringback events`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ringback events\n  ringback events --follow\n  ringback events --follow --type \
                  job.state_changed --json\n\nGaps are reported: no event is missed silently."
)]
pub struct EventsArgs {
    /// Show events as they happen, until Ctrl-C
    #[arg(long, short)]
    pub follow: bool,
    /// Only events of this type; may be given several times
    #[arg(long = "type", value_name = "TYPE")]
    pub types: Vec<String>,
    /// Maximum number of events, the newest
    #[arg(long, value_name = "N", default_value_t = 50, conflicts_with = "follow")]
    pub limit: usize,
    /// Only events after this cursor
    #[arg(long, value_name = "CURSOR", conflicts_with = "follow")]
    pub after: Option<String>,
    /// Event endpoint [default: one port above the daemon's call endpoint, or the socket beside it]
    #[arg(long, value_name = "ENDPOINT", requires = "follow")]
    pub iopub: Option<String>,
    /// Print JSON: one document, or one object per event when following
    #[arg(long)]
    pub json: bool,
    /// The daemon.
    #[command(flatten)]
    pub connect: ConnectArgs,
}

/// The events the daemon still keeps.
#[derive(Debug, Default, Serialize)]
struct EventBatch {
    events: VecDeque<SequencedEvent>,
    cursor: String,
    missed: u64,
}

/// A gap in the followed events.
#[derive(Debug, Serialize)]
struct GapReport<'a> {
    missed: MissedRange<'a>,
}

#[derive(Debug, Serialize)]
struct MissedRange<'a> {
    topic: &'a str,
    first: u64,
    last: u64,
}

pub(crate) async fn run(args: EventsArgs, environment: &Environment) -> Result<(), Failure> {
    let screen = Screen::new(args.json);
    check_types(&args.types)?;
    let target = args.connect.target(environment)?;
    if args.follow {
        return interruptible(follow(&target, screen, &args)).await;
    }
    target
        .run(async |client| {
            let kept = kept(client, &args).await?;
            screen.answer(&kept, |kept| {
                let lines: Vec<_> = kept.events.iter().map(event_text).collect();
                if lines.is_empty() { "no events".to_owned() } else { lines.join("\n") }
            })?;
            if kept.missed > 0 {
                let missed = kept.missed;
                screen.remark(format_args!("{missed} older events are no longer kept"));
            }
            screen.remark(format_args!("continue with `ringback events --after {}`", kept.cursor));
            Ok(())
        })
        .await
}

async fn kept(client: &Client, args: &EventsArgs) -> Result<EventBatch, Failure> {
    let mut feed = Feed::after(client, &args.types, args.after.clone());
    let mut kept = EventBatch::default();
    loop {
        let page = feed.kept().await?;
        kept.cursor = page.cursor;
        kept.missed += page.missed.unwrap_or(0);
        if page.events.is_empty() {
            return Ok(kept);
        }
        kept.events.extend(page.events);
        while kept.events.len() > args.limit {
            kept.events.pop_front();
        }
    }
}

async fn follow(target: &Target, screen: Screen, args: &EventsArgs) -> Result<(), Failure> {
    let topics = if args.types.is_empty() {
        Event::TOPICS.map(str::to_owned).to_vec()
    } else {
        args.types.clone()
    };
    let mut subscriber = target.subscribe(args.iopub.as_deref(), topics).await?;
    screen.remark("following events; stop with Ctrl-C");
    loop {
        match subscriber.next().await? {
            Notice::Event(event) => screen.item(&event, event_text)?,
            Notice::Missed(gap) => screen.item(&missed(&gap), |_| gap_text(&gap))?,
            // It subscribes to events only.
            Notice::Data(_) => {}
            // An event type this build does not know.
            Notice::Other { topic, body } => {
                screen.remark(format_args!(
                    "{topic}: {} bytes that this build cannot read",
                    body.len()
                ));
            }
        }
    }
}

fn missed(gap: &Gap) -> GapReport<'_> {
    let (first, last) = (*gap.missed.start(), *gap.missed.end());
    GapReport { missed: MissedRange { topic: &gap.topic, first, last } }
}

fn gap_text(gap: &Gap) -> String {
    let n_missed = gap.missed.end().saturating_sub(*gap.missed.start()) + 1;
    format!(
        "missed {n_missed} events of {}; `ringback events --type {}` may still have them",
        gap.topic, gap.topic
    )
}

/// Formats an event as one line of text.
pub(crate) fn event_text(event: &SequencedEvent) -> String {
    let what = match &event.event {
        Event::JobStateChanged { job_id, tool, state } => {
            format!("{job_id} {tool} is {}", state.as_str())
        }
        Event::JobProgress { job_id, percent, message } => {
            format!("{job_id} {percent:.0}% {message}")
        }
        Event::StreamChunk { stream_id, chunk } => format!("{stream_id} {}", chunk_text(chunk)),
        Event::ArtifactCreated { artifact_id, mime_type, .. } => {
            format!("{artifact_id} {mime_type}")
        }
        Event::ToolsChanged { line, name, added, removed } => {
            format!("{line} `{name}`: {}", changes_text(added, removed))
        }
        Event::ClientToolRequest(call) | Event::ClientToolExecuting(call) => call_text(call),
        Event::ClientToolCompleted { call, .. } => call_text(call),
        Event::ClientToolFailed { call, error } => format!("{}: {error}", call_text(call)),
        Event::ClientToolRegistered(tools) | Event::ClientToolUnregistered(tools) => {
            format!("{}: {}", tools.client_id, tools.tool_ids.join(", "))
        }
        Event::SessionStateChanged { session_id, status, .. } => {
            format!("{session_id} is {}", status.as_str())
        }
        Event::StreamStarted { stream_id, tool, .. } => format!("{stream_id} of {tool}"),
        Event::StreamEnded { stream_id, data, .. } => {
            format!("{stream_id} with {data} pieces of data")
        }
        Event::GardenTransport(transport) => {
            format!("{} at beat {}", transport.state.as_str(), transport.position_beats)
        }
        Event::GardenRegion(region) => {
            let change = match region.change {
                RegionChange::Created => "is placed",
                RegionChange::Moved => "is moved",
                RegionChange::Deleted => "is deleted",
                RegionChange::Ready => "is ready",
                RegionChange::AwaitingApproval => "awaits approval",
                RegionChange::Rejected => "is rejected",
                RegionChange::Failed => "cannot be played",
            };
            format!("{} {change} at beat {}", region.region_id, region.position_beats)
        }
        Event::GardenTrouble(trouble) => {
            format!("at beat {}: {}", trouble.position_beats, trouble.cause)
        }
        Event::GardenPosition(position) => {
            format!("{} at beat {:.2}", position.state.as_str(), position.position_beats)
        }
    };
    format!("{} {:>6} {} {what}", moment(event.at_ms), event.seq, event.event.topic())
}

fn call_text(call: &ClientToolCall) -> String {
    format!("{} {}", call.request_id, call.tool)
}

fn changes_text(added: &[String], removed: &[String]) -> String {
    let added = added.iter().map(|name| format!("+{name}"));
    added.chain(removed.iter().map(|name| format!("-{name}"))).collect::<Vec<_>>().join(" ")
}
