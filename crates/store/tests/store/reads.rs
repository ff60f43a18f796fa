//! Reading: pages, visibility, tokens.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::common::{
    TestStore, artifact, bytes16, commit, created, ended, job, job_id, owner, project, started,
};
use ringback_proto::ids::{BlobHash, JobId, TokenId};
use ringback_proto::principal::{Level, PrincipalId, Target};
use ringback_proto::record::{JobState, Record, TokenRecord};
use ringback_store::{ArtifactFilter, ReadError, RowVisibility};

fn all_jobs(
    test: &TestStore,
    visible: &RowVisibility,
    state: Option<JobState>,
    limit: usize,
) -> Vec<JobId> {
    let (mut ids, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let page = test.store.jobs(visible, state, cursor.as_deref(), limit).unwrap();
        assert!(page.items.len() <= limit);
        ids.extend(page.items.into_iter().map(|job| job.id));
        match page.next_cursor {
            Some(next) => cursor = Some(next),
            None => return ids,
        }
    }
}

fn visible_to(of: u64, projects: &[u64]) -> RowVisibility {
    RowVisibility::Owner {
        owner: owner(of),
        projects: projects.iter().copied().map(project).collect(),
    }
}

#[test]
fn a_job_reads_back_as_it_was_written() {
    let test = TestStore::new();
    let mut record = job(1, owner(3), Some(project(1)));
    record.request = (0..=255_u8).collect::<Vec<_>>().into();
    test.commit(vec![Record::JobCreated(Box::new(record.clone()))]).unwrap();
    assert_eq!(test.store.job(record.id).unwrap(), Some(record));
    assert_eq!(test.store.job(job_id(2)).unwrap(), None);
}

#[test]
fn pages_hold_what_the_reader_may_see_newest_first_and_once() {
    let test = TestStore::new();
    for n in 0..60 {
        let record = job(n, owner(n % 3), (n % 4 != 0).then(|| project(n % 4)));
        test.commit(vec![Record::JobCreated(Box::new(record))]).unwrap();
        if n % 2 == 0 {
            test.commit(vec![started(n)]).unwrap();
        }
    }
    let expected = |keep: &dyn Fn(u64) -> bool| -> Vec<JobId> {
        (0..60).rev().filter(|n| keep(*n)).map(job_id).collect()
    };
    for limit in [1, 7, 100] {
        assert_eq!(all_jobs(&test, &RowVisibility::All, None, limit), expected(&|_| true));
        let running = Some(JobState::Running);
        assert_eq!(all_jobs(&test, &RowVisibility::All, running, limit), expected(&|n| n % 2 == 0));
        let mine = visible_to(1, &[2, 3, 2]);
        let seen = |n: u64| n % 3 == 1 || n % 4 == 2 || n % 4 == 3;
        assert_eq!(all_jobs(&test, &mine, None, limit), expected(&seen));
        assert_eq!(all_jobs(&test, &mine, running, limit), expected(&|n| seen(n) && n % 2 == 0));
        assert_eq!(all_jobs(&test, &visible_to(9, &[]), None, limit), []);
    }
    let counts = test.store.job_counts(&visible_to(1, &[2, 3, 2])).unwrap();
    let seen = all_jobs(&test, &visible_to(1, &[2, 3]), None, 100).len() as u64;
    assert_eq!(counts.total(), seen);
}

#[test]
fn a_cursor_that_is_not_ours_is_refused() {
    let test = TestStore::new();
    for cursor in ["", "-1", "0", "+1", "01", "A", "zz", "ffffffffffffffffffff", "é"] {
        let refused = test.store.jobs(&RowVisibility::All, None, Some(cursor), 10);
        assert!(matches!(refused, Err(ReadError::BadCursor)), "{cursor:?}");
    }
}

#[test]
fn paging_while_others_insert_skips_nothing_and_repeats_nothing() {
    let test = TestStore::new();
    test.commit((0..500).map(created).collect()).unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for n in 500.. {
                commit(&test.store, vec![created(n), started(n - 500)]).unwrap();
                if stop.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        for _ in 0..10 {
            let ids = all_jobs(&test, &RowVisibility::All, None, 13);
            let unique: BTreeSet<_> = ids.iter().copied().collect();
            assert_eq!(unique.len(), ids.len());
            assert!((0..500).all(|n| unique.contains(&job_id(n))));
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn unfinished_jobs_are_found_oldest_first() {
    let test = TestStore::new();
    test.commit((1..=4).map(created).collect()).unwrap();
    test.commit(vec![started(3), started(1), ended(1, JobState::Complete)]).unwrap();
    let ids: Vec<_> =
        test.store.unfinished_jobs().unwrap().into_iter().map(|job| (job.id, job.state)).collect();
    assert_eq!(
        ids,
        [
            (job_id(2), JobState::Pending),
            (job_id(3), JobState::Running),
            (job_id(4), JobState::Pending),
        ]
    );
}

#[test]
fn artifacts_are_listed_by_tag_creator_and_visibility() {
    let test = TestStore::new();
    let mut records = Vec::new();
    for n in 0..40 {
        let mut record = artifact(n, owner(n % 2), (n % 5 == 0).then(|| project(1)));
        record.creator = format!("creator {}", n % 3);
        record.tags = vec!["all".to_owned(), format!("t{}", n % 4), "all".to_owned()];
        records.push(record);
    }
    for record in &records {
        test.commit(vec![Record::ArtifactCreated(Box::new(record.clone()))]).unwrap();
    }
    for tag in [None, Some("all"), Some("t1"), Some("none")] {
        for creator in [None, Some("creator 2")] {
            for visible in [RowVisibility::All, visible_to(1, &[]), visible_to(1, &[1])] {
                let may_see = |n: u64| match &visible {
                    RowVisibility::All => true,
                    RowVisibility::Owner { projects, .. } => {
                        n % 2 == 1 || (n.is_multiple_of(5) && !projects.is_empty())
                    }
                    RowVisibility::Tree { .. } => false,
                };
                let expected: Vec<_> = (0..40_u64)
                    .collect::<Vec<_>>()
                    .into_iter()
                    .zip(&records)
                    .rev()
                    .filter(|(n, record)| {
                        may_see(*n)
                            && tag.is_none_or(|tag| record.tags.iter().any(|t| t == tag))
                            && creator.is_none_or(|creator| record.creator == creator)
                    })
                    .map(|(_, record)| record.clone())
                    .collect();
                let (mut listed, mut cursor) = (Vec::new(), None::<String>);
                loop {
                    let filter = ArtifactFilter { tag, creator };
                    let page =
                        test.store.artifacts(&visible, filter, cursor.as_deref(), 3).unwrap();
                    listed.extend(page.items);
                    cursor = page.next_cursor;
                    if cursor.is_none() {
                        break;
                    }
                }
                assert_eq!(listed, expected, "{tag:?} {creator:?} {visible:?}");
            }
        }
    }
}

#[test]
fn content_is_read_by_those_with_an_artifact_or_an_upload() {
    let test = TestStore::new();
    let (by_artifact, by_upload) = (BlobHash::from_bytes([7; 32]), BlobHash::from_bytes([8; 32]));
    let upload = |of, project| Record::BlobUploaded {
        hash: by_upload,
        owner: of,
        project,
        session: None,
        mime_type: "text/plain".to_owned(),
        at: 1,
    };
    test.commit(vec![
        Record::ArtifactCreated(Box::new(artifact(1, owner(1), Some(project(1))))),
        upload(owner(2), None),
        upload(owner(2), None),
        upload(owner(3), Some(project(3))),
    ])
    .unwrap();
    for (visible, artifact, upload) in [
        (RowVisibility::All, true, true),
        (visible_to(1, &[]), true, false),
        (visible_to(2, &[]), false, true),
        (visible_to(9, &[]), false, false),
        (visible_to(9, &[2, 1]), true, false),
        (visible_to(9, &[3]), false, true),
    ] {
        assert_eq!(test.store.may_read_blob(by_artifact, &visible).unwrap(), artifact);
        assert_eq!(test.store.may_read_blob(by_upload, &visible).unwrap(), upload);
    }
}

#[test]
fn tokens_are_found_by_the_hash_of_their_secret() {
    let test = TestStore::new();
    let token = |n: u8, target| TokenRecord {
        id: TokenId::from_random(bytes16(u64::from(n))),
        name: format!("token {n}"),
        secret_hash: [n; 32],
        public_key: [n; 32],
        level: Level::Write,
        target,
        created_at: 1,
        expires_at: Some(u64::from(n)),
        last_used_at: None,
        revoked_at: None,
        session: None,
    };
    let narrow = token(1, Target::Projects(vec![project(1), project(2)]));
    let tokens = [narrow, token(2, Target::Projects(Vec::new())), token(3, Target::Everything)];
    test.commit(tokens.iter().cloned().map(Record::TokenCreated).collect()).unwrap();
    assert_eq!(test.store.tokens().unwrap(), tokens);
    let id = tokens[0].id;
    test.commit(vec![
        Record::TokenUsed { id, at: 60 },
        Record::TokenUsed { id, at: 50 },
        Record::TokenRevoked { id, at: 70 },
        Record::TokenRevoked { id, at: 80 },
    ])
    .unwrap();
    let found = test.store.tokens().unwrap().swap_remove(0);
    assert_eq!((found.id, found.last_used_at, found.revoked_at), (id, Some(60), Some(70)));
    let taken = test.commit(vec![Record::TokenCreated(token(1, Target::Everything))]);
    assert!(taken.is_err());
}

/// Rule: a list never shows an id before it is durable; here, a callback's own reads see it.
#[test]
fn what_was_acknowledged_can_be_read_at_once() {
    let test = TestStore::new();
    for n in 0..200 {
        test.commit(vec![created(n)]).unwrap();
        assert_eq!(test.store.job(job_id(n)).unwrap().unwrap().owner, PrincipalId::Local);
    }
}
