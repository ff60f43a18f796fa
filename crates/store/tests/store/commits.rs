//! Writing: atomic requests, grouped transactions, refusals, failures.

use std::sync::mpsc;

use crate::common::{TestStore, artifact, bytes16, created, ended, job, job_id, owner, started};
use ringback_proto::ids::{AnnotationId, ArtifactId, BlobHash, RequestId, TokenId, VariationSetId};
use ringback_proto::record::{AnnotationRecord, JobState, Record, RepeatKey};
use ringback_store::{CommitError, Limits, QueueFull, RowVisibility, WriteOutcome};

#[test]
fn a_refused_request_leaves_nothing_and_does_not_touch_its_neighbours() {
    let test = TestStore::new();
    let release = test.hold_writer();
    let (sender, outcomes) = mpsc::channel();
    let requests = [
        vec![created(1), created(2)],
        vec![created(3), started(2), started(2), created(4)],
        vec![started(1), created(5)],
        vec![created(1)],
        vec![created(6), ended(6, JobState::Complete)],
    ];
    for (idx, records) in requests.into_iter().enumerate() {
        let sender = sender.clone();
        let done = move |outcome: Result<Vec<WriteOutcome>, _>| {
            sender.send((idx, outcome.map(|applied| applied.len()))).unwrap();
        };
        test.store.commit(records, Box::new(done)).unwrap();
    }
    let before = test.store.stats();
    drop((release, sender));
    let outcomes: Vec<_> = outcomes.iter().collect();
    assert_eq!(outcomes.iter().map(|(idx, _)| *idx).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    let lengths: Vec<_> = outcomes.iter().map(|(_, outcome)| outcome.as_ref().ok()).collect();
    assert_eq!(lengths, [Some(&2), None, Some(&2), None, Some(&2)]);
    assert!(matches!(
        outcomes[1].1,
        Err(CommitError::Stale { id, state: JobState::Running }) if id == job_id(2)
    ));
    assert!(matches!(outcomes[3].1, Err(CommitError::Taken { .. })));
    let states: Vec<_> =
        (1..=6).map(|n| test.store.job(job_id(n)).unwrap().map(|job| job.state)).collect();
    assert_eq!(
        states,
        [
            Some(JobState::Running),
            Some(JobState::Pending),
            None,
            None,
            Some(JobState::Pending),
            Some(JobState::Complete),
        ]
    );
    assert_eq!(test.store.stats().commits - before.commits, 1);
}

/// Rule: a lock of another program costs the commits that meet it, not those after it.
#[test]
fn a_database_that_another_program_locks_is_written_again_when_it_is_free() {
    let test = TestStore::new();
    let other = rusqlite::Connection::open(test.path().join("ringback.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = test.commit(vec![created(1)]);
    assert!(matches!(refused, Err(CommitError::Locked)), "{refused:?}");
    assert!(test.store.job(job_id(1)).unwrap().is_none());
    other.execute_batch("ROLLBACK").unwrap();
    test.commit(vec![created(1)]).unwrap();
    assert!(test.store.job(job_id(1)).unwrap().is_some());
}

/// Rule: many durable commits cost few syncs.
#[test]
fn what_waits_becomes_one_transaction_and_answers_come_in_order() {
    let test = TestStore::new();
    let release = test.hold_writer();
    let (sender, answers) = mpsc::channel();
    for n in 0..600 {
        let sender = sender.clone();
        let done = move |outcome: Result<_, _>| sender.send((n, outcome.is_ok())).unwrap();
        test.store.commit(vec![created(n)], Box::new(done)).unwrap();
    }
    let before = test.store.stats();
    drop((release, sender));
    assert!(answers.iter().eq((0..600).map(|n| (n, true))));
    let after = test.store.stats();
    assert_eq!(after.requests - before.requests, 600);
    assert_eq!(after.commits - before.commits, 3);
}

/// Rule: a full queue answers immediately instead of growing.
#[test]
fn a_full_queue_refuses() {
    let test = TestStore::with(Limits { queue_max: 3, readers_max: 1, ..Limits::default() });
    let release = test.hold_writer();
    for n in 0..3 {
        test.store.commit(vec![created(n)], Box::new(|_| ())).unwrap();
    }
    assert_eq!(test.store.commit(vec![created(3)], Box::new(|_| ())), Err(QueueFull));
    drop(release);
    test.store.close();
    assert!(test.store.job(job_id(2)).unwrap().is_some());
    assert!(test.store.job(job_id(3)).unwrap().is_none());
    assert!(matches!(test.commit(vec![created(3)]), Err(CommitError::Closed)));
}

#[test]
fn a_job_only_goes_forward() {
    let test = TestStore::new();
    test.commit(vec![created(1)]).unwrap();
    let not_an_end = test.commit(vec![ended(1, JobState::Running)]);
    assert!(matches!(not_an_end, Err(CommitError::NotAnEnd { .. })));
    test.commit(vec![started(1)]).unwrap();
    test.commit(vec![ended(1, JobState::Cancelled)]).unwrap();
    for record in [started(1), ended(1, JobState::Complete)] {
        let refused = test.commit(vec![record]);
        assert!(matches!(refused, Err(CommitError::Stale { state: JobState::Cancelled, .. })));
    }
    assert!(matches!(test.commit(vec![started(9)]), Err(CommitError::NoJob { .. })));
    let job = test.store.job(job_id(1)).unwrap().unwrap();
    assert_eq!((job.state, job.completed_at), (JobState::Cancelled, Some(3_000)));
}

/// Rule: what a refused request wrote is undone, including what the writer remembers of it.
#[test]
fn a_job_whose_creation_was_undone_neither_starts_nor_ends() {
    let test = TestStore::new();
    let release = test.hold_writer();
    let (sender, answers) = mpsc::channel();
    let requests =
        [vec![created(1)], vec![created(2), started(9)], vec![started(1)], vec![started(2)]];
    for records in requests {
        let sender = sender.clone();
        let done = move |outcome: Result<_, _>| sender.send(outcome.is_ok()).unwrap();
        test.store.commit(records, Box::new(done)).unwrap();
    }
    drop((release, sender));
    assert!(answers.iter().eq([true, false, true, false]));
    let nothing = test.commit(vec![ended(2, JobState::Complete)]);
    assert!(matches!(nothing, Err(CommitError::NoJob { .. })), "{nothing:?}");
    test.commit(vec![ended(1, JobState::Complete)]).unwrap();
    assert_eq!(test.store.job(job_id(1)).unwrap().unwrap().state, JobState::Complete);
    assert!(test.store.job(job_id(2)).unwrap().is_none());
}

/// Rule: a retry with the same request id does not run the tool twice.
#[test]
fn a_request_id_makes_one_job_per_owner() {
    let test = TestStore::new();
    let repeat = RepeatKey {
        request_id: RequestId::from_bytes(bytes16(1)),
        body_hash: BlobHash::from_bytes([1; 32]),
    };
    let with_repeat = |n, of| {
        let mut record = job(n, owner(of), None);
        record.repeat = Some(repeat);
        Record::JobCreated(Box::new(record))
    };
    test.commit(vec![with_repeat(1, 1)]).unwrap();
    test.commit(vec![with_repeat(2, 2)]).unwrap();
    let refused = test.commit(vec![with_repeat(3, 1)]);
    assert!(matches!(refused, Err(CommitError::Repeated { existing }) if existing == job_id(1)));
    let found = test.store.job_by_repeat(owner(1), repeat.request_id).unwrap().unwrap();
    assert_eq!((found.id, found.repeat), (job_id(1), Some(repeat)));
}

#[test]
fn variations_are_numbered_by_the_store_also_within_one_request() {
    let test = TestStore::new();
    let variation = |n| {
        let mut record = artifact(n, owner(1), None);
        record.variation_set_id = Some(VariationSetId::from_random(bytes16(1)));
        Record::ArtifactCreated(Box::new(record))
    };
    let index = |variation_index| WriteOutcome::ArtifactCreated { variation_index };
    let applied = test.commit(vec![variation(1), variation(2)]).unwrap();
    assert_eq!(applied, [index(Some(0)), index(Some(1))]);
    assert_eq!(test.commit(vec![variation(3)]).unwrap(), [index(Some(2))]);
    let plain = Record::ArtifactCreated(Box::new(artifact(4, owner(1), None)));
    assert_eq!(test.commit(vec![plain]).unwrap(), [index(None)]);
    let third = ArtifactId::from_random(bytes16(3));
    let stored = test.store.artifact(third, &RowVisibility::All).unwrap().unwrap();
    assert_eq!(stored.variation_index, Some(2));
}

#[test]
fn what_a_record_refers_to_must_exist() {
    let test = TestStore::new();
    let mut child = artifact(2, owner(1), None);
    child.parent_id = Some(ArtifactId::from_random(bytes16(1)));
    let child = Record::ArtifactCreated(Box::new(child));
    assert!(matches!(test.commit(vec![child.clone()]), Err(CommitError::NoParent { .. })));
    let parent = Record::ArtifactCreated(Box::new(artifact(1, owner(1), None)));
    test.commit(vec![parent, child]).unwrap();

    let remark = |artifact| {
        Record::AnnotationAdded(AnnotationRecord {
            id: AnnotationId::from_random(bytes16(artifact)),
            artifact_id: ArtifactId::from_random(bytes16(artifact)),
            message: "warm".to_owned(),
            source: "a listener".to_owned(),
            vibe: Some("dusk".to_owned()),
            created_at: 5,
        })
    };
    assert!(matches!(test.commit(vec![remark(9)]), Err(CommitError::NoArtifact { .. })));
    test.commit(vec![remark(1)]).unwrap();
    let id = ArtifactId::from_random(bytes16(1));
    assert_eq!(test.store.annotations(id, 10).unwrap()[0].message, "warm");
    let revoked = Record::TokenRevoked { id: TokenId::from_random(bytes16(1)), at: 1 };
    assert!(matches!(test.commit(vec![revoked]), Err(CommitError::NoToken { .. })));
}

#[test]
fn a_store_that_failed_once_writes_no_more_but_still_reads() {
    let test = TestStore::new();
    test.commit(vec![created(1)]).unwrap();
    let intruder = rusqlite::Connection::open(test.path().join("ringback.db")).unwrap();
    intruder.execute_batch("ALTER TABLE job_count RENAME TO hidden").unwrap();
    assert!(matches!(test.commit(vec![created(2)]), Err(CommitError::Failed { .. })));
    intruder.execute_batch("ALTER TABLE hidden RENAME TO job_count").unwrap();
    assert!(matches!(test.commit(vec![created(3)]), Err(CommitError::Failed { .. })));
    assert!(test.store.job(job_id(1)).unwrap().is_some());
    assert!(test.store.job(job_id(2)).unwrap().is_none());
}

#[test]
fn a_callback_that_panics_does_not_stop_the_writer() {
    let test = TestStore::new();
    test.store.commit(vec![created(1)], Box::new(|_| panic!("on purpose"))).unwrap();
    test.commit(vec![created(2)]).unwrap();
    assert!(test.store.job(job_id(1)).unwrap().is_some());
}

#[test]
fn the_last_handle_may_go_inside_a_callback() {
    let TestStore { store, dir } = TestStore::new();
    let (sender, done) = mpsc::channel();
    let handle = store.clone();
    let (gone_tx, gone) = mpsc::channel::<()>();
    store
        .commit(
            vec![created(1)],
            Box::new(move |_| {
                gone.recv().unwrap_err();
                drop(handle);
                sender.send(()).unwrap();
            }),
        )
        .unwrap();
    drop(store);
    drop(gone_tx);
    done.recv().unwrap();
    drop(dir);
}

#[test]
fn ended_jobs_are_dropped_when_their_time_is_over() {
    let test = TestStore::new();
    for n in 1..=4 {
        test.commit(vec![created(n)]).unwrap();
    }
    for n in 1..=3 {
        test.commit(vec![ended(n, JobState::Failed)]).unwrap();
    }
    let purge = |now, limit| {
        let (sender, receiver) = mpsc::channel();
        let done = move |outcome| sender.send(outcome).unwrap();
        test.store.purge_expired(now, limit, Box::new(done)).unwrap();
        receiver.recv().unwrap().unwrap()
    };
    assert!(purge(3_999, 10).is_empty());
    assert_eq!(purge(4_000, 2).len(), 2);
    assert_eq!(purge(4_000, 10), [job_id(3)]);
    assert!(test.store.job(job_id(1)).unwrap().is_none());
    assert!(test.store.job(job_id(4)).unwrap().is_some());
}
