//! `subscriptions/listen`: changes, while the stream is open.

use std::sync::Arc;

use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use ringback_mcp_wire::outgoing::{self, ListenEnd, Told};
use ringback_mcp_wire::{Id, ListenFilter};

use crate::changes::Changed;
use crate::peer::Peer;
use crate::respond;
use crate::state::State;

/// One open subscription.
struct Listening {
    state: Arc<State>,
    peer: Peer,
    id: Id,
    filter: ListenFilter,
    changed: Changed,
    place: Place,
}

enum Place {
    Opened,
    Acknowledged,
    Ended,
}

/// Opens a subscription. It ends with its token.
pub(super) fn open(state: Arc<State>, peer: Peer, id: Id, filter: ListenFilter) -> Response {
    let changed = Changed::subscribe(&state.broker, &peer);
    let listening = Listening { state, peer, id, filter, changed, place: Place::Opened };
    respond::events(stream::unfold(listening, Listening::next))
}

impl Listening {
    async fn next(mut self) -> Option<(Bytes, Self)> {
        let data = match self.place {
            Place::Opened => {
                self.place = Place::Acknowledged;
                let told = Told::ListenAcknowledged { id: &self.id, filter: self.filter };
                outgoing::notification(&told)
            }
            Place::Acknowledged => self.news().await,
            Place::Ended => return None,
        };
        Some((respond::event(None, &data), self))
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
                return outgoing::notification(&Told::ToolsListChanged { subscription });
            }
        }
        self.place = Place::Ended;
        outgoing::answer(&self.id, &ListenEnd { id: &self.id }, self.state.stamp())
    }
}
