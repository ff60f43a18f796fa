//! Follows a call of any tool while it runs.

use std::pin::Pin;
use std::time::Duration;

use futures_util::{Stream, StreamExt, TryStreamExt};
use indicatif::ProgressBar;
use ringback_client::{Client, StreamItem};
use ringback_proto::ids::{JobId, StreamId};
use ringback_proto::tool::tools;
use ringback_proto::{CallOptions, Error, StreamChunk, ToolCall, ToolRequest, ToolResponse};
use serde::Serialize;
use tokio::time::Instant;

use crate::commands::call::{Answer, show};
use crate::failure::Failure;
use crate::progress;
use crate::screen::{Screen, one_line, size};

/// The items of a followed call of any tool.
type Items = Pin<Box<dyn Stream<Item = Result<StreamItem<ToolResponse>, Error>> + Send>>;

/// The state of a call when following stops.
#[derive(Debug)]
pub(crate) enum FollowEnd {
    /// The call has ended.
    Done(Box<ToolResponse>),
    /// The time is up, and the work continues.
    GoesOn(Option<JobId>),
}

/// An item of a stream in JSON.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Started { stream_id: StreamId, job_id: Option<JobId> },
    Chunk(StreamChunk),
    Result(Option<Answer>),
}

/// How much of a call is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputDetail {
    /// Everything it sends.
    All,
    /// Its answer, and its progress on a terminal.
    Answer,
}

macro_rules! open_any {
    ($($variant:ident($request:ident) -> $response:ident { $($rest:tt)* })*) => {
        /// Opens the stream of any native tool.
        fn open_native(
            client: &Client,
            request: ToolRequest,
            options: CallOptions,
        ) -> Result<Items, Error> {
            Ok(match request {
                $(ToolRequest::$variant(request) => Box::pin(
                    client.stream_with::<tools::$variant>(request, options)?.map_ok(any),
                ),)*
            })
        }
    };
}
ringback_proto::tool_table!(open_any);

/// Opens the stream of any tool.
fn open(client: &Client, call: ToolCall, options: CallOptions) -> Result<Items, Error> {
    match call {
        ToolCall::Native(request) => open_native(client, request, options),
        ToolCall::Named { name, arguments } => {
            let stream = client.stream_named(name, arguments, options)?;
            Ok(Box::pin(stream.map_ok(|item| mapped(item, ToolResponse::Passed))))
        }
    }
}

fn any<R: Into<ToolResponse>>(item: StreamItem<R>) -> StreamItem<ToolResponse> {
    mapped(item, Into::into)
}

fn mapped<R>(
    item: StreamItem<R>,
    response: impl FnOnce(R) -> ToolResponse,
) -> StreamItem<ToolResponse> {
    match item {
        StreamItem::Started { stream_id, job_id } => StreamItem::Started { stream_id, job_id },
        StreamItem::Chunk(chunk) => StreamItem::Chunk(chunk),
        StreamItem::End(end) => StreamItem::End(end.map(response)),
    }
}

/// Follows a call until its end.
pub(crate) async fn to_end(
    client: &Client,
    screen: Screen,
    call: ToolCall,
    options: CallOptions,
    shown: OutputDetail,
) -> Result<(), Failure> {
    // Where every chunk is a line of its own, no bar stands in between.
    let bar = match shown {
        OutputDetail::All => ProgressBar::hidden(),
        OutputDetail::Answer => progress::job(screen, call.name()),
    };
    let mut items = open(client, call, options)?;
    while let Some(item) = items.next().await {
        match item? {
            StreamItem::Started { stream_id, job_id } if shown == OutputDetail::All => {
                if screen.is_json() {
                    screen.item(&Line::Started { stream_id, job_id }, |_| String::new())?;
                } else if let Some(job_id) = job_id {
                    screen.remark(job_id);
                }
            }
            StreamItem::Started { .. } => {}
            StreamItem::Chunk(chunk) => show_chunk(screen, &bar, chunk, shown)?,
            StreamItem::End(response) => {
                bar.finish_and_clear();
                return end(screen, response, shown);
            }
        }
    }
    Err(Failure::Wrong("the stream ended without a final message".to_owned()))
}

fn show_chunk(
    screen: Screen,
    bar: &ProgressBar,
    chunk: StreamChunk,
    shown: OutputDetail,
) -> Result<(), Failure> {
    match shown {
        OutputDetail::All => {
            let text = screen.printable(&chunk_text(&chunk));
            screen.item(&Line::Chunk(chunk), |_| text)
        }
        OutputDetail::Answer => {
            move_bar(bar, &chunk);
            Ok(())
        }
    }
}

/// Shows a progress bar until the call ends, for at most `wait`; then lets the work continue.
pub(crate) async fn watched(
    client: &Client,
    screen: Screen,
    request: ToolRequest,
    options: CallOptions,
    wait: Duration,
) -> Result<FollowEnd, Failure> {
    let bar = progress::job(screen, request.row().name);
    let mut items = open_native(client, request, options)?;
    let until = Instant::now() + wait;
    let mut job = None;
    loop {
        let Ok(next) = tokio::time::timeout_at(until, items.next()).await else {
            bar.finish_and_clear();
            // Closing lets the job continue; dropping the stream before that would cancel it.
            client.clone().close().await;
            return Ok(FollowEnd::GoesOn(job));
        };
        match next.transpose()? {
            Some(StreamItem::Started { job_id, .. }) => job = job_id,
            Some(StreamItem::Chunk(chunk)) => move_bar(&bar, &chunk),
            Some(StreamItem::End(Some(response))) => {
                bar.finish_and_clear();
                return Ok(FollowEnd::Done(Box::new(response)));
            }
            Some(StreamItem::End(None)) | None => {
                return Err(Failure::Wrong("the stream ended without an answer".to_owned()));
            }
        }
    }
}

/// Updates a progress bar from a chunk.
pub(crate) fn move_bar(bar: &ProgressBar, chunk: &StreamChunk) {
    match chunk {
        StreamChunk::Progress { percent, message } => progress::job_at(bar, *percent, message),
        StreamChunk::LogLine { .. } => bar.println(one_line(&chunk_text(chunk))),
        StreamChunk::PartialAudio { .. }
        | StreamChunk::PartialMidi { .. }
        | StreamChunk::PartialContent { .. } => {}
    }
}

/// Formats a chunk as one line of text.
pub(crate) fn chunk_text(chunk: &StreamChunk) -> String {
    match chunk {
        StreamChunk::Progress { percent, message } => format!("{percent:>3.0}% {message}"),
        StreamChunk::LogLine { level, message } => format!("{level:?}: {message}").to_lowercase(),
        StreamChunk::PartialAudio { samples, sample_rate, channels } => {
            let bytes = size(samples.0.len() as u64);
            format!("audio: {bytes}, {sample_rate} Hz, {channels} channels")
        }
        StreamChunk::PartialMidi { events } => format!("midi: {} events", events.len()),
        StreamChunk::PartialContent { data, mime_type } => {
            format!("{mime_type}: {}", size(data.0.len() as u64))
        }
    }
}

fn end(screen: Screen, response: Option<ToolResponse>, shown: OutputDetail) -> Result<(), Failure> {
    match response {
        Some(response) if shown == OutputDetail::Answer || !screen.is_json() => {
            show(screen, response)
        }
        response => {
            let answer = response.map(Answer::of).transpose()?;
            screen.item(&Line::Result(answer), |_| String::new())
        }
    }
}
