//! The edge: its routes and its background work.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::{get, post};
use ringback_broker::Broker;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::state::State;
use crate::{caller, legacy};

/// How often to look for ended MCP sessions, per idle timeout.
const SWEEPS_PER_IDLE: u32 = 4;
/// The shortest interval between two sweeps.
const SWEEP_MIN: Duration = Duration::from_millis(20);

/// The MCP edge. A clone is another handle.
#[derive(Debug, Clone)]
pub struct McpEdge {
    state: Arc<State>,
}

impl McpEdge {
    /// Creates an edge in front of a broker.
    #[must_use]
    pub fn new(config: Config, broker: Broker) -> Self {
        Self { state: Arc::new(State::new(config, broker)) }
    }

    /// Returns its routes, to attach to a listener.
    pub fn router(&self) -> Router {
        let endpoint =
            post(crate::post::post).get(legacy::get_stream).delete(legacy::delete_session);
        let agents =
            post(crate::agent::post).get(crate::agent::get_stream).delete(crate::agent::delete);
        let metadata = || get(caller::metadata);
        Router::new()
            .route("/mcp", endpoint)
            .route("/mcp/s/{session_id}", agents)
            .route(caller::METADATA_PATH, metadata())
            .route(&format!("{}/mcp", caller::METADATA_PATH), metadata())
            .with_state(Arc::clone(&self.state))
    }

    /// The number of MCP sessions.
    #[must_use]
    pub fn n_sessions(&self) -> usize {
        self.state.sessions.len()
    }

    /// Ends idle MCP sessions and announces changed lists until `stop`; then ends the streams that
    /// wait for changes, and waits for the running calls.
    ///
    /// # Cancel safety
    /// Dropping the future leaves MCP sessions unswept; their calls continue until the broker
    /// stops.
    pub async fn serve(self, stop: CancellationToken) {
        let limits = self.state.config.sessions;
        let period = (limits.idle.min(limits.handshake) / SWEEPS_PER_IDLE).max(SWEEP_MIN);
        let mut sweep = interval(period);
        sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut changed = self.state.broker.lines().changes();
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                _ = sweep.tick() => self.state.sessions.sweep(),
                Ok(()) = changed.changed() => self.state.sessions.tell_of_change(&self.state),
            }
        }
        self.state.stopping.cancel();
        self.state.calls.close();
        self.state.calls.wait().await;
        self.state.sessions.end_all();
    }
}
