//! Background tasks: deadlines, and the removal of what has ended.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::MissedTickBehavior;

use crate::rooms::Rooms;
use crate::sync::lock;

/// The connections of a token that expires are closed within a second.
const SWEEP_PERIOD: Duration = Duration::from_millis(500);
/// The number of sweeps between two rounds of housekeeping: half a minute.
const SWEEPS_PER_ROUND: u32 = 60;
/// The number of expired jobs removed in one commit, so that housekeeping never blocks the writer
/// for long.
const PURGE_MAX: usize = 500;

/// Starts the background tasks. They end when the broker stops.
pub(crate) fn start(rooms: &Arc<Rooms>) {
    drop(rooms.kernel.tasks.spawn(deadlines(Arc::clone(rooms))));
    drop(rooms.kernel.tasks.spawn(housekeeping(Arc::clone(rooms))));
    drop(rooms.kernel.tasks.spawn(Arc::clone(&rooms.disk).guard_disk()));
    drop(rooms.kernel.tasks.spawn(Arc::clone(&rooms.kernel).store_when_there_is_room()));
}

/// Stops calls, jobs and lines whose time is up.
async fn deadlines(rooms: Arc<Rooms>) {
    loop {
        let next = rooms.kernel.alarm.set(|| nearest_deadline(&rooms));
        let wait = async {
            match next {
                Some(at) => tokio::time::sleep_until(rooms.kernel.clock.instant(at)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = rooms.kernel.stopping.cancelled() => return,
            () = wait => expire(&rooms),
            () = rooms.kernel.alarm.rung() => {}
        }
    }
}

fn nearest_deadline(rooms: &Rooms) -> Option<u64> {
    let calls = rooms.calls.next_deadline();
    let (jobs, lines) = (rooms.jobs.next_deadline(), rooms.lines.next_lapse());
    let idle = rooms.register.next_idle();
    calls.into_iter().chain(jobs).chain(lines).chain(idle).min()
}

/// Does not wait: a store that does not answer must not delay later deadlines.
fn expire(rooms: &Arc<Rooms>) {
    let now = rooms.kernel.now();
    rooms.calls.expire(now);
    rooms.lines.expire(now);
    rooms.sessions.end_idle_sessions();
    rooms.jobs.expire_jobs(now);
}

/// Idempotent, one at a time, periodic.
async fn housekeeping(rooms: Arc<Rooms>) {
    let mut period = tokio::time::interval(SWEEP_PERIOD);
    period.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut n_sweeps = 0_u32;
    loop {
        tokio::select! {
            biased;
            () = rooms.kernel.stopping.cancelled() => return,
            _ = period.tick() => {}
        }
        end_expired(&rooms).await;
        if n_sweeps.is_multiple_of(SWEEPS_PER_ROUND) {
            round(&rooms).await;
        }
        n_sweeps = n_sweeps.wrapping_add(1);
    }
}

/// Ends everything that an invalid token opened and started, including what was in progress when it
/// was revoked.
async fn end_expired(rooms: &Arc<Rooms>) {
    let now = rooms.kernel.now();
    rooms.identity.tokens.end_invalid(now);
    let owners = lock(&rooms.register.table).owners();
    for owner in owners.into_iter().filter(|owner| rooms.identity.tokens.is_over(*owner, now)) {
        let why = "the token that started it is no longer valid";
        rooms.sessions.end_sessions_of(owner, why).await;
    }
}

async fn round(rooms: &Arc<Rooms>) {
    let now = rooms.kernel.now();
    rooms.calls.repeats.forget(now);
    rooms.disk.take_reserve().await;
    rooms.identity.store_token_changes().await;
    let kernel = Arc::clone(&rooms.kernel);
    let n_uploads = rooms.kernel.blocking(move || Ok(kernel.uploads.expire(now.unix))).await;
    let purged = rooms.kernel.store.purge_expired_async(now.unix, PURGE_MAX).await;
    match (n_uploads, purged) {
        (Ok(n_uploads), Ok(Ok(jobs))) => {
            tracing::debug!(
                n_uploads,
                n_jobs = jobs.len(),
                "housekeeping removed expired uploads and jobs"
            );
        }
        (n_uploads, purged) => {
            tracing::warn!(?n_uploads, ?purged, "housekeeping did not finish and will try again");
        }
    }
}
