//! Content that arrives in pieces.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop here")]

use camino::Utf8Path;
use ringback_blobs::{Blobs, Stats, UploadError, UploadLimits, Uploads};
use ringback_proto::ids::TokenId;
use ringback_proto::principal::PrincipalId;

const OWNER: PrincipalId = PrincipalId::Local;
const STRANGER: PrincipalId = PrincipalId::Token(TokenId::from_random([1; 16]));
const LIMITS: UploadLimits =
    UploadLimits { open_max: 3, open_per_owner_max: 2, bytes_max: 100, idle_ms_max: 1_000 };

fn uploads() -> (tempfile::TempDir, Blobs, Uploads) {
    let dir = tempfile::tempdir().unwrap();
    let blobs = Blobs::open(&Utf8Path::from_path(dir.path()).unwrap().join("blobs")).unwrap();
    let uploads = Uploads::new(blobs.clone(), LIMITS);
    (dir, blobs, uploads)
}

#[test]
fn pieces_become_one_blob_and_repeats_of_any_step_are_harmless() {
    let (_dir, blobs, uploads) = uploads();
    for (offset, piece, size) in [(0, "abc", 3), (0, "abc", 3), (3, "de", 5), (0, "ab", 5)] {
        assert_eq!(uploads.append(OWNER, "u", offset, piece.as_bytes(), 0).unwrap(), size);
    }
    let stored = uploads.finish(OWNER, "u", "text/plain", 0).unwrap();
    assert_eq!(blobs.read_range(stored.hash, 0, 10).unwrap()[..], *b"abcde");
    assert_eq!(uploads.append(OWNER, "u", 3, b"de", 0).unwrap(), 5);
    assert_eq!(uploads.finish(OWNER, "u", "text/plain", 0).unwrap(), stored);
}

#[test]
fn a_piece_out_of_order_is_refused_and_names_the_offset_that_fits() {
    let (_dir, _blobs, uploads) = uploads();
    assert!(matches!(uploads.append(OWNER, "u", 3, b"x", 0), Err(UploadError::Unknown)));
    uploads.append(OWNER, "u", 0, b"abc", 0).unwrap();
    for (offset, piece) in [(4, "e"), (2, "cd"), (u64::MAX, "x")] {
        let refused = uploads.append(OWNER, "u", offset, piece.as_bytes(), 0);
        assert!(matches!(refused, Err(UploadError::WrongOffset { expected: 3, .. })), "{offset}");
    }
}

#[test]
fn an_upload_belongs_to_who_began_it() {
    let (_dir, _blobs, uploads) = uploads();
    uploads.append(OWNER, "u", 0, b"abc", 0).unwrap();
    assert!(matches!(uploads.append(STRANGER, "u", 3, b"d", 0), Err(UploadError::Unknown)));
    assert!(matches!(uploads.finish(STRANGER, "u", "a/b", 0), Err(UploadError::Unknown)));
    uploads.append(STRANGER, "u", 0, b"other", 0).unwrap();
    assert_eq!(uploads.finish(OWNER, "u", "a/b", 0).unwrap().size, 3);
}

#[test]
fn size_number_and_ids_are_bounded() {
    let (_dir, _blobs, uploads) = uploads();
    uploads.append(OWNER, "a", 0, &[0; 100], 0).unwrap();
    let refused = uploads.append(OWNER, "a", 100, &[0], 0);
    assert!(matches!(refused, Err(UploadError::TooLarge { max: 100 })));
    uploads.append(OWNER, "b", 0, &[], 0).unwrap();
    assert!(matches!(uploads.append(OWNER, "c", 0, &[], 0), Err(UploadError::TooMany { max: 2 })));
    uploads.append(STRANGER, "c", 0, &[], 0).unwrap();
    assert!(matches!(
        uploads.append(STRANGER, "d", 0, &[], 0),
        Err(UploadError::TooMany { max: 3 })
    ));
    for id in ["", &"x".repeat(65)] {
        assert!(matches!(
            uploads.append(OWNER, id, 0, &[], 0),
            Err(UploadError::InvalidId { max: 64 })
        ));
    }
    uploads.finish(OWNER, "a", "a/b", 0).unwrap();
    uploads.append(OWNER, "c", 0, &[], 0).unwrap();
}

#[test]
fn an_idle_upload_expires_and_leaves_nothing() {
    let (dir, blobs, uploads) = uploads();
    uploads.append(OWNER, "old", 0, b"abc", 0).unwrap();
    uploads.append(OWNER, "new", 0, b"abc", 500).unwrap();
    assert_eq!(uploads.expire(999), 0);
    assert_eq!(uploads.expire(1_000), 1);
    assert!(matches!(uploads.finish(OWNER, "old", "a/b", 1_000), Err(UploadError::Unknown)));
    uploads.abort(OWNER, "new");
    assert_eq!(uploads.count(), 0);
    assert_eq!(std::fs::read_dir(dir.path().join("blobs/tmp")).unwrap().count(), 0);
    assert_eq!(blobs.stats(), Stats::default());
}
