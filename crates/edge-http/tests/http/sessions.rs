//! `/v1/sessions`: agents are started, followed and ended, and their callers receive calls on a
//! stream.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use ringback_broker::Answer;
use ringback_proto::any::{Any, Format};
use ringback_proto::envelope::CallOptions;
use ringback_proto::{Certainty, Error, ErrorKind, ResponseEnvelope, ToolResponse};
use ringback_testkit::{pass, within};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::{Agent, Options, Sse, World, code};

const INPUT: &str = r#"{"zeta":9007199254740993,"alpha":null,"huge":12345678901234567890}"#;

/// A running call of an agent.
struct AgentCall(JoinSet<Option<ResponseEnvelope>>);

fn agent_calls(world: &World, session: &str, caller_id: &str, input: &str) -> AgentCall {
    let arguments = Any { format: Format::Json, bytes: Bytes::copy_from_slice(input.as_bytes()) };
    let (id, options) = (session.parse().unwrap(), CallOptions::default());
    let (caller_id, tool) = (Some(caller_id), "send".to_owned());
    let edge = ringback_broker::Edge::Relay;
    let answer = world.broker.call_from_session(id, caller_id, tool, arguments, options, edge);
    let mut waiting = JoinSet::new();
    waiting.spawn(async move {
        match answer {
            Answer::Now(reply) => Some(reply),
            Answer::Later(mut replies, _control) => replies.next().await,
        }
    });
    AgentCall(waiting)
}

impl AgentCall {
    async fn end(mut self) -> Result<Bytes, Error> {
        match within("an answer", self.0.join_next()).await {
            Some(Ok(Some(ResponseEnvelope::Success {
                response: ToolResponse::Passed(passed),
            }))) => Ok(passed.bytes),
            Some(Ok(Some(ResponseEnvelope::Error(error)))) => Err(error.into()),
            other => panic!("another end: {other:?}"),
        }
    }
}

async fn project(agent: &Agent) -> Value {
    static N_MADE: AtomicU32 = AtomicU32::new(0);
    let name = format!("p{}", N_MADE.fetch_add(1, Ordering::Relaxed));
    let made = agent.json("POST /v1/tools/project_create/call", json!({"name": name})).await;
    made.1["result"]["project_id"].clone()
}

/// Starts an agent with a tool `send` of `caller_id`; returns its session.
async fn start(agent: &Agent, caller_id: &str) -> String {
    let message = json!({
        "project_id": project(agent).await, "message": "work",
        "caller_id": caller_id, "caller_tools": [{"name": "send"}],
    });
    let (status, told) = agent.json("POST /v1/sessions", message).await;
    assert_eq!((status, &told["spawned"]), (201, &json!(true)), "{told}");
    told["session_id"].as_str().unwrap().to_owned()
}

async fn respond(agent: &Agent, session: &str, request: &Value, result: &str) -> (u16, Value) {
    let id = &request["request_id"];
    let body = format!(r#"{{"session_id":"{session}","request_id":{id},"result":{result}}}"#);
    agent.ask("POST /v1/tools/caller_tool_response/call", &[], &body).await
}

/// The events of a stream up to one with this status.
async fn until(stream: &mut Sse, status: &str) -> Vec<(String, Value)> {
    let mut events = Vec::new();
    loop {
        let frame = stream.next().await.expect("the stream goes on");
        if frame.event == "ping" {
            continue;
        }
        let data = frame.json();
        let is_last = data["status"] == status;
        events.push((frame.id, data));
        if is_last {
            return events;
        }
    }
}

#[tokio::test]
async fn a_session_is_started_listed_messaged_and_ended() {
    let world = World::start().await;
    let owner = world.agent("write").await;
    let session = start(&owner, "ant").await;
    let path = format!("/v1/sessions/{session}");
    let (status, shown) = owner.get(&path).await;
    assert_eq!((status, &shown["session_id"]), (200, &json!(session)), "{shown}");
    let (_, listed) = owner.get("/v1/sessions?limit=10").await;
    assert_eq!(listed["sessions"][0]["session_id"], json!(session), "{listed}");

    let message = json!({"session_id": session, "message": "more"}).to_string();
    let key = ["idempotency-key: once"];
    let (status, told) = owner.ask("POST /v1/sessions", &key, &message).await;
    assert_eq!((status, &told["spawned"]), (200, &json!(false)), "{told}");
    let (status, again) = owner.ask("POST /v1/sessions", &key, &message).await;
    assert_eq!((status, again), (200, told), "the same key is the same message");

    let stranger = world.agent("write").await;
    for line in ["GET", "DELETE"].map(|method| format!("{method} {path}")) {
        let (status, answer) = stranger.ask(&line, &[], "").await;
        assert_eq!((status, code(&answer)), (404, "NOT_FOUND"));
    }
    // For a stranger, the callers of a session look like those of one that does not exist.
    for tool in ["caller_tool_requests", "caller_tool_response", "caller_tool_progress"] {
        let ask = async |session: &str| {
            let input = json!({ "session_id": session, "request_id": "1", "percent": 1.0 });
            let line = format!("POST /v1/tools/{tool}/call");
            let (status, answer) = stranger.json(&line, input).await;
            (status, answer.to_string().replace(session, "ID"))
        };
        let unknown = format!("gogol_{}", "0".repeat(32));
        let (theirs, none) = (ask(&session).await, ask(&unknown).await);
        assert_eq!((theirs.0, &theirs), (404, &none), "{tool}");
    }
    let (_, listed) = stranger.get("/v1/sessions").await;
    assert_eq!(listed["sessions"], json!([]));
    let (status, _) = stranger.get(&format!("{path}/events")).await;
    assert_eq!(status, 404);

    assert_eq!(owner.ask(&format!("DELETE {path}"), &[], "").await.0, 200);
    assert_eq!(owner.get(&path).await.1["status"], "ended");
    let (status, answer) = owner.json("POST /v1/sessions", json!({"message": "x"})).await;
    assert_eq!((status, code(&answer)), (400, "INVALID_REQUEST"));
}

/// REQ: design "Reaching a caller": `GET /v1/sessions/{id}/events`; REQ-CTR-003 there.
#[tokio::test]
async fn a_stream_brings_what_a_session_says_and_the_calls_for_its_caller() {
    let world = World::start().await;
    let session = start(&world.admin, "ant").await;
    let path = format!("/v1/sessions/{session}/events");
    let mut stream = world.admin.stream(&path).await;
    let call = agent_calls(&world, &session, "ant", INPUT);
    let frame = stream.named("caller_tool_request").await;
    assert!(frame.id.is_empty(), "it is not a place to resume from");
    assert!(frame.data.contains(&format!(r#""arguments":{INPUT}"#)), "{}", frame.data);
    let request = frame.json();
    assert_eq!(
        (&request["type"], &request["tool"]),
        (&"caller_tool_request".into(), &"send".into())
    );
    assert_eq!(
        (&request["session_id"], &request["root_session_id"]),
        (&json!(session), &json!(session))
    );
    assert!(request["deadline_ms"].as_u64().unwrap() > 50_000);
    assert_eq!(respond(&world.admin, &session, &request, INPUT).await.0, 200);
    assert_eq!(call.end().await.unwrap(), INPUT);
    assert_eq!(respond(&world.admin, &session, &request, "2").await.0, 404, "once");

    let rest = json!({"session_id": session, "message": "rest"});
    assert_eq!(world.admin.json("POST /v1/sessions", rest).await.0, 200);
    let said = until(&mut stream, "idle").await;
    assert!(said.iter().any(|(_, event)| event["text"] == "I rest"), "{said:?}");
    let line = format!("DELETE /v1/sessions/{session}");
    assert_eq!(world.admin.ask(&line, &[], "").await.0, 200);
    assert_eq!(stream.named("end").await.json()["status"], "ended");
    assert_eq!(stream.next().await, None);
}

/// Rule: a follower that comes back continues after its last event.
#[tokio::test]
async fn a_follower_resumes_by_index() {
    let world = World::start().await;
    let session = start(&world.admin, "ant").await;
    let rest = json!({"session_id": session, "message": "rest"});
    world.admin.json("POST /v1/sessions", rest).await;
    let path = format!("/v1/sessions/{session}/events?callers=no");
    let all = until(&mut world.admin.stream(&path).await, "idle").await;
    for (place, (id, event)) in all.iter().enumerate() {
        assert_eq!(*id, place.to_string());
        assert_eq!(event["index"], place);
    }
    let header = ["last-event-id: 1"];
    let mut resumed = world.admin.send(&format!("GET {path}"), &header, "").await.events();
    assert_eq!(until(&mut resumed, "idle").await, all[2..]);
    let mut since = world.admin.stream(&format!("{path}&since_index=1")).await;
    assert_eq!(until(&mut since, "idle").await, all[2..]);
}

/// Rule: a caller whose stream closed is gone immediately; a mere observer is not a caller.
#[tokio::test]
async fn a_caller_is_there_as_long_as_its_stream_and_only_if_it_wants_calls() {
    let world = World::start().await;
    let session = start(&world.admin, "ant").await;
    let path = format!("/v1/sessions/{session}/events");
    let mut looker = world.admin.stream(&format!("{path}?callers=no")).await;
    let mut other = world.admin.stream(&format!("{path}?callers=bee,cat")).await;
    let mut stream = world.admin.stream(&format!("{path}?callers=ant,bee")).await;
    let call = agent_calls(&world, &session, "ant", "{}");
    stream.named("caller_tool_request").await;
    drop(stream);
    let error = call.end().await.unwrap_err();
    assert_eq!((error.kind(), error.certainty()), (ErrorKind::Gone, Certainty::MayHaveRun));
    let line = format!("DELETE /v1/sessions/{session}");
    assert_eq!(world.admin.ask(&line, &[], "").await.0, 200);
    for stream in [&mut looker, &mut other] {
        while let Some(frame) = stream.next().await {
            assert_ne!(frame.event, "caller_tool_request");
        }
    }
}

#[tokio::test]
async fn a_call_that_is_over_is_called_off() {
    let world = World::start().await;
    let session = start(&world.admin, "ant").await;
    let mut stream = world.admin.stream(&format!("/v1/sessions/{session}/events")).await;
    let call = agent_calls(&world, &session, "ant", "{}");
    let request = stream.named("caller_tool_request").await.json();
    drop(call);
    let cancel = stream.named("caller_tool_cancel").await.json();
    assert_eq!(cancel["request_id"], request["request_id"]);
}

/// Rule: keepalives on every stream; a stream ends with its token.
#[tokio::test]
async fn a_quiet_session_is_pinged_and_a_revoked_token_ends_the_stream() {
    let keepalive = Duration::from_secs(20);
    let world = World::start_with(Options { keepalive, ..Options::default() }).await;
    let owner = world.agent("write").await;
    let session = start(&owner, "ant").await;
    let mut stream = owner.stream(&format!("/v1/sessions/{session}/events")).await;
    pass(keepalive).await;
    assert_eq!(stream.named("ping").await.raw, "event: ping\ndata: \n\n");
    let call = agent_calls(&world, &session, "ant", "{}");
    stream.named("caller_tool_request").await;
    let revoke = format!("DELETE /v1/tokens/{}", owner.token_id);
    assert_eq!(world.admin.ask(&revoke, &[], "").await.0, 200);
    stream.ended().await;
    assert!(call.end().await.is_err());
}
