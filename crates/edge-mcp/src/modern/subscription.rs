//! `subscriptions/listen`: changes, while the stream is open.

use std::sync::Arc;

use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use ringback_mcp_wire::outgoing::{self, ListenEnd, ServerNotification};
use ringback_mcp_wire::{Id, ListenFilter};

use crate::changes::ChangeSubscriber;
use crate::peer::Peer;
use crate::response;
use crate::state::State;

/// One open subscription.
struct Subscription {
    state: Arc<State>,
    peer: Peer,
    id: Id,
    filter: ListenFilter,
    changed: ChangeSubscriber,
    place: Place,
}

enum Place {
    Opened,
    Acknowledged,
    Ended,
}

/// Opens a subscription. It ends with its token.
pub(super) fn open(state: Arc<State>, peer: Peer, id: Id, filter: ListenFilter) -> Response {
    let changed = ChangeSubscriber::subscribe(&state.broker, &peer);
    let listening = Subscription { state, peer, id, filter, changed, place: Place::Opened };
    response::events(stream::unfold(listening, Subscription::next))
}

impl Subscription {
    async fn next(mut self) -> Option<(Bytes, Self)> {
        let data = match self.place {
            Place::Opened => {
                self.place = Place::Acknowledged;
                let told =
                    ServerNotification::ListenAcknowledged { id: &self.id, filter: self.filter };
                outgoing::notification(&told)
            }
            Place::Acknowledged => self.news().await,
            Place::Ended => return None,
        };
        Some((response::event(None, &data), self))
    }

    async fn news(&mut self) -> String {
        let changed = async {
            if self.filter.tools_list_changed {
                self.changed.next(&self.state.broker, &self.peer).await;
            } else {
                std::future::pending().await
            }
        };
        tokio::select! {
            biased;
            () = self.state.stopping.cancelled() => {}
            () = self.peer.ended() => {}
            () = changed => {
                let subscription = Some(&self.id);
                return outgoing::notification(&ServerNotification::ToolsListChanged { subscription });
            }
        }
        self.place = Place::Ended;
        outgoing::answer(&self.id, &ListenEnd { id: &self.id }, self.state.stamp())
    }
}
