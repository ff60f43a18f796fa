//! Callers that are tool servers. The server is the program inside of another session, so that the
//! test can see what reaches it.

use ringback_broker::PartyMessage;
use ringback_proto::ids::SessionId;
use ringback_testkit::within;
use serde_json::{Value, json};

use crate::agent::Door;
use crate::callers::failed;
use crate::support::{OpenedSession, World, opened_of};

/// Starts the program inside of a session, and writes its process id to the workspace.
fn server(world: &World, behind: &OpenedSession) -> Value {
    let program = env!("CARGO_BIN_EXE_ringback");
    let script = r#"echo $$ > "$2/pid"; exec "$0" inside --socket "$1""#;
    let socket = world.socket(behind.id);
    let args = ["-c", script, program, socket.as_str(), "{workspace}"];
    json!({ "command": "/bin/sh", "args": args, "workspace": "write" })
}

/// A session whose caller `srv` is that server.
async fn served(world: &World, behind: &OpenedSession) -> OpenedSession {
    let context = json!({ "caller_id": "srv", "caller_server": server(world, behind) });
    let opened = world.call("session_open", json!({ "context": context })).await.unwrap();
    opened_of(&opened)
}

async fn pid(world: &World, session: SessionId) -> rustix::process::Pid {
    let shown = world.call("session_get", json!({ "session_id": session.to_string() })).await;
    let path = shown.unwrap()["workspace_path"].as_str().unwrap().to_owned();
    let text = std::fs::read_to_string(format!("{path}/pid")).unwrap();
    rustix::process::Pid::from_raw(text.trim().parse().unwrap()).unwrap()
}

/// REQ: issue "a caller may also be a stdio MCP server": its tools are a caller's, with progress,
/// cancel and changes of its list.
#[tokio::test]
async fn the_tools_of_a_server_are_a_caller_s_tools() {
    let world = World::start().await;
    let behind = world.open(r#"[{"name":"x","description":"does x"}]"#).await;
    let mut caller = world.caller(behind.id);
    let session = served(&world, &behind).await;
    for door in [Door::Socket, Door::Modern] {
        let mut agent = world.agent(door, &session).await;
        assert_eq!(agent.names().await, ["srv_ant_x"], "{door:?}");
        agent.ask(1, "srv_ant_x", r#"{"n":12345678901234567890}"#).await;
        let call = caller.next_call().await;
        assert_eq!(call.arguments.bytes, r#"{"n":12345678901234567890}"#, "{door:?}");
        let progress = json!({
            "session_id": behind.id.to_string(), "request_id": &*call.request_id,
            "percent": 50.0, "message": "half",
        });
        world.call("caller_tool_progress", progress).await.unwrap();
        let told = agent.told("notifications/progress").await;
        assert_eq!(told["params"]["message"], "half", "{door:?}");
        world.answer(&caller, &call, r#""result":{"n":12345678901234567890}"#).await.unwrap();
        let answer = agent.answer_text(1).await;
        assert!(answer.contains(r#""structuredContent":{"n":12345678901234567890}"#), "{answer}");
        agent.ask(2, "srv_ant_x", "{}").await;
        let call = caller.next_call().await;
        world.answer(&caller, &call, r#""error":"no paper""#).await.unwrap();
        let failure = agent.answer(2).await;
        assert_eq!(failure["result"]["isError"], true, "{door:?}: {failure}");
        agent.ask(3, "srv_ant_x", "{}").await;
        caller.next_call().await;
        agent.cancel(3).await;
        assert!(matches!(caller.next().await, PartyMessage::Cancel { .. }), "{door:?}");
    }
    let mut agent = world.agent(Door::Legacy, &session).await;
    world.declare(behind.id, "ant", json!([{ "name": "y" }])).await;
    agent.told("notifications/tools/list_changed").await;
    assert_eq!(agent.names().await, ["srv_ant_y"]);
    world.stop().await;
}

/// Rule: a tool server that has ended is not restarted, and its calls fail immediately; a tool
/// server ends with its session.
#[tokio::test]
async fn a_server_that_ends_is_gone_and_one_ends_with_its_session() {
    let world = World::start().await;
    let behind = world.open(r#"[{"name":"x"}]"#).await;
    let mut caller = world.caller(behind.id);
    let session = served(&world, &behind).await;
    let mut agent = world.agent(Door::Socket, &session).await;
    agent.ask(1, "srv_ant_x", "{}").await;
    caller.next_call().await;
    let first = pid(&world, session.id).await;
    rustix::process::kill_process(first, rustix::process::Signal::KILL).unwrap();
    assert_eq!(failed(&agent.answer(1).await), "gone may_have_run");
    let context = json!({ "caller_id": "srv", "caller_server": server(&world, &behind) });
    let id = session.id.to_string();
    let again = json!({ "session_id": id, "message": "again", "context": context });
    world.call("session_message", again).await.unwrap();
    let next = agent.call(2, "srv_ant_x", "{}").await;
    assert_eq!(failed(&next), "gone not_started", "it is not started again");

    let other = served(&world, &behind).await;
    let second = pid(&world, other.id).await;
    assert!(rustix::process::test_kill_process(second).is_ok());
    within("the session ends", world.end(other.id)).await;
    assert!(rustix::process::test_kill_process(second).is_err(), "its server has ended with it");
    world.stop().await;
}

/// Rule: only an admin token may name a program to run, and an unusable one is reported.
#[tokio::test]
async fn only_an_administrator_names_a_server() {
    let world = World::start().await;
    let behind = world.open("[]").await;
    let context = json!({ "caller_id": "srv", "caller_server": server(&world, &behind) });
    let (_, writer) = world.token("write").await;
    let open = json!({ "context": context }).to_string();
    let denied = world.call_text(&writer, "session_open", &open).await.unwrap_err();
    assert_eq!(denied.code, "permission_denied");
    let n_before = world.broker.under_way().n_sessions;
    for (server, said) in [
        (json!({ "command": "/no/such/program" }), "program not found"),
        (json!({ "command": "bin/server" }), "absolute path"),
        (json!({ "command": "/bin/true" }), "cannot be used"),
        (json!({ "command": "/bin/cat", "env": ["NO_SUCH_NAME"] }), "NO_SUCH_NAME"),
    ] {
        let context = json!({ "caller_id": "srv", "caller_server": server });
        let refused = world.call("session_open", json!({ "context": context })).await.unwrap_err();
        assert_eq!(refused.code, "invalid_params", "{refused:?}");
        assert!(refused.message.contains(said), "{refused:?}");
    }
    assert_eq!(world.broker.under_way().n_sessions, n_before, "nothing is left of them");
    world.stop().await;
}
