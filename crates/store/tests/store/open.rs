//! Opening a data directory.

use std::os::unix::fs::PermissionsExt;

use camino::Utf8Path;
use ringback_store::{OpenStoreError, Store};

use crate::common::{TestStore, created};

/// Rule: two daemons never open one data directory.
#[test]
fn a_directory_in_use_is_refused_with_the_process_that_holds_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = Utf8Path::from_path(dir.path()).unwrap().join("data");
    let store = Store::open(&path).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
    let error = Store::open(&path).unwrap_err();
    assert!(matches!(error, OpenStoreError::Locked { .. }));
    assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
    drop(store);
    Store::open(&path).unwrap();
}

fn mode(path: &Utf8Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Rule: stored files are private to their owner, including files that an earlier build left open
/// to others.
#[test]
fn files_are_private_and_become_so() {
    let dir = tempfile::tempdir().unwrap();
    let path = Utf8Path::from_path(dir.path()).unwrap().join("data");
    let files = ["ringback.db", "ringback.db-wal", "ringback.db-shm", "lock"];
    let test = |store: Store| {
        for file in files {
            assert_eq!(mode(&path.join(file)), 0o600, "{file}");
        }
        drop(store);
    };
    test(Store::open(&path).unwrap());
    for file in ["ringback.db", "lock"] {
        std::fs::set_permissions(path.join(file), PermissionsExt::from_mode(0o644)).unwrap();
    }
    test(Store::open(&path).unwrap());
}

/// Rule: nothing is acknowledged that a missing directory does not keep.
#[test]
fn a_directory_that_is_gone_takes_nothing_more() {
    for what in ["deleted", "moved", "replaced"] {
        let test = TestStore::new();
        test.commit(vec![created(1)]).unwrap();
        assert!(test.store.is_in_place());
        let (dir, aside) = (test.path(), test.path().with_extension("aside"));
        std::fs::rename(dir, &aside).unwrap();
        match what {
            "deleted" => std::fs::remove_dir_all(&aside).unwrap(),
            "replaced" => {
                std::fs::create_dir(dir).unwrap();
                std::fs::write(dir.join("lock"), "1").unwrap();
            }
            _ => {}
        }
        assert!(!test.store.is_in_place(), "{what}");
        let refused = test.commit(vec![created(2)]);
        assert!(refused.is_err(), "{what}: {refused:?}");
        if aside.exists() {
            std::fs::remove_dir_all(aside).unwrap();
        }
    }
}

#[test]
fn a_store_of_a_newer_build_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = Utf8Path::from_path(dir.path()).unwrap();
    drop(Store::open(path).unwrap());
    let database = rusqlite::Connection::open(path.join("ringback.db")).unwrap();
    database.pragma_update(None, "user_version", 99).unwrap();
    drop(database);
    let error = Store::open(path).unwrap_err();
    assert!(matches!(error, OpenStoreError::TooNew { found: 99, .. }), "{error}");
}
