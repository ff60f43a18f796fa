//! Server-sent events from the daemon, as lines.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::{Method, Response, StatusCode};
use ringback_mcp_wire::{Id, Limits, Message};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::daemon::Daemon;
use super::exchange::is_stream;

/// The largest accepted event.
const EVENT_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The wait before reconnecting to the daemon's stream.
const RECONNECT: Duration = Duration::from_secs(1);

/// How a stream ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Pumped {
    /// With the expected answer.
    Answered,
    /// Without the expected answer.
    Ended,
    /// No one reads the output any more.
    NobodyReads,
}

/// Parses events as their bytes arrive.
#[derive(Debug, Default)]
struct Parser {
    buffer: BytesMut,
    data: String,
    id: Option<String>,
}

/// Passes on the events of a stream, and remembers the id of the last one.
pub(super) async fn pump(
    response: Response<Incoming>,
    waited_for: Option<&Id>,
    last_event: &mut Option<String>,
    lines: &mpsc::Sender<String>,
) -> Pumped {
    let mut body = response.into_body();
    let mut parser = Parser::default();
    while let Some(Ok(frame)) = body.frame().await {
        let Ok(bytes) = frame.into_data() else { continue };
        parser.buffer.extend_from_slice(&bytes);
        if parser.buffer.len() > EVENT_BYTES_MAX {
            return Pumped::Ended;
        }
        while let Some((id, data)) = parser.next() {
            if id.is_some() {
                *last_event = id;
            }
            if data.is_empty() {
                continue;
            }
            let is_answer = is_answer(&data, waited_for);
            if lines.send(data).await.is_err() {
                return Pumped::NobodyReads;
            }
            if is_answer {
                return Pumped::Answered;
            }
        }
    }
    Pumped::Ended
}

/// The messages to the MCP session outside of any request, while it exists.
pub(super) async fn news(daemon: Arc<Daemon>, lines: mpsc::Sender<String>) -> Option<Id> {
    loop {
        let session = daemon.session().await?;
        let sent = daemon.send(Method::GET, &[], Some(&session), Bytes::new()).await;
        match sent {
            Ok(response) if is_stream(&response) => {
                if pump(response, None, &mut None, &lines).await == Pumped::NobodyReads {
                    return None;
                }
            }
            // This daemon has no such stream.
            Ok(response) if response.status() == StatusCode::METHOD_NOT_ALLOWED => return None,
            Ok(_) | Err(_) => {}
        }
        sleep(RECONNECT).await;
    }
}

fn is_answer(data: &str, waited_for: Option<&Id>) -> bool {
    match Message::decode(
        data.as_bytes(),
        Limits { bytes_max: EVENT_BYTES_MAX, ..Limits::default() },
    ) {
        Ok(Message::Reply(reply)) => Some(&reply.id) == waited_for,
        Ok(Message::Request(_) | Message::Notification(_)) | Err(_) => false,
    }
}

impl Parser {
    /// Returns the next complete event: its id and its data.
    fn next(&mut self) -> Option<(Option<String>, String)> {
        loop {
            let end = self.buffer.iter().position(|byte| *byte == b'\n')?;
            let line = self.buffer.split_to(end + 1);
            let line = String::from_utf8_lossy(line.trim_ascii_end()).into_owned();
            if line.is_empty() {
                if self.id.is_some() || !self.data.is_empty() {
                    return Some((self.id.take(), std::mem::take(&mut self.data)));
                }
                continue;
            }
            let (name, value) = line.split_once(':').unwrap_or((&line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match name {
                "data" => self.data.push_str(value),
                "id" => self.id = Some(value.to_owned()),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Parser;

    #[test]
    fn events_are_found_however_their_bytes_are_cut() {
        let text = "id: 1-0\ndata:\n\n: quiet\n\ndata: {\"a\":\"é\"}\n\nid: 1-2\r\ndata: x\r\n\r\ndata: unfi";
        for cut in 1..text.len() {
            let mut parser = Parser::default();
            let mut events = Vec::new();
            for piece in [&text.as_bytes()[..cut], &text.as_bytes()[cut..]] {
                parser.buffer.extend_from_slice(piece);
                events.extend(std::iter::from_fn(|| parser.next()));
            }
            let expected = [
                (Some("1-0".to_owned()), String::new()),
                (None, "{\"a\":\"é\"}".to_owned()),
                (Some("1-2".to_owned()), "x".to_owned()),
            ];
            assert_eq!(events, expected, "cut at {cut}");
        }
    }
}
