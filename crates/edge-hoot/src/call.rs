//! A running call: passes its replies to the thread that owns the sockets.

use std::sync::Arc;
use std::time::Duration;

use ringback_broker::Replies;
use ringback_proto::frame::Frame;
use ringback_proto::{ToolCall, ToolRequest};
use tokio::sync::mpsc;

use crate::backlog::Room;
use crate::peers::CallNumber;
use crate::transport::ConnectionId;
use crate::wire::ReplyAddress;

/// Messages from the tasks of calls to the thread that owns the sockets.
#[derive(Debug)]
pub(crate) enum CallMessage {
    /// A frame for the peer that called.
    Reply { to: ConnectionId, reply_to: Arc<ReplyAddress>, frame: Frame },
    /// No more replies will come.
    Ended { to: ConnectionId, reply_to: Arc<ReplyAddress>, number: CallNumber },
    /// The peer has stopped reading.
    Stalled { to: ConnectionId },
}

/// A call and the destination of its replies.
#[derive(Debug)]
pub(crate) struct Forward {
    pub(crate) to: ConnectionId,
    pub(crate) reply_to: ReplyAddress,
    pub(crate) number: CallNumber,
    /// Whether it answers with content, which may be large.
    pub(crate) is_content: bool,
    pub(crate) room: Arc<Room>,
    /// A peer that reads nothing for this long while much waits for it is gone.
    pub(crate) patience: Duration,
    pub(crate) router: mpsc::Sender<CallMessage>,
}

impl Forward {
    /// Passes on the replies of a call, one after the other, at the pace of its peer. A router that
    /// is gone has no peers left.
    pub(crate) async fn run(self, mut replies: Replies) {
        let Self { to, reply_to, number, is_content, room, patience, router } = self;
        let reply_to = Arc::new(reply_to);
        let turn = if is_content { Some(room.content_turn().await) } else { None };
        while let Some(reply) = replies.next().await {
            let Some(frame) = room.admit(reply_to.reply(reply), patience).await else {
                return drop(router.send(CallMessage::Stalled { to }).await);
            };
            let reply = CallMessage::Reply { to, reply_to: Arc::clone(&reply_to), frame };
            if router.send(reply).await.is_err() {
                return;
            }
            if !is_content {
                room.wait().await;
            }
        }
        drop(turn);
        drop(router.send(CallMessage::Ended { to, reply_to, number }).await);
    }
}

/// Whether a call answers with content.
pub(crate) const fn is_content(request: &ToolCall) -> bool {
    matches!(request, ToolCall::Native(ToolRequest::CasGet(_)))
}
