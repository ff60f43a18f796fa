//! `ringback garden watch`: the timeline in a terminal, as it plays.

use std::io::{self, Write as _};

use clap::Args;
use console::Term;
use ringback_client::{Client, Notice, Subscriber};
use ringback_proto::Event;
use ringback_proto::request::{GardenGetRegionsRequest, GardenStatusRequest};
use ringback_proto::tool::tools::{GardenGetRegions, GardenStatus};

use super::view::View;
use crate::connection::{Target, interruptible};
use crate::failure::Failure;
use crate::screen::Screen;

/// The alternate screen without a cursor, and back.
const ENTER: &str = "\u{1b}[?1049h\u{1b}[?25l";
const LEAVE: &str = "\u{1b}[?25h\u{1b}[?1049l";
/// To the first column of the first row.
const HOME: &str = "\u{1b}[H";
/// Erases the rest of a row, and the rows below.
const REST_OF_ROW: &str = "\u{1b}[K";
const ROWS_BELOW: &str = "\u{1b}[J";

/// `ringback garden watch`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ringback garden watch\n  ringback garden watch --beats 64\n\nCtrl-C ends it; the \
                  garden plays on."
)]
pub struct WatchArgs {
    /// The beats in one row
    #[arg(long, value_name = "BEATS", default_value_t = 32, value_parser = clap::value_parser!(u32).range(4..=4096))]
    pub beats: u32,
    /// Event endpoint [default: one port above the daemon's call endpoint, or the socket beside it]
    #[arg(long, value_name = "ENDPOINT")]
    pub iopub: Option<String>,
}

pub(super) async fn run(target: &Target, screen: Screen, args: &WatchArgs) -> Result<(), Failure> {
    if screen.is_json() || !screen.can_redraw() {
        let text = "`garden watch` needs a terminal; for a program there are `ringback garden \
                    status --json` and `ringback events --follow --type garden.transport --json`";
        return Err(Failure::Usage(text.to_owned()));
    }
    let client = target.connect().await?;
    let topics = ["garden."].map(str::to_owned).to_vec();
    let subscriber = target.subscribe(args.iopub.as_deref(), topics).await?;
    let opened = Opened::new()?;
    let watched = interruptible(follow(&client, subscriber, args.beats)).await;
    drop(opened);
    client.close().await;
    match watched {
        // Ctrl-C is how watching ends.
        Err(Failure::Interrupted) => Ok(()),
        other => other,
    }
}

/// A terminal in use; it is given back whatever happens.
struct Opened;

impl Opened {
    fn new() -> Result<Self, Failure> {
        write(ENTER)?;
        Ok(Self)
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing.
        drop(write(LEAVE));
    }
}

async fn follow(client: &Client, mut subscriber: Subscriber, beats: u32) -> Result<(), Failure> {
    let mut view = View::new(f64::from(beats));
    refresh(client, &mut view).await?;
    loop {
        show(&view)?;
        match subscriber.next().await? {
            Notice::Event(event) => match event.event {
                Event::GardenPosition(position) => view.moved(&position),
                Event::GardenTransport(_) | Event::GardenRegion(_) => {
                    refresh(client, &mut view).await?;
                }
                Event::GardenTrouble(trouble) => view.trouble(&trouble),
                Event::JobStateChanged { .. }
                | Event::JobProgress { .. }
                | Event::StreamChunk { .. }
                | Event::ArtifactCreated { .. }
                | Event::ToolsChanged { .. }
                | Event::ClientToolRequest(_)
                | Event::ClientToolRegistered(_)
                | Event::ClientToolUnregistered(_)
                | Event::ClientToolExecuting(_)
                | Event::ClientToolCompleted { .. }
                | Event::ClientToolFailed { .. }
                | Event::SessionStateChanged { .. }
                | Event::StreamStarted { .. }
                | Event::StreamEnded { .. } => {}
            },
            // What was missed is in the timeline and the status.
            Notice::Missed(_) => refresh(client, &mut view).await?,
            Notice::Data(_) | Notice::Other { .. } => {}
        }
    }
}

/// Fetches the timeline and the state of the garden.
async fn refresh(client: &Client, view: &mut View) -> Result<(), Failure> {
    let timeline = client.call::<GardenGetRegions>(GardenGetRegionsRequest::default()).await?;
    // A garden that does not run plays nothing.
    let status = client.call::<GardenStatus>(GardenStatusRequest {}).await.ok();
    view.set(timeline, status);
    Ok(())
}

fn show(view: &View) -> Result<(), Failure> {
    let (height, width) = Term::stdout().size();
    let rows = view.rows(usize::from(width), usize::from(height));
    let text: Vec<String> = rows.into_iter().map(|row| format!("{row}{REST_OF_ROW}")).collect();
    write(&format!("{HOME}{}{ROWS_BELOW}", text.join("\r\n")))
}

fn write(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(Failure::Output)
}
