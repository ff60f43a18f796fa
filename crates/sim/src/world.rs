//! The world around the daemon: it lives, crashes and lives again on one data directory.

mod callers;
mod crowd;
mod disk;
mod life;
mod ops;
mod parties;
mod recorder;

use std::fs::{self, File};
use std::path::Path;

use camino::{Utf8Path, Utf8PathBuf};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use ringback_proto::ids::{BlobHash, JobId, RequestId, TokenId};
use ringback_proto::record::UnixMs;
use ringback_proto::secret::Secret;
use ringback_store::audit::{Audit, AuditLimits};
use ringback_store::{ArtifactFilter, RowVisibility, Store, manual_writer};

use crate::history::{CallNo, CallerIndex, FinalState, History, HistoryEvent, Marker, Op};
use disk::Faults;
use life::LifeEnd;
use ops::marker_of;
use recorder::Recorder;

pub(crate) use crowd::simulate as simulate_crowd;

/// The start of the simulated time: any time that is not 0.
const BEGINNING: UnixMs = 1_800_000_000_000;
/// A start takes at least this long, so that every life has its own epoch of events.
const RESTART_MS: UnixMs = 50;
/// Rows per page when the truth is read.
const PAGE: usize = 500;

/// What outlasts a life of the daemon: its directory, its callers, and the dice.
struct World {
    rng: StdRng,
    dir: Utf8PathBuf,
    recorder: Recorder,
    callers: Vec<Caller>,
    /// Requests with an ID, to be repeated.
    repeatable: Vec<(CallerIndex, RequestId, Op)>,
    markers: std::collections::BTreeSet<Marker>,
    n_calls: CallNo,
    /// Content that was stored for every caller that may have artifacts.
    content: BlobHash,
}

/// A caller.
#[derive(Clone)]
struct Caller {
    /// `None` for the daemon's own user.
    token: Option<(TokenId, Secret)>,
}

/// Simulates one seed.
pub(crate) fn simulate(seed: u64) -> History {
    let guard = directory();
    let dir =
        Utf8Path::from_path(guard.path()).expect("temporary paths are valid UTF-8").join("data");
    let mut world = World::new(seed, dir);
    let n_lives = world.rng.random_range(2..=5);
    for life in 0..n_lives {
        let is_last = life + 1 == n_lives;
        let faults = if is_last { Faults::none() } else { Faults::draw(&mut world.rng) };
        let ended = world.live(faults, is_last);
        world.recorder.next_life(RESTART_MS);
        if let LifeEnd::Crashed = ended {
            manual_writer::restore_crashed(&world.dir).expect("the files of a crash can be moved");
            world.tear_audit();
        }
    }
    let mut truth = world.truth();
    truth.under_way = world.recorder.under_way();
    History { entries: world.recorder.into_entries(), truth }
}

impl World {
    fn new(seed: u64, dir: Utf8PathBuf) -> Self {
        Self {
            rng: StdRng::seed_from_u64(seed),
            dir,
            recorder: Recorder::new(BEGINNING),
            callers: vec![Caller { token: None }],
            repeatable: Vec::new(),
            markers: std::collections::BTreeSet::new(),
            n_calls: 0,
            content: BlobHash::from_bytes([0; 32]),
        }
    }

    /// Cuts the newest segment of the audit at any byte, as a power failure may.
    fn tear_audit(&mut self) {
        let segments = self.dir.join("audit").read_dir_utf8().expect("the audit exists");
        let newest =
            segments.map(|entry| entry.expect("the audit can be listed").into_path()).max();
        let Some(path) = newest else { return };
        let length = fs::metadata(&path).expect("a segment has a length").len();
        let cut = self.rng.random_range(0..=length);
        let file = File::options().write(true).open(&path).expect("a segment can be opened");
        file.set_len(cut).expect("a segment can be cut");
    }

    /// Reads the contents of the disk from a reopened store.
    fn truth(&self) -> FinalState {
        let store = Store::open(&self.dir).expect("the store opens after every life");
        let mut truth = FinalState { jobs: all_jobs(&store), ..FinalState::default() };
        let mut cursor = None;
        loop {
            let filter = ArtifactFilter::default();
            let page = store.artifacts(&RowVisibility::All, filter, cursor.as_deref(), PAGE);
            let page = page.expect("artifacts can be read");
            truth.made.extend(page.items.iter().filter_map(|found| marker_of(&found.creator)));
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        for token in store.tokens().expect("tokens can be read") {
            truth.made.extend(marker_of(&token.name));
            let is_its = |caller: &Caller| {
                caller.token.as_ref().is_some_and(|(token_id, _)| *token_id == token.id)
            };
            let Some(who) = self.callers.iter().position(is_its) else { continue };
            truth.revoked.extend(token.revoked_at.map(|_| who));
            truth.expiries.extend(token.expires_at.map(|at| (who, at)));
        }
        let audit = Audit::open(&self.dir, AuditLimits::default()).expect("the audit opens");
        truth.n_audit_lines = audit.page(None, usize::MAX).expect("the audit can be read").0.len();
        truth
    }

    fn note(&self, what: HistoryEvent) {
        self.recorder.note(what);
    }
}

fn all_jobs(store: &Store) -> Vec<(JobId, ringback_proto::record::JobState)> {
    let mut jobs = Vec::new();
    let mut cursor = None;
    loop {
        let page = store.jobs(&RowVisibility::All, None, cursor.as_deref(), PAGE);
        let page = page.expect("jobs can be read");
        jobs.extend(page.items.iter().map(|job| (job.id, job.state)));
        cursor = page.next_cursor;
        if cursor.is_none() {
            return jobs;
        }
    }
}

/// Returns a directory in memory if possible: syncs are free there.
fn directory() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.expect("a temporary directory can be made")
}
