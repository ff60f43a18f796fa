//! The rules of sessions, without agents.

use std::sync::Arc;

use ringback_proto::ErrorKind;
use ringback_proto::ids::{ProjectId, SessionId, WorkspaceId};
use ringback_proto::principal::PrincipalId;
use ringback_proto::record::SessionState;

use super::{DeletionTarget, EventLimits, NewSession, SessionLimits, SessionTable};
use crate::time::Now;

const fn at(mono: u64) -> Now {
    Now { mono, unix: mono }
}

fn session(number: u8) -> SessionId {
    SessionId::from_random([number; 16])
}

fn new(number: u8, parent: Option<u8>) -> NewSession {
    NewSession {
        id: session(number),
        project: ProjectId::from_random([1; 16]),
        workspace: WorkspaceId::from_random([2; 16]),
        owner: PrincipalId::Local,
        parent: parent.map(session),
        limits: SessionLimits { depth_max: 2, agents_max: 4, live_max: 5, idle_ms: 100 },
        next_index: 0,
    }
}

fn table() -> SessionTable<u32> {
    SessionTable::new(EventLimits { events_max: 4, bytes_max: 1000, total_bytes_max: 1500 })
}

/// Adds an event of negligible size.
fn say(table: &mut SessionTable<u32>, number: u8, event: u32) -> Vec<(SessionId, u64)> {
    table.say(session(number), &Arc::new(event), 1)
}

/// REQ: seed 002 "Sessions and management": depth, agents and live sessions are enforced.
#[test]
fn a_limit_is_refused_at_once_and_named() {
    let mut table = table();
    table.start(new(1, None)).unwrap();
    assert_eq!(table.start(new(2, Some(1))).unwrap().depth, 1);
    assert_eq!(table.start(new(3, Some(2))).unwrap().root, session(1));
    let deep = table.start(new(4, Some(3))).unwrap_err();
    assert_eq!(deep.kind(), ErrorKind::Busy);
    assert!(deep.message().contains("2 deep"), "{deep}");
    table.start(new(5, Some(1))).unwrap();
    assert!(table.start(new(6, Some(1))).unwrap_err().message().contains("4 agents"));
    table.start(new(7, None)).unwrap();
    assert!(table.start(new(8, None)).unwrap_err().message().contains("5 live sessions"));
    assert_eq!(table.all_live().len(), 5);
}

/// Rule: a session that was refused leaves nothing behind.
#[test]
fn a_child_needs_a_live_parent() {
    let mut table = table();
    assert_eq!(table.start(new(2, Some(1))).unwrap_err().kind(), ErrorKind::NotFound);
    table.start(new(1, None)).unwrap();
    table.end(session(1), SessionState::Ended);
    assert_eq!(table.start(new(2, Some(1))).unwrap_err().kind(), ErrorKind::NotFound);
    assert!(table.all_live().is_empty());
}

/// Rule: ending a session ends its descendants, children first.
#[test]
fn a_session_ends_with_all_that_come_from_it() {
    let mut table = table();
    for (number, parent) in [(1, None), (2, Some(1)), (3, Some(2)), (4, None)] {
        table.start(new(number, parent)).unwrap();
    }
    let ended = table.end(session(1), SessionState::Ended);
    assert_eq!(ended, [session(3), session(2), session(1)]);
    assert_eq!(table.all_live(), [session(4)]);
    assert!(table.end(session(1), SessionState::Failed).is_empty(), "it has ended already");
}

/// REQ: seed 002 "session_events": indexes have no gaps, and events that are no longer kept are
/// counted.
#[test]
fn a_reader_that_is_late_learns_what_it_missed() {
    let mut table = table();
    table.start(new(1, None)).unwrap();
    for number in 0..6 {
        assert_eq!(say(&mut table, 1, number), [(session(1), u64::from(number))]);
    }
    let all = table.said(session(1), None, 10, false).unwrap();
    assert_eq!((all.n_dropped, all.oldest_index, all.last_index), (2, 2, Some(5)));
    let page = table.said(session(1), Some(3), 1, false).unwrap();
    assert_eq!((*page.events[0].event, page.last_index, page.n_dropped), (4, Some(4), 0));
    let end = table.said(session(1), Some(5), 10, false).unwrap();
    assert!(end.events.is_empty() && end.last_index == Some(5));
    assert_eq!(table.last_index(session(1)), Some(5));
}

/// Rule: the caller can follow all sessions of its tree, in one order.
#[test]
fn what_a_child_says_is_heard_by_its_ancestors() {
    let mut table = table();
    table.start(new(1, None)).unwrap();
    table.start(new(2, Some(1))).unwrap();
    say(&mut table, 1, 10);
    assert_eq!(say(&mut table, 2, 20), [(session(2), 0), (session(1), 1)]);
    say(&mut table, 1, 11);
    let own = table.said(session(1), None, 10, false).unwrap();
    assert_eq!(own.events.iter().map(|said| *said.event).collect::<Vec<_>>(), [10, 11]);
    assert_eq!(own.last_index, Some(2));
    let all = table.said(session(1), None, 10, true).unwrap();
    assert_eq!(all.events.iter().map(|said| *said.event).collect::<Vec<_>>(), [10, 20, 11]);
    assert!(table.comes_from(session(2), session(1)));
    assert!(!table.comes_from(session(1), session(2)));
}

/// Rule: the idle time of a session runs from its last event, not from the last message.
#[test]
fn a_session_is_idle_only_when_its_agent_has_done_with_every_message() {
    let mut table = table();
    table.start(new(1, None)).unwrap();
    table.begin_turn(session(1)).unwrap();
    table.begin_turn(session(1)).unwrap();
    assert_eq!(table.end_turn(at(5), session(1)), None);
    assert!(table.idle_too_long(at(10_000)).is_empty(), "it is still working");
    assert_eq!(table.end_turn(at(50), session(1)), Some(SessionState::Idle));
    assert_eq!(table.next_idle(), Some(150));
    assert!(table.idle_too_long(at(149)).is_empty());
    assert_eq!(table.idle_too_long(at(150)), [session(1)]);
    table.begin_turn(session(1)).unwrap();
    assert_eq!(table.next_idle(), None);
    table.end(session(1), SessionState::Ended);
    assert_eq!(table.begin_turn(session(1)).unwrap_err().kind(), ErrorKind::NotFound);
}

/// Rule: a session that ended can be resumed, with its events; a live one cannot.
#[test]
fn a_session_is_taken_up_again_as_it_was() {
    let mut table = table();
    table.start(new(1, None)).unwrap();
    say(&mut table, 1, 1);
    assert_eq!(table.start(new(1, None)).unwrap_err().kind(), ErrorKind::Conflict);
    table.end(session(1), SessionState::Failed);
    table.start(new(1, None)).unwrap();
    assert_eq!(say(&mut table, 1, 2), [(session(1), 1)]);
    assert_eq!(table.n_agents(session(1)), 1);
}

/// Rule: a resumed session continues its indexes.
#[test]
fn numbers_go_on_after_a_restart() {
    let mut table = table();
    table.start(NewSession { next_index: 7, ..new(1, None) }).unwrap();
    assert_eq!(table.last_index(session(1)), Some(6));
    say(&mut table, 1, 1);
    let page = table.said(session(1), Some(6), 10, false).unwrap();
    assert_eq!((page.events[0].index, page.oldest_index), (7, 7));
    table.forget(session(1));
    assert!(table.find(session(1)).is_some(), "a live session is not forgotten");
    table.end(session(1), SessionState::Interrupted);
    table.forget(session(1));
    assert!(table.find(session(1)).is_none());
}

/// Rule: kept events are limited in bytes, for each session and for all together; the end of a
/// session frees them.
#[test]
fn what_is_kept_is_bounded_in_bytes() {
    let mut table = table();
    for number in 1..=3 {
        table.start(new(number, None)).unwrap();
        for event in 0..3 {
            table.say(session(number), &Arc::new(event), 400);
        }
        let page = table.said(session(number), None, 10, false).unwrap();
        assert!(page.events.len() <= 2 && page.n_dropped >= 1, "{page:?}");
        assert!(table.n_event_bytes() <= 1500, "{}", table.n_event_bytes());
    }
    table.say(session(3), &Arc::new(9), 5000);
    let page = table.said(session(3), None, 10, false).unwrap();
    assert!(page.events.len() <= 1, "an event larger than the limit may be dropped immediately");
    for number in 1..=3 {
        table.release(session(number), 0);
        table.end(session(number), SessionState::Ended);
        table.release(session(number), 0);
        assert!(table.said(session(number), None, 10, false).is_none(), "it is read elsewhere");
    }
    assert_eq!(table.n_event_bytes(), 0);
}

/// Rule: a session resumed after its end keeps its new events in memory, and the earlier ones
/// elsewhere.
#[test]
fn what_was_released_is_not_counted_as_dropped() {
    let mut table = table();
    table.start(new(1, None)).unwrap();
    for event in 0..3 {
        say(&mut table, 1, event);
    }
    table.end(session(1), SessionState::Ended);
    table.release(session(1), 2);
    let page = table.said(session(1), Some(0), 10, false).unwrap();
    assert_eq!((page.events.len(), page.n_dropped), (2, 0), "its last events were requested");
    table.release(session(1), 0);
    table.start(new(1, None)).unwrap();
    assert_eq!(say(&mut table, 1, 7), [(session(1), 3)]);
    assert!(table.said(session(1), Some(1), 10, false).is_none());
    assert_eq!(table.said(session(1), Some(2), 10, false).unwrap().events.len(), 1);
}

/// Rule: no session starts in what is being deleted, and what is in use is not deleted.
#[test]
fn no_session_starts_in_what_is_being_deleted() {
    let mut table = table();
    let (project, workspace) = (ProjectId::from_random([1; 16]), WorkspaceId::from_random([2; 16]));
    for what in [DeletionTarget::Project(project), DeletionTarget::Workspace(workspace)] {
        table.start(new(1, None)).unwrap();
        assert_eq!(table.leave(what).unwrap_err().kind(), ErrorKind::Conflict);
        table.end(session(1), SessionState::Ended);
        table.leave(what).unwrap();
        assert_eq!(table.leave(what).unwrap_err().kind(), ErrorKind::Conflict);
        assert_eq!(table.start(new(2, None)).unwrap_err().kind(), ErrorKind::Conflict);
        table.stay(what);
    }
    table.start(new(2, None)).unwrap();
}
