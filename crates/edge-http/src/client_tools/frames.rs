//! Calls as frames of a client's stream. The input of a call is not copied: it goes out as the
//! bytes that came in, between the start and the end of its frame.

use std::sync::Arc;

use bytes::Bytes;
use ringback_broker::{LineCall, PartyMessage};
use serde::Serialize;

pub(crate) const ABOUT: &str = "`tool-request` with `{type, requestID, sessionID, messageID, callID, \
    tool, input}`, `tool-cancel` with `{type, requestID, reason}`, and `ping`.";

/// Keeps the connection alive.
pub(crate) const PING: Bytes = Bytes::from_static(b"event: ping\ndata: \n\n");

/// The pieces of one frame, in order.
pub(crate) type Pieces = Vec<Bytes>;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Head<'a> {
    r#type: &'static str,
    #[serde(rename = "requestID")]
    request_id: &'a str,
    #[serde(rename = "sessionID")]
    session_id: &'a str,
    #[serde(rename = "messageID")]
    message_id: &'a str,
    #[serde(rename = "callID")]
    call_id: &'a str,
    tool: &'a str,
}

#[derive(Serialize)]
struct Cancel<'a> {
    r#type: &'static str,
    #[serde(rename = "requestID")]
    request_id: &'a str,
    reason: &'static str,
}

/// Encodes a message of a stream to its party.
pub(crate) fn frame(post: &PartyMessage<Arc<LineCall>>) -> Pieces {
    match post {
        PartyMessage::Call(call) => {
            let (head, input) = request(call);
            let before = format!("event: tool-request\ndata: {head},\"input\":");
            vec![before.into(), input, Bytes::from_static(b"}\n\n")]
        }
        PartyMessage::Cancel { call, custom_id, reason } => {
            let own = call.to_string();
            let request_id = custom_id.as_deref().unwrap_or(&own);
            let reason = reason.as_str();
            let cancel = json(&Cancel { r#type: "client-tool-cancel", request_id, reason });
            vec![format!("event: tool-cancel\ndata: {cancel}\n\n").into()]
        }
    }
}

/// A call as its client sees it: the object up to its input, without the closing brace, and the
/// input.
pub(crate) fn request(call: &LineCall) -> (String, Bytes) {
    let text = |text: &'_ Option<Arc<str>>| text.clone().unwrap_or_default();
    let context = &call.context;
    let (session, message, call_id) =
        (text(&context.session_id), text(&context.message_id), text(&context.call_id));
    let mut head = json(&Head {
        r#type: "client-tool-request",
        request_id: &call.request_id,
        session_id: &session,
        message_id: &message,
        call_id: &call_id,
        tool: &call.tool.full_name,
    });
    head.pop();
    (head, one_line(&call.arguments.bytes))
}

/// JSON without line breaks: they can only stand between tokens, and a frame consists of lines.
pub(crate) fn one_line(json: &Bytes) -> Bytes {
    let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
    if !json.iter().any(is_end) {
        return json.clone();
    }
    json.iter().copied().filter(|byte| !is_end(byte)).collect()
}

fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("texts can be written as JSON")
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::one_line;

    /// Rule: tokens never change on the way; line breaks between them may be removed.
    #[test]
    fn line_ends_go_and_everything_else_stays() {
        let pretty = Bytes::from_static(b"{\r\n  \"a\\n b\": 18446744073709551616,\n\"c\": null }");
        assert_eq!(&*one_line(&pretty), br#"{  "a\n b": 18446744073709551616,"c": null }"#);
        let plain = Bytes::from_static(br#"{"a": 1}"#);
        assert_eq!(one_line(&plain).as_ptr(), plain.as_ptr());
    }
}
