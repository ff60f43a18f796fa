//! Real-time scheduling: asked for, never required.

use thread_priority::unix::{
    RealtimeThreadSchedulePolicy, ThreadSchedulePolicy, set_thread_priority_and_policy,
    thread_native_id,
};
use thread_priority::{ThreadPriority, ThreadPriorityValue};

/// Above ordinary threads, below those of the kernel and of the sound server.
const PRIORITY: u8 = 20;

/// Asks for real-time scheduling of the calling thread; returns whether it was granted.
#[must_use]
pub(crate) fn request() -> bool {
    let Ok(priority) = ThreadPriorityValue::try_from(PRIORITY) else { return false };
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::RoundRobin);
    let granted = set_thread_priority_and_policy(
        thread_native_id(),
        ThreadPriority::Crossplatform(priority),
        policy,
    );
    if let Err(error) = &granted {
        tracing::info!(?error, "no real-time scheduling; playback may stutter on a busy machine");
    }
    granted.is_ok()
}
