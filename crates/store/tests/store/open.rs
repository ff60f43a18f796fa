//! Opening a data directory.

use std::os::unix::fs::PermissionsExt;

use camino::Utf8Path;
use ringback_store::{OpenStoreError, Store};

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
