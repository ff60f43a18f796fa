//! Events on PUB: subscribers that may see everything get them under their type. The owner of an
//! event gets it under its own name, `tok_…/job.state_changed`, with numbers that have no gaps for
//! this owner. Events that everyone may see are in every view. A token narrowed to projects also
//! gets all events of each, `tok_…/proj_…/job.state_changed`, with numbers of that project. Chunks
//! of streams are on `stream.data.{stream_id}`, in each view that listens and may see the call.

use std::time::Duration;

use bytes::Bytes;
use ringback_broker::{Broker, Heard, Published, PublishedData, Subscription};
use ringback_proto::event::{Heads, SequencedEvent, StreamData};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::lobby::{Lobby, LobbyAction};
use crate::transport::Publisher;
use crate::views::{Views, project_prefix, topic_in, view_prefix};

/// How often the last numbers are published, so that a subscriber that missed the last event
/// notices.
const HEADS_PERIOD: Duration = Duration::from_secs(5);
/// A subscriber whose token has ended is disconnected within a second.
const SWEEP: Duration = Duration::from_millis(500);
/// Events taken from the ring at a time.
const BATCH: usize = 256;

/// Publishes the events of the broker.
#[derive(Debug)]
pub(crate) struct IoPub {
    pub(crate) publisher: Publisher,
    pub(crate) lobby: Lobby,
    pub(crate) broker: Broker,
    pub(crate) views: Views,
}

impl IoPub {
    /// Publishes until `stop`. While no subscriber is connected, events only pass by: waking up for
    /// each of them would cost every job.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        let mut subscription = self.broker.subscribe();
        let mut heads = tokio::time::interval(HEADS_PERIOD);
        let mut sweep = tokio::time::interval(SWEEP);
        let mut seen = self.publisher.generation();
        let mut is_heard = self.publisher.has_subscribers().await;
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                () = self.publisher.changed(seen) => {
                    // Before the query, so that a change in between is noticed.
                    seen = self.publisher.generation();
                    is_heard = self.publisher.has_subscribers().await;
                }
                heard = subscription.next_with_data(BATCH), if is_heard => self.publish(&heard).await,
                turn = self.lobby.next() => match turn {
                    LobbyAction::Away(connection) => self.publisher.turn_away(connection).await,
                    LobbyAction::In(_) | LobbyAction::Left(_) => {}
                    LobbyAction::Recount => {
                        self.lobby.recount(self.publisher.connected().await.into_iter());
                    }
                },
                _ = heads.tick() => self.heads(&subscription).await,
                _ = sweep.tick() => match is_heard {
                    true => self.sweep().await,
                    // So a new subscriber gets what happens from now on, and little of what came
                    // before.
                    false => {
                        subscription.skip();
                        self.views.recount(&[]);
                    }
                },
            }
        }
        self.publisher.close().await;
    }

    async fn publish(&self, heard: &[Heard]) {
        for heard in heard {
            match heard {
                Heard::Event(published) => {
                    self.publish_event(published).await;
                    self.publish_in_project(published).await;
                }
                Heard::Data(data) => self.publish_data(data).await,
            }
        }
    }

    /// Publishes an event for those who see its project, also when it is their own: the numbers of
    /// the project have no gaps.
    async fn publish_in_project(&self, published: &Published) {
        let Some(project) = published.project else { return };
        let viewers = self.views.of_project(project);
        if viewers.is_empty() {
            return;
        }
        let event =
            SequencedEvent { topic_seq: published.project_topic_seq, ..published.event.clone() };
        let body = encode(&event);
        for viewer in viewers {
            let topic = format!("{}{}", project_prefix(viewer, project), event.event.topic());
            self.publisher.publish(topic.into(), body.clone()).await;
        }
    }

    async fn publish_event(&self, published: &Published) {
        let topic = published.event.event.topic();
        let body = encode(&published.event);
        self.publisher.publish(Bytes::from_static(topic.as_bytes()), body).await;
        let viewers = if published.event.event.is_shared() {
            self.views.all()
        } else {
            Vec::from_iter(self.views.has(published.owner).then_some(published.owner))
        };
        for viewer in viewers {
            let own =
                SequencedEvent { topic_seq: published.owner_topic_seq, ..published.event.clone() };
            let topic = format!("{}{topic}", view_prefix(viewer));
            self.publisher.publish(topic.into(), encode(&own)).await;
        }
    }

    /// Publishes a chunk to the views that listen to streams and may see this one.
    async fn publish_data(&self, data: &PublishedData) {
        let may_hear = |view: &_| match view {
            None => true,
            Some(viewer) => {
                self.views.sight_of(Some(*viewer)).is_some_and(|sight| data.is_visible(&sight))
            }
        };
        let mut views = self.views.that_listen();
        views.retain(may_hear);
        if views.is_empty() {
            return;
        }
        let topic = format!("{}{}", StreamData::TOPIC_PREFIX, data.stream_id());
        let topics: Vec<_> =
            views.into_iter().map(|view| Bytes::from(topic_in(view, &topic))).collect();
        for piece in data.pieces() {
            let body = encode(&piece);
            for topic in &topics {
                self.publisher.publish(topic.clone(), body.clone()).await;
            }
        }
        // Calls are served by the same thread.
        tokio::task::yield_now().await;
    }

    async fn heads(&self, subscription: &Subscription) {
        let now = self.broker.now();
        let all = encode(&subscription.heads(now, None));
        self.publisher.publish(Bytes::from_static(Heads::TOPIC.as_bytes()), all).await;
        for owner in self.views.all() {
            let topic = format!("{}{}", view_prefix(owner), Heads::TOPIC);
            let own = encode(&subscription.heads(now, Some(owner)));
            self.publisher.publish(topic.into(), own).await;
        }
        for project in self.views.projects() {
            let heads = encode(&subscription.heads_of_project(now, project));
            for viewer in self.views.of_project(project) {
                let topic = format!("{}{}", project_prefix(viewer, project), Heads::TOPIC);
                self.publisher.publish(topic.into(), heads.clone()).await;
            }
        }
    }

    async fn sweep(&self) {
        let now = self.broker.now();
        self.publisher
            .disconnect_unless(|user_id| match user_id {
                None => true,
                Some(id) => {
                    self.broker.credential(id).is_some_and(|credential| credential.is_valid(now))
                }
            })
            .await;
        if self.views.has_listeners() {
            self.views.recount(&self.publisher.subscriptions().await);
        }
    }
}

fn encode(event: &impl Serialize) -> Bytes {
    rmp_serde::to_vec_named(event).expect("an event can be encoded").into()
}
