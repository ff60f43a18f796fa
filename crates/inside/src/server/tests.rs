//! Both sides of the protocol, line by line.

use std::collections::HashMap;
use std::path::PathBuf;

use proptest::prelude::*;
use ringback_mcp_wire::Line;

use super::*;

const ANT: &str = r#"{"jsonrpc":"2.0","method":"caller_tools_config","type":"caller_tools_config","params":{"caller_id":"ant","tools":[{"name":"send"}]}}"#;
const NOBODY: &str = r#"{"method":"caller_tools_config","params":{"caller_id":null,"tools":[]}}"#;
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

struct Dialogue {
    server: Server,
    now: Instant,
}

impl Dialogue {
    fn new(key: Option<&str>) -> Self {
        let options = Options {
            target: Target::Socket(PathBuf::new()),
            key: key.and_then(Key::new),
            has_session_tools: false,
        };
        let now = Instant::now();
        Self { server: Server::new(options, now), now }
    }

    /// A server that has its tools.
    fn settled() -> Self {
        let mut talk = Self::new(None);
        talk.up();
        assert!(talk.daemon(ANT).is_empty());
        talk
    }

    fn up(&mut self) -> Vec<String> {
        self.server.on_daemon_up();
        self.server.settle(self.now);
        self.server.to_daemon.take()
    }

    fn down(&mut self) -> Vec<String> {
        self.server.on_daemon_down();
        self.server.settle(self.now);
        self.server.to_client.take()
    }

    /// What the agent receives after a message from it.
    fn client(&mut self, line: &str) -> Vec<String> {
        self.server.on_client(&Line::Whole(line.as_bytes()));
        self.server.settle(self.now);
        self.server.to_client.take()
    }

    /// What the agent receives after a line from the daemon.
    fn daemon(&mut self, line: &str) -> Vec<String> {
        self.server.on_daemon_line(&Line::Whole(line.as_bytes()), self.now).unwrap();
        self.server.settle(self.now);
        self.server.to_client.take()
    }

    /// What the agent receives after some time.
    fn later(&mut self, duration: Duration) -> Vec<String> {
        self.now += duration;
        self.server.settle(self.now);
        self.server.to_client.take()
    }

    /// The requests to the daemon.
    fn asked(&mut self) -> Vec<String> {
        self.server.to_daemon.take()
    }

    fn shake_hands(&mut self) {
        let line = r#"{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-06-18"}}"#;
        let answer = self.client(line).concat();
        assert!(answer.contains(r#""protocolVersion":"2025-06-18""#), "{answer}");
        self.client(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    }
}

fn list(id: u32) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#)
}

fn call(id: u32, name: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{name}","arguments":{{"n":9007199254740993}}}}}}"#
    )
}

#[track_caller]
fn assert_one(lines: &[String], parts: &[&str]) {
    assert_eq!(lines.len(), 1, "{lines:?}");
    for part in parts {
        assert!(lines[0].contains(part), "{part} in {}", lines[0]);
    }
}

/// Rule: tools appear immediately; a list waits only for the first config.
#[test]
fn a_list_waits_for_the_first_config_and_no_longer() {
    let mut talk = Dialogue::new(None);
    assert!(talk.client(&list(1)).is_empty());
    talk.up();
    assert_one(&talk.daemon(ANT), &[r#""id":1"#, r#""name":"ant_send""#]);
    assert_one(&talk.client(&list(2)), &[r#""id":2"#, "ant_send"]);
    let mut talk = Dialogue::new(None);
    talk.up();
    talk.client(&list(1));
    assert_one(&talk.daemon(NOBODY), &[r#""tools":[]"#]);
}

/// Rule: after two seconds a list is answered with what there is, and a change is announced later.
#[test]
fn a_list_is_answered_after_two_seconds_whatever_is_missing() {
    let mut talk = Dialogue::new(None);
    talk.shake_hands();
    talk.client(&list(1));
    assert!(talk.later(PATIENCE - Duration::from_millis(1)).is_empty());
    assert_eq!(talk.server.deadline(), Some(talk.now + Duration::from_millis(1)));
    assert_one(&talk.later(Duration::from_millis(1)), &[r#""tools":[]"#]);
    talk.up();
    assert_one(&talk.daemon(ANT), &["notifications/tools/list_changed"]);
}

/// Rule: with a key a list waits for the daemon's own tools too.
#[test]
fn with_a_key_a_list_has_the_tools_of_the_daemon_too() {
    let mut talk = Dialogue::new(Some("oub_k"));
    talk.client(&list(1));
    let asked = talk.up();
    assert_one(&asked, &[r#""method":"oubliette_tools","params":{"api_key":"oub_k"}"#]);
    assert!(talk.daemon(ANT).is_empty());
    let listed = talk.daemon(r#"{"id":1,"result":{"tools":[{"name":"project_list"}]}}"#);
    assert_one(&listed, &["ant_send", "oubliette_project_list"]);
    talk.client(&call(2, "oubliette_project_list"));
    assert_one(
        &talk.asked(),
        &[r#""method":"oubliette_call_tool","params":{"api_key":"oub_k","tool":"project_list","#],
    );
}

/// Rule: failed discovery is one warning without the key; caller tools are served, and discovery is
/// retried.
#[test]
fn failed_discovery_is_said_once_and_tried_again() {
    let mut talk = Dialogue::new(Some("oub_secret"));
    talk.shake_hands();
    talk.client(&list(1));
    talk.up();
    talk.daemon(ANT);
    let error = r#"{"id":1,"error":{"code":-32001,"message":"invalid or expired API key oub_secret","data":{}}}"#;
    assert_one(&talk.daemon(error), &["ant_send"]);
    assert_one(&talk.server.warnings, &["invalid or expired API key"]);
    assert!(!talk.server.warnings[0].contains("secret"));
    assert!(talk.asked().is_empty());
    talk.later(Duration::from_secs(1));
    assert_one(&talk.asked(), &[r#""id":2,"method":"oubliette_tools""#]);
    talk.daemon(&error.replace(r#""id":1"#, r#""id":2"#));
    assert_eq!(talk.server.warnings.len(), 1);
    talk.later(Duration::from_secs(60));
    assert_one(&talk.asked(), &[r#""id":3"#]);
    let told = talk.daemon(r#"{"id":3,"result":{"tools":[{"name":"x"}]}}"#);
    assert_one(&told, &["list_changed"]);
}

/// Rule: a daemon that never answers does not delay the list forever.
#[test]
fn a_question_that_is_not_answered_is_asked_again() {
    let mut talk = Dialogue::new(Some("k"));
    talk.up();
    talk.later(Duration::from_secs(10));
    assert_eq!(talk.server.warnings.len(), 1);
    talk.later(Duration::from_secs(1));
    assert_one(&talk.asked(), &["oubliette_tools"]);
}

/// Rule: a change of the daemon's own tools is fetched and announced.
#[test]
fn changed_tools_of_the_daemon_are_requested_again() {
    let mut talk = Dialogue::new(Some("k"));
    talk.up();
    talk.daemon(NOBODY);
    let changed = r#"{"method":"oubliette_tools_changed"}"#;
    talk.daemon(changed);
    assert!(talk.asked().is_empty(), "one question at a time");
    talk.daemon(r#"{"id":1,"result":{"tools":[{"name":"old"}]}}"#);
    assert_one(&talk.asked(), &[r#""id":2"#]);
    talk.daemon(r#"{"id":2,"result":{"tools":[{"name":"new"}]}}"#);
    assert_one(&talk.client(&list(1)), &["oubliette_new"]);
}

/// REQ: seed 001 "Agent calls caller tool successfully": arguments and result are the same bytes.
#[test]
fn a_call_goes_to_its_caller_and_its_result_comes_back() {
    let mut talk = Dialogue::settled();
    assert!(talk.client(&call(5, "ant_send")).is_empty());
    assert_one(
        &talk.asked(),
        &[
            r#""id":1,"method":"caller_tool","params":{"tool":"send","arguments":{"n":9007199254740993},"caller_id":"ant"}"#,
        ],
    );
    let answer = talk.daemon(r#"{"jsonrpc":"2.0","id":1,"result":{"n":12345678901234567890}}"#);
    assert_one(&answer, &[r#""id":5"#, r#""structuredContent":{"n":12345678901234567890}"#]);
    assert!(talk.daemon(r#"{"id":1,"result":2}"#).is_empty(), "an answer counts once");
}

/// REQ: seed 001 "Tool execution error response".
#[test]
fn an_error_of_the_caller_is_an_error() {
    let mut talk = Dialogue::settled();
    talk.client(&call(5, "ant_send"));
    let error = r#"{"id":1,"error":{"code":-32000,"message":"recipient not found","data":{"kind":"tool_failed","retryable":false,"certainty":"ran"}}}"#;
    assert_one(&talk.daemon(error), &[r#""isError":true"#, "recipient not found"]);
}

/// Rule: a slow call delays no other.
#[test]
fn calls_are_answered_in_the_order_of_their_answers() {
    let mut talk = Dialogue::settled();
    for id in 1..=3 {
        talk.client(&call(id, "ant_send"));
    }
    assert_one(&talk.daemon(r#"{"id":3,"result":null}"#), &[r#""id":3"#, r#""text":"null""#]);
    assert_one(&talk.client(r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#), &[r#""id":9"#]);
    assert_one(&talk.daemon(r#"{"id":1,"result":1}"#), &[r#""id":1"#]);
    assert_one(&talk.daemon(r#"{"id":2,"result":2}"#), &[r#""id":2"#]);
    assert!(talk.server.is_idle());
}

/// Rule: a removed tool is refused, and its removal is announced.
#[test]
fn a_removed_tool_is_announced_and_refused() {
    let mut talk = Dialogue::settled();
    talk.shake_hands();
    let removed = ANT.replace(r#"{"name":"send"}"#, "");
    assert_one(&talk.daemon(&removed), &["notifications/tools/list_changed"]);
    assert!(talk.daemon(&removed).is_empty(), "the same list is not a change");
    assert_one(&talk.client(&call(1, "ant_send")), &["-32602"]);
    assert!(talk.asked().is_empty());
}

/// Rule: in the modern era changes are announced to subscribers, and only to them.
#[test]
fn a_subscription_is_told_of_changes() {
    let mut talk = Dialogue::settled();
    let listen = format!(
        r#"{{"jsonrpc":"2.0","id":"s","method":"subscriptions/listen","params":{{"notifications":{{"toolsListChanged":true}},{META}}}}}"#
    );
    assert_one(&talk.client(&listen), &["notifications/subscriptions/acknowledged", r#""s""#]);
    let other = ANT.replace("send", "other");
    assert_one(&talk.daemon(&other), &["list_changed", r#"subscriptionId":"s""#]);
    talk.server.on_client_end();
    assert_one(&talk.server.to_client.take(), &[r#""id":"s","result":{"resultType":"complete""#]);
}

/// Rule: both eras are served by one process.
#[test]
fn a_modern_request_stands_by_itself() {
    let mut talk = Dialogue::settled();
    let ask = |method: &str, rest: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{rest}{META}}}}}"#)
    };
    let discovered = talk.client(&ask("server/discover", ""));
    assert_one(&discovered, &[r#""supportedVersions":["2026-07-28","#, "serverInfo"]);
    let listed = talk.client(&ask("tools/list", ""));
    assert_one(&listed, &[r#""cacheScope":"private""#, "ant_send"]);
    talk.client(&ask("tools/call", r#""name":"ant_send","#));
    assert_one(&talk.asked(), &[r#""arguments":{}"#]);
    let answer = talk.daemon(r#"{"id":1,"result":[1]}"#);
    assert_one(&answer, &[r#""resultType":"complete""#, r#""structuredContent":[1]"#]);
    let other = ask("tools/list", "").replace("2026-07-28", "2031-01-01");
    assert_one(&talk.client(&other), &["-32022"]);
    let bare = r#"{"jsonrpc":"2.0","id":1,"method":"server/discover"}"#;
    assert_one(&talk.client(bare), &["-32602"]);
}

/// Rule: cancelling reaches the daemon, and nothing is answered afterwards.
#[test]
fn a_cancelled_call_is_cancelled_at_the_daemon() {
    let mut talk = Dialogue::settled();
    talk.client(&call(7, "ant_send"));
    talk.asked();
    let cancelled =
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#;
    assert!(talk.client(cancelled).is_empty());
    assert_one(&talk.asked(), &[r#""method":"cancel","params":{"id":1}"#]);
    assert!(talk.daemon(r#"{"id":1,"result":1}"#).is_empty());
    assert!(talk.client(cancelled).is_empty(), "a late cancel is not an error");
    assert!(talk.asked().is_empty());
}

/// Rule: progress passes to the client that asked for it, and only grows.
#[test]
fn progress_passes_to_who_asked_for_it() {
    let mut talk = Dialogue::settled();
    let with_token =
        call(1, "ant_send").replace(r#""name""#, r#""_meta":{"progressToken":"t"},"name""#);
    talk.client(&with_token);
    talk.client(&call(2, "ant_send"));
    assert_one(
        &talk.daemon(&progress(1, 50)),
        &[r#""progressToken":"t","progress":50.0,"total":100,"message":"half""#],
    );
    assert!(talk.daemon(&progress(1, 50)).is_empty());
    assert!(talk.daemon(&progress(2, 50)).is_empty());
    talk.daemon(r#"{"id":1,"result":1}"#);
    assert!(talk.daemon(&progress(1, 99)).is_empty());
}

fn progress(id: u32, percent: u32) -> String {
    format!(
        r#"{{"method":"progress","params":{{"id":{id},"percent":{percent},"message":"half"}}}}"#
    )
}

/// Rule: calls running when the daemon went away may have run; later ones have not.
#[test]
fn a_lost_daemon_ends_calls_truthfully() {
    let mut talk = Dialogue::settled();
    talk.client(&call(1, "ant_send"));
    talk.client(&call(2, "ant_send"));
    let lost = talk.down();
    assert_eq!(lost.len(), 2);
    for (line, id) in lost.iter().zip([r#""id":1"#, r#""id":2"#]) {
        assert!(line.contains(id) && line.contains(r#""certainty":"may_have_run""#), "{line}");
        assert!(line.contains(r#""kind":"gone""#) && line.contains(r#""isError":true"#), "{line}");
    }
    assert_one(
        &talk.client(&call(3, "ant_send")),
        &[r#""kind":"gone","retryable":true,"certainty":"not_started""#],
    );
    assert_one(&talk.client(&list(4)), &["ant_send"]);
}

/// Rule: after a reconnect the list is the daemon's current one; the same list is not a change.
#[test]
fn a_daemon_that_comes_back_sends_the_list_again() {
    let mut talk = Dialogue::settled();
    talk.shake_hands();
    talk.daemon(&ANT.replace("ant", "bee"));
    talk.down();
    talk.up();
    talk.server.on_daemon_line(&Line::Whole(ANT.as_bytes()), talk.now).unwrap();
    assert!(talk.daemon(&ANT.replace("ant", "bee")).is_empty());
    talk.down();
    talk.up();
    assert_one(&talk.daemon(ANT), &["list_changed"]);
    assert_one(&talk.client(&call(1, "bee_send")), &["-32602"]);
}

/// Rule: a call of a tool that may be about to be declared waits for the declaration.
#[test]
fn a_call_before_the_first_list_waits_for_it() {
    let mut talk = Dialogue::new(None);
    assert!(talk.client(&call(1, "ant_send")).is_empty());
    talk.up();
    talk.daemon(ANT);
    assert_one(&talk.asked(), &["caller_tool"]);
    let mut talk = Dialogue::new(None);
    talk.client(&call(1, "ant_send"));
    assert_one(&talk.later(PATIENCE), &["gone", "not_started"]);
}

/// Rule: garbage from the agent is answered as JSON-RPC says, and an id is used once at a time.
#[test]
fn garbage_from_the_agent_is_answered() {
    let mut talk = Dialogue::settled();
    assert_one(&talk.client("{"), &[r#""id":null"#, "-32700"]);
    assert_one(&talk.client("[]"), &["-32600"]);
    assert_one(&talk.client(r#"{"jsonrpc":"2.0","id":1,"method":"prompts/list"}"#), &["-32601"]);
    let list_of = call(1, "ant_send").replace(r#"{"n":9007199254740993}"#, "[]");
    assert_one(&talk.client(&list_of), &["-32602"]);
    talk.server.on_client(&Line::TooLong(b"{"));
    assert_one(&talk.server.to_client.take(), &["-32600"]);
    talk.client(&call(1, "ant_send"));
    assert_one(&talk.client(&call(1, "ant_send")), &["-32600"]);
}

/// Rule: an answer over the limit fails only its own call.
#[test]
fn an_answer_that_is_too_long_fails_its_call_alone() {
    let mut talk = Dialogue::settled();
    talk.client(&call(1, "ant_send"));
    talk.client(&call(2, "ant_send"));
    let start = Line::TooLong(br#"{"jsonrpc":"2.0","id":2,"result":"xxx"#);
    talk.server.on_daemon_line(&start, talk.now).unwrap();
    assert_one(&talk.server.to_client.take(), &[r#""id":2"#, "too_large", r#""ran""#]);
    assert_one(&talk.daemon(r#"{"id":1,"result":1}"#), &[r#""id":1"#]);
    assert!(talk.server.on_daemon_line(&Line::TooLong(b"xxx"), talk.now).is_err());
    assert!(talk.server.on_daemon_line(&Line::Whole(b"xxx"), talk.now).is_err());
}

/// Rule: a call whose line the daemon refuses is answered, though the refusal does not name it.
#[test]
fn a_refusal_without_an_id_ends_the_call_it_must_mean() {
    let mut talk = Dialogue::settled();
    let refusal = r#"{"id":null,"error":{"code":-32600,"message":"a line has at most 9 bytes","data":{"kind":"too_large","retryable":false,"certainty":"not_started"}}}"#;
    assert!(talk.daemon(refusal).is_empty());
    talk.client(&call(1, "ant_send"));
    assert_one(&talk.daemon(refusal), &[r#""id":1"#, "too_large", "not_started"]);
    talk.client(&call(2, "ant_send"));
    talk.client(&call(3, "ant_send"));
    let line = Line::Whole(refusal.as_bytes());
    assert!(talk.server.on_daemon_line(&line, talk.now).is_err());
    assert_eq!(talk.down().len(), 2);
}

/// Rule: too many calls are refused immediately.
#[test]
fn too_many_calls_are_refused_as_busy() {
    let mut talk = Dialogue::settled();
    for id in 0..1024 {
        assert!(talk.client(&call(id, "ant_send")).is_empty());
    }
    assert_one(&talk.client(&call(5000, "ant_send")), &["busy", "not_started"]);
}

/// What may happen, in any order.
#[derive(Debug, Clone)]
enum Step {
    Call,
    Reply(u64),
    TooLong(u64),
    Progress(u64),
    Cancel(u32),
    Config(bool),
    Down,
    Up,
    Garbage,
    Later(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Call),
        3 => (1..30_u64).prop_map(Step::Reply),
        1 => (1..30_u64).prop_map(Step::TooLong),
        1 => (1..30_u64).prop_map(Step::Progress),
        1 => (0..30_u32).prop_map(Step::Cancel),
        1 => any::<bool>().prop_map(Step::Config),
        1 => Just(Step::Down),
        2 => Just(Step::Up),
        1 => Just(Step::Garbage),
        1 => (0..3000_u64).prop_map(Step::Later),
    ]
}

impl Dialogue {
    /// Does a step, and returns what the agent receives.
    fn take(&mut self, step: &Step, n_calls: &mut u32) -> Vec<String> {
        let is_up = self.server.link != Link::Down;
        match step {
            Step::Call => {
                *n_calls += 1;
                self.client(&call(*n_calls, "ant_send"))
            }
            Step::Cancel(id) => self.client(&format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
            )),
            Step::Later(ms) => self.later(Duration::from_millis(*ms)),
            Step::Down => self.down(),
            Step::Up if !is_up => {
                self.up();
                Vec::new()
            }
            Step::Reply(asked) if is_up => self.daemon(&format!(r#"{{"id":{asked},"result":1}}"#)),
            Step::Progress(asked) if is_up => self.daemon(&progress(u32::try_from(*asked).unwrap(), 5)),
            Step::Config(true) if is_up => self.daemon(ANT),
            Step::Config(false) if is_up => self.daemon(NOBODY),
            Step::TooLong(asked) if is_up => {
                let start = format!(r#"{{"id":{asked},"result":"#);
                self.server.on_daemon_line(&Line::TooLong(start.as_bytes()), self.now).unwrap();
                self.server.to_client.take()
            }
            Step::Garbage => self.client("garbage"),
            Step::Up | Step::Reply(_) | Step::Progress(_) | Step::Config(_) | Step::TooLong(_) => {
                Vec::new()
            }
        }
    }
}

proptest! {
    /// Rule: every call has exactly one outcome, whatever the daemon does; a cancelled one has at
    /// most one.
    #[test]
    fn every_call_is_answered_once(steps in proptest::collection::vec(step(), 0..80)) {
        let mut talk = Dialogue::new(None);
        let (mut n_calls, mut cancelled, mut answers) = (0, Vec::new(), HashMap::new());
        let ends = [Step::Later(3000), Step::Down];
        for step in steps.iter().chain(&ends) {
            if let Step::Cancel(id) = step {
                cancelled.push(*id);
            }
            for line in talk.take(step, &mut n_calls) {
                let reply = line.split_once(r#""id":"#).and_then(|(_, rest)| rest.split_once(','));
                if let Some(Ok(id)) = reply.map(|(id, _)| id.parse::<u32>()) {
                    *answers.entry(id).or_insert(0) += 1;
                }
            }
        }
        for id in 1..=n_calls {
            let n = answers.get(&id).copied().unwrap_or(0);
            prop_assert!(n == 1 || (n == 0 && cancelled.contains(&id)), "{id} has {n} answers");
        }
        prop_assert!(talk.server.is_idle());
    }
}
