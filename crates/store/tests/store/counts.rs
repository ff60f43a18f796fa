//! The counts of jobs equal a recount, whatever was written, refused or dropped.

use std::sync::mpsc;

use crate::common::{TestStore, ended, job, owner, project, started};
use proptest::prelude::*;
use ringback_proto::record::{JobState, Record};
use ringback_store::RowVisibility;

fn record() -> impl Strategy<Value = Record> {
    let terminal = prop_oneof![
        Just(JobState::Complete),
        Just(JobState::Failed),
        Just(JobState::Cancelled),
        Just(JobState::Running),
    ];
    prop_oneof![
        3 => (0..12_u64, 0..3_u64, proptest::option::of(0..2_u64)).prop_map(|(n, of, within)| {
            Record::JobCreated(Box::new(job(n, owner(of), within.map(project))))
        }),
        2 => (0..12_u64).prop_map(started),
        2 => (0..12_u64, terminal).prop_map(|(n, state)| ended(n, state)),
    ]
}

fn check(test: &TestStore, visible: &RowVisibility) {
    let counts = test.store.job_counts(visible).unwrap();
    let mut total = 0;
    for state in JobState::ALL {
        let listed = test.store.jobs(visible, Some(state), None, 1_000).unwrap().items.len();
        assert_eq!(counts.get(state), listed as u64, "{state:?} {visible:?}");
        total += listed;
    }
    assert_eq!(test.store.jobs(visible, None, None, 1_000).unwrap().items.len(), total);
    assert_eq!(counts.total(), total as u64);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn counts_equal_a_recount(
        requests in proptest::collection::vec(proptest::collection::vec(record(), 0..4), 1..40),
        purge_after in 0..40_usize,
    ) {
        let test = TestStore::new();
        let (sender, answers) = mpsc::channel();
        let n_requests = requests.len();
        for (idx, records) in requests.into_iter().enumerate() {
            let sender = sender.clone();
            test.store.commit(records, Box::new(move |_| sender.send(()).unwrap())).unwrap();
            if idx == purge_after {
                test.store.purge_expired(5_000, 3, Box::new(|purged| drop(purged.unwrap()))).unwrap();
            }
        }
        drop(sender);
        prop_assert_eq!(answers.iter().count(), n_requests);
        check(&test, &RowVisibility::All);
        for of in 0..3 {
            for projects in [vec![], vec![project(0)], vec![project(0), project(1)]] {
                check(&test, &RowVisibility::Owner { owner: owner(of), projects });
            }
        }
    }
}
