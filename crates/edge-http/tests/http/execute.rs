//! `POST /client-tools/execute`: a call from its caller to the client and back.

use std::time::Duration;

use ringback_testkit::pass;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::register::{register, tool};
use crate::support::{Agent, Options, World, code};

/// A call that a caller is waiting for.
pub(crate) struct WaitingCall(JoinSet<(u16, Value)>);

impl WaitingCall {
    pub(crate) fn call(agent: &Agent, body: Value) -> Self {
        let agent = agent.clone();
        let mut waiting = JoinSet::new();
        waiting.spawn(async move { agent.json("POST /client-tools/execute", body).await });
        Self(waiting)
    }

    pub(crate) async fn answer(&mut self) -> (u16, Value) {
        self.0.join_next().await.unwrap().unwrap()
    }

    pub(crate) fn is_waiting(&mut self) -> bool {
        self.0.try_join_next().is_none()
    }

    /// Hangs up.
    pub(crate) async fn leave(mut self) {
        self.0.shutdown().await;
    }
}

pub(crate) async fn succeed(agent: &Agent, request_id: &Value, output: &str) -> (u16, Value) {
    let result = json!({"status": "success", "title": "done", "output": output});
    let body = json!({"requestID": request_id, "result": result});
    agent.json("POST /client-tools/result", body).await
}

/// REQ: seed 004 "Data Flow" and "Event Format": the frame byte for byte, and the answer of the
/// call.
#[tokio::test]
async fn a_call_goes_out_as_one_frame_and_its_result_comes_back() {
    let world = World::start().await;
    register(&world.admin, "cc", &["echo"]).await;
    let mut stream = world.admin.stream("/client-tools/pending/cc").await;
    let input = r#"{"z":1, "a":[null,18446744073709551617,1.0E+2],"é":"\u00e9\\n"}"#;
    let body = format!(
        r#"{{"toolID":"client_cc_echo","requestID":"r1","sessionID":"s1","messageID":"m1","callID":"k1","input":{input}}}"#
    );
    let agent = world.admin.clone();
    let mut calls = JoinSet::new();
    calls.spawn(
        async move { agent.send("POST /client-tools/execute", &[], body).await.text().await },
    );
    let frame = stream.next().await.unwrap();
    let expected = format!(
        "event: tool-request\ndata: {{\"type\":\"client-tool-request\",\"requestID\":\"r1\",\
         \"sessionID\":\"s1\",\"messageID\":\"m1\",\"callID\":\"k1\",\"tool\":\"client_cc_echo\",\
         \"input\":{input}}}\n\n"
    );
    assert_eq!(frame.raw, expected);
    let result = r#"{"output":"o", "status":"success","title":"t","metadata":{"n":18446744073709551617,"x":null}}"#;
    let body = format!(r#"{{"requestID":"r1","result":{result}}}"#);
    let (status, counted) = world.admin.ask("POST /client-tools/result", &[], &body).await;
    assert_eq!((status, counted), (200, json!({"success": true})));
    assert_eq!(calls.join_next().await.unwrap().unwrap(), result, "the client's own bytes");
}

/// Rule: a caller that may call a tool may call it through every edge.
#[tokio::test]
async fn a_client_tool_is_a_tool_of_v1_too() {
    let world = World::start().await;
    register(&world.admin, "c", &["t"]).await;
    let (_, listed) = world.admin.get("/v1/tools?prefix=client_").await;
    assert_eq!(listed["tools"][0]["name"], "client_c_t");
    let mut stream = world.admin.stream("/client-tools/pending/c").await;
    let agent = world.admin.clone();
    let mut calls = JoinSet::new();
    calls.spawn(async move {
        let accept = ["accept: text/event-stream"];
        let line = "POST /v1/tools/client_c_t/call";
        agent.send(line, &accept, "{\"a\":\n1}").await.text().await
    });
    let request = stream.named("tool-request").await.json();
    assert_eq!(request["input"], json!({"a": 1}));
    let id = &request["requestID"];
    let progress = json!({"requestID": id, "percent": 40, "message": "half"});
    let (status, told) = world.admin.json("POST /client-tools/progress", progress).await;
    assert_eq!((status, told), (200, json!({"success": true})));
    assert_eq!(succeed(&world.admin, id, "out").await.0, 200);
    let events = calls.join_next().await.unwrap().unwrap();
    let places = ["event: start", "\"percent\":40", "event: result", "\"output\":\"out\""]
        .map(|part| events.find(part));
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{events}");
}

/// REQ: seed 004 "Error Handling": each row, and those of ours.
#[tokio::test]
async fn a_call_that_fails_says_how() {
    let world = World::start().await;
    register(&world.admin, "c", &["t"]).await;
    let execute = async |body: Value| {
        let (status, answer) = world.admin.json("POST /client-tools/execute", body).await;
        (status, code(&answer).to_owned())
    };
    let (status, name) = execute(json!({"toolID": "client_c_nothing", "input": {}})).await;
    assert_eq!((status, name.as_str()), (404, "NOT_FOUND"));
    let body = json!({"toolID": "client_c_t", "input": {}, "timeout": 20_000});
    let mut call = WaitingCall::call(&world.admin, body);
    world.settled(|broker| broker.under_way().lines.2 == 1).await;
    pass(Duration::from_secs(20)).await;
    let (status, answer) = call.answer().await;
    assert_eq!((status, code(&answer)), (504, "TIMEOUT"));
    assert_eq!(answer["error"]["certainty"], "not_started", "no stream was open: {answer}");
    for body in [
        json!({"toolID": "client_c_t", "input": {}, "timeout": 60_001}),
        json!({"toolID": "client_c_t", "input": 7}),
        json!({"toolID": "client_c_t", "input": {}, "requestID": ""}),
        json!({"input": {}}),
    ] {
        let (status, name) = execute(body.clone()).await;
        assert_eq!((status, name.as_str()), (400, "INVALID_REQUEST"), "{body}");
    }

    let mut stream = world.admin.stream("/client-tools/pending/c").await;
    let mut call =
        WaitingCall::call(&world.admin, json!({"toolID": "client_c_t", "requestID": "r"}));
    assert_eq!(stream.named("tool-request").await.json()["input"], json!({}));
    let (status, name) = execute(json!({"toolID": "client_c_t", "requestID": "r"})).await;
    assert_eq!((status, name.as_str()), (409, "CONFLICT"), "a duplicate id hijacks nothing");
    let error = json!({"requestID": "r", "result": {"status": "error", "error": "no such page"}});
    assert_eq!(world.admin.json("POST /client-tools/result", error).await.0, 200);
    let (status, answer) = call.answer().await;
    assert_eq!((status, code(&answer)), (502, "TOOL_ERROR"));
    assert_eq!(answer["error"]["message"], "no such page");
    assert_eq!(answer["error"]["certainty"], "ran");
}

/// Rule: input that does not match the tool's schema never reaches its client.
#[tokio::test]
async fn input_is_checked_before_it_leaves() {
    let world = World::start().await;
    let schema =
        json!({"type": "object", "required": ["q"], "properties": {"q": {"type": "string"}}});
    let tools = json!([{"id": "t", "parameters": schema}]);
    let body = json!({"clientID": "c", "tools": tools});
    assert_eq!(world.admin.json("POST /client-tools/register", body).await.0, 200);
    let mut stream = world.admin.stream("/client-tools/pending/c").await;
    for input in [json!({}), json!({"q": 5})] {
        let call = json!({"toolID": "client_c_t", "input": input});
        let (status, answer) = world.admin.json("POST /client-tools/execute", call).await;
        assert_eq!((status, code(&answer)), (400, "INVALID_REQUEST"), "{answer}");
    }
    let call = json!({"toolID": "client_c_t", "input": {"q": "x"}, "requestID": "good"});
    let waiting = WaitingCall::call(&world.admin, call);
    assert_eq!(stream.named("tool-request").await.json()["requestID"], "good");
    waiting.leave().await;
}

/// REQ: seed 004 "Configuration": `defaultTimeout`. Ours: a tool's own time, and progress renews it.
#[tokio::test]
async fn a_call_has_the_usual_time_unless_its_tool_says_otherwise() {
    let world = World::start_with(Options { call_ms_default: 5_000, ..Options::default() }).await;
    let mut slow = tool("slow");
    slow["timeoutMs"] = json!(20_000);
    let body = json!({"clientID": "c", "tools": [tool("usual"), slow]});
    assert_eq!(world.admin.json("POST /client-tools/register", body).await.0, 200);
    let mut stream = world.admin.stream("/client-tools/pending/c").await;
    for (tool, timeout_ms) in [("client_c_usual", 5_000), ("client_c_slow", 20_000)] {
        let mut call = WaitingCall::call(&world.admin, json!({"toolID": tool}));
        stream.named("tool-request").await;
        pass(Duration::from_millis(timeout_ms)).await;
        let (status, answer) = call.answer().await;
        let error = &answer["error"];
        assert_eq!((status, &error["details"]["timeout_ms"]), (504, &json!(timeout_ms)));
        assert_eq!(error["certainty"], "may_have_run", "a stream had it");
        assert_eq!(stream.named("tool-cancel").await.json()["reason"], "timeout");
    }
}

/// Rule: progress restarts the timeout of a client tool call, so that the call may take longer
/// while it reports progress.
#[tokio::test]
async fn a_call_outlives_its_time_while_its_client_tells_progress() {
    const TIMEOUT: Duration = Duration::from_secs(6);
    const PROGRESS_EVERY: Duration = Duration::from_secs(2);
    let world = World::start().await;
    let tool = json!({"id": "t", "timeoutMs": TIMEOUT.as_millis()});
    let body = json!({"clientID": "c", "tools": [tool]});
    assert_eq!(world.admin.json("POST /client-tools/register", body).await.0, 200);
    let mut stream = world.admin.stream("/client-tools/pending/c").await;
    let body = json!({"toolID": "client_c_t", "input": {}});
    let mut call = WaitingCall::call(&world.admin, body);
    let request = stream.named("tool-request").await.json();
    for _ in 0..2 * TIMEOUT.as_secs() / PROGRESS_EVERY.as_secs() {
        pass(PROGRESS_EVERY).await;
        let progress = json!({"requestID": request["requestID"], "percent": 1});
        let (status, told) = world.admin.json("POST /client-tools/progress", progress).await;
        assert_eq!(status, 200, "{told}");
        assert!(call.is_waiting());
    }
    assert_eq!(succeed(&world.admin, &request["requestID"], "late").await.0, 200);
    let (status, answer) = call.answer().await;
    assert_eq!((status, &answer["output"]), (200, &json!("late")));
}
