//! Changes of the timeline, one at a time: the garden accepts one, then it is committed, then its
//! caller is answered.

use std::sync::Arc;
use std::time::Duration;

use ringback_core::garden as rules;
use ringback_proto::garden::command::{
    self, CreateRegionAnswer, CreateRegionArguments, DeleteRegionArguments, MoveRegionArguments,
    PrepareRegionArguments, SetLoopArguments, SetTempoArguments, TempoAnswer, TimeSignature,
};
use ringback_proto::garden::{
    GardenAt, GardenRegion, GardenRegionEvent, GardenTimeline, LoopRange, RegionChange, SERVICE,
    TempoChange, Ticks,
};
use ringback_proto::ids::{JobId, RegionId};
use ringback_proto::principal::Principal;
use ringback_proto::record::{Record, RegionRecord, TimelineChange};
use ringback_proto::{Certainty, Error, Event, Result};
use ringback_store::{StoredTimeline, TimelineSize};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::OwnedSemaphorePermit;

use super::{ACCEPT_WAIT, Garden, NoArguments};

/// The garden decodes a region's content before it accepts it: an hour of sound takes seconds.
const CONTENT_WAIT: Duration = Duration::from_secs(20);
/// After the last tick that a region can end at.
const END: Ticks = Ticks(u64::MAX >> 1);

/// The turn to change the timeline.
#[derive(Debug)]
pub(super) struct Turn {
    _permit: OwnedSemaphorePermit,
    size: TimelineSize,
}

impl Turn {
    /// Returns the revision that a change of this turn makes.
    pub(super) const fn revision(&self) -> u64 {
        self.size.revision + 1
    }
}

/// The caller of a change.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    pub(crate) principal: Arc<Principal>,
    pub(crate) job: Option<JobId>,
}

/// A new tempo.
#[derive(Debug)]
pub(crate) struct NewTempo {
    pub(crate) bpm: f64,
    pub(crate) position: Option<Ticks>,
    pub(crate) time_signature: Option<TimeSignature>,
    pub(crate) at: Option<GardenAt>,
}

impl Garden {
    /// Returns the stored timeline, or the part that overlaps a range.
    pub(crate) async fn timeline(
        &self,
        start: Option<Ticks>,
        end: Option<Ticks>,
    ) -> Result<StoredTimeline> {
        let (start, end) = (start.unwrap_or_default(), end.unwrap_or(END));
        self.kernel.read(move |store| store.timeline(start, end)).await
    }

    /// Returns the whole timeline as the garden plays it.
    pub(crate) async fn whole(&self) -> Result<GardenTimeline> {
        let StoredTimeline { revision, tempo, loop_range, regions } =
            self.timeline(None, None).await?;
        let regions = regions.into_iter().map(|record| record.region).collect();
        Ok(GardenTimeline { revision, tempo, loop_range, regions })
    }

    /// Places a region. Returns it with its length.
    pub(crate) async fn place(
        self: Arc<Self>,
        order: Order,
        mut record: RegionRecord,
    ) -> Result<RegionRecord> {
        self.ready(command::CREATE_REGION).await?;
        self.prepare(&record.region, order.job).await?;
        let turn = self.turn(CONTENT_WAIT).await?;
        let n_new = u64::from(record.region.repeat);
        rules::check_room("regions", n_new, turn.size.n_regions, rules::REGIONS_MAX)?;
        let (region, revision) = (record.region.clone(), turn.revision());
        let arguments = CreateRegionArguments { region, revision };
        let (turn, answer) = self
            .accepted::<CreateRegionAnswer>(
                turn,
                command::CREATE_REGION,
                &arguments,
                order.job,
                CONTENT_WAIT,
            )
            .await?;
        record.region.duration = Some(answer.duration);
        self.commit(turn, TimelineChange::Placed(Box::new(record.clone()))).await?;
        self.announce(&record, RegionChange::Created);
        Ok(record)
    }

    /// Lets the garden prepare the content of a region. This takes no turn: changes of others need
    /// not wait for a decoder.
    async fn prepare(&self, region: &GardenRegion, job: Option<JobId>) -> Result<()> {
        let tool = command::PREPARE_REGION;
        if region.content.is_none() || !self.lines.serves(SERVICE, tool) {
            return Ok(());
        }
        let arguments = PrepareRegionArguments { region: region.clone() };
        let NoArguments {} = self.ask(SERVICE, tool, &arguments, job, CONTENT_WAIT).await?;
        Ok(())
    }

    /// Moves a region.
    pub(crate) async fn move_region(
        self: Arc<Self>,
        order: Order,
        id: RegionId,
        position: Ticks,
    ) -> Result<()> {
        let mut record = self.changeable(&order, id).await?;
        self.ready(command::MOVE_REGION).await?;
        let turn = self.turn(ACCEPT_WAIT).await?;
        let arguments = MoveRegionArguments { region_id: id, position, revision: turn.revision() };
        let (turn, NoArguments {}) =
            self.accepted(turn, command::MOVE_REGION, &arguments, order.job, ACCEPT_WAIT).await?;
        self.commit(turn, TimelineChange::Moved { id, position }).await?;
        record.region.position = position;
        self.announce(&record, RegionChange::Moved);
        Ok(())
    }

    /// Removes a region.
    pub(crate) async fn delete_region(self: Arc<Self>, order: Order, id: RegionId) -> Result<()> {
        let record = self.changeable(&order, id).await?;
        self.ready(command::DELETE_REGION).await?;
        let turn = self.turn(ACCEPT_WAIT).await?;
        let arguments = DeleteRegionArguments { region_id: id, revision: turn.revision() };
        let (turn, NoArguments {}) =
            self.accepted(turn, command::DELETE_REGION, &arguments, order.job, ACCEPT_WAIT).await?;
        self.deleted.add(id, record.artifact);
        self.commit(turn, TimelineChange::Deleted { id }).await?;
        self.announce(&record, RegionChange::Deleted);
        Ok(())
    }

    /// Sets the tempo. Returns the point of the tempo map; the garden decides where it lands.
    pub(crate) async fn set_tempo(
        self: Arc<Self>,
        order: Order,
        tempo: NewTempo,
    ) -> Result<TempoChange> {
        self.ready(command::SET_TEMPO).await?;
        let turn = self.turn(ACCEPT_WAIT).await?;
        let n_points = turn.size.n_tempo_changes;
        rules::check_room("changes of tempo", 1, n_points, rules::TEMPO_CHANGES_MAX)?;
        let NewTempo { bpm, position, time_signature, at } = tempo;
        let revision = turn.revision();
        let arguments = SetTempoArguments { bpm, position, time_signature, at, revision };
        let (turn, TempoAnswer { change }) =
            self.accepted(turn, command::SET_TEMPO, &arguments, order.job, ACCEPT_WAIT).await?;
        self.commit(turn, TimelineChange::Tempo(change.clone())).await?;
        Ok(change)
    }

    /// Sets the loop, or ends it.
    pub(crate) async fn set_loop(
        self: Arc<Self>,
        order: Order,
        loop_range: Option<LoopRange>,
    ) -> Result<()> {
        self.ready(command::SET_LOOP).await?;
        let turn = self.turn(ACCEPT_WAIT).await?;
        let revision = turn.revision();
        let arguments = SetLoopArguments { loop_range: loop_range.clone(), revision };
        let (turn, NoArguments {}) =
            self.accepted(turn, command::SET_LOOP, &arguments, order.job, ACCEPT_WAIT).await?;
        self.commit(turn, TimelineChange::Loop(loop_range)).await
    }

    /// Returns a region that this caller may change.
    pub(super) async fn changeable(&self, order: &Order, id: RegionId) -> Result<RegionRecord> {
        let record = self.kernel.read(move |store| store.region(id)).await?;
        let record = record.ok_or_else(|| Error::not_found("region", id))?;
        if !rules::may_change(&order.principal, record.owner) {
            let what = format!("changing region {id}");
            return Err(Error::forbidden(&what, "the token that placed it"));
        }
        Ok(record)
    }

    /// Waits for the turn to change the timeline.
    pub(super) async fn turn(&self, limit: Duration) -> Result<Turn> {
        let full = || Error::busy("the queue of changes of the timeline");
        let _place = self.queue.try_acquire().map_err(|_| full())?;
        let turn = Arc::clone(&self.turn).acquire_owned();
        let permit = tokio::time::timeout(limit, turn).await.map_err(|_| full())?;
        let permit = permit.map_err(crate::failure::internal)?;
        let size = self.kernel.read(|store| store.timeline_size()).await?;
        Ok(Turn { _permit: permit, size })
    }

    /// Sends a change to the garden. If it may have accepted one that will not be stored, it has to
    /// read the timeline again.
    pub(super) async fn accepted<R: DeserializeOwned>(
        self: &Arc<Self>,
        turn: Turn,
        tool: &'static str,
        arguments: &impl Serialize,
        job: Option<JobId>,
        limit: Duration,
    ) -> Result<(Turn, R)> {
        match self.ask(SERVICE, tool, arguments, job, limit).await {
            Ok(answer) => Ok((turn, answer)),
            Err(error) => {
                if error.certainty() != Certainty::NotStarted {
                    self.reload(turn);
                }
                Err(error)
            }
        }
    }

    /// Makes an accepted change durable.
    pub(super) async fn commit(self: &Arc<Self>, turn: Turn, change: TimelineChange) -> Result<()> {
        let record = Record::Timeline { revision: turn.revision(), change };
        match self.kernel.commit(vec![record]).await {
            Ok(_) => Ok(()),
            Err(error) => {
                self.reload(turn);
                Err(error)
            }
        }
    }

    /// Lets the garden read the timeline again, before the next change.
    fn reload(self: &Arc<Self>, turn: Turn) {
        let garden = Arc::clone(self);
        drop(self.kernel.tasks.spawn(async move {
            let reloaded: Result<NoArguments> =
                garden.ask(SERVICE, command::RELOAD, &NoArguments {}, None, ACCEPT_WAIT).await;
            if let Err(error) = reloaded {
                tracing::warn!(%error, "the garden did not reload its timeline");
            }
            drop(turn);
        }));
    }

    pub(super) fn announce(&self, record: &RegionRecord, change: RegionChange) {
        let region = &record.region;
        let event = Event::GardenRegion(GardenRegionEvent {
            region_id: region.region_id,
            change,
            position_beats: region.position.beats(),
            duration_beats: region.duration.map(Ticks::beats),
            message: None,
        });
        self.kernel.publish(event, record.owner, record.project);
    }
}
