//! Events in one sequence, kept for a while, each visible to those who may see it.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use ringback_proto::event::{Event, Heads, SequencedEvent};
use ringback_proto::ids::ProjectId;
use ringback_proto::principal::PrincipalId;

use crate::policy::Visibility;
use crate::stream_data::{DataRing, NewData, PublishedData};
use crate::time::Now;

/// An event with its position in the sequence, and its owner.
#[derive(Debug, Clone, PartialEq)]
pub struct Published {
    /// The event as readers of all events get it.
    pub event: SequencedEvent,
    /// Its number among the events of this topic and owner: gap-free only for the owner.
    pub owner_topic_seq: u64,
    /// Its number among the events of this topic and project: gap-free for those who see the project;
    /// 0 without a project.
    pub project_topic_seq: u64,
    /// The owner.
    pub owner: PrincipalId,
    /// The project it belongs to.
    pub project: Option<ProjectId>,
}

/// A page of events.
#[derive(Debug, PartialEq)]
pub struct Page {
    /// The matching events, in order.
    pub events: Vec<Arc<Published>>,
    /// The number of the last event examined: where to continue.
    pub cursor: u64,
    /// The number of events after the given cursor that are no longer kept.
    pub missed: u64,
}

/// The latest events, in a ring that all readers share.
#[derive(Debug)]
pub struct EventRing {
    epoch: u64,
    last_seq: u64,
    topic_seqs: [u64; Event::TOPICS.len()],
    owner_topic_seqs: HashMap<(PrincipalId, usize), u64>,
    project_topic_seqs: HashMap<(ProjectId, usize), u64>,
    kept: VecDeque<Arc<Published>>,
    kept_max: usize,
    /// The last events that are only published live.
    live: VecDeque<Arc<Published>>,
    /// The number of the last of them.
    last_live: u64,
    /// The last chunks of streams.
    data: DataRing,
}

/// Live events that a slow reader can still get: several seconds of them.
const LIVE_MAX: usize = 64;

impl EventRing {
    /// Makes an empty ring of limited size. The epoch distinguishes this run of the daemon from
    /// others.
    #[must_use]
    pub fn new(epoch: u64, kept_max: usize) -> Self {
        Self {
            epoch,
            last_seq: 0,
            topic_seqs: [0; Event::TOPICS.len()],
            owner_topic_seqs: HashMap::new(),
            project_topic_seqs: HashMap::new(),
            kept: VecDeque::with_capacity(kept_max.min(1024)),
            kept_max,
            live: VecDeque::new(),
            last_live: 0,
            data: DataRing::default(),
        }
    }

    /// Adds a chunk of a stream to those that are only published live, after the events so far.
    pub fn publish_data(&mut self, now: Now, new: NewData) {
        self.data.push(new, self.epoch, self.last_seq, now);
    }

    /// Forgets the chunks: no one listens any more.
    pub fn forget_data(&mut self) {
        self.data.clear();
    }

    /// Returns the number of the last chunk.
    #[must_use]
    pub const fn last_data(&self) -> u64 {
        self.data.last()
    }

    /// Returns the chunks after a number that are still there and that were published before any
    /// event after `seq`.
    #[must_use]
    pub fn data_after(&self, number: u64, seq: u64) -> Vec<Arc<PublishedData>> {
        self.data.after(number, seq)
    }

    /// Adds an event to the sequence, or to the live events if it is one.
    pub fn publish(
        &mut self,
        now: Now,
        event: Event,
        owner: PrincipalId,
        project: Option<ProjectId>,
    ) -> Arc<Published> {
        let topic_index = event.topic_index();
        let (is_live, is_shared) = (event.is_live(), event.is_shared());
        self.last_seq += u64::from(!is_live);
        self.topic_seqs[topic_index] += 1;
        let owner_topic_seq = if is_shared {
            self.topic_seqs[topic_index]
        } else {
            let owner_topic_seq = self.owner_topic_seqs.entry((owner, topic_index)).or_default();
            *owner_topic_seq += 1;
            *owner_topic_seq
        };
        let project_topic_seq = project.map_or(0, |project| {
            let seq = self.project_topic_seqs.entry((project, topic_index)).or_default();
            *seq += 1;
            *seq
        });
        let published = Arc::new(Published {
            event: SequencedEvent {
                epoch: self.epoch,
                seq: self.last_seq,
                topic_seq: self.topic_seqs[topic_index],
                at_ms: now.unix,
                event,
            },
            owner_topic_seq,
            project_topic_seq,
            owner,
            project,
        });
        let (ring, max) = if is_live {
            self.last_live += 1;
            (&mut self.live, LIVE_MAX)
        } else {
            (&mut self.kept, self.kept_max)
        };
        if ring.len() == max {
            ring.pop_front();
        }
        ring.push_back(Arc::clone(&published));
        published
    }

    /// Returns the number of the last live event.
    #[must_use]
    pub const fn last_live(&self) -> u64 {
        self.last_live
    }

    /// Returns the live events after a number that are still there.
    #[must_use]
    pub fn live_after(&self, number: u64) -> Vec<Arc<Published>> {
        let n_new = usize::try_from(self.last_live.saturating_sub(number)).unwrap_or(usize::MAX);
        let n_skipped = self.live.len().saturating_sub(n_new);
        self.live.iter().skip(n_skipped).cloned().collect()
    }

    /// Returns the epoch of this ring.
    #[must_use]
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns the number of the last event.
    #[must_use]
    pub const fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// Returns up to `limit` events after a cursor that are visible and that `wanted` picks.
    pub fn after(
        &self,
        cursor: u64,
        limit: usize,
        sight: &Visibility,
        mut wanted: impl FnMut(&Event) -> bool,
    ) -> Page {
        let oldest = self.kept.front().map_or(self.last_seq + 1, |oldest| oldest.event.seq);
        let missed = oldest.saturating_sub(cursor.saturating_add(1));
        let n_skipped = usize::try_from((cursor + 1).saturating_sub(oldest)).unwrap_or(usize::MAX);
        let mut page = Page { events: Vec::new(), cursor: self.last_seq.max(cursor), missed };
        for published in self.kept.iter().skip(n_skipped) {
            if page.events.len() == limit {
                page.cursor = published.event.seq - 1;
                break;
            }
            let event = &published.event.event;
            let is_visible =
                event.is_shared() || sight.includes(published.owner, published.project);
            if is_visible && wanted(event) {
                page.events.push(Arc::clone(published));
            }
        }
        page
    }

    /// Returns the last number of each topic, for a reader of all events.
    #[must_use]
    pub fn heads(&self, now: Now) -> Heads {
        self.heads_with(now, |topic_index| self.topic_seqs[topic_index])
    }

    /// Returns the last number of each topic, counting only one owner's events.
    #[must_use]
    pub fn heads_of(&self, now: Now, owner: PrincipalId) -> Heads {
        self.heads_with(now, |topic_index| {
            if Event::is_shared_topic(topic_index) {
                return self.topic_seqs[topic_index];
            }
            self.owner_topic_seqs.get(&(owner, topic_index)).copied().unwrap_or(0)
        })
    }

    /// Returns the last number of each topic, counting only the events of one project.
    #[must_use]
    pub fn heads_of_project(&self, now: Now, project: ProjectId) -> Heads {
        self.heads_with(now, |topic_index| {
            self.project_topic_seqs.get(&(project, topic_index)).copied().unwrap_or(0)
        })
    }

    fn heads_with(&self, now: Now, last: impl Fn(usize) -> u64) -> Heads {
        let topics: BTreeMap<_, _> = Event::TOPICS
            .iter()
            .enumerate()
            // A missed live event cannot be read later, so nobody needs to know of it.
            .filter(|(index, _)| !Event::is_live_topic(*index))
            .map(|(index, topic)| ((*topic).to_owned(), last(index)))
            .filter(|(_, last)| *last > 0)
            .collect();
        Heads { epoch: self.epoch, seq: self.last_seq, at_ms: now.unix, topics }
    }
}

#[cfg(test)]
mod tests {
    use ringback_proto::garden::{
        GardenPositionEvent, GardenTransportEvent, TransportCause, TransportState,
    };
    use ringback_proto::ids::{JobId, TokenId};
    use ringback_proto::record::JobState;

    use super::*;

    const NOW: Now = Now { mono: 0, unix: 7 };

    fn owner(number: u8) -> PrincipalId {
        PrincipalId::Token(TokenId::from_random([number; 16]))
    }

    fn state_changed(number: u8) -> Event {
        let job_id = JobId::from_random([number; 16]);
        Event::JobStateChanged { job_id, tool: "t".to_owned(), state: JobState::Running }
    }

    fn progress(number: u8) -> Event {
        let job_id = JobId::from_random([number; 16]);
        Event::JobProgress { job_id, percent: 1.0, message: String::new() }
    }

    #[test]
    fn numbers_have_no_gaps_in_all_in_a_topic_and_for_an_owner() {
        let mut ring = EventRing::new(3, 100);
        for number in 0..30 {
            let event = if number % 3 == 0 { progress(number) } else { state_changed(number) };
            ring.publish(NOW, event, owner(number % 2), None);
        }
        let all = ring.after(0, 100, &Visibility::All, |_| true);
        let seqs: Vec<_> = all.events.iter().map(|event| event.event.seq).collect();
        assert_eq!(seqs, (1..=30).collect::<Vec<_>>());
        let topic = ring.after(0, 100, &Visibility::All, |event| event.topic() == "job.progress");
        let seqs: Vec<_> = topic.events.iter().map(|event| event.event.topic_seq).collect();
        assert_eq!(seqs, (1..=10).collect::<Vec<_>>());

        let own = Visibility::Own { owner: owner(1), projects: vec![] };
        let page = ring.after(0, 100, &own, |event| event.topic() == "job.progress");
        let seqs: Vec<_> = page.events.iter().map(|event| event.owner_topic_seq).collect();
        assert_eq!(seqs, (1..=5).collect::<Vec<_>>());
        assert_eq!(ring.heads(NOW).topics["job.progress"], 10);
        assert_eq!(ring.heads_of(NOW, owner(1)).topics["job.progress"], 5);
    }

    #[test]
    fn numbers_of_a_project_have_no_gaps_also_with_several_owners() {
        let mut ring = EventRing::new(3, 100);
        let project = |number: u8| ProjectId::from_random([number; 16]);
        for number in 0..30 {
            let of = (number % 3 > 0).then(|| project(number % 3));
            ring.publish(NOW, state_changed(number), owner(number % 4), of);
        }
        let member = Visibility::Own { owner: owner(9), projects: vec![project(1)] };
        let page = ring.after(0, 100, &member, |_| true);
        let seqs: Vec<_> = page.events.iter().map(|event| event.project_topic_seq).collect();
        assert_eq!(seqs, (1..=10).collect::<Vec<_>>());
        assert_eq!(ring.heads_of_project(NOW, project(1)).topics["job.state_changed"], 10);
        assert!(ring.heads_of_project(NOW, project(7)).topics.is_empty());
    }

    #[test]
    fn a_reader_pages_through_everything_and_learns_how_many_it_missed() {
        let mut ring = EventRing::new(3, 10);
        for number in 0..25 {
            ring.publish(NOW, state_changed(number), owner(1), None);
        }
        let mut cursor = 0;
        let mut seen = Vec::new();
        let mut missed = 0;
        loop {
            let page = ring.after(cursor, 4, &Visibility::All, |_| true);
            missed += page.missed;
            cursor = page.cursor;
            if page.events.is_empty() {
                break;
            }
            seen.extend(page.events.iter().map(|event| event.event.seq));
        }
        assert_eq!(missed, 15);
        assert_eq!(seen, (16..=25).collect::<Vec<_>>());
        assert_eq!(ring.after(25, 4, &Visibility::All, |_| true).missed, 0);
        assert_eq!(EventRing::new(1, 4).after(0, 4, &Visibility::All, |_| true).missed, 0);
    }

    fn position() -> Event {
        Event::GardenPosition(GardenPositionEvent {
            position_beats: 1.0,
            state: TransportState::Playing,
            peaks: [0.0; 2],
        })
    }

    fn transport() -> Event {
        Event::GardenTransport(GardenTransportEvent {
            state: TransportState::Playing,
            position_beats: 1.0,
            tempo_bpm: 120.0,
            cause: TransportCause::Command,
            job_id: None,
        })
    }

    /// Rule: position events never push other events out of the ring.
    #[test]
    fn a_live_event_takes_no_number_and_no_place_in_the_ring() {
        let mut ring = EventRing::new(3, 4);
        ring.publish(NOW, state_changed(1), owner(1), None);
        for _ in 0..1000 {
            ring.publish(NOW, position(), owner(2), None);
        }
        ring.publish(NOW, state_changed(2), owner(1), None);
        let page = ring.after(0, 10, &Visibility::All, |_| true);
        let seqs: Vec<_> = page.events.iter().map(|event| event.event.seq).collect();
        assert_eq!((seqs, page.missed), (vec![1, 2], 0));
        assert!(!ring.heads(NOW).topics.contains_key("garden.position"));
        assert_eq!(ring.last_live(), 1000);
        assert_eq!(ring.live_after(998).len(), 2);
        assert_eq!(ring.live_after(0).len(), LIVE_MAX);
        assert_eq!(ring.live_after(1000).len(), 0);
    }

    #[test]
    fn a_shared_event_is_seen_by_everyone_with_the_same_numbers() {
        let mut ring = EventRing::new(3, 10);
        ring.publish(NOW, transport(), PrincipalId::Local, None);
        ring.publish(NOW, state_changed(1), owner(1), None);
        ring.publish(NOW, transport(), PrincipalId::Local, None);
        let stranger = Visibility::Own { owner: owner(7), projects: vec![] };
        let page = ring.after(0, 10, &stranger, |_| true);
        let seqs: Vec<_> = page.events.iter().map(|event| event.owner_topic_seq).collect();
        assert_eq!(seqs, [1, 2]);
        assert_eq!(ring.heads_of(NOW, owner(7)).topics["garden.transport"], 2);
    }

    #[test]
    fn a_cursor_passes_over_what_may_not_be_seen() {
        let mut ring = EventRing::new(3, 10);
        ring.publish(NOW, state_changed(1), owner(1), None);
        ring.publish(NOW, state_changed(2), owner(2), None);
        let page =
            ring.after(0, 4, &Visibility::Own { owner: owner(1), projects: vec![] }, |_| true);
        assert_eq!((page.events.len(), page.cursor), (1, 2));
    }
}
