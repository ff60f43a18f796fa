//! The garden's timeline in the store.

use camino::Utf8Path;
use ringback_proto::garden::{
    GardenContent, GardenPromise, GardenRegion, IfLate, LoopRange, RegionState, TempoChange, Ticks,
};
use ringback_proto::ids::{ArtifactId, BlobHash, JobId, RegionId};
use ringback_proto::record::{HeardRecord, JobState, Record, RegionRecord, TimelineChange};
use ringback_proto::request::RegionApproval;
use ringback_store::{CommitError, Store};

use crate::common::{bytes16, created, ended, job_id, owner, project, started};

fn region(n: u64, position: u64, duration: u64) -> RegionRecord {
    RegionRecord {
        region: GardenRegion {
            region_id: RegionId::from_random(bytes16(n)),
            position: Ticks(position),
            duration: Some(Ticks(duration)),
            state: RegionState::Ready,
            content: Some(content()),
            promise: None,
            repeat: 1,
            gain_db: -6.3,
            pan: -0.1,
            offset_seconds: 0.1,
            fade_in: Ticks(1),
            fade_out: Ticks(2),
            crossfade: Ticks(3),
            name: Some("drums".to_owned()),
        },
        owner: owner(n % 2),
        project: n.is_multiple_of(2).then(|| project(1)),
        artifact: None,
        approval: RegionApproval::Auto,
        reason: None,
        tags: vec!["a".to_owned()],
        created_at: n,
    }
}

fn content() -> GardenContent {
    GardenContent { hash: BlobHash::from_bytes([7; 32]), mime_type: "audio/wav".to_owned() }
}

fn placed(n: u64, position: u64, duration: u64) -> TimelineChange {
    TimelineChange::Placed(Box::new(region(n, position, duration)))
}

fn commit(store: &Store, revision: u64, change: TimelineChange) -> Result<(), CommitError> {
    crate::common::commit(store, vec![Record::Timeline { revision, change }]).map(|_| ())
}

const ALL: Ticks = Ticks(u64::MAX >> 1);

#[test]
fn a_timeline_reads_back_as_it_was_written_also_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let path = Utf8Path::from_path(dir.path()).unwrap();
    let tempo = TempoChange { at: Ticks(960), bpm: 90.5, beats_per_bar: 7, beat_unit: 8 };
    {
        let store = Store::open(path).unwrap();
        assert_eq!(store.timeline_size().unwrap().revision, 0);
        commit(&store, 1, placed(1, 960, 480)).unwrap();
        commit(&store, 2, placed(2, 0, 480)).unwrap();
        commit(&store, 3, TimelineChange::Tempo(TempoChange { bpm: 5.0, ..tempo.clone() }))
            .unwrap();
        commit(&store, 4, TimelineChange::Tempo(tempo.clone())).unwrap();
        let id = RegionId::from_random(bytes16(1));
        commit(&store, 5, TimelineChange::Moved { id, position: Ticks(1920) }).unwrap();
        store.close();
    }
    let store = Store::open(path).unwrap();
    let timeline = store.timeline(Ticks(0), ALL).unwrap();
    assert_eq!(timeline.revision, 5);
    assert_eq!(timeline.tempo, [tempo]);
    assert_eq!(timeline.regions, [region(2, 0, 480), region(1, 1920, 480)]);
    let id = RegionId::from_random(bytes16(2));
    assert_eq!(store.region(id).unwrap(), Some(region(2, 0, 480)));
    commit(&store, 6, TimelineChange::Deleted { id }).unwrap();
    assert_eq!(store.region(id).unwrap(), None);
    let size = store.timeline_size().unwrap();
    assert_eq!((size.revision, size.n_regions, size.n_tempo_changes), (6, 1, 1));
    store.close();
}

#[test]
fn a_range_has_the_regions_that_overlap_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(Utf8Path::from_path(dir.path()).unwrap()).unwrap();
    commit(&store, 1, placed(1, 0, 100)).unwrap();
    commit(&store, 2, placed(2, 100, 100)).unwrap();
    commit(&store, 3, placed(3, 150, 1000)).unwrap();
    for (start, end, expected) in
        [(0, 100, vec![1]), (99, 101, vec![1, 2]), (199, 200, vec![2, 3]), (1150, 2000, vec![])]
    {
        let found = store.timeline(Ticks(start), Ticks(end)).unwrap().regions;
        let found: Vec<_> = found.iter().map(|region| region.created_at).collect();
        assert_eq!(found, expected, "{start}..{end}");
    }
    store.close();
}

#[test]
fn a_change_that_is_not_the_next_revision_or_has_no_region_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(Utf8Path::from_path(dir.path()).unwrap()).unwrap();
    commit(&store, 1, placed(1, 0, 100)).unwrap();
    for revision in [0, 1, 3] {
        let refused = commit(&store, revision, placed(2, 0, 100)).unwrap_err();
        assert!(matches!(refused, CommitError::StaleTimeline { .. }), "{refused}");
    }
    let id = RegionId::from_random(bytes16(9));
    for change in [TimelineChange::Deleted { id }, TimelineChange::Moved { id, position: Ticks(1) }]
    {
        let refused = commit(&store, 2, change).unwrap_err();
        assert!(matches!(refused, CommitError::NoRegion { .. }), "{refused}");
    }
    let again = commit(&store, 2, placed(1, 5, 5)).unwrap_err();
    assert!(matches!(again, CommitError::Taken { .. }), "{again}");
    assert_eq!(store.timeline_size().unwrap().revision, 1);
    store.close();
}

/// Rule: a promise, what became of it, the loop and what was heard survive a restart.
#[test]
fn promises_loops_and_what_was_heard_read_back_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let path = Utf8Path::from_path(dir.path()).unwrap();
    let mut promised = region(1, 960, 480);
    promised.region.state = RegionState::Pending;
    promised.region.content = None;
    promised.region.repeat = 3;
    promised.region.promise =
        Some(GardenPromise { job_id: JobId::from_random(bytes16(9)), if_late: IfLate::Vamp });
    promised.approval = RegionApproval::Required;
    let id = promised.region.region_id;
    let artifact = ArtifactId::from_random(bytes16(5));
    let range = LoopRange { start: Ticks(0), end: Ticks(3840) };
    {
        let store = Store::open(path).unwrap();
        commit(&store, 1, TimelineChange::Placed(Box::new(promised.clone()))).unwrap();
        commit(&store, 2, TimelineChange::Loop(Some(range.clone()))).unwrap();
        assert_eq!(store.region(id).unwrap(), Some(promised.clone()));
        assert_eq!(store.timeline_size().unwrap().n_regions, 3, "each pass counts");
        let change = TimelineChange::Settled {
            id,
            state: RegionState::AwaitingApproval,
            content: Some(content()),
            artifact: Some(artifact),
            reason: None,
        };
        commit(&store, 3, change).unwrap();
        let reason = Some("too loud".to_owned());
        commit(&store, 4, TimelineChange::State { id, state: RegionState::Rejected, reason })
            .unwrap();
        let heard = |at| HeardRecord {
            region: id,
            artifact: Some(artifact),
            from: Ticks(960),
            to: Ticks(1000),
            at,
        };
        crate::common::commit(&store, vec![Record::Heard(vec![heard(5), heard(7)])]).unwrap();
        store.close();
    }
    let store = Store::open(path).unwrap();
    let timeline = store.timeline(Ticks(2000), ALL).unwrap();
    assert_eq!(timeline.loop_range, Some(range));
    let found = &timeline.regions[0];
    assert_eq!(found.region.state, RegionState::Rejected);
    assert_eq!(found.region.content, Some(content()));
    assert_eq!((found.artifact, found.reason.as_deref()), (Some(artifact), Some("too loud")));
    assert_eq!(found.region.promise, promised.region.promise);
    assert_eq!(store.last_heard().unwrap().get(&id), Some(&7));
    commit(&store, 5, TimelineChange::Loop(None)).unwrap();
    assert_eq!(store.timeline(Ticks(0), ALL).unwrap().loop_range, None);
    store.close();
}

/// Rule: a job bound to a region is kept while the region waits.
#[test]
fn a_job_that_a_region_waits_for_outlives_its_time() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(Utf8Path::from_path(dir.path()).unwrap()).unwrap();
    let mut waiting = region(1, 0, 480);
    waiting.region.state = RegionState::Pending;
    let promise = GardenPromise { job_id: job_id(1), if_late: IfLate::Silence };
    waiting.region.promise = Some(promise);
    commit(&store, 1, TimelineChange::Placed(Box::new(waiting.clone()))).unwrap();
    for n in [1, 2] {
        let records = vec![created(n), started(n), ended(n, JobState::Complete)];
        crate::common::commit(&store, records).unwrap();
    }
    let purge = || {
        let (sender, receiver) = std::sync::mpsc::channel();
        let done = move |purged: Result<_, _>| sender.send(purged.unwrap()).unwrap();
        store.purge_expired(1 << 40, 10, Box::new(done)).unwrap();
        receiver.recv().unwrap()
    };
    assert_eq!(purge(), [job_id(2)]);
    let settled = TimelineChange::Settled {
        id: waiting.region.region_id,
        state: RegionState::Ready,
        content: Some(content()),
        artifact: None,
        reason: None,
    };
    commit(&store, 2, settled).unwrap();
    assert_eq!(purge(), [job_id(1)]);
    store.close();
}
