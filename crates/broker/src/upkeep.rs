//! What goes on in the background: deadlines, and the removal of what is over.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::MissedTickBehavior;

use crate::shared::Shared;
use crate::sync::lock;

/// A token that expires closes its connections within a second.
const SWEEP_PERIOD: Duration = Duration::from_millis(500);
/// How many sweeps pass between two rounds of housekeeping: half a minute.
const SWEEPS_PER_ROUND: u32 = 60;
/// Expired jobs removed in one commit, so that housekeeping never holds up the writer for long.
const PURGE_MAX: usize = 500;

/// Starts the background tasks. They end when the broker stops.
pub(crate) fn start(shared: &Arc<Shared>) {
    drop(shared.kernel.tasks.spawn(deadlines(Arc::clone(shared))));
    drop(shared.kernel.tasks.spawn(housekeeping(Arc::clone(shared))));
    drop(shared.kernel.tasks.spawn(Arc::clone(shared).guard_disk()));
    drop(shared.kernel.tasks.spawn(Arc::clone(&shared.kernel).store_when_there_is_room()));
}

/// Tells calls, jobs and lines whose time is up.
async fn deadlines(shared: Arc<Shared>) {
    loop {
        let next = shared.kernel.alarm.set(|| nearest_deadline(&shared));
        let wait = async {
            match next {
                Some(at) => tokio::time::sleep_until(shared.kernel.clock.instant(at)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = shared.kernel.stopping.cancelled() => return,
            () = wait => expire(&shared),
            () = shared.kernel.alarm.rung() => {}
        }
    }
}

fn nearest_deadline(shared: &Shared) -> Option<u64> {
    let calls = shared.calls.next_deadline();
    let (jobs, lines) = (shared.jobs.next_deadline(), shared.lines.next_lapse());
    let idle = shared.sessions.next_idle();
    calls.into_iter().chain(jobs).chain(lines).chain(idle).min()
}

/// Waits for nothing: a store that does not answer must not hold up the deadlines after these.
fn expire(shared: &Arc<Shared>) {
    let now = shared.kernel.now();
    shared.calls.expire(now);
    shared.lines.expire(now);
    shared.end_idle_sessions();
    shared.expire_jobs(now);
}

/// Idempotent, one at a time, on a period.
async fn housekeeping(shared: Arc<Shared>) {
    let mut period = tokio::time::interval(SWEEP_PERIOD);
    period.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut n_sweeps = 0_u32;
    loop {
        tokio::select! {
            biased;
            () = shared.kernel.stopping.cancelled() => return,
            _ = period.tick() => {}
        }
        end_expired(&shared).await;
        if n_sweeps.is_multiple_of(SWEEPS_PER_ROUND) {
            round(&shared).await;
        }
        n_sweeps = n_sweeps.wrapping_add(1);
    }
}

/// What a token opened and started ends with it, also what was on its way when it was revoked.
async fn end_expired(shared: &Arc<Shared>) {
    let now = shared.kernel.now();
    shared.tokens.end_invalid(now);
    let owners = lock(&shared.sessions.table).owners();
    for owner in owners.into_iter().filter(|owner| shared.tokens.is_over(*owner, now)) {
        let why = "the token that started it is not valid any more";
        shared.end_sessions_of(owner, why).await;
    }
}

async fn round(shared: &Arc<Shared>) {
    let now = shared.kernel.now();
    shared.calls.repeats.forget(now);
    shared.take_reserve().await;
    shared.store_token_changes().await;
    let kernel = Arc::clone(&shared.kernel);
    let n_uploads = shared.kernel.blocking(move || Ok(kernel.uploads.expire(now.unix))).await;
    let purged = shared.kernel.store.purge_expired_async(now.unix, PURGE_MAX).await;
    match (n_uploads, purged) {
        (Ok(n_uploads), Ok(Ok(jobs))) => {
            tracing::debug!(n_uploads, n_jobs = jobs.len(), "housekeeping removed what is over");
        }
        (n_uploads, purged) => {
            tracing::warn!(?n_uploads, ?purged, "housekeeping did not finish; it will try again");
        }
    }
}

impl Shared {
    /// Stores when tokens were last used and which have expired.
    pub(crate) async fn store_token_changes(&self) {
        let changes = self.tokens.changes_to_store();
        if !changes.is_empty()
            && let Err(error) = self.kernel.commit(changes).await
        {
            tracing::warn!(%error, "cannot store the last use and expiry of tokens");
        }
    }
}
