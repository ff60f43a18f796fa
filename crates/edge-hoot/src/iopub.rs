//! Events on PUB: subscribers that may see everything get them under their type. The owner of an
//! event gets it under its own name, `tok_…/job.state_changed`, with numbers that have no gaps for
//! this owner. Events that everyone may see are in every view. A token narrowed to projects also
//! gets all events of each, `tok_…/proj_…/job.state_changed`, with numbers of that project.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use ringback_broker::{Broker, Published, Subscription, Visibility};
use ringback_proto::event::{Heads, SequencedEvent};
use ringback_proto::ids::ProjectId;
use ringback_proto::principal::PrincipalId;
use ringback_sync::lock;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::lobby::{Lobby, LobbyAction};
use crate::transport::{Admission, Publisher};

/// How often the last numbers are published, so that a subscriber that missed the last event
/// notices.
const HEADS_PERIOD: Duration = Duration::from_secs(5);
/// A subscriber whose token has ended is disconnected within a second.
const SWEEP: Duration = Duration::from_millis(500);
/// Events taken from the ring at a time.
const BATCH: usize = 256;
/// Owners that have their own view at the same time.
const OWNERS_MAX: usize = 10_000;

/// Publishes the events of the broker.
#[derive(Debug)]
pub(crate) struct IoPub {
    pub(crate) publisher: Publisher,
    pub(crate) lobby: Lobby,
    pub(crate) broker: Broker,
    pub(crate) views: Views,
}

/// Owners that subscribed to their own events. Only their views are published.
#[derive(Debug, Clone, Default)]
pub(crate) struct Views(Arc<Mutex<Viewers>>);

#[derive(Debug, Default)]
struct Viewers {
    all: HashSet<PrincipalId>,
    /// Those whose tokens are narrowed to projects.
    of_project: HashMap<ProjectId, HashSet<PrincipalId>>,
}

impl Views {
    /// Decides which topics a subscriber may have. A prefix wider than what the token may see is
    /// refused entirely.
    pub(crate) fn admission(&self, broker: Broker, local: bool) -> Admission {
        let views = self.clone();
        Arc::new(move |user_id, prefix| {
            let Some(id) = user_id else { return local };
            let Some(credential) = broker.credential(id) else { return false };
            let is_own = || prefix.starts_with(view_prefix(id).as_bytes());
            match broker.event_sight(&credential) {
                Ok(Visibility::All) => true,
                Ok(Visibility::Own { projects, .. }) => is_own() && views.open(id, &projects),
                // A session's key gets its own.
                Ok(Visibility::Tree { .. }) => is_own() && views.open(id, &[]),
                Err(_) => false,
            }
        })
    }

    fn open(&self, id: PrincipalId, projects: &[ProjectId]) -> bool {
        let mut views = lock(&self.0);
        if views.all.len() >= OWNERS_MAX && !views.all.contains(&id) {
            return false;
        }
        views.all.insert(id);
        for project in projects {
            views.of_project.entry(*project).or_default().insert(id);
        }
        true
    }

    fn has(&self, id: PrincipalId) -> bool {
        lock(&self.0).all.contains(&id)
    }

    fn all(&self) -> Vec<PrincipalId> {
        lock(&self.0).all.iter().copied().collect()
    }

    fn of_project(&self, project: ProjectId) -> Vec<PrincipalId> {
        lock(&self.0).of_project.get(&project).into_iter().flatten().copied().collect()
    }

    fn projects(&self) -> Vec<ProjectId> {
        lock(&self.0).of_project.keys().copied().collect()
    }
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
                events = subscription.next(BATCH), if is_heard => self.publish(&events).await,
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
                    false => subscription.skip(),
                },
            }
        }
        self.publisher.close().await;
    }

    async fn publish(&self, events: &[Arc<Published>]) {
        for published in events {
            let topic = published.event.event.topic();
            let body = encode(&published.event);
            self.publisher.publish(Bytes::from_static(topic.as_bytes()), body).await;
            let viewers = if published.event.event.is_shared() {
                self.views.all()
            } else {
                Vec::from_iter(self.views.has(published.owner).then_some(published.owner))
            };
            for viewer in viewers {
                let own = SequencedEvent {
                    topic_seq: published.owner_topic_seq,
                    ..published.event.clone()
                };
                let topic = format!("{}{topic}", view_prefix(viewer));
                self.publisher.publish(topic.into(), encode(&own)).await;
            }
            self.publish_in_project(published).await;
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
    }
}

/// The prefix of the topics of an owner's own events.
fn view_prefix(owner: PrincipalId) -> String {
    format!("{owner}/")
}

/// The prefix of the topics of a project's events, for one of those who see it.
fn project_prefix(viewer: PrincipalId, project: ProjectId) -> String {
    format!("{}{project}/", view_prefix(viewer))
}

fn encode(event: &impl Serialize) -> Bytes {
    rmp_serde::to_vec_named(event).expect("an event can be encoded").into()
}
