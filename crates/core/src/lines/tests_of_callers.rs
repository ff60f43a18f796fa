//! Callers' lines: who is reachable, and what happens to the calls.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use ringback_proto::ids::SessionId;
use ringback_proto::principal::Level;
use ringback_proto::{Certainty, ErrorKind, Result};

use super::tests::{Bench, at, id, principal, token};
use super::*;

/// How long a caller counts as reachable after a poll.
const GRACE_MS: u64 = 100;

fn session(number: u8) -> SessionId {
    SessionId::from_random([number; 16])
}

fn tool(name: &str) -> NewTool<()> {
    NewTool {
        name: name.into(),
        audience: Audience::Owner,
        timeout_ms: None,
        progress_extends: false,
        idempotent: false,
        weight: 1,
        info: (),
    }
}

impl Bench {
    fn declare_as(
        &mut self,
        who: &Principal,
        (of, caller_id): (u8, &str),
        tools: &[&str],
    ) -> Result<Vec<Arc<str>>> {
        let tools = tools.iter().map(|name| tool(name)).collect();
        let (session, caller_id) = (session(of), caller_id.into());
        let declaration = Declaration { session, caller_id, grace_ms: GRACE_MS, tools };
        let mut effects = Vec::new();
        let declared = self.table.callers().declare(at(self.now), who, declaration, &mut effects);
        self.settle(effects);
        declared
    }

    fn declare(&mut self, of: u8, caller_id: &str, tools: &[&str]) {
        let owner = self.owner.clone();
        self.declare_as(&owner, (of, caller_id), tools).unwrap();
    }

    fn attend(&mut self, of: u8, callers: Option<&[&str]>, holding: StreamMode) -> AttendanceNo {
        let caller_ids = callers.map(|ids| ids.iter().map(|id| Arc::from(*id)).collect());
        let attend = Attendee { session: session(of), caller_ids, holding, bell: "bell" };
        let mut effects = Vec::new();
        let attendance = self.table.callers().attend(self.owner.id, attend, &mut effects).unwrap();
        self.settle(effects);
        attendance
    }

    fn leave(&mut self, attendance: AttendanceNo) {
        let mut effects = Vec::new();
        self.table.callers().leave(at(self.now), attendance, &mut effects);
        self.settle(effects);
    }

    fn ask(&mut self, number: u8, of: u8, caller_id: Option<&str>, tool: &str) -> Result<()> {
        let tool = self.table.callers().find(session(of), caller_id, tool)?;
        let call = NewCall { id: id(number), custom_id: None, tool, out: number, caller: number };
        let mut effects = Vec::new();
        let called = self.table.call(call, &mut effects);
        self.settle(effects);
        called
    }

    fn hear(&mut self, attendance: AttendanceNo) -> Option<i32> {
        Some(match self.table.callers().next(attendance)?.post {
            PartyMessage::Call(number) => i32::from(number),
            PartyMessage::Cancel { call, .. } => -i32::from(call.as_bytes()[0]),
        })
    }

    /// Returns what a caller receives now; cancels are negative.
    fn heard(&mut self, attendance: AttendanceNo) -> Vec<i32> {
        std::iter::from_fn(|| self.hear(attendance)).collect()
    }

    fn end_session(&mut self, of: u8) {
        let mut effects = Vec::new();
        self.table.callers().end(session(of), &mut effects);
        self.settle(effects);
    }

    fn declared(&mut self, of: u8) -> Vec<(String, Vec<String>)> {
        let callers = self.table.callers().of(session(of)).into_iter();
        let names = |tools: Vec<Arc<LineTool<()>>>| {
            tools.iter().map(|tool| tool.name.to_string()).collect()
        };
        callers.map(|caller| (caller.caller_id.to_string(), names(caller.tools))).collect()
    }
}

/// Rule: one session never receives another's tools or calls, and other principals find none of
/// them.
#[test]
fn a_callers_tools_are_reached_by_their_session_alone() {
    let mut bench = Bench::new();
    bench.declare(1, "ant", &["read"]);
    bench.declare(2, "ant", &["write"]);
    assert_eq!(bench.declared(1), [("ant".to_owned(), vec!["read".to_owned()])]);
    let one = bench.attend(1, None, StreamMode::Lasting);
    let two = bench.attend(2, None, StreamMode::Lasting);
    assert_eq!(bench.ask(1, 2, Some("ant"), "read").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(bench.ask(1, 3, None, "read").unwrap_err().kind(), ErrorKind::NotFound);
    bench.ask(1, 1, Some("ant"), "read").unwrap();
    bench.ask(2, 2, None, "write").unwrap();
    assert_eq!((bench.heard(one), bench.heard(two)), (vec![1], vec![2]));
    let admin = principal(2, Level::Admin);
    assert!(bench.table.registry().find(&admin, "ant_read").is_err());
    assert!(bench.table.registry().page(&admin, "", "", 10).is_empty());
    assert!(bench.table.registry().seen_by(&admin, LineKind::Caller).is_empty());
    bench.worker("ant", &["read"]);
    bench.end_session(1);
    assert!(
        bench.table.registry().find(&admin, "ant_read").is_ok(),
        "a worker's tool of the same name"
    );
}

#[test]
fn without_a_caller_id_a_name_must_be_one_callers_own() {
    let mut bench = Bench::new();
    bench.declare(1, "ant", &["read", "dig"]);
    bench.declare(1, "bee", &["read"]);
    let ambiguous = bench.ask(1, 1, None, "read").unwrap_err();
    assert_eq!(ambiguous.kind(), ErrorKind::Invalid);
    assert!(ambiguous.message().contains("`ant`") && ambiguous.message().contains("`bee`"));
    bench.ask(1, 1, None, "dig").unwrap();
    bench.ask(2, 1, Some("bee"), "read").unwrap();
    assert_eq!(bench.table.callers().pending(token(1), session(1)), [1, 2]);
    assert!(bench.table.callers().pending(token(2), session(1)).is_empty());
}

/// Rule: declaring again replaces the list; a removed tool does not stay callable.
#[test]
fn a_new_declaration_replaces_the_last_and_none_removes_the_caller() {
    let mut bench = Bench::new();
    bench.declare(1, "ant", &["a", "b", "c"]);
    let stream = bench.attend(1, None, StreamMode::Lasting);
    for (number, tool) in [(1, "a"), (2, "b")] {
        bench.ask(number, 1, None, tool).unwrap();
    }
    assert_eq!(bench.hear(stream), Some(1));
    bench.declare(1, "ant", &["d", "c"]);
    assert_eq!(bench.failed, [(2, ErrorKind::Gone, Certainty::NotStarted)]);
    assert_eq!(bench.withdrawn, ["ant_a", "ant_b"]);
    assert_eq!(bench.declared(1), [("ant".to_owned(), vec!["d".to_owned(), "c".to_owned()])]);
    assert_eq!(bench.ask(3, 1, None, "a").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(bench.answer(1, 1).unwrap(), 1, "calls that the caller has may still be answered");
    bench.declare(1, "ant", &[]);
    assert!(bench.declared(1).is_empty());
    assert!(bench.ask(3, 1, Some("ant"), "c").is_err());
    bench.declare(1, "ant", &["e"]);
    bench.ask(4, 1, None, "e").unwrap();
    assert_eq!(bench.heard(stream), [4], "an earlier attendance receives it");
    bench.answer(1, 4).unwrap();
    bench.declare(1, "ant", &[]);
    bench.leave(stream);
    assert!(bench.table.is_empty(), "{:?}", bench.table);
}

/// Rule: the caller disconnects, and the agent does not wait for the deadline.
#[test]
fn a_caller_whose_last_lasting_stream_closed_is_gone_at_once() {
    let mut bench = Bench::new();
    bench.declare(1, "ant", &["read"]);
    let (first, second) =
        (bench.attend(1, None, StreamMode::Lasting), bench.attend(1, None, StreamMode::Lasting));
    bench.ask(1, 1, None, "read").unwrap();
    assert_eq!(bench.heard(second), [1]);
    bench.leave(second);
    assert_eq!(bench.heard(first), [1], "another stream gets it again");
    bench.ask(2, 1, None, "read").unwrap();
    bench.leave(first);
    let gone = ErrorKind::Gone;
    assert_eq!(bench.failed, [(1, gone, Certainty::MayHaveRun), (2, gone, Certainty::NotStarted)]);
    let refused = bench.ask(3, 1, None, "read").unwrap_err();
    assert_eq!((refused.kind(), refused.certainty()), (gone, Certainty::NotStarted));
    assert!(refused.message().contains("cannot be reached"), "{refused}");
    let late = bench.answer(1, 1).unwrap_err();
    assert!(late.message().contains("could no longer be reached"), "{late}");
    let back = bench.attend(1, None, StreamMode::Lasting);
    bench.ask(4, 1, None, "read").unwrap();
    assert_eq!(bench.heard(back), [4]);
}

/// Rule: a polling caller is reachable until its grace period after the last poll is over, and a
/// lost poll loses no call.
#[test]
fn a_poller_is_there_between_polls_and_gets_what_it_has_not_answered_again() {
    let mut bench = Bench::new();
    bench.declare(1, "ant", &["read"]);
    bench.pass(GRACE_MS - 1);
    bench.ask(1, 1, None, "read").unwrap();
    let poll = bench.attend(1, None, StreamMode::Polling);
    bench.pass(10 * GRACE_MS);
    let delivery = bench.table.callers().next(poll).unwrap();
    assert!(!delivery.is_again);
    bench.leave(poll);
    bench.pass(GRACE_MS - 1);
    let poll = bench.attend(1, None, StreamMode::Polling);
    let delivery = bench.table.callers().next(poll).unwrap();
    assert!(delivery.is_again && matches!(delivery.post, PartyMessage::Call(1)));
    bench.leave(poll);
    bench.pass(GRACE_MS - 1);
    bench.table.callers().touch(at(bench.now), &LineName::caller(session(1), "ant"));
    bench.pass(GRACE_MS - 1);
    assert!(bench.failed.is_empty(), "progress and answers are signs of life");
    bench.pass(1);
    assert_eq!(bench.failed, [(1, ErrorKind::Gone, Certainty::MayHaveRun)]);
    assert_eq!(bench.ask(2, 1, None, "read").unwrap_err().kind(), ErrorKind::Gone);
    bench.declare(1, "ant", &["read"]);
    bench.ask(2, 1, None, "read").unwrap();
    bench.pass(GRACE_MS);
    assert_eq!(bench.failed.pop(), Some((2, ErrorKind::Gone, Certainty::NotStarted)));
    assert_eq!(bench.declared(1).len(), 1, "its tools stay as long as the session");
}

#[test]
fn a_stream_that_closes_after_a_poll_leaves_the_poller_its_grace() {
    let mut bench = Bench::new();
    bench.declare(1, "ant", &["read"]);
    let lasting = bench.attend(1, None, StreamMode::Lasting);
    let poll = bench.attend(1, None, StreamMode::Polling);
    bench.leave(poll);
    bench.leave(lasting);
    bench.ask(1, 1, None, "read").unwrap();
    bench.pass(GRACE_MS);
    assert_eq!(bench.failed, [(1, ErrorKind::Gone, Certainty::NotStarted)]);
}

#[test]
fn a_caller_hears_of_its_own_lines_that_it_asked_for_each_in_turn() {
    let mut bench = Bench::new();
    let ant = bench.attend(1, Some(&["ant"]), StreamMode::Lasting);
    let all = bench.attend(1, None, StreamMode::Lasting);
    let friend = principal(2, Level::Write);
    bench.declare_as(&friend, (1, "fox"), &["t"]).unwrap();
    bench.declare(1, "ant", &["t"]);
    bench.declare(1, "bee", &["t"]);
    for (number, caller_id) in [(1, "ant"), (2, "bee"), (3, "fox"), (4, "ant"), (5, "bee")] {
        bench.ask(number, 1, Some(caller_id), "t").unwrap();
    }
    assert!(bench.heard(ant).is_empty());
    assert_eq!(bench.heard(all), [1, 2, 4, 5]);
    bench.leave(all);
    assert_eq!(bench.heard(ant), [1, 4]);
    let lost: Vec<_> = bench.failed.iter().map(|(number, ..)| *number).collect();
    assert_eq!(lost, [2, 5], "the bee is no longer attended");
}

/// Rule: a `caller_id` of a session belongs to the principal that declared it; only that principal
/// answers.
#[test]
fn bad_ids_foreign_callers_and_bad_lists_are_refused_whole() {
    let mut bench = Bench::new();
    let owner = bench.owner.clone();
    let long = "x".repeat(65);
    for bad in ["", "oubliette", "client", "client_x", "a/b", "a\nb", &long] {
        let refused = bench.declare_as(&owner, (1, bad), &["t"]).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid, "{bad:?}");
    }
    for tools in [&["t", "t"][..], &["t", ""], &["t", "a\0b"]] {
        let refused = bench.declare_as(&owner, (1, "ant"), tools).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid, "{tools:?}");
    }
    let reader = principal(3, Level::Read);
    let refused = bench.declare_as(&reader, (1, "ant"), &["t"]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Forbidden);
    assert!(bench.table.is_empty(), "{:?}", bench.table);

    bench.declare(1, "ant", &["t"]);
    let other = principal(2, Level::Admin);
    for tools in [&["u"][..], &[]] {
        let refused = bench.declare_as(&other, (1, "ant"), tools).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Conflict);
    }
    bench.declare_as(&other, (2, "ant"), &["t"]).unwrap();
    bench.ask(1, 1, None, "t").unwrap();
    assert_eq!(bench.answer(2, 1).unwrap_err().kind(), ErrorKind::NotFound);
    let line = LineName::caller(session(1), "ant");
    let opened = bench.table.open(at(0), &owner, &line, "bell", &mut Vec::new()).unwrap_err();
    assert_eq!(opened.kind(), ErrorKind::Invalid, "a caller's line is attended, not opened");
    assert_eq!((line.session(), line.caller_id()), (Some(session(1)), Some("ant")));
    assert_eq!(bench.answer(1, 1).unwrap(), 1);
}

/// Rule: when a session ends, so do its callers' lines, with one outcome for each call.
#[test]
fn the_end_of_a_session_ends_its_lines_and_their_attendees() {
    let mut bench = Bench::new();
    bench.declare(1, "ant", &["t"]);
    bench.declare(1, "bee", &["u"]);
    let stream = bench.attend(1, None, StreamMode::Lasting);
    bench.ask(1, 1, None, "t").unwrap();
    bench.ask(2, 1, None, "u").unwrap();
    assert_eq!(bench.hear(stream), Some(1));
    bench.end_session(1);
    let gone = ErrorKind::Gone;
    assert_eq!(bench.failed, [(1, gone, Certainty::MayHaveRun), (2, gone, Certainty::NotStarted)]);
    assert!(!bench.table.callers().is_attending(stream));
    assert!(bench.heard(stream).is_empty());
    assert!(bench.table.is_empty(), "{:?}", bench.table);
    bench.leave(stream);
    bench.end_session(1);
}

/// Rule: the party is notified when its caller leaves.
#[test]
fn a_caller_is_told_that_a_call_it_has_is_over() {
    let mut bench = Bench::new();
    bench.declare(1, "ant", &["t"]);
    let stream = bench.attend(1, None, StreamMode::Lasting);
    bench.ask(1, 1, None, "t").unwrap();
    assert_eq!(bench.heard(stream), [1]);
    assert_eq!(bench.recall(1, Recall::TimedOut), Some(Certainty::MayHaveRun));
    assert_eq!(bench.heard(stream), [-1]);
    assert!(bench.answer(1, 1).unwrap_err().message().contains("timed out"));
}

/// Rule: every table has a limit.
#[test]
fn callers_streams_and_tools_are_bounded() {
    let mut bench = Bench::new();
    bench.table = LineTable::new(LineLimits {
        callers_per_session_max: 1,
        streams_per_line_max: 1,
        tools_per_line_max: 2,
        tools_per_principal_max: 3,
        ..LineLimits::default()
    });
    let owner = bench.owner.clone();
    bench.declare(1, "ant", &["a", "b"]);
    bench.declare(1, "ant", &["b", "c"]);
    for (of, tools) in
        [((1, "ant"), &["a", "b", "c"][..]), ((1, "bee"), &["a"]), ((2, "ant"), &["a", "b"])]
    {
        let refused = bench.declare_as(&owner, of, tools).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Busy, "{of:?}");
    }
    bench.attend(1, None, StreamMode::Lasting);
    let attend =
        Attendee { session: session(1), caller_ids: None, holding: StreamMode::Polling, bell: "" };
    let refused = bench.table.callers().attend(owner.id, attend, &mut Vec::new()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Busy);
}

#[derive(Debug, Clone)]
enum Op {
    Declare { of: u8, caller: u8, tools: u8 },
    Attend { of: u8, only: Option<u8>, polls: bool },
    Leave { nth: usize },
    Ask { of: u8, caller: u8, tool: u8 },
    Hear { nth: usize },
    Answer { call: u8 },
    Recall { call: u8 },
    End { of: u8 },
    Pass { ms: u64 },
}

fn op() -> impl Strategy<Value = Op> {
    let of = || 0..2_u8;
    let caller = || 0..2_u8;
    prop_oneof![
        2 => (of(), caller(), 0..8_u8)
            .prop_map(|(of, caller, tools)| Op::Declare { of, caller, tools }),
        3 => (of(), proptest::option::of(caller()), any::<bool>())
            .prop_map(|(of, only, polls)| Op::Attend { of, only, polls }),
        2 => (0..8_usize).prop_map(|nth| Op::Leave { nth }),
        6 => (of(), caller(), 0..3_u8)
            .prop_map(|(of, caller, tool)| Op::Ask { of, caller, tool }),
        5 => (0..8_usize).prop_map(|nth| Op::Hear { nth }),
        3 => any::<u8>().prop_map(|call| Op::Answer { call }),
        2 => any::<u8>().prop_map(|call| Op::Recall { call }),
        1 => of().prop_map(|of| Op::End { of }),
        2 => (0..200_u64).prop_map(|ms| Op::Pass { ms }),
    ]
}

const CALLERS: [&str; 2] = ["ant", "bee"];
const TOOLS: [&str; 3] = ["a", "b", "c"];

/// Tracks every call beside the table.
#[derive(Default)]
struct Model {
    attendances: Vec<AttendanceNo>,
    /// Calls that have not ended, and the attendances that received each.
    live: BTreeMap<u8, BTreeSet<AttendanceNo>>,
    next: u8,
}

impl Model {
    fn step(&mut self, bench: &mut Bench, op: &Op) {
        match *op {
            Op::Declare { of, caller, tools } => {
                let tools: Vec<_> =
                    (0..3).filter(|bit| tools >> bit & 1 == 1).map(|bit| TOOLS[bit]).collect();
                bench.declare(of, CALLERS[usize::from(caller)], &tools);
            }
            Op::Attend { of, only, polls } => {
                let only = only.map(|caller| [CALLERS[usize::from(caller)]]);
                let holding = if polls { StreamMode::Polling } else { StreamMode::Lasting };
                let only = only.as_ref().map(<[_; 1]>::as_slice);
                self.attendances.push(bench.attend(of, only, holding));
            }
            Op::Leave { nth } if nth < self.attendances.len() => {
                let attendance = self.attendances.remove(nth);
                bench.leave(attendance);
            }
            Op::Ask { of, caller, tool } if self.next < u8::MAX => {
                let caller = CALLERS[usize::from(caller)];
                if bench.ask(self.next, of, Some(caller), TOOLS[usize::from(tool)]).is_ok() {
                    self.live.insert(self.next, BTreeSet::new());
                    self.next += 1;
                }
            }
            Op::Hear { nth } if nth < self.attendances.len() => self.hear(bench, nth),
            Op::Answer { call } => {
                let answered = bench.answer(1, call).is_ok();
                assert_eq!(answered, self.live.remove(&call).is_some());
            }
            Op::Recall { call } => {
                let certainty = bench.recall(call, Recall::Cancelled);
                let heard = self.live.remove(&call).map(|heard| !heard.is_empty());
                assert_eq!(certainty.map(|c| c == Certainty::MayHaveRun), heard);
            }
            Op::End { of } => bench.end_session(of),
            Op::Pass { ms } => bench.pass(ms),
            Op::Leave { .. } | Op::Ask { .. } | Op::Hear { .. } => {}
        }
        for (number, kind, certainty) in std::mem::take(&mut bench.failed) {
            let heard = self.live.remove(&number).expect("a call fails once, and only if it lives");
            assert_eq!(kind, ErrorKind::Gone);
            assert_eq!(certainty == Certainty::MayHaveRun, !heard.is_empty());
        }
        assert_eq!(bench.table.counts().2, self.live.len());
        let pending: usize =
            (0..2).map(|of| bench.table.callers().pending(token(1), session(of)).len()).sum();
        assert_eq!(pending, self.live.len());
    }

    fn hear(&mut self, bench: &mut Bench, nth: usize) {
        let attendance = self.attendances[nth];
        if let Some(Delivery { post: PartyMessage::Call(number), is_again }) =
            bench.table.callers().next(attendance)
        {
            let heard = self.live.get_mut(&number).expect("only live calls go out");
            assert_eq!(is_again, !heard.is_empty());
            assert!(heard.insert(attendance), "one stream got call {number} twice");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Rule: whatever callers do, every call has exactly one outcome, reported with the right
    /// certainty, and nothing is left when their sessions have ended.
    #[test]
    fn whatever_callers_do_every_call_ends_once_and_nothing_is_left(
        ops in proptest::collection::vec(op(), 1..120)
    ) {
        let mut bench = Bench::new();
        let mut model = Model::default();
        for op in &ops {
            model.step(&mut bench, op);
        }
        while !model.attendances.is_empty() {
            model.step(&mut bench, &Op::Leave { nth: 0 });
        }
        model.step(&mut bench, &Op::Pass { ms: 10_000 });
        prop_assert!(model.live.is_empty(), "{:?}", model.live);
        for of in 0..2 {
            model.step(&mut bench, &Op::End { of });
        }
        prop_assert!(bench.table.is_empty(), "{:?}", bench.table);
    }
}
