//! The tools of a session at a URL, and their changes.

use std::sync::Arc;
use std::time::Duration;

use ringback_mcp_wire::{Limits, Message, Object, RawValue, compact};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::http::{Http, RequestFailure, request, text};
use crate::relay::REMOTE_TOOLS;

/// How long to wait before a retry, at first and at most.
const RETRY_MIN: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(5);
/// A list with more pages than this is invalid.
const PAGES_MAX: usize = 1000;

/// Sends the tools, and sends them again whenever they change, while there is a receiver.
pub(super) async fn follow(http: Arc<Http>, lines: mpsc::Sender<String>) {
    let (mut wait, mut has_warned) = (RETRY_MIN, false);
    loop {
        match listen(&http, &lines).await {
            Ok(()) => (wait, has_warned) = (RETRY_MIN, false),
            Err(failed) => {
                if !std::mem::replace(&mut has_warned, true)
                    && lines.send(failed.line(None)).await.is_err()
                {
                    return;
                }
            }
        }
        sleep(wait).await;
        wait = (wait * 2).min(RETRY_MAX);
    }
}

/// Follows one subscription to its end. It is open before the list is requested, so that no change
/// is missed in between.
async fn listen(http: &Http, lines: &mpsc::Sender<String>) -> Result<(), RequestFailure> {
    let params = r#""notifications":{"toolsListChanged":true}"#;
    let method = "subscriptions/listen";
    let mut stream = http.post(method, None, request(0, method, params, "")).await?;
    while let Some(message) = stream.next().await? {
        match Message::decode(message.as_bytes(), Limits::default()) {
            Ok(Message::Notification(told)) => match told.method.as_ref() {
                "notifications/subscriptions/acknowledged" | "notifications/tools/list_changed" => {
                    drop(lines.send(list(http).await?).await);
                }
                _ => {}
            },
            // Refused, or ended.
            Ok(Message::Reply(_)) => return Ok(()),
            Ok(Message::Request(_)) | Err(_) => {}
        }
    }
    Ok(())
}

/// The line with all tools.
async fn list(http: &Http) -> Result<String, RequestFailure> {
    let mut tools = Vec::new();
    let mut params = String::new();
    for _ in 0..PAGES_MAX {
        let mut answer =
            http.post("tools/list", None, request(1, "tools/list", &params, "")).await?;
        let page = answer.next().await?.unwrap_or_default();
        let Some(next) = add_page(page.as_bytes(), &mut tools) else {
            return Err(RequestFailure::broken("the list of tools cannot be read"));
        };
        match next {
            Some(cursor) => params = format!(r#""cursor":{}"#, text(&cursor)),
            None => break,
        }
    }
    let tools = tools.join(",");
    Ok(format!(r#"{{"method":"{REMOTE_TOOLS}","params":{{"tools":[{tools}]}}}}"#))
}

/// Takes the tools of a page, and returns where the next one starts.
fn add_page(page: &[u8], tools: &mut Vec<String>) -> Option<Option<String>> {
    let Ok(Message::Reply(reply)) = Message::decode(page, Limits::default()) else { return None };
    let result = Object::of(reply.outcome.ok()?).ok()?;
    let listed: Vec<&RawValue> = serde_json::from_str(result.get("tools")?.get()).ok()?;
    tools.extend(listed.into_iter().map(|tool| compact(tool).get().to_owned()));
    Some(result.text("nextCursor").map(|cursor| cursor.into_owned()))
}
