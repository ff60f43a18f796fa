//! `POST /client-tools/register`, `DELETE /client-tools/unregister` and the lists.

use serde_json::{Value, json};

use crate::support::{Agent, World, code};

/// A tool that takes any object.
pub(crate) fn tool(id: &str) -> Value {
    json!({"id": id, "description": format!("does {id}"), "parameters": {"type": "object"}})
}

pub(crate) async fn register(agent: &Agent, client: &str, tools: &[&str]) {
    let tools: Vec<_> = tools.iter().map(|id| tool(id)).collect();
    let body = json!({"clientID": client, "tools": tools});
    let (status, answer) = agent.json("POST /client-tools/register", body).await;
    assert_eq!(status, 200, "{answer}");
}

/// REQ: seed 004 "Testing Strategy" 1: an empty list is an empty array, and an empty map.
#[tokio::test]
async fn without_tools_the_lists_are_empty() {
    let world = World::start().await;
    assert_eq!(world.admin.get("/client-tools/tools/nobody").await, (200, json!([])));
    assert_eq!(world.admin.get("/client-tools/tools").await, (200, json!({})));
}

/// REQ: seed 004 "Tool ID Format", and "Testing Strategy" 2 and 3.
#[tokio::test]
async fn registered_tools_are_listed_in_order_by_client_and_in_all() {
    let world = World::start().await;
    let body = json!({"clientID": "my-client", "tools": [tool("search-docs"), tool("a b/%ü")]});
    let (status, answer) = world.admin.json("POST /client-tools/register", body).await;
    let full = ["client_my-client_search-docs", "client_my-client_a b/%ü"];
    assert_eq!((status, answer), (200, json!({"registered": full})));
    register(&world.admin, "an other", &["z"]).await;

    let (_, own) = world.admin.get("/client-tools/tools/my-client").await;
    let expected = |id: &str, name: &str| json!({"id": id, "description": format!("does {name}"), "parameters": {"type": "object"}});
    let listed = [expected(full[0], "search-docs"), expected(full[1], "a b/%ü")];
    assert_eq!(own, json!(listed));
    let (_, other) = world.admin.get("/client-tools/tools/an%20other").await;
    assert_eq!(other[0]["id"], "client_an other_z");
    let text = world.admin.send("GET /client-tools/tools", &[], "").await.text().await;
    let places =
        [full[0], full[1], "client_an other_z"].map(|id| text.find(&format!("\"{id}\":{{")));
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{text}");

    let more =
        json!({"clientID": "my-client", "tools": [{"id": "search-docs", "description": "new"}]});
    assert_eq!(world.admin.json("POST /client-tools/register", more).await.0, 200);
    let (_, own) = world.admin.get("/client-tools/tools/my-client").await;
    assert_eq!(own.as_array().unwrap().len(), 2, "registering adds and replaces: {own}");
    // In its old place: registering again replaces it.
    assert_eq!((&own[0]["id"], &own[0]["description"]), (&json!(full[0]), &json!("new")));
    let again = world.admin.send("GET /client-tools/tools", &[], "").await.text().await;
    assert!(again.find(full[0]) < again.find(full[1]), "{again}");
}

/// Rule: a schema is listed unchanged.
#[tokio::test]
async fn a_schema_is_shown_byte_for_byte() {
    let world = World::start().await;
    let schema =
        r#"{"type":"object", "z":1e2,"properties":{"b":{},"a":{"maximum":18446744073709551615}}}"#;
    let body = format!(r#"{{"clientID":"c","tools":[{{"id":"t","parameters":{schema}}}]}}"#);
    let (status, answer) = world.admin.ask("POST /client-tools/register", &[], &body).await;
    assert_eq!(status, 200, "{answer}");
    let listed = world.admin.send("GET /client-tools/tools/c", &[], "").await.text().await;
    assert!(listed.contains(schema), "{listed}");
}

/// REQ: seed 004 "Error Handling", missing clientID. Rule: nothing is half registered.
#[tokio::test]
async fn what_does_not_fit_is_400_and_registers_nothing() {
    let world = World::start().await;
    let line = "POST /client-tools/register";
    for body in [
        "",
        "{",
        r#"{"tools": []}"#,
        r#"{"clientID": "", "tools": []}"#,
        r#"{"clientID": 7, "tools": []}"#,
        r#"{"clientID": "c"}"#,
        r#"{"clientID": "c", "tools": [{"id": "good"}, {"id": ""}]}"#,
        r#"{"clientID": "c", "tools": [{"id": "good"}, {"id": "b", "parameters": null}]}"#,
        r#"{"clientID": "c", "tools": [{"id": "good"}, {"id": "b", "parameters": []}]}"#,
        r#"{"clientID": "c", "tools": [{"id": "good"}, {"id": "b", "parameters": {"type": "string"}}]}"#,
        r#"{"clientID": "c", "tools": [{"id": "good"}, {"id": "b", "parameters": {"type": 5}}]}"#,
        r#"{"clientID": "c", "tools": [{"id": "good", "timeoutMs": 60001}]}"#,
    ] {
        let (status, answer) = world.admin.ask(line, &[], body).await;
        assert_eq!((status, code(&answer)), (400, "INVALID_REQUEST"), "{body}: {answer}");
    }
    for line in ["GET /client-tools/pending/", "GET /client-tools/tools/"] {
        let (status, answer) = world.admin.ask(line, &[], "").await;
        assert_eq!((status, code(&answer)), (400, "INVALID_REQUEST"), "{line}");
    }
    for body in ["{}", r#"{"clientID": ""}"#] {
        let (status, _) = world.admin.ask("DELETE /client-tools/unregister", &[], body).await;
        assert_eq!(status, 400);
    }
    assert_eq!(world.admin.get("/client-tools/tools").await.1, json!({}));
}

/// REQ: seed 004 `DELETE /client-tools/unregister`.
#[tokio::test]
async fn tools_are_unregistered_by_either_id_all_or_none() {
    let world = World::start().await;
    let unregister = async |body: Value| {
        let (status, answer) = world.admin.json("DELETE /client-tools/unregister", body).await;
        assert_eq!((status, &answer["success"]), (200, &json!(true)), "{answer}");
        answer["unregistered"].clone()
    };
    register(&world.admin, "c", &["a", "b", "c", "client_x"]).await;
    assert_eq!(unregister(json!({"clientID": "c", "toolIDs": []})).await, json!([]));
    let some = json!({"clientID": "c", "toolIDs": ["a", "client_c_b", "nothing"]});
    assert_eq!(unregister(some).await, json!(["client_c_a", "client_c_b"]));
    let own = json!({"clientID": "c", "toolIDs": ["client_x"]});
    assert_eq!(unregister(own).await, json!(["client_c_client_x"]));
    assert_eq!(unregister(json!({"clientID": "c"})).await, json!(["client_c_c"]));
    assert_eq!(unregister(json!({"clientID": "nobody"})).await, json!([]));
    assert_eq!(world.admin.get("/client-tools/tools/c").await.1, json!([]));
}

/// Rule: a clientID belongs to the principal that uses it, and its tools are its own.
#[tokio::test]
async fn a_client_and_its_tools_belong_to_their_principal() {
    let world = World::start().await;
    let (owner, stranger) = (world.agent("write").await, world.agent("write").await);
    register(&owner, "mine", &["t"]).await;
    let body = json!({"clientID": "mine", "tools": [tool("u")]});
    let (status, answer) = stranger.json("POST /client-tools/register", body).await;
    assert_eq!((status, code(&answer)), (403, "FORBIDDEN"));
    for (line, body) in [
        ("GET /client-tools/pending/mine", ""),
        ("DELETE /client-tools/unregister", r#"{"clientID": "mine"}"#),
    ] {
        let (status, answer) = stranger.ask(line, &[], body).await;
        assert_eq!((status, code(&answer)), (403, "FORBIDDEN"), "{line}");
    }
    assert_eq!(stranger.get("/client-tools/tools").await.1, json!({}));
    assert_eq!(stranger.get("/client-tools/tools/mine").await.1, json!([]));
    let call = json!({"toolID": "client_mine_t", "input": {}});
    assert_eq!(stranger.json("POST /client-tools/execute", call).await.0, 404);
    assert_eq!(owner.get("/client-tools/tools/mine").await.1.as_array().unwrap().len(), 1);
    assert_eq!(world.admin.get("/client-tools/tools/mine").await.1.as_array().unwrap().len(), 1);

    let share = json!({"clientID": "mine", "tools": [tool("s")], "share": [stranger.token_id]});
    assert_eq!(owner.json("POST /client-tools/register", share).await.0, 200);
    let (_, seen) = stranger.get("/client-tools/tools").await;
    assert_eq!(seen.as_object().unwrap().keys().collect::<Vec<_>>(), ["client_mine_s"]);
    let (status, _) = world.agent("read").await.get("/v1/tools/client_mine_s").await;
    assert_eq!(status, 404, "it is shared with one alone");
}

/// Rule: an ambiguous name belongs to the client that registered it first.
#[tokio::test]
async fn two_clients_never_share_a_full_id() {
    let world = World::start().await;
    register(&world.admin, "a", &["b_c"]).await;
    let body = json!({"clientID": "a_b", "tools": [tool("c")]});
    let (status, answer) = world.admin.json("POST /client-tools/register", body).await;
    assert_eq!((status, code(&answer)), (409, "CONFLICT"), "{answer}");
    assert_eq!(world.admin.get("/client-tools/tools/a_b").await.1, json!([]));
}

/// Rule: no client can fill the daemon with tools.
#[tokio::test]
async fn more_tools_than_a_line_may_have_are_refused_and_none_is_kept() {
    let world = World::start().await;
    let tools = |numbers: std::ops::Range<usize>| -> Vec<_> {
        numbers.map(|number| json!({"id": number.to_string()})).collect()
    };
    let too_many = json!({"clientID": "c", "tools": tools(0..10_001)});
    let (status, answer) = world.admin.json("POST /client-tools/register", too_many).await;
    assert_eq!((status, code(&answer)), (503, "BUSY"));
    assert_eq!(world.admin.get("/client-tools/tools/c").await.1, json!([]));
    let just_enough = json!({"clientID": "c", "tools": tools(0..10_000)});
    assert_eq!(world.admin.json("POST /client-tools/register", just_enough).await.0, 200);
    let one_more = json!({"clientID": "c", "tools": tools(10_000..10_001)});
    let (status, answer) = world.admin.json("POST /client-tools/register", one_more).await;
    assert_eq!((status, code(&answer)), (503, "BUSY"));
    let again = json!({"clientID": "c", "tools": tools(7..8)});
    assert_eq!(
        world.admin.json("POST /client-tools/register", again).await.0,
        200,
        "it has a place"
    );
}
