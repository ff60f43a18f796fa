//! Who subscribes to what: which owners get their own events, and who listens to the chunks of
//! streams.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use ringback_broker::{Broker, DataListener, Visibility};
use ringback_proto::event::StreamData;
use ringback_proto::ids::ProjectId;
use ringback_proto::principal::PrincipalId;
use ringback_sync::lock;

use crate::transport::Admission;

/// Owners that have their own view at the same time.
const OWNERS_MAX: usize = 10_000;
/// Counts that do not find a listener before it is one no more: a count may come between the
/// admission of a subscription and the subscription itself.
const MISSED_MAX: u8 = 2;

/// A view of the events: an owner's own, or everything.
pub(crate) type View = Option<PrincipalId>;

/// The views that have subscribers. Only they are published.
#[derive(Debug, Clone)]
pub(crate) struct Views(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    table: Mutex<ViewTable>,
    listener: DataListener,
    broker: Broker,
    /// Whether subscribers need no token.
    is_local: bool,
}

#[derive(Debug, Default)]
struct ViewTable {
    /// Owners that subscribed to their own events.
    owners: HashSet<PrincipalId>,
    /// Those of them whose tokens are narrowed to projects.
    of_project: HashMap<ProjectId, HashSet<PrincipalId>>,
    /// Views in which someone listens to chunks, with the number of counts that missed them.
    listening: HashMap<View, u8>,
}

impl Views {
    pub(crate) fn new(broker: Broker, is_local: bool) -> Self {
        let listener = DataListener::of(&broker);
        Self(Arc::new(Shared { table: Mutex::default(), listener, broker, is_local }))
    }

    /// Decides which topics a subscriber may have. A prefix wider than what the token may see is
    /// refused entirely.
    pub(crate) fn admission(&self) -> Admission {
        let views = self.clone();
        Arc::new(move |user_id, prefix| {
            let Some(sight) = views.sight_of(user_id) else { return false };
            let is_own = |id| prefix.starts_with(view_prefix(id).as_bytes());
            let (view, is_admitted) = match (user_id, sight) {
                (None, _) | (Some(_), Visibility::All) => (None, true),
                (Some(id), Visibility::Own { projects, .. }) => {
                    (Some(id), is_own(id) && views.open(id, &projects))
                }
                // A session's key gets its own.
                (Some(id), Visibility::Tree { .. }) => {
                    (Some(id), is_own(id) && views.open(id, &[]))
                }
            };
            if is_admitted && has_data(view, prefix) {
                views.listen(view);
            }
            is_admitted
        })
    }

    /// What a subscriber may see; `None` if its token is not valid.
    pub(crate) fn sight_of(&self, user_id: Option<PrincipalId>) -> Option<Visibility> {
        let Some(id) = user_id else { return self.0.is_local.then_some(Visibility::All) };
        let credential = self.0.broker.credential(id)?;
        credential.sight(self.0.broker.now()).ok()
    }

    /// The view of a subscriber; `None` if its token is not valid.
    fn view_of(&self, user_id: Option<PrincipalId>) -> Option<View> {
        match self.sight_of(user_id)? {
            Visibility::All => Some(None),
            Visibility::Own { .. } | Visibility::Tree { .. } => Some(user_id),
        }
    }

    fn open(&self, id: PrincipalId, projects: &[ProjectId]) -> bool {
        let mut table = lock(&self.0.table);
        if table.owners.len() >= OWNERS_MAX && !table.owners.contains(&id) {
            return false;
        }
        table.owners.insert(id);
        for project in projects {
            table.of_project.entry(*project).or_default().insert(id);
        }
        true
    }

    pub(crate) fn has(&self, id: PrincipalId) -> bool {
        lock(&self.0.table).owners.contains(&id)
    }

    pub(crate) fn all(&self) -> Vec<PrincipalId> {
        lock(&self.0.table).owners.iter().copied().collect()
    }

    /// The owners that see the events of a project.
    pub(crate) fn of_project(&self, project: ProjectId) -> Vec<PrincipalId> {
        lock(&self.0.table).of_project.get(&project).into_iter().flatten().copied().collect()
    }

    /// The projects whose events some of them see.
    pub(crate) fn projects(&self) -> Vec<ProjectId> {
        lock(&self.0.table).of_project.keys().copied().collect()
    }

    /// Someone is about to listen in a view.
    fn listen(&self, view: View) {
        lock(&self.0.table).listening.insert(view, 0);
        self.0.listener.set(true);
    }

    /// The views in which someone listens to chunks.
    pub(crate) fn that_listen(&self) -> Vec<View> {
        lock(&self.0.table).listening.keys().copied().collect()
    }

    pub(crate) fn has_listeners(&self) -> bool {
        !lock(&self.0.table).listening.is_empty()
    }

    /// Finds out who has stopped listening.
    pub(crate) fn recount(&self, subscriptions: &[(Option<PrincipalId>, Vec<Bytes>)]) {
        let listens = |(user_id, prefixes): &(Option<PrincipalId>, Vec<Bytes>)| {
            let view = self.view_of(*user_id)?;
            prefixes.iter().any(|prefix| has_data(view, prefix)).then_some(view)
        };
        let found: HashSet<View> = subscriptions.iter().filter_map(listens).collect();
        let has_listeners = {
            let mut table = lock(&self.0.table);
            table.listening.retain(|view, n_missed| {
                *n_missed = if found.contains(view) { 0 } else { *n_missed + 1 };
                *n_missed < MISSED_MAX
            });
            !table.listening.is_empty()
        };
        self.0.listener.set(has_listeners);
    }
}

/// Returns whether a subscription to a prefix gets the data of any stream of a view.
fn has_data(view: View, prefix: &[u8]) -> bool {
    let data = topic_in(view, StreamData::TOPIC_PREFIX).into_bytes();
    data.starts_with(prefix) || prefix.starts_with(&data)
}

/// A topic as it is published in a view.
pub(crate) fn topic_in(view: View, topic: &str) -> String {
    match view {
        None => topic.to_owned(),
        Some(owner) => format!("{}{topic}", view_prefix(owner)),
    }
}

/// The prefix of the topics of an owner's own events.
pub(crate) fn view_prefix(owner: PrincipalId) -> String {
    format!("{owner}/")
}

/// The prefix of the topics of a project's events, for one of those who see it.
pub(crate) fn project_prefix(viewer: PrincipalId, project: ProjectId) -> String {
    format!("{}{project}/", view_prefix(viewer))
}

#[cfg(test)]
mod tests {
    use ringback_proto::ids::TokenId;

    use super::*;

    #[test]
    fn a_prefix_of_stream_data_or_of_one_stream_hears_data() {
        let owner = PrincipalId::Token(TokenId::from_random([7; 16]));
        let own = |topic: &str| format!("{owner}/{topic}");
        for (prefix, hears) in [
            ("", true),
            ("s", true),
            ("stream.data.", true),
            ("stream.data.str_00", true),
            ("stream.started", false),
            ("stream.data_", false),
            ("job.", false),
        ] {
            assert_eq!(has_data(None, prefix.as_bytes()), hears, "{prefix:?}");
            assert_eq!(has_data(Some(owner), own(prefix).as_bytes()), hears, "{prefix:?}");
        }
        assert!(!has_data(None, own("stream.data.").as_bytes()), "a view of another");
    }
}
