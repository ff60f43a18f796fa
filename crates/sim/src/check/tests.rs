//! The checker finds planted errors.

use ringback_broker::TableSizes;
use ringback_proto::ids::{JobId, RequestId};
use ringback_proto::principal::PrincipalId;
use ringback_proto::record::JobState;
use ringback_proto::{Certainty, ErrorKind};

use super::check;
use crate::history::{
    Announcement, CallRecord, Durable, Entry, EventContent, FinalState, History, HistoryEvent, Op,
    Reply,
};

fn job(number: u8) -> JobId {
    JobId::from_random([number; 16])
}

fn called(call: usize, op: Op) -> HistoryEvent {
    let request_id = Some(RequestId::from_bytes([1; 16]));
    let (wait_ms, deadline_ms) = (None, None);
    let called = CallRecord { call, who: 0, op, request_id, wait_ms, deadline_ms, stream: false };
    HistoryEvent::Called(Box::new(called))
}

fn created(number: u8) -> HistoryEvent {
    HistoryEvent::Durable(Durable::Created {
        job: job(number),
        marker: 7,
        owner: PrincipalId::Local,
        request_id: Some(RequestId::from_bytes([1; 16])),
        state: JobState::Running,
    })
}

fn ended(number: u8) -> HistoryEvent {
    HistoryEvent::Durable(Durable::Ended(job(number), JobState::Complete))
}

fn state(seq: u64, number: u8, state: JobState) -> HistoryEvent {
    HistoryEvent::Announced(Announcement {
        seq,
        topic: "job.state_changed",
        topic_seq: seq,
        owner: PrincipalId::Local,
        owner_topic_seq: seq,
        news: EventContent::State(job(number), state),
    })
}

/// Returns a history of a job that is requested, created, reported, run and ended correctly.
fn faultless() -> Vec<HistoryEvent> {
    vec![
        HistoryEvent::Started,
        called(0, Op::Sleep(7)),
        created(1),
        state(1, 1, JobState::Running),
        HistoryEvent::Replied(0, Reply::JobStarted(job(1))),
        ended(1),
        state(2, 1, JobState::Complete),
        called(1, Op::Status(job(1))),
        HistoryEvent::Replied(1, Reply::Jobs(vec![(job(1), JobState::Complete)])),
        HistoryEvent::Stopped,
    ]
}

fn truth() -> FinalState {
    FinalState { jobs: vec![(job(1), JobState::Complete)], ..FinalState::default() }
}

/// Returns the rules that a history breaks.
fn broken(what: Vec<HistoryEvent>, truth: FinalState) -> Vec<&'static str> {
    let entries = what.into_iter().map(|what| Entry { at: 5, life: 0, what }).collect();
    let mut rules: Vec<_> =
        check(&History { entries, truth }).into_iter().map(|violation| violation.rule).collect();
    rules.dedup();
    rules
}

/// Returns the rules that a change of the faultless history breaks.
fn broken_by(change: impl FnOnce(&mut Vec<HistoryEvent>)) -> Vec<&'static str> {
    let mut what = faultless();
    change(&mut what);
    broken(what, truth())
}

#[test]
fn a_faultless_history_breaks_nothing() {
    assert_eq!(broken(faultless(), truth()), [""; 0]);
}

#[test]
fn a_lost_acknowledged_job_is_seen() {
    assert_eq!(broken(faultless(), FinalState::default()), ["nothing acknowledged is lost"]);
}

#[test]
fn an_id_told_before_the_job_is_durable_is_seen() {
    let broken = broken_by(|what| what.swap(2, 4));
    assert!(broken.contains(&"nothing is said before it is durable"), "{broken:?}");
}

#[test]
fn a_second_outcome_and_none_are_seen() {
    let twice = broken_by(|what| what.insert(5, what[4].clone()));
    assert_eq!(twice, ["one outcome per call"]);
    let never = broken_by(|what| drop(what.remove(8)));
    assert_eq!(never, ["every call ends"]);
}

#[test]
fn a_double_run_is_seen() {
    let jobs = vec![(job(1), JobState::Complete), (job(2), JobState::Complete)];
    let mut what = faultless();
    what.truncate(9);
    what.extend([created(2), state(3, 2, JobState::Running), ended(2)]);
    what.push(state(4, 2, JobState::Complete));
    assert_eq!(broken(what, FinalState { jobs, ..truth() }), ["repeats never run twice"]);

    let made = vec![
        called(0, Op::CreateArtifact(9)),
        HistoryEvent::Durable(Durable::Made(9)),
        HistoryEvent::Durable(Durable::Made(9)),
        HistoryEvent::Replied(0, Reply::Made(9)),
    ];
    let truth = FinalState { made: vec![9, 9], ..FinalState::default() };
    assert_eq!(broken(made, truth), ["repeats never run twice"]);
}

#[test]
fn one_id_that_stands_for_two_calls_is_seen() {
    let broken = broken_by(|what| {
        what.extend([
            called(2, Op::CreateArtifact(9)),
            HistoryEvent::Durable(Durable::Made(9)),
            HistoryEvent::Replied(2, Reply::Made(9)),
        ]);
    });
    assert!(broken.contains(&"repeats never run twice"), "{broken:?}");
}

#[test]
fn an_event_before_its_change_is_durable_is_seen() {
    assert_eq!(broken_by(|what| what.swap(5, 6)), ["an event comes after its change is durable"]);
}

#[test]
fn a_gap_in_the_numbers_is_seen() {
    assert_eq!(
        broken_by(|what| what[6] = state(3, 1, JobState::Complete)),
        ["event numbers have no gaps"]
    );
}

#[test]
fn a_change_that_nobody_is_told_of_is_seen() {
    assert_eq!(broken_by(|what| drop(what.remove(6))), ["every change is announced"]);
}

#[test]
fn a_job_that_goes_back_is_seen() {
    let back = HistoryEvent::Durable(Durable::Began(job(1)));
    let broken = broken_by(|what| what.insert(9, back));
    assert!(broken.contains(&"a job only goes forward"), "{broken:?}");
    let stale = Reply::Jobs(vec![(job(1), JobState::Running)]);
    assert_eq!(
        broken_by(|what| what[8] = HistoryEvent::Replied(1, stale)),
        ["a job only goes forward"]
    );
}

#[test]
fn work_after_the_end_is_seen() {
    let broken = broken_by(|what| {
        let mut progress = state(3, 1, JobState::Running);
        if let HistoryEvent::Announced(announced) = &mut progress {
            announced.news = EventContent::Progress(job(1));
        }
        what.insert(7, progress);
    });
    assert_eq!(broken, ["a job works while it runs"]);
}

#[test]
fn an_effect_of_a_refused_call_is_seen() {
    let refused = Reply::Failed(ErrorKind::Busy, Certainty::NotStarted);
    assert_eq!(
        broken_by(|what| what[4] = HistoryEvent::Replied(0, refused)),
        ["no effect after a refusal"]
    );
}

#[test]
fn a_revoked_token_that_works_is_seen() {
    let what = vec![
        called(0, Op::Revoke(0)),
        HistoryEvent::Replied(0, Reply::Done),
        called(1, Op::Ping),
        HistoryEvent::Replied(1, Reply::Done),
    ];
    let truth = FinalState { revoked: vec![0], ..FinalState::default() };
    assert_eq!(broken(what, truth), ["a dead token is dead"]);
}

#[test]
fn a_table_that_is_not_empty_is_seen() {
    let under_way = TableSizes { n_jobs: 1, ..TableSizes::default() };
    assert_eq!(
        broken(faultless(), FinalState { under_way, ..truth() }),
        ["tables are empty in the end"]
    );
}
