//! Tests of the engine with every kind of party.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use ringback_proto::principal::{AgentKey, KeyHolder, Level};
use ringback_proto::{Certainty, ErrorKind, Result};

use super::*;
use crate::time::Now;

/// Minimal shell types: a call goes out as its number.
#[derive(Debug)]
pub(super) struct Test;

impl Links for Test {
    type Tool = ();
    type Out = u8;
    type Caller = u8;
    type Bell = &'static str;
}

pub(super) fn token(number: u8) -> PrincipalId {
    PrincipalId::Token(TokenId::from_random([number; 16]))
}

pub(super) fn principal(number: u8, level: Level) -> Principal {
    Principal { id: token(number), level, target: Target::Everything, held_by: None }
}

pub(super) fn at(mono: u64) -> Now {
    Now { mono, unix: 0 }
}

pub(super) fn id(number: u8) -> CallId {
    CallId::from_random([number; 16])
}

/// A table, its users, and the effects.
pub(super) struct Bench {
    pub(super) table: LineTable<Test>,
    pub(super) owner: Principal,
    pub(super) now: u64,
    pub(super) failed: Vec<(u8, ErrorKind, Certainty)>,
    pub(super) withdrawn: Vec<String>,
}

impl Bench {
    pub(super) fn new() -> Self {
        Self {
            table: LineTable::new(LineLimits { unattended_ms: 600, ..LineLimits::default() }),
            owner: principal(1, Level::Write),
            now: 0,
            failed: Vec::new(),
            withdrawn: Vec::new(),
        }
    }

    fn line(kind: LineKind, name: &str) -> LineName {
        match kind {
            LineKind::Client => LineName::Client(name.into()),
            LineKind::Worker => LineName::Worker(name.into()),
            LineKind::Caller => LineName::caller(SessionId::from_random([1; 16]), name),
        }
    }

    pub(super) fn settle(&mut self, effects: Vec<LineEffect<Test>>) {
        for effect in effects {
            match effect {
                LineEffect::Ring(_) => {}
                LineEffect::Failed(ended, error) => {
                    self.failed.push((ended.caller, error.kind(), error.certainty()));
                }
                LineEffect::Withdrawn { tools, .. } => {
                    self.withdrawn.extend(tools.iter().map(ToString::to_string));
                }
            }
        }
    }

    fn offer_as(
        &mut self,
        who: &Principal,
        line: &LineName,
        stream: Option<StreamNo>,
        grace_ms: Option<u64>,
        tools: &[&str],
    ) -> Result<Vec<Arc<str>>> {
        let tools = tools
            .iter()
            .map(|name| NewTool {
                name: (*name).into(),
                audience: Audience::Owner,
                timeout_ms: None,
                progress_extends: false,
                idempotent: name.starts_with("idem"),
                weight: 1,
                info: (),
            })
            .collect();
        let mut effects = Vec::new();
        let offer = Offer { line: line.clone(), grace_ms, stream, tools };
        let offered = self.table.offer(at(self.now), who, offer, &mut effects);
        self.settle(effects);
        offered
    }

    fn client(&mut self, name: &str, grace_ms: u64, tools: &[&str]) -> LineName {
        let line = Self::line(LineKind::Client, name);
        let owner = self.owner.clone();
        self.offer_as(&owner, &line, None, Some(grace_ms), tools).unwrap();
        line
    }

    pub(super) fn open(&mut self, line: &LineName) -> StreamNo {
        let mut effects = Vec::new();
        let owner = self.owner.clone();
        let stream = self.table.open(at(self.now), &owner, line, "bell", &mut effects).unwrap();
        self.settle(effects);
        stream
    }

    pub(super) fn worker(&mut self, service: &str, tools: &[&str]) -> StreamNo {
        let line = Self::line(LineKind::Worker, service);
        let stream = self.open(&line);
        let owner = self.owner.clone();
        self.offer_as(&owner, &line, Some(stream), None, tools).unwrap();
        stream
    }

    pub(super) fn close(&mut self, stream: StreamNo) {
        let mut effects = Vec::new();
        self.table.close(at(self.now), stream, &mut effects);
        self.settle(effects);
    }

    fn call_named(&mut self, number: u8, custom_id: Option<&str>, tool: &str) -> Result<()> {
        let tool = self.table.registry().find(&self.owner, tool)?;
        let custom_id = custom_id.map(Into::into);
        let call = NewCall { id: id(number), custom_id, tool, out: number, caller: number };
        let mut effects = Vec::new();
        let called = self.table.call(call, &mut effects);
        self.settle(effects);
        called
    }

    fn call(&mut self, number: u8, tool: &str) {
        self.call_named(number, None, tool).unwrap();
    }

    /// Returns the calls a stream takes now; cancels are negative.
    fn taken(&mut self, stream: StreamNo) -> Vec<i32> {
        let mut taken = Vec::new();
        while let Some(post) = self.table.next(stream) {
            taken.push(match post {
                PartyMessage::Call(number) => i32::from(number),
                PartyMessage::Cancel { call, .. } => -i32::from(call.as_bytes()[0]),
            });
        }
        taken
    }

    pub(super) fn answer(&mut self, who: u8, number: u8) -> Result<u8> {
        self.table.answer(token(who), &id(number).to_string()).map(|ended| ended.caller)
    }

    pub(super) fn recall(&mut self, number: u8, why: Recall) -> Option<Certainty> {
        let mut effects = Vec::new();
        let ended = self.table.recall(id(number), why, &mut effects);
        self.settle(effects);
        ended.map(|ended| ended.certainty())
    }

    pub(super) fn pass(&mut self, ms: u64) {
        self.now += ms;
        let mut effects = Vec::new();
        self.table.expire(at(self.now), &mut effects);
        self.settle(effects);
    }
}

/// Rule: a call made while no stream is open waits for one.
#[test]
fn a_call_waits_for_a_stream_and_goes_to_the_newest_alone() {
    let mut bench = Bench::new();
    let line = bench.client("tab", 0, &["read"]);
    bench.call(1, "client_tab_read");
    let old = bench.open(&line);
    let new = bench.open(&line);
    assert_eq!(bench.taken(old), [1]);
    bench.call(2, "client_tab_read");
    assert_eq!((bench.taken(old), bench.taken(new)), (vec![], vec![2]));
}

/// Rule: closing one of two tabs takes nothing from the other.
#[test]
fn closing_one_of_two_streams_keeps_the_tools_and_moves_what_was_not_taken() {
    let mut bench = Bench::new();
    let line = bench.client("tab", 0, &["read"]);
    let old = bench.open(&line);
    let new = bench.open(&line);
    bench.call(1, "client_tab_read");
    bench.call(2, "client_tab_read");
    assert!(matches!(bench.table.next(new), Some(PartyMessage::Call(1))));
    bench.close(new);
    assert_eq!(bench.failed, [(1, ErrorKind::Gone, Certainty::MayHaveRun)]);
    assert_eq!(bench.taken(old), [2]);
    assert!(bench.withdrawn.is_empty());
    assert_eq!(bench.answer(1, 2).unwrap(), 2);
}

/// Rule: a disconnect never becomes a success.
#[test]
fn the_last_stream_takes_its_tools_and_calls_with_it_at_once() {
    let mut bench = Bench::new();
    let line = bench.client("tab", 0, &["read", "write"]);
    let stream = bench.open(&line);
    bench.call(1, "client_tab_read");
    assert_eq!(bench.taken(stream), [1]);
    bench.call(2, "client_tab_read");
    bench.close(stream);
    let (gone, not_started) = (ErrorKind::Gone, Certainty::NotStarted);
    assert_eq!(bench.failed, [(1, gone, Certainty::MayHaveRun), (2, gone, not_started)]);
    assert_eq!(bench.withdrawn, ["client_tab_read", "client_tab_write"]);
    assert!(bench.answer(1, 1).unwrap_err().message().contains("line dropped"));
    assert!(bench.table.is_empty(), "{:?}", bench.table);
}

#[test]
fn with_grace_unanswered_calls_come_again_under_the_same_ids_in_their_order() {
    let mut bench = Bench::new();
    let line = bench.client("tab", 100, &["read"]);
    let first = bench.open(&line);
    for number in 1..=3 {
        bench.call(number, "client_tab_read");
    }
    assert!(matches!(bench.table.next(first), Some(PartyMessage::Call(1))));
    bench.close(first);
    bench.pass(99);
    assert_eq!(bench.answer(1, 2).unwrap(), 2, "an answer counts while the line is away");
    let second = bench.open(&line);
    assert_eq!(bench.taken(second), [1, 3]);
    bench.close(second);
    bench.pass(100);
    let may_have_run = Certainty::MayHaveRun;
    let gone = ErrorKind::Gone;
    assert_eq!(bench.failed, [(1, gone, may_have_run), (3, gone, may_have_run)]);
    assert!(bench.table.is_empty());
}

/// Rule: another principal's result is never accepted, and a second result never overwrites the
/// first.
#[test]
fn only_the_owner_answers_and_only_the_first_answer_counts() {
    let mut bench = Bench::new();
    let line = bench.client("tab", 0, &["read"]);
    let stream = bench.open(&line);
    bench.call(1, "client_tab_read");
    assert_eq!(bench.taken(stream), [1]);
    assert_eq!(bench.answer(9, 1).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(bench.answer(1, 1).unwrap(), 1);
    let second = bench.answer(1, 1).unwrap_err();
    assert!(second.message().contains("was answered"), "{second}");
    let stranger = bench.answer(9, 1).unwrap_err();
    assert!(!stranger.message().contains("was answered"), "{stranger}");
}

/// Rule: the party is notified when its caller leaves, and a result after the timeout is refused.
#[test]
fn a_recalled_call_is_cancelled_at_its_party_if_it_has_it() {
    let mut bench = Bench::new();
    let line = bench.client("tab", 0, &["read"]);
    bench.call(1, "client_tab_read");
    assert_eq!(bench.recall(1, Recall::Cancelled), Some(Certainty::NotStarted));
    let stream = bench.open(&line);
    bench.call(2, "client_tab_read");
    assert_eq!(bench.recall(2, Recall::Cancelled), Some(Certainty::NotStarted));
    assert_eq!(bench.taken(stream), Vec::<i32>::new());
    bench.call(3, "client_tab_read");
    assert_eq!(bench.taken(stream), [3]);
    assert_eq!(bench.recall(3, Recall::TimedOut), Some(Certainty::MayHaveRun));
    assert_eq!(bench.taken(stream), [-3]);
    assert!(bench.answer(1, 3).unwrap_err().message().contains("timed out"));
    assert_eq!(bench.recall(3, Recall::TimedOut), None);
}

/// Rule: a duplicate request id never hijacks another call.
/// Rule: only the daemon's own user and full administrators do the work of native tools.
#[test]
fn a_service_of_native_tools_is_held_by_full_administrators_and_hidden() {
    let mut bench = Bench::new();
    let service = LineName::Worker("garden".into());
    let narrow = Principal {
        target: Target::Projects(vec![ringback_proto::ids::ProjectId::from_random([1; 16])]),
        ..principal(3, Level::Admin)
    };
    let session = SessionId::from_random([4; 16]);
    let held_by = Some(KeyHolder { session, key: AgentKey::Passed });
    let agent = Principal { held_by, ..principal(4, Level::Admin) };
    for stranger in [principal(2, Level::Write), narrow, agent] {
        let refused = bench.offer_as(&stranger, &service, None, None, &["play"]).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Forbidden, "{stranger:?}");
        let opened = bench.table.open(at(0), &stranger, &service, "b", &mut Vec::new());
        assert_eq!(opened.unwrap_err().kind(), ErrorKind::Forbidden);
        assert!(bench.table.is_empty(), "not even the name is held");
    }
    let local = Principal::local();
    let stream = bench.table.open(at(0), &local, &service, "b", &mut Vec::new()).unwrap();
    bench.offer_as(&local, &service, Some(stream), None, &["play", "reload"]).unwrap();
    assert!(bench.table.registry().page(&local, "", "", 10).is_empty(), "listed as rows only");
    assert!(bench.table.registry().find(&local, "garden_reload").is_err());
    assert_eq!(&*bench.table.tool_of_service("garden", "play").unwrap().name, "play");
    assert!(bench.table.tool_of_service("garden", "seek").is_none());
    bench.table.close(at(0), stream, &mut Vec::new());
    assert!(bench.table.tool_of_service("garden", "play").is_none());
    assert!(bench.table.is_empty());
}

#[test]
fn a_tool_named_like_a_native_one_is_a_conflict_on_every_other_line() {
    let mut bench = Bench::new();
    let line = LineName::Worker("gar".into());
    let admin = principal(1, Level::Admin);
    let refused = bench.offer_as(&admin, &line, None, None, &["den_play"]);
    assert!(refused.is_ok(), "`gar_den_play` is free");
    let line = LineName::Worker("job".into());
    let refused = bench.offer_as(&admin, &line, None, None, &["status"]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    let mine = LineName::Worker("mine".into());
    bench.offer_as(&admin, &mine, None, None, &["play"]).unwrap();
    assert!(bench.table.tool_of_service("mine", "play").is_none(), "not a service of rows");
}

#[test]
fn an_id_in_use_is_a_conflict_and_ids_of_our_own_form_are_refused() {
    let mut bench = Bench::new();
    bench.client("tab", 0, &["read"]);
    bench.call_named(1, Some("r1"), "client_tab_read").unwrap();
    let again = bench.call_named(2, Some("r1"), "client_tab_read").unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Conflict);
    let ours = id(7).to_string();
    let ours = bench.call_named(2, Some(&ours), "client_tab_read").unwrap_err();
    assert_eq!(ours.kind(), ErrorKind::Invalid);
    assert_eq!(bench.table.answer(token(1), "r1").unwrap().caller, 1);
    bench.call_named(3, Some("r1"), "client_tab_read").unwrap();
    assert_eq!(bench.table.answer(token(1), "r1").unwrap().caller, 3);
}

/// Rule: names are claimed as a whole, first come, first served.
#[test]
fn ambiguous_reserved_and_foreign_names_are_refused_and_nothing_is_half_registered() {
    let mut bench = Bench::new();
    let owner = bench.owner.clone();
    bench.client("a_b", 0, &["c"]);
    let a = Bench::line(LineKind::Client, "a");
    let taken = bench.offer_as(&owner, &a, None, None, &["fine", "b_c"]).unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::Conflict);
    assert!(bench.table.registry().find(&owner, "client_a_fine").is_err());

    let native = Bench::line(LineKind::Worker, "job");
    let shadow = bench.offer_as(&owner, &native, None, None, &["sleep"]).unwrap_err();
    assert_eq!(shadow.kind(), ErrorKind::Conflict);
    for reserved in ["client", "oubliette", "client_x", "oubliette_y", ""] {
        let line = Bench::line(LineKind::Worker, reserved);
        let refused = bench.offer_as(&owner, &line, None, None, &["t"]).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid, "{reserved:?}");
    }
    let other = principal(2, Level::Admin);
    let theirs = Bench::line(LineKind::Client, "a_b");
    let foreign = bench.offer_as(&other, &theirs, None, None, &["d"]).unwrap_err();
    assert_eq!(foreign.kind(), ErrorKind::Forbidden);
    let reader = principal(3, Level::Read);
    let refused = bench.offer_as(&reader, &a, None, None, &["t"]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Forbidden);
}

#[test]
fn a_tool_is_seen_by_its_owner_by_those_it_is_shared_with_and_by_full_admins() {
    let mut bench = Bench::new();
    bench.client("tab", 0, &["b", "a"]);
    let names = |who: &Principal, bench: &Bench| -> Vec<String> {
        let page = bench.table.registry().page(who, "", "", 10);
        page.iter().map(|tool| tool.full_name.to_string()).collect()
    };
    let owner = bench.owner.clone();
    assert_eq!(names(&owner, &bench), ["client_tab_a", "client_tab_b"]);
    assert_eq!(names(&principal(2, Level::Write), &bench), Vec::<String>::new());
    assert_eq!(names(&principal(2, Level::Admin), &bench).len(), 2);
    let reader = Principal { level: Level::Read, ..owner.clone() };
    assert_eq!(names(&reader, &bench), Vec::<String>::new());
    let refused = bench.table.registry().find(&reader, "client_tab_a").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Forbidden);

    let shared = NewTool {
        name: "z".into(),
        audience: Audience::Tokens(vec![TokenId::from_random([2; 16])]),
        timeout_ms: None,
        progress_extends: false,
        idempotent: false,
        weight: 1,
        info: (),
    };
    let line = Bench::line(LineKind::Client, "tab");
    let offer = Offer { line, grace_ms: None, stream: None, tools: vec![shared] };
    bench.table.offer(at(0), &owner, offer, &mut Vec::new()).unwrap();
    assert_eq!(names(&principal(2, Level::Write), &bench), ["client_tab_z"]);
    assert_eq!(names(&principal(3, Level::Write), &bench), Vec::<String>::new());
    let page = bench.table.registry().page(&owner, "client_tab_a", "client_tab_", 1);
    assert_eq!(&*page[0].full_name, "client_tab_b");
}

#[test]
fn workers_of_a_service_share_the_load_and_what_a_dead_one_did_not_take_moves() {
    let mut bench = Bench::new();
    let a = bench.worker("gpu", &["render", "idem"]);
    let b = bench.worker("gpu", &["render", "idem"]);
    for number in 1..=4 {
        bench.call(number, "gpu_render");
    }
    bench.call(5, "gpu_idem");
    assert_eq!(bench.taken(b), [2, 4]);
    assert!(matches!(bench.table.next(a), Some(PartyMessage::Call(1))));
    assert_eq!(bench.taken(a), [3, 5]);
    bench.call(6, "gpu_render");
    bench.close(a);
    let (gone, may_have_run) = (ErrorKind::Gone, Certainty::MayHaveRun);
    assert_eq!(bench.failed, [(1, gone, may_have_run), (3, gone, may_have_run)]);
    assert_eq!(bench.taken(b), [6, 5], "calls that were not taken move, and so do idempotent ones");
    bench.close(b);
    assert!(bench.table.is_empty());
}

#[test]
fn a_worker_answers_for_its_own_tools_and_a_new_offer_replaces_its_last() {
    let mut bench = Bench::new();
    let a = bench.worker("gpu", &["render", "old"]);
    let b = bench.worker("gpu", &["sing"]);
    bench.call(1, "gpu_sing");
    assert_eq!((bench.taken(a), bench.taken(b)), (vec![], vec![1]));
    bench.call(2, "gpu_old");
    let (owner, line) = (bench.owner.clone(), Bench::line(LineKind::Worker, "gpu"));
    bench.offer_as(&owner, &line, Some(a), None, &["render"]).unwrap();
    assert_eq!(bench.withdrawn, ["gpu_old"]);
    assert_eq!(bench.failed, [(2, ErrorKind::Gone, Certainty::NotStarted)]);
    bench.close(b);
    assert_eq!(bench.withdrawn, ["gpu_old", "gpu_sing"]);
    assert!(bench.table.registry().find(&owner, "gpu_render").is_ok());
}

#[test]
fn withdrawn_tools_lose_what_nobody_has_and_keep_what_was_delivered() {
    let mut bench = Bench::new();
    let line = bench.client("tab", 0, &["client_x", "y"]);
    let stream = bench.open(&line);
    bench.call(1, "client_tab_client_x");
    assert_eq!(bench.taken(stream), [1]);
    bench.call(2, "client_tab_client_x");
    let mut effects = Vec::new();
    let named = ["client_x".to_owned(), "client_tab_y".to_owned(), "nothing".to_owned()];
    let withdrawn =
        bench.table.withdraw_named(token(1), &line, Some(&named), &mut effects).unwrap();
    bench.settle(effects);
    assert_eq!(withdrawn.len(), 2);
    assert_eq!(bench.failed, [(2, ErrorKind::Gone, Certainty::NotStarted)]);
    assert_eq!(bench.answer(1, 1).unwrap(), 1);
    assert!(bench.table.withdraw_named(token(2), &line, None, &mut Vec::new()).is_err());
}

/// Rule: a registration that is never attended does not last forever.
#[test]
fn a_line_that_never_had_a_stream_ends_after_a_while() {
    let mut bench = Bench::new();
    bench.client("tab", 0, &["read"]);
    assert_eq!(bench.table.next_lapse(), Some(600));
    bench.pass(599);
    assert!(bench.withdrawn.is_empty());
    bench.pass(1);
    assert_eq!(bench.withdrawn, ["client_tab_read"]);
    assert!(bench.table.is_empty());
}

/// Rule: a full queue answers `busy` instead of growing.
#[test]
fn every_table_has_a_limit() {
    let mut bench = Bench::new();
    bench.table = LineTable::new(LineLimits {
        calls_per_line_max: 2,
        tools_per_line_max: 2,
        streams_per_line_max: 1,
        lines_per_principal_max: 2,
        ..LineLimits::default()
    });
    let owner = bench.owner.clone();
    let line = bench.client("tab", 0, &["a", "b"]);
    let refused = bench.offer_as(&owner, &line, None, None, &["c"]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Busy);
    bench.offer_as(&owner, &line, None, None, &["a"]).unwrap();
    bench.call(1, "client_tab_a");
    bench.call(2, "client_tab_a");
    let refused = bench.call_named(3, None, "client_tab_a").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Busy);
    bench.open(&line);
    assert!(bench.table.open(at(0), &owner, &line, "", &mut Vec::new()).is_err());
    bench.client("two", 0, &["t"]);
    let three = Bench::line(LineKind::Client, "three");
    assert!(bench.offer_as(&owner, &three, None, None, &["t"]).is_err());
}

#[derive(Debug, Clone)]
enum Op {
    Client { name: u8, grace: bool },
    Worker { service: u8 },
    Open { name: u8 },
    Close { nth: usize },
    Call { tool: usize },
    Take { nth: usize },
    Answer { call: u8 },
    Recall { call: u8 },
    Withdraw { name: u8 },
    Pass { ms: u64 },
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        (0..3_u8, any::<bool>()).prop_map(|(name, grace)| Op::Client { name, grace }),
        (0..2_u8).prop_map(|service| Op::Worker { service }),
        (0..3_u8).prop_map(|name| Op::Open { name }),
        (0..8_usize).prop_map(|nth| Op::Close { nth }),
        (0..10_usize).prop_map(|tool| Op::Call { tool }),
        (0..10_usize).prop_map(|tool| Op::Call { tool }),
        (0..8_usize).prop_map(|nth| Op::Take { nth }),
        (0..8_usize).prop_map(|nth| Op::Take { nth }),
        any::<u8>().prop_map(|call| Op::Answer { call }),
        any::<u8>().prop_map(|call| Op::Recall { call }),
        (0..3_u8).prop_map(|name| Op::Withdraw { name }),
        (0..200_u64).prop_map(|ms| Op::Pass { ms }),
    ]
}

/// Runs random parties against the table and tracks every call.
#[derive(Default)]
struct Model {
    streams: Vec<StreamNo>,
    /// Calls that have not ended, and the streams each was taken by.
    live: BTreeMap<u8, BTreeSet<StreamNo>>,
    next: u8,
}

impl Model {
    fn step(&mut self, bench: &mut Bench, op: &Op) {
        match *op {
            Op::Client { name, grace } => {
                bench.client(&format!("c{name}"), u64::from(grace) * 50, &["t", "idem"]);
            }
            Op::Worker { service } => {
                self.streams.push(bench.worker(&format!("w{service}"), &["t", "idem"]));
            }
            Op::Open { name } => {
                let line = Bench::line(LineKind::Client, &format!("c{name}"));
                self.streams.push(bench.open(&line));
            }
            Op::Close { nth } if nth < self.streams.len() => {
                let stream = self.streams.remove(nth);
                bench.close(stream);
            }
            Op::Call { tool } if self.next < u8::MAX => {
                let owner = bench.owner.clone();
                let tools = bench.table.registry().page(&owner, "", "", 20);
                if let Some(tool) = tools.get(tool) {
                    let name = tool.full_name.to_string();
                    bench.call(self.next, &name);
                    self.live.insert(self.next, BTreeSet::new());
                    self.next += 1;
                }
            }
            Op::Take { nth } if nth < self.streams.len() => {
                let stream = self.streams[nth];
                if let Some(PartyMessage::Call(number)) = bench.table.next(stream) {
                    let taken = self.live.get_mut(&number).expect("only live calls go out");
                    assert!(taken.insert(stream), "one stream got call {number} twice");
                }
            }
            Op::Answer { call } => {
                let answered = bench.answer(1, call).is_ok();
                assert_eq!(answered, self.live.remove(&call).is_some());
            }
            Op::Recall { call } => {
                let certainty = bench.recall(call, Recall::Cancelled);
                let taken = self.live.remove(&call).map(|taken| !taken.is_empty());
                assert_eq!(certainty.map(|c| c == Certainty::MayHaveRun), taken);
            }
            Op::Withdraw { name } => {
                let line = Bench::line(LineKind::Client, &format!("c{name}"));
                let mut effects = Vec::new();
                bench.table.withdraw_named(token(1), &line, None, &mut effects).unwrap();
                bench.settle(effects);
            }
            Op::Pass { ms } => bench.pass(ms),
            Op::Close { .. } | Op::Call { .. } | Op::Take { .. } => {}
        }
        for (number, kind, certainty) in std::mem::take(&mut bench.failed) {
            let taken = self.live.remove(&number).expect("a call fails once, and only if it lives");
            assert_eq!(kind, ErrorKind::Gone);
            assert_eq!(certainty == Certainty::MayHaveRun, !taken.is_empty());
        }
        assert_eq!(bench.table.counts().2, self.live.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Rule: every call has exactly one outcome, no call is refused after it went out, and nothing
    /// is left in any table.
    #[test]
    fn whatever_parties_do_every_call_ends_once_and_nothing_is_left(
        ops in proptest::collection::vec(op(), 1..120)
    ) {
        let mut bench = Bench::new();
        let mut model = Model::default();
        for op in &ops {
            model.step(&mut bench, op);
        }
        while !model.streams.is_empty() {
            model.step(&mut bench, &Op::Close { nth: 0 });
        }
        model.step(&mut bench, &Op::Pass { ms: 10_000 });
        prop_assert!(model.live.is_empty(), "{:?}", model.live);
        prop_assert!(bench.table.is_empty(), "{:?}", bench.table);
    }
}

/// Rule: lists are in order of registration, and registering again does not change the order.
#[test]
fn a_tool_that_is_offered_again_keeps_its_place() {
    let mut bench = Bench::new();
    let line = bench.client("c", 0, &["one", "two"]);
    bench.client("c", 0, &["three", "one"]);
    let names = |bench: &Bench| {
        let tools = bench.table.tools_of(&bench.owner, &line);
        tools.iter().map(|tool| tool.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names(&bench), ["one", "two", "three"]);
    let mut effects = Vec::new();
    let one = ["one".to_owned()];
    bench.table.withdraw_named(bench.owner.id, &line, Some(&one), &mut effects).unwrap();
    bench.client("c", 0, &["one"]);
    assert_eq!(
        names(&bench),
        ["two", "three", "one"],
        "withdrawn and offered again, it comes last"
    );
}
