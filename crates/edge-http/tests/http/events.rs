//! `GET /event`.

use serde_json::{Value, json};

use crate::execute::{WaitingCall, succeed};
use crate::register::register;
use crate::support::{Agent, Sse, World, code};

async fn types(stream: &mut Sse, n_events: usize) -> Vec<String> {
    let mut types = Vec::new();
    while types.len() < n_events {
        let event = stream.next().await.unwrap().json();
        let kind = event["type"].as_str().unwrap().to_owned();
        if kind.starts_with("client-tool.") || kind.starts_with("server.") {
            types.push(kind);
        }
    }
    types
}

/// REQ: seed 004 "New Event Types" and "New Event Data Types".
#[tokio::test]
async fn everything_that_happens_to_a_client_tool_is_told() {
    let world = World::start().await;
    let mut events = world.admin.stream("/event").await;
    let first = events.next().await.unwrap();
    assert_eq!(first.raw, "data: {\"type\":\"server.connected\",\"properties\":{}}\n\n");
    register(&world.admin, "c", &["t"]).await;
    let (frame, registered) = events.typed("client-tool.registered").await;
    assert!(frame.raw.starts_with("id: ") && frame.event.is_empty(), "{frame:?}");
    let tools = json!({"clientID": "c", "toolIDs": ["client_c_t"]});
    assert_eq!(registered["properties"], tools);

    let mut stream = world.admin.stream("/client-tools/pending/c").await;
    for (request_id, is_success) in [("good", true), ("bad", false)] {
        let mut call = WaitingCall::call(
            &world.admin,
            json!({"toolID": "client_c_t", "requestID": request_id, "sessionID": "s",
                "messageID": "m", "callID": "k", "input": {"secret": "xyz"}}),
        );
        let (_, requested) = events.typed("client-tool.request").await;
        assert_eq!(requested["properties"]["clientID"], "c");
        assert_eq!(requested["properties"]["request"]["requestID"], request_id);
        assert_eq!(requested["properties"]["request"]["type"], "client-tool-request");
        stream.named("tool-request").await;
        let (_, executing) = events.typed("client-tool.executing").await;
        let told = &executing["properties"];
        let ids = ["sessionID", "messageID", "callID", "tool", "clientID"].map(|name| &told[name]);
        assert_eq!(ids, ["s", "m", "k", "client_c_t", "c"]);
        if is_success {
            assert_eq!(succeed(&world.admin, &json!(request_id), "o").await.0, 200);
            let (_, completed) = events.typed("client-tool.completed").await;
            assert_eq!(completed["properties"]["success"], true);
        } else {
            let error = json!({"requestID": request_id, "status": "error", "error": "broke"});
            assert_eq!(world.admin.json("POST /client-tools/result", error).await.0, 200);
            let (_, failed) = events.typed("client-tool.failed").await;
            assert!(failed["properties"]["error"].is_string(), "{failed}");
        }
        call.answer().await;
    }
    drop(stream);
    let (_, unregistered) = events.typed("client-tool.unregistered").await;
    assert_eq!(unregistered["properties"], tools);
}

/// Rule: one principal does not see the events of another; only its owner sees a full request.
#[tokio::test]
async fn a_subscriber_sees_its_own_and_an_admin_sees_all_but_the_input() {
    let world = World::start().await;
    let (owner, stranger) = (world.agent("write").await, world.agent("write").await);
    let mut own = owner.stream("/event").await;
    let mut others = stranger.stream("/event").await;
    let mut admins = world.admin.stream("/event").await;
    register(&owner, "c", &["t"]).await;
    let call =
        WaitingCall::call(&owner, json!({"toolID": "client_c_t", "input": {"secret": "xyz"}}));
    let (_, full) = own.typed("client-tool.request").await;
    assert_eq!(full["properties"]["request"]["input"], json!({"secret": "xyz"}));
    let (frame, seen) = admins.typed("client-tool.request").await;
    assert_eq!(seen["properties"]["request"]["tool"], "client_c_t");
    assert!(!frame.raw.contains("xyz"), "{frame:?}");
    call.leave().await;
    register(&stranger, "d", &["u"]).await;
    let seen = types(&mut others, 2).await;
    assert_eq!(seen, ["server.connected", "client-tool.registered"], "nothing came between");
}

/// Rule: a token narrowed to a project gets the events of the project, and no others.
#[tokio::test]
async fn a_token_of_a_project_gets_the_events_of_the_project() {
    let world = World::start().await;
    let project = async |name: &str| {
        let made = world.admin.json("POST /v1/tools/project_create/call", json!({"name": name}));
        made.await.1["result"]["project_id"].clone()
    };
    let (one, two) = (project("one").await, project("two").await);
    let agent = async |project: &Value| {
        let body = json!({"name": "test", "scope": "write", "projects": [project]});
        let (status, made) = world.admin.json("POST /v1/tokens", body).await;
        assert_eq!(status, 201, "{made}");
        let text = |name: &str| made[name].as_str().unwrap().to_owned();
        Agent { addr: world.admin.addr, token: text("token"), token_id: text("token_id") }
    };
    let (maker, member, stranger) = (agent(&one).await, agent(&one).await, agent(&two).await);
    let mut events = member.stream("/event").await;
    for agent in [&stranger, &world.admin, &maker] {
        let (status, slept) =
            agent.json("POST /v1/tools/job_sleep/call", json!({"milliseconds": 0})).await;
        assert_eq!(status, 200, "{slept}");
    }
    let (_, listed) = maker.get("/v1/jobs").await;
    let (_, seen) = events.typed("job.state_changed").await;
    assert!(seen["properties"]["job_id"].is_string(), "{seen}");
    assert_eq!(seen["properties"]["job_id"], listed["jobs"][0]["job_id"], "{listed}");
}

#[tokio::test]
async fn a_subscriber_that_comes_back_gets_what_it_missed() {
    let world = World::start().await;
    let mut events = world.admin.stream("/event").await;
    register(&world.admin, "a", &["t"]).await;
    let (last, _) = events.typed("client-tool.registered").await;
    drop(events);
    register(&world.admin, "b", &["t"]).await;
    let header = format!("last-event-id: {}", last.id);
    let mut events = world.admin.send("GET /event", &[&header], "").await.events();
    let (_, registered) = events.typed("client-tool.registered").await;
    assert_eq!(registered["properties"]["clientID"], "b");
    let strange = world.admin.send("GET /event", &["last-event-id: what"], "").await;
    assert_eq!(strange.events().next().await.unwrap().json()["type"], "server.connected");
}

/// Rule: a page needs one stream: it carries both events and the calls of its client.
#[tokio::test]
async fn one_stream_carries_events_and_the_calls_of_a_client() {
    let world = World::start().await;
    register(&world.admin, "c", &["t"]).await;
    let mut events = world.admin.stream("/event?clientID=c").await;
    let mut call =
        WaitingCall::call(&world.admin, json!({"toolID": "client_c_t", "requestID": "r"}));
    let request = events.named("tool-request").await.json();
    assert_eq!(
        (&request["type"], &request["requestID"]),
        (&json!("client-tool-request"), &json!("r"))
    );
    assert_eq!(succeed(&world.admin, &json!("r"), "o").await.0, 200);
    assert_eq!(call.answer().await.0, 200);
    drop(events);
    world.settled(|broker| broker.under_way().lines.0 == 0).await;
    let stranger = world.agent("write").await;
    register(&world.admin, "c", &["t"]).await;
    let (status, answer) = stranger.get("/event?clientID=c").await;
    assert_eq!((status, code(&answer)), (403, "FORBIDDEN"));
    assert_eq!(world.admin.get("/event?clientID=").await.0, 400);
}

/// Rule: a burst of events drops none silently.
#[tokio::test]
async fn a_burst_of_ten_thousand_events_arrives_or_is_told_to_be_missed() {
    let world = World::start().await;
    let mut events = world.admin.stream("/event").await;
    let credential = world.broker.authenticate(&world.admin.token).unwrap();
    for number in 0..5_000 {
        let offer = ringback_broker::LineOffer {
            line: ringback_broker::LineName::Client("burst".into()),
            grace_ms: None,
            tools: vec![ringback_broker::ToolOffer {
                name: format!("t{}", number % 10),
                ..ringback_broker::ToolOffer::default()
            }],
        };
        world.broker.lines().offer(&credential, offer).unwrap();
    }
    // Each offer is two events: one for clients, and one for everyone.
    let (mut n_told, mut n_missed) = (0, 0);
    while n_told + n_missed < 10_000 {
        let event: Value = events.next().await.unwrap().json();
        match event["type"].as_str().unwrap() {
            "client-tool.registered" | "tools.changed" => n_told += 1,
            "server.missed" => n_missed += event["properties"]["count"].as_u64().unwrap(),
            _ => {}
        }
    }
    assert_eq!((n_told, n_missed), (10_000, 0), "the ring holds them all");
}
