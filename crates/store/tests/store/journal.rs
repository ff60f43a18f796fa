//! The journal: order, torn tails, length, and the state after a kill.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::thread;

use bytes::Bytes;
use camino::{Utf8Path, Utf8PathBuf};
use proptest::prelude::*;
use ringback_store::journal::{EVENT_BYTES_MAX, Journal, JournalError, JournalLimits, KeptRange};

use crate::sessions::session_id;

fn dir() -> (tempfile::TempDir, Utf8PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = Utf8Path::from_path(dir.path()).unwrap().to_owned();
    (dir, path)
}

fn event(n: u64) -> Bytes {
    format!("event {n}").into()
}

fn events(range: std::ops::Range<u64>) -> Vec<Bytes> {
    range.map(event).collect()
}

/// Returns everything kept from an index on.
fn read(journal: &Journal, session: u64, from: u64) -> Vec<(u64, Bytes)> {
    journal.read(session_id(session), from, usize::MAX).unwrap()
}

fn numbered(range: std::ops::Range<u64>) -> Vec<(u64, Bytes)> {
    range.map(|n| (n, event(n))).collect()
}

fn file(path: &Utf8Path, session: u64) -> Utf8PathBuf {
    path.join(format!("sessions/{}.log", session_id(session)))
}

#[test]
fn events_are_numbered_from_0_in_each_session_and_read_from_any_place() {
    let (_guard, path) = dir();
    let journal = Journal::open(&path).unwrap();
    assert_eq!(journal.last_index(session_id(1)).unwrap(), None);
    assert_eq!(journal.append(session_id(1), &events(0..1)).unwrap(), 0);
    assert_eq!(journal.append(session_id(1), &[]).unwrap(), 1);
    assert_eq!(journal.append(session_id(1), &events(1..300)).unwrap(), 1);
    assert_eq!(journal.append(session_id(2), &events(0..2)).unwrap(), 0);
    for journal in [journal, Journal::open(&path).unwrap()] {
        for from in [0, 1, 63, 64, 65, 128, 298, 299, 300, 5_000] {
            assert_eq!(read(&journal, 1, from), numbered(from.min(300)..300), "from {from}");
            let few = journal.read(session_id(1), from, 3).unwrap();
            assert_eq!(few, numbered(from.min(300)..(from + 3).min(300).max(from.min(300))));
        }
        assert_eq!(read(&journal, 2, 0), numbered(0..2));
        assert_eq!(journal.last_index(session_id(1)).unwrap(), Some(299));
        assert_eq!(journal.kept(session_id(1)).unwrap(), Some(KeptRange { first: 0, next: 300 }));
    }
}

#[test]
fn a_session_without_events_has_no_file_however_often_it_is_asked_for() {
    let (_guard, path) = dir();
    let journal = Journal::open(&path).unwrap();
    assert_eq!(read(&journal, 1, 0), []);
    assert_eq!(journal.kept(session_id(1)).unwrap(), None);
    journal.remove(session_id(1)).unwrap();
    assert_eq!(fs::read_dir(path.join("sessions")).unwrap().count(), 0);
}

#[test]
fn what_is_removed_is_gone_and_starts_over() {
    let (_guard, path) = dir();
    let journal = Journal::open(&path).unwrap();
    journal.append(session_id(1), &events(0..5)).unwrap();
    journal.remove(session_id(1)).unwrap();
    assert_eq!(journal.last_index(session_id(1)).unwrap(), None);
    assert!(!file(&path, 1).exists());
    assert_eq!(journal.append(session_id(1), &events(0..1)).unwrap(), 0);
}

#[test]
fn only_the_daemons_user_can_read_what_was_said() {
    let (_guard, path) = dir();
    let journal = Journal::open(&path).unwrap();
    journal.append(session_id(1), &events(0..1)).unwrap();
    let mode = |path: &Utf8Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path.join("sessions")), 0o700);
    assert_eq!(mode(&file(&path, 1)), 0o600);
}

/// Rule: every size is bounded.
#[test]
fn an_event_of_no_fitting_size_is_refused_with_its_list() {
    let (_guard, path) = dir();
    let journal = Journal::open(&path).unwrap();
    for bytes in [0, EVENT_BYTES_MAX + 1] {
        let list = [event(0), vec![7; bytes].into()];
        let refused = journal.append(session_id(1), &list).unwrap_err();
        assert!(matches!(refused, JournalError::Size { bytes: found, .. } if found == bytes));
    }
    assert_eq!(read(&journal, 1, 0), []);
    let largest = Bytes::from(vec![7; EVENT_BYTES_MAX]);
    journal.append(session_id(1), &vec![largest.clone(); 10]).unwrap();
    let part = read(&journal, 1, 1);
    assert!((1..10).contains(&part.len()), "a read is bounded too: {}", part.len());
    assert!(part.iter().all(|(_, event)| *event == largest));
}

#[test]
fn a_file_that_grows_too_long_keeps_its_newer_half_and_its_numbers() {
    let (_guard, path) = dir();
    let limits = JournalLimits { file_bytes_max: 4_000 };
    let journal = Journal::open_with(&path, limits).unwrap();
    for n in 0..1_000 {
        assert_eq!(journal.append(session_id(1), &[event(n)]).unwrap(), n);
        assert!(fs::metadata(file(&path, 1)).unwrap().len() <= 4_000 + 20);
        let kept = journal.kept(session_id(1)).unwrap().unwrap();
        assert!(kept.next == n + 1 && kept.next - kept.first >= (n + 1).min(90), "{kept:?}");
        assert_eq!(read(&journal, 1, 0), numbered(kept.first..n + 1));
    }
    let kept = journal.kept(session_id(1)).unwrap();
    let journal = Journal::open_with(&path, limits).unwrap();
    assert_eq!(journal.kept(session_id(1)).unwrap(), kept);
    assert_eq!(journal.append(session_id(1), &[event(1_000)]).unwrap(), 1_000);
    let large = Bytes::from(vec![7; 10_000]);
    journal.append(session_id(1), &[large.clone(), large.clone()]).unwrap();
    assert_eq!(read(&journal, 1, 0), [(1_002, large)], "at least the last one stays");
    assert_eq!(fs::read_dir(path.join("sessions")).unwrap().count(), 1);
}

#[test]
fn a_torn_tail_is_cut_wherever_it_tore_and_writing_goes_on() {
    let (_guard, path) = dir();
    Journal::open(&path).unwrap().append(session_id(1), &events(0..3)).unwrap();
    let whole = fs::read(file(&path, 1)).unwrap();
    let last = whole.len() - (12 + event(2).len());
    for cut in last..whole.len() {
        let mut torn = whole[..cut].to_vec();
        torn.extend(vec![0; if cut % 2 == 0 { 100 } else { 0 }]);
        fs::write(file(&path, 1), torn).unwrap();
        let journal = Journal::open(&path).unwrap();
        assert_eq!(read(&journal, 1, 0), numbered(0..2), "cut at {cut}");
        assert_eq!(journal.append(session_id(1), &[event(2)]).unwrap(), 2);
        assert_eq!(fs::read(file(&path, 1)).unwrap(), whole, "cut at {cut}");
    }
}

#[test]
fn a_flipped_bit_is_noticed() {
    let (_guard, path) = dir();
    let journal = Journal::open(&path).unwrap();
    journal.append(session_id(1), &events(0..3)).unwrap();
    let mut data = fs::read(file(&path, 1)).unwrap();
    let last = data.len() - 2;
    data[last] ^= 1;
    fs::write(file(&path, 1), data).unwrap();
    let damaged = journal.read(session_id(1), 0, 10).unwrap_err();
    assert!(damaged.to_string().contains("read"), "{damaged}");
    assert_eq!(read(&Journal::open(&path).unwrap(), 1, 0), numbered(0..2));
}

#[test]
fn many_write_read_and_remove_at_once_and_nothing_is_mixed_up() {
    let (_guard, path) = dir();
    let limits = JournalLimits { file_bytes_max: 2_000 };
    let journal = &Journal::open_with(&path, limits).unwrap();
    thread::scope(|scope| {
        for session in 0..4 {
            scope.spawn(move || {
                for n in 0..500 {
                    assert_eq!(journal.append(session_id(session), &[event(n)]).unwrap(), n);
                }
            });
            scope.spawn(move || {
                for from in 0..500 {
                    for (index, found) in read(journal, session, from) {
                        assert_eq!(found, event(index));
                    }
                    journal.remove(session_id(9)).unwrap();
                    journal.append(session_id(9), &[event(0)]).unwrap();
                }
            });
        }
    });
    for session in 0..4 {
        assert_eq!(journal.last_index(session_id(session)).unwrap(), Some(499));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever a crash leaves of a file, its start reads as it was written.
    #[test]
    fn what_is_left_of_a_file_reads_as_the_beginning_of_what_was_written(
        sizes in prop::collection::vec(1_usize..200, 1..20),
        cut in 0_usize..4_000,
        garbage in prop::collection::vec(any::<u8>(), 0..30),
    ) {
        let (_guard, path) = dir();
        let written: Vec<Bytes> = sizes.iter().map(|size| vec![b'x'; *size].into()).collect();
        Journal::open(&path).unwrap().append(session_id(1), &written).unwrap();
        let mut data = fs::read(file(&path, 1)).unwrap();
        data.truncate(cut.min(data.len()));
        data.extend(garbage);
        fs::write(file(&path, 1), data).unwrap();
        let journal = Journal::open(&path).unwrap();
        let kept: Vec<_> = read(&journal, 1, 0).into_iter().map(|(_, event)| event).collect();
        prop_assert!(written.starts_with(&kept));
        prop_assert_eq!(journal.append(session_id(1), &[event(0)]).unwrap(), kept.len() as u64);
    }
}

/// Where the child finds its data directory; without it the child's test has nothing to do.
const DIR: &str = "RINGBACK_TEST_JOURNAL_DIR";

/// The process that is killed: writes forever and prints what it has written.
#[test]
fn child_that_writes_until_it_is_killed() {
    let Ok(dir) = std::env::var(DIR) else { return };
    let journal = Journal::open(Utf8Path::new(&dir)).unwrap();
    let first = journal.last_index(session_id(1)).unwrap().map_or(0, |last| last + 1);
    for n in first.. {
        let index = journal.append(session_id(1), &[event(n)]).unwrap();
        writeln!(std::io::stdout(), "ack {index}").unwrap();
    }
}

/// Rule: killing the process loses no accepted event.
#[test]
fn what_was_taken_survives_a_kill() {
    let (_guard, path) = dir();
    for round in 0..4 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "journal::child_that_writes_until_it_is_killed", "--nocapture"])
            .env(DIR, &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let (mut n_seen, mut last) = (0, 0);
        for line in lines {
            let Some((_, index)) = line.split_once("ack ") else { continue };
            last = index.parse::<u64>().unwrap();
            n_seen += 1;
            if n_seen == 50 + round * 37 {
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        let journal = Journal::open(&path).unwrap();
        let found = read(&journal, 1, 0);
        assert!(found.len() as u64 > last, "{} events, {last} acknowledged", found.len());
        assert_eq!(found, numbered(0..found.len() as u64));
    }
}
