//! A call under way: passes its replies to the thread that owns the sockets.

use std::sync::Arc;

use ringback_broker::Replies;
use ringback_proto::frame::Frame;
use tokio::sync::mpsc;

use crate::peers::Room;
use crate::transport::ConnectionId;
use crate::wire::ReplyTo;

/// What the tasks of calls tell the thread that owns the sockets.
#[derive(Debug)]
pub(crate) enum FromCall {
    /// A frame for the peer that asked.
    Reply { to: ConnectionId, reply_to: Arc<ReplyTo>, frame: Frame },
    /// No more will come.
    Ended { to: ConnectionId, reply_to: Arc<ReplyTo> },
}

/// Passes the replies of a call on, one after the other, at the pace of its peer.
pub(crate) async fn forward(
    mut replies: Replies,
    to: ConnectionId,
    reply_to: ReplyTo,
    room: Arc<Room>,
    router: mpsc::Sender<FromCall>,
) {
    let reply_to = Arc::new(reply_to);
    while let Some(reply) = replies.next().await {
        let frame = reply_to.reply(reply);
        let reply = FromCall::Reply { to, reply_to: Arc::clone(&reply_to), frame };
        if router.send(reply).await.is_err() {
            return;
        }
        room.wait().await;
    }
    // A router that is gone has no peers left to tell.
    drop(router.send(FromCall::Ended { to, reply_to }).await);
}
