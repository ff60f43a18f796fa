//! Regions whose content is still being made, or waits for approval.

use std::sync::Arc;

use ringback_core::garden::{self as rules, Verdict};
use ringback_proto::garden::RegionState;
use ringback_proto::garden::command::{self, SetRegionStateArguments};
use ringback_proto::ids::RegionId;
use ringback_proto::record::{RegionRecord, TimelineChange};
use ringback_proto::request::{GardenSettleRequest, GardenSettledResponse};
use ringback_proto::{Error, Result};

use super::timeline::{Order, Turn};
use super::{ACCEPT_WAIT, Garden, NoArguments};

impl Garden {
    /// Approves or rejects the content of a region.
    pub(crate) async fn decide(
        self: Arc<Self>,
        order: Order,
        region_id: RegionId,
        verdict: Verdict,
        reason: Option<String>,
    ) -> Result<RegionState> {
        self.changeable(&order, region_id).await?;
        self.ready(command::SET_REGION_STATE).await?;
        let turn = self.turn(ACCEPT_WAIT).await?;
        // What the region was before the turn may have changed since.
        let record = self.region(region_id).await?;
        let state = rules::decided(record.region.state, verdict)?;
        let arguments = SetRegionStateArguments { region_id, state, revision: turn.revision() };
        let (turn, NoArguments {}) = self
            .accepted(turn, command::SET_REGION_STATE, &arguments, order.job, ACCEPT_WAIT)
            .await?;
        let change = TimelineChange::State { id: region_id, state, reason };
        self.conclude(turn, change, record, state).await?;
        Ok(state)
    }

    /// Stores what became of the job that a region waits for. The garden says it once it has
    /// prepared the content; a second report changes nothing.
    pub(crate) async fn settle(
        self: Arc<Self>,
        report: GardenSettleRequest,
    ) -> Result<GardenSettledResponse> {
        let GardenSettleRequest { region_id, job_id, content, artifact_id, message } = report;
        let turn = self.turn(ACCEPT_WAIT).await?;
        let record = self.region(region_id).await?;
        let promise = record.region.promise.as_ref();
        if promise.is_none_or(|promise| promise.job_id != job_id) {
            let message = format!("{region_id} does not wait for {job_id}");
            return Err(Error::invalid_field("job_id", message));
        }
        if record.region.state != RegionState::Pending {
            let (state, revision) = (record.region.state, turn.revision() - 1);
            return Ok(GardenSettledResponse { state, revision });
        }
        let state = rules::settled(record.approval, content.is_some());
        let revision = turn.revision();
        let change = TimelineChange::Settled {
            id: region_id,
            state,
            content,
            artifact: artifact_id,
            reason: message,
        };
        self.conclude(turn, change, record, state).await?;
        Ok(GardenSettledResponse { state, revision })
    }

    async fn region(&self, id: RegionId) -> Result<RegionRecord> {
        let record = self.kernel.read(move |store| store.region(id)).await?;
        record.ok_or_else(|| Error::not_found("region", id))
    }

    /// Makes the new state of a region durable, and announces it.
    async fn conclude(
        self: &Arc<Self>,
        turn: Turn,
        change: TimelineChange,
        record: RegionRecord,
        state: RegionState,
    ) -> Result<()> {
        self.commit(turn, change).await?;
        if let Some(change) = rules::change_to(state) {
            self.announce(&record, change);
        }
        Ok(())
    }
}
