//! The disk: it is slow, full now and then, and ends lives.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;
use ringback_proto::envelope::RequestEnvelope;
use ringback_proto::record::{JobRecord, Record};
use ringback_proto::{ToolCall, ToolRequest};
use ringback_store::manual_writer::{Fault, ManualWriter};
use tokio_util::sync::CancellationToken;

use super::ops::marker_of;
use super::recorder::Recorder;
use crate::history::{Durable, HistoryEvent, Marker};

/// The longest commit.
const COMMIT_MS_MAX: u64 = 4;
/// The most commits before a crash, if there is one: most lives have more.
const COMMITS_MAX: u32 = 50;

/// The faults of one life.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Faults {
    /// The probability that the disk is full.
    full_share: f64,
    /// The commit that ends the life, and how.
    crash: Option<(u32, Fault)>,
}

impl Faults {
    pub(crate) const fn none() -> Self {
        Self { full_share: 0.0, crash: None }
    }

    pub(crate) fn draw(rng: &mut StdRng) -> Self {
        let full_share = if rng.random_bool(0.5) { 0.0 } else { 0.05 };
        let crash = rng.random_bool(0.85).then(|| {
            let fault = match rng.random_range(0..4) {
                0 => Fault::CrashBefore,
                1 => Fault::CrashWithin(rng.random_range(1..255)),
                _ => Fault::CrashAfter,
            };
            (rng.random_range(1..COMMITS_MAX), fault)
        });
        Self { full_share, crash }
    }
}

/// The disk of one life.
pub(crate) struct Disk {
    pub(crate) hand: ManualWriter,
    pub(crate) faults: Faults,
    pub(crate) rng: StdRng,
    pub(crate) recorder: Recorder,
    /// Set once the world is set up; faults start then.
    pub(crate) is_set_up: Arc<AtomicBool>,
    pub(crate) crashed: CancellationToken,
}

impl Disk {
    /// Writes pending commits until the life ends.
    pub(crate) async fn run(mut self) {
        let mut n_commits = 0;
        loop {
            self.hand.waiting().await;
            tokio::time::sleep(Duration::from_millis(self.rng.random_range(0..=COMMIT_MS_MAX)))
                .await;
            let mut fault = Fault::None;
            if self.is_set_up.load(Ordering::Relaxed) {
                n_commits += 1;
                fault = self.fault(n_commits);
            }
            self.turn(fault);
        }
    }

    fn fault(&mut self, n_commits: u32) -> Fault {
        match self.faults.crash {
            Some((commit, fault)) if n_commits >= commit => fault,
            _ if self.rng.random_bool(self.faults.full_share) => Fault::DiskFull,
            _ => Fault::None,
        }
    }

    fn turn(&mut self, fault: Fault) {
        let turn = self.hand.turn(fault).expect("the simulated disk works");
        for record in turn.written.iter().flatten() {
            if let Some(durable) = durable(record) {
                self.recorder.note(HistoryEvent::Durable(durable));
            }
        }
        for job in turn.purged {
            self.recorder.note(HistoryEvent::Durable(Durable::Purged(job)));
        }
        if fault == Fault::DiskFull {
            self.recorder.note(HistoryEvent::DiskFull);
        }
        if turn.crashed {
            self.recorder.note(HistoryEvent::Crashed);
            self.crashed.cancel();
        }
    }
}

fn durable(record: &Record) -> Option<Durable> {
    match record {
        Record::JobCreated(job) => Some(Durable::Created {
            job: job.id,
            marker: slept(job)?,
            owner: job.owner,
            request_id: job.repeat.map(|repeat| repeat.request_id),
            state: job.state,
        }),
        Record::JobStarted { id, .. } => Some(Durable::Began(*id)),
        Record::JobEnded { id, end } => Some(Durable::Ended(*id, end.state)),
        Record::ArtifactCreated(artifact) => marker_of(&artifact.creator).map(Durable::Made),
        Record::TokenCreated(token) => marker_of(&token.name).map(Durable::Made),
        Record::TokenRevoked { id, .. } => Some(Durable::Revoked(*id)),
        Record::SourceAdded(_)
        | Record::IdentityBound(_)
        | Record::IdentityTagged { .. }
        | Record::IdentitiesConnected(_)
        | Record::AnnotationAdded(_)
        | Record::TokenUsed { .. }
        | Record::BlobUploaded { .. }
        | Record::ProjectCreated(_)
        | Record::ProjectPermissions { .. }
        | Record::ProjectDeleted { .. }
        | Record::WorkspaceCreated(_)
        | Record::WorkspaceUsed { .. }
        | Record::WorkspaceDeleted { .. }
        | Record::SessionCreated(_)
        | Record::SessionChanged { .. }
        | Record::SessionNetwork { .. }
        | Record::SessionSpent { .. }
        | Record::SessionDeleted { .. }
        | Record::Timeline { .. }
        | Record::Heard(_) => None,
    }
}

fn slept(job: &JobRecord) -> Option<Marker> {
    let envelope = RequestEnvelope::decode(&job.request).ok()?;
    if let ToolCall::Native(ToolRequest::JobSleep(sleep)) = envelope.request {
        return Some(sleep.milliseconds);
    }
    None
}
