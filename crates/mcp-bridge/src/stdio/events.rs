//! The streams of the daemon, as lines.

use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use ringback_mcp_wire::{Id, Limits, Message};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::daemon::Daemon;
use super::exchange::on_one_line;
use crate::Answer;
use crate::endpoint::DAEMON_BYTES_MAX;

/// The wait before reconnecting to the daemon's stream.
const RECONNECT: Duration = Duration::from_secs(1);

/// How a stream ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StreamEnd {
    /// With the expected answer.
    Answered,
    /// Without the expected answer.
    Ended,
    /// No one reads the output any more.
    NobodyReads,
}

/// Passes on the messages of a stream.
pub(super) async fn pump(
    stream: &mut Answer,
    waited_for: Option<&Id>,
    lines: &mpsc::Sender<String>,
) -> StreamEnd {
    while let Ok(Some(message)) = stream.next().await {
        let is_answer = is_answer(&message, waited_for);
        if lines.send(on_one_line(message)).await.is_err() {
            return StreamEnd::NobodyReads;
        }
        if is_answer {
            return StreamEnd::Answered;
        }
    }
    StreamEnd::Ended
}

/// The messages to the MCP session outside of any request, while it exists.
pub(super) async fn news(daemon: Arc<Daemon>, lines: mpsc::Sender<String>) {
    while let Some(session) = daemon.session().await {
        match daemon.listen(&session, None).await {
            Ok(mut stream) if stream.is_stream() => {
                if pump(&mut stream, None, &lines).await == StreamEnd::NobodyReads {
                    return;
                }
            }
            // This daemon has no such stream.
            Ok(refusal) if refusal.status() == StatusCode::METHOD_NOT_ALLOWED => return,
            Ok(_) | Err(_) => {}
        }
        sleep(RECONNECT).await;
    }
}

fn is_answer(message: &str, waited_for: Option<&Id>) -> bool {
    let limits = Limits { bytes_max: DAEMON_BYTES_MAX, ..Limits::default() };
    match Message::decode(message.as_bytes(), limits) {
        Ok(Message::Reply(reply)) => Some(&reply.id) == waited_for,
        Ok(Message::Request(_) | Message::Notification(_)) | Err(_) => false,
    }
}
