//! Tests of the content store's public API.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop here")]

use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::thread;

use camino::{Utf8Path, Utf8PathBuf};
use proptest::prelude::*;
use ringback_blobs::{BlobReader, Blobs, ReadBlobError, Stats, Survey, WriteBlobError, survey};
use ringback_proto::ids::BlobHash;

const MIME: &str = "application/octet-stream";

fn dir() -> (tempfile::TempDir, Utf8PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = Utf8Path::from_path(dir.path()).unwrap().join("blobs");
    (dir, path)
}

fn files_below(path: &Utf8Path) -> Vec<Utf8PathBuf> {
    let mut files = Vec::new();
    for entry in path.read_dir_utf8().unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            files.extend(files_below(entry.path()));
        } else {
            files.push(entry.path().to_owned());
        }
    }
    files
}

/// Rule: binary with all 256 byte values is returned unchanged.
#[test]
fn content_comes_back_as_it_went_in_and_is_named_by_its_hash() {
    let (_guard, root) = dir();
    let blobs = Blobs::open(&root).unwrap();
    let data: Vec<u8> = (0..3_500_000_u32).map(|n| (n % 256) as u8).collect();
    let stored = blobs.put(&data, "audio/wav").unwrap();
    assert_eq!(stored.hash, BlobHash::from_bytes(*blake3::hash(&data).as_bytes()));
    assert_eq!((stored.size, stored.new), (data.len() as u64, true));
    let mut back = Vec::new();
    let mut reader = blobs.open_blob(stored.hash).unwrap();
    reader.read_to_end(&mut back).unwrap();
    assert!(back == data);
    assert_eq!(reader.seek(SeekFrom::Start(256)).unwrap(), 256);
    assert_eq!(blobs.read_range(stored.hash, 255, 3).unwrap()[..], [255, 0, 1]);
    blobs.verify(stored.hash).unwrap();
}

/// Rule: a process that only reads leaves what the daemon is writing.
#[test]
fn a_reader_beside_the_daemon_reads_and_changes_nothing() {
    let (_guard, root) = dir();
    assert!(BlobReader::open(&root).is_err(), "there is no store yet");
    let blobs = Blobs::open(&root).unwrap();
    let hash = blobs.put(b"sound", MIME).unwrap().hash;
    let mut writer = blobs.writer();
    writer.write(&[7; 100_000]).unwrap();
    let before = files_below(&root);
    let reader = BlobReader::open(&root).unwrap();
    let mut back = Vec::new();
    reader.open_blob(hash).unwrap().read_to_end(&mut back).unwrap();
    assert_eq!(back, b"sound");
    assert_eq!(files_below(&root), before);
    let missing = BlobHash::from_bytes([9; 32]);
    assert!(matches!(reader.open_blob(missing), Err(ReadBlobError::NotFound { .. })));
    let stored = writer.finish(MIME).unwrap();
    reader.open_blob(stored.hash).unwrap();
    let path = files_below(&root).into_iter().find(|path| path.ends_with(hash.to_string()));
    fs::write(path.unwrap(), b"noise").unwrap();
    assert!(matches!(reader.open_blob(hash), Err(ReadBlobError::Damaged { .. })));
}

#[test]
fn a_range_ends_with_the_blob_and_may_not_start_behind_it() {
    let (_guard, root) = dir();
    let blobs = Blobs::open(&root).unwrap();
    let hash = blobs.put(b"12345", MIME).unwrap().hash;
    assert_eq!(blobs.read_range(hash, 3, u64::MAX).unwrap()[..], *b"45");
    assert!(blobs.read_range(hash, 5, 1).unwrap().is_empty());
    let refused = blobs.read_range(hash, 6, 1);
    assert!(matches!(refused, Err(ReadBlobError::OutOfRange { offset: 6, size: 5 })));
    let unknown = BlobHash::from_bytes([7; 32]);
    assert!(matches!(blobs.open_blob(unknown), Err(ReadBlobError::NotFound { .. })));
    assert_eq!(blobs.inspect(unknown).unwrap(), None);
}

#[test]
fn the_same_content_again_is_not_written_and_keeps_its_first_type() {
    let (_guard, root) = dir();
    let blobs = Blobs::open(&root).unwrap();
    for size in [0, 10, 2 << 20] {
        let data = vec![b'x'; size];
        let first = blobs.put(&data, "text/plain").unwrap();
        let file = files_below(&root)
            .into_iter()
            .find(|path| path.file_name() == Some(&first.hash.to_string()))
            .unwrap();
        let modified = fs::metadata(&file).unwrap().modified().unwrap();
        let second = blobs.put(&data, "audio/midi").unwrap();
        assert!(first.new && !second.new);
        assert_eq!(second.mime_type, "audio/midi");
        assert_eq!(blobs.inspect(first.hash).unwrap().unwrap().mime_type, "text/plain");
        assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), modified);
    }
}

#[test]
fn a_dropped_writer_and_a_refused_type_leave_nothing() {
    let (_guard, root) = dir();
    let blobs = Blobs::open(&root).unwrap();
    let mut writer = blobs.writer();
    writer.write(&vec![1; 3 << 20]).unwrap();
    assert_eq!(files_below(&root).len(), 1);
    drop(writer);
    for mime in ["", " ", "text/plain\n", "é", &"x".repeat(256)] {
        assert!(matches!(blobs.put(b"data", mime), Err(WriteBlobError::InvalidMime)), "{mime:?}");
    }
    assert!(files_below(&root).is_empty());
    assert_eq!(blobs.stats(), Stats::default());
}

#[test]
fn opening_counts_what_is_there_and_removes_what_was_left_incomplete() {
    let (_guard, root) = dir();
    let blobs = Blobs::open(&root).unwrap();
    for n in 0..50_u8 {
        blobs.put(&[n; 10], MIME).unwrap();
    }
    blobs.put(&[0; 10], MIME).unwrap();
    let expected = Stats { blobs: 50, bytes: 500 };
    assert_eq!(blobs.stats(), expected);
    drop(blobs);
    fs::write(root.join("tmp/17"), b"half").unwrap();
    let blobs = Blobs::open(&root).unwrap();
    assert_eq!(blobs.stats(), expected);
    assert!(files_below(&root.join("tmp")).is_empty());
}

#[test]
fn a_list_goes_on_after_its_last_name() {
    let (_guard, root) = dir();
    let blobs = Blobs::open(&root).unwrap();
    let mut hashes: Vec<_> = (0..40_u8).map(|n| blobs.put(&[n], MIME).unwrap().hash).collect();
    hashes.sort_unstable();
    let (mut listed, mut after) = (Vec::new(), None);
    loop {
        let page = blobs.list(after, 7).unwrap();
        let Some(last) = page.last() else { break };
        after = Some(*last);
        listed.extend(page);
    }
    assert_eq!(listed, hashes);
}

fn file_of(root: &Utf8Path, hash: BlobHash) -> Utf8PathBuf {
    let name = hash.to_string();
    root.join(&name[..2]).join(&name[2..4]).join(&name)
}

/// Overwrites a blob's file, as a failing disk, a bad copy or an editor would.
fn damage(root: &Utf8Path, hash: BlobHash, bytes: &[u8]) {
    let path = file_of(root, hash);
    fs::write(&path, bytes).unwrap();
    // Timestamps are coarse on some file systems; a real change is never that close to the last
    // one.
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
}

#[track_caller]
fn assert_damaged<T: std::fmt::Debug>(read: &Result<T, ReadBlobError>, which: BlobHash) {
    assert!(matches!(read, Err(ReadBlobError::Damaged { hash, .. }) if *hash == which), "{read:?}");
}

/// Rule: content matches its hash, whichever way it is read.
#[test]
fn damaged_content_is_not_read_and_storing_it_again_mends_it() {
    let (_guard, root) = dir();
    for size in [8, 3 << 20] {
        let blobs = Blobs::open(&root).unwrap();
        let data = vec![b'x'; size];
        let mut flipped = data.clone();
        flipped[size / 2] ^= 1;
        let hash = blobs.put(&data, "text/plain").unwrap().hash;
        let stats = blobs.stats();
        for wrong in [&flipped[..], &data[..size / 2], b""] {
            damage(&root, hash, wrong);
            // One store that has read it before, and one that has just been opened.
            for blobs in [&blobs, &Blobs::open(&root).unwrap()] {
                assert_damaged(&blobs.open_blob(hash), hash);
                assert_damaged(&blobs.read_range(hash, 0, 1), hash);
                assert_damaged(&blobs.preview(hash, 4), hash);
                assert_damaged(&blobs.inspect(hash), hash);
                assert_damaged(&blobs.verify(hash), hash);
            }
            let stored = blobs.put(&data, "text/plain").unwrap();
            assert_eq!((stored.hash, stored.size, stored.new), (hash, size as u64, false));
            assert!(blobs.read_range(hash, 0, u64::MAX).unwrap() == data);
            blobs.verify(hash).unwrap();
            assert_eq!(blobs.stats(), stats);
        }
    }
    assert!(files_below(&root.join("tmp")).is_empty());
}

#[test]
fn damage_while_content_is_read_ends_the_reading() {
    let (_guard, root) = dir();
    let blobs = Blobs::open(&root).unwrap();
    let data = vec![7; 2 << 20];
    let hash = blobs.put(&data, MIME).unwrap().hash;
    assert_eq!(blobs.read_range(hash, 0, 1 << 20).unwrap(), data[..1 << 20]);
    damage(&root, hash, &vec![8; 2 << 20]);
    assert_damaged(&blobs.read_range(hash, 1 << 20, 1 << 20), hash);
}

#[test]
fn a_survey_finds_what_is_damaged_and_changes_nothing() {
    let (_guard, root) = dir();
    assert_eq!(survey(&root, |_| {}).unwrap(), Survey::default());
    assert!(!root.exists());
    let blobs = Blobs::open(&root).unwrap();
    let hashes: Vec<_> = (0..30_u8).map(|n| blobs.put(&[n; 10], MIME).unwrap().hash).collect();
    let mut writer = blobs.writer();
    writer.write(&vec![1; 3 << 20]).unwrap();
    damage(&root, hashes[3], b"other");
    damage(&root, hashes[20], &[20; 11]);
    let mut n_told = 0;
    let found = survey(&root, |so_far| {
        n_told += 1;
        assert_eq!(so_far.blobs, n_told);
    })
    .unwrap();
    let mut damaged = vec![hashes[3], hashes[20]];
    damaged.sort_unstable();
    assert_eq!((found.blobs, found.bytes), (30, 28 * 10 + 5 + 11));
    assert_eq!(found.damaged, damaged);
    writer.finish(MIME).unwrap();
}

#[test]
fn only_text_has_a_preview_and_no_character_is_cut() {
    let (_guard, root) = dir();
    let blobs = Blobs::open(&root).unwrap();
    let preview = |data: &[u8]| {
        let hash = blobs.put(data, MIME).unwrap().hash;
        blobs.preview(hash, 4).unwrap()
    };
    assert_eq!(preview("abcéd".as_bytes()).as_deref(), Some("abc"));
    assert_eq!(preview(b"a\n").as_deref(), Some("a\n"));
    assert_eq!(preview(b""), Some(String::new()));
    assert_eq!(preview(b"\x00abc"), None);
    assert_eq!(preview(b"a\xff"), None);
}

#[test]
fn of_many_writers_of_one_content_exactly_one_is_new() {
    let (_guard, root) = dir();
    let blobs = Blobs::open(&root).unwrap();
    let data = vec![3; 2 << 20];
    let n_new = thread::scope(|scope| {
        let put = || blobs.put(&data, MIME).unwrap().new;
        let writers: Vec<_> = (0..8).map(|_| scope.spawn(put)).collect();
        writers.into_iter().filter_map(|writer| writer.join().unwrap().then_some(())).count()
    });
    assert_eq!(n_new, 1);
    assert_eq!(blobs.stats(), Stats { blobs: 1, bytes: 2 << 20 });
}

#[test]
fn a_local_file_is_taken_whole() {
    let (guard, root) = dir();
    let blobs = Blobs::open(&root).unwrap();
    let file = Utf8Path::from_path(guard.path()).unwrap().join("source");
    for size in [0, 1, 4 << 20, (9 << 20) + 1] {
        let data = vec![9; size];
        fs::write(&file, &data).unwrap();
        let stored = blobs.ingest_file(&file, MIME).unwrap();
        assert_eq!(stored.size, size as u64);
        assert_eq!(stored.hash, BlobHash::from_bytes(*blake3::hash(&data).as_bytes()));
        blobs.verify(stored.hash).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn how_content_is_cut_does_not_matter(
        sizes in proptest::collection::vec(
            prop_oneof![0..5_000_usize, Just(1 << 20), 1_000_000..6_000_000_usize], 0..6),
    ) {
        let (_guard, root) = dir();
        let blobs = Blobs::open(&root).unwrap();
        let total: usize = sizes.iter().sum();
        let data: Vec<u8> = (0..total).map(|n| (n * 31 % 251) as u8).collect();
        let mut writer = blobs.writer();
        let mut rest = &data[..];
        for size in sizes {
            let (head, tail) = rest.split_at(size);
            writer.write(head).unwrap();
            rest = tail;
        }
        let stored = writer.finish(MIME).unwrap();
        prop_assert_eq!(stored.hash, BlobHash::from_bytes(*blake3::hash(&data).as_bytes()));
        prop_assert!(blobs.read_range(stored.hash, 0, u64::MAX).unwrap() == data);
    }
}

/// Rule: content that does not match the hash its sender gave is not kept.
#[test]
fn content_under_a_wrong_name_leaves_nothing() {
    let (_guard, root) = dir();
    let blobs = Blobs::open(&root).unwrap();
    for size in [3, 3 << 20] {
        let data = vec![7; size];
        let right = BlobHash::from_bytes(*blake3::hash(&data).as_bytes());
        let wrong = BlobHash::from_bytes([0; 32]);
        let mut writer = blobs.writer();
        writer.write(&data).unwrap();
        let refused = writer.finish_as(Some(wrong), "text/plain").unwrap_err();
        assert!(matches!(refused, WriteBlobError::OtherContent { found, .. } if found == right));
        assert_eq!(blobs.inspect(right).unwrap(), None);
        let mut writer = blobs.writer();
        writer.write(&data).unwrap();
        assert_eq!(writer.finish_as(Some(right), "text/plain").unwrap().hash, right);
    }
}
