//! The audit log: order, rotation, torn tails.

use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use ringback_proto::Certainty;
use ringback_proto::ids::{CallId, SessionId};
use ringback_proto::principal::PrincipalId;
use ringback_store::audit::{Audit, AuditCursor, AuditLimits, Entry, Line, Traffic};

const LIMITS: AuditLimits =
    AuditLimits { queue_max: 10_000, segment_bytes_max: 1 << 20, segments_max: 10 };

fn dir() -> (tempfile::TempDir, Utf8PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = Utf8Path::from_path(dir.path()).unwrap().to_owned();
    (dir, path)
}

fn call(n: u64) -> CallId {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&n.to_be_bytes());
    CallId::from_random(bytes)
}

fn entry(n: u64) -> Entry {
    Entry {
        at_ms: n,
        call: call(n),
        principal: PrincipalId::Local,
        session: n.is_multiple_of(2).then(|| SessionId::from_random([3; 16])),
        tool: "job_sleep".into(),
        edge: "hoot".into(),
        outcome: "timeout".into(),
        certainty: Some(Certainty::MayHaveRun),
        duration_us: 17,
        bytes: n.is_multiple_of(3).then_some(Traffic { up: n, down: u64::MAX }),
    }
}

fn newest(audit: &Audit, limit: usize) -> Vec<u64> {
    audit.page(None, limit).unwrap().0.iter().map(number).collect()
}

fn number(line: &Line) -> u64 {
    match line {
        Line::Call(entry) => entry.at_ms,
        Line::Dropped { .. } => panic!("nothing was dropped"),
    }
}

/// Rule: pages skip nothing and repeat nothing, even across segments and during writes.
#[test]
fn pages_hold_every_line_once_newest_first() {
    let (_guard, path) = dir();
    let limits = AuditLimits { segment_bytes_max: 2000, ..LIMITS };
    let audit = Audit::open(&path, limits).unwrap();
    (0..50).for_each(|n| {
        audit.record(entry(n));
        audit.flush();
    });
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let (lines, next) = audit.page(cursor, 7).unwrap();
        assert!(lines.len() == 7 || next.is_none(), "{lines:?}");
        seen.extend(lines.iter().map(number));
        audit.record(entry(1000));
        audit.flush();
        match next {
            // In its text form.
            Some(next) => cursor = Some(next.to_string().parse::<AuditCursor>().unwrap()),
            None => break,
        }
    }
    assert_eq!(seen, (0..50).rev().collect::<Vec<_>>());
    for bad in ["", "1", "1-", "-1", "01-2", "1-2-3", "x-y"] {
        assert!(bad.parse::<AuditCursor>().is_err(), "{bad}");
    }
}

#[test]
fn lines_are_read_newest_first_and_found_by_their_call() {
    let (_guard, path) = dir();
    let audit = Audit::open(&path, LIMITS).unwrap();
    (0..100).for_each(|n| audit.record(entry(n)));
    audit.flush();
    assert_eq!(newest(&audit, 3), [99, 98, 97]);
    assert_eq!(audit.find(call(42)).unwrap(), Some(entry(42)));
    assert_eq!(audit.find(call(100)).unwrap(), None);
    drop(audit);
    let audit = Audit::open(&path, LIMITS).unwrap();
    audit.record(entry(100));
    audit.flush();
    assert_eq!(newest(&audit, 1_000), (0..=100).rev().collect::<Vec<_>>());
}

#[test]
fn segments_rotate_by_size_and_the_oldest_go() {
    let (_guard, path) = dir();
    let limits = AuditLimits { segment_bytes_max: 2_000, segments_max: 3, ..LIMITS };
    let audit = Audit::open(&path, limits).unwrap();
    for n in 0..200 {
        audit.record(entry(n));
        audit.flush();
    }
    let segments = fs::read_dir(path.join("audit")).unwrap().count();
    assert_eq!(segments, 3);
    let kept = newest(&audit, 1_000);
    assert!(kept.iter().copied().eq((0..200).rev().take(kept.len())));
    assert!(kept.len() < 100 && kept.len() > 10, "{}", kept.len());
    assert_eq!(audit.find(call(0)).unwrap(), None);
}

#[test]
fn a_torn_tail_is_cut_wherever_it_tore_and_writing_goes_on() {
    let (_guard, path) = dir();
    let audit = Audit::open(&path, LIMITS).unwrap();
    (0..3).for_each(|n| audit.record(entry(n)));
    drop(audit);
    let segment = path.join("audit/00000001.log");
    let whole = fs::read(&segment).unwrap();
    let line = whole.len() / 3 - 10;
    for cut in (whole.len() - line)..whole.len() {
        let mut torn = whole[..cut].to_vec();
        torn.extend(vec![0; if cut % 2 == 0 { 100 } else { 0 }]);
        fs::write(&segment, torn).unwrap();
        let audit = Audit::open(&path, LIMITS).unwrap();
        assert_eq!(newest(&audit, 10), [1, 0], "cut at {cut}");
        audit.record(entry(7));
        audit.flush();
        assert_eq!(newest(&audit, 10), [7, 1, 0], "cut at {cut}");
    }
}

#[test]
fn a_flipped_bit_is_noticed() {
    let (_guard, path) = dir();
    let audit = Audit::open(&path, LIMITS).unwrap();
    (0..3).for_each(|n| audit.record(entry(n)));
    drop(audit);
    let segment = path.join("audit/00000001.log");
    let mut data = fs::read(&segment).unwrap();
    let last = data.len() - 5;
    data[last] ^= 1;
    fs::write(&segment, data).unwrap();
    assert_eq!(newest(&Audit::open(&path, LIMITS).unwrap(), 10), [1, 0]);
}

/// Rule: a full queue drops lines instead of growing or waiting, and the log records how many.
#[test]
fn what_is_dropped_is_counted_in_the_audit_itself() {
    let (_guard, path) = dir();
    let audit = Audit::open(&path, AuditLimits { queue_max: 1, ..LIMITS }).unwrap();
    let mut n_recorded = 0;
    while audit.dropped() == 0 {
        audit.record(entry(n_recorded));
        n_recorded += 1;
    }
    audit.flush();
    audit.flush();
    audit.record(entry(n_recorded));
    audit.flush();
    let lines = audit.page(None, usize::MAX).unwrap().0;
    let n_dropped: u64 = lines
        .iter()
        .map(|line| match line {
            Line::Call(_) => 0,
            Line::Dropped { count, .. } => *count,
        })
        .sum();
    let n_calls = lines.iter().filter(|line| matches!(line, Line::Call(_))).count() as u64;
    assert_eq!(n_dropped, audit.dropped());
    assert_eq!(n_calls + n_dropped, n_recorded + 1);
}
