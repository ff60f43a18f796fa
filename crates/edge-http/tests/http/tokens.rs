//! `/v1/tokens` and `/v1/tickets`.

use serde_json::json;

use crate::support::{World, code};

#[tokio::test]
async fn tokens_are_made_listed_and_revoked_by_admins_alone() {
    let world = World::start().await;
    let body = json!({"name": "ci", "scope": "read", "expires_in": 3600}).to_string();
    let reply = world.admin.send("POST /v1/tokens", &[], body.clone()).await;
    assert_eq!((reply.status, reply.header("cache-control")), (201, "no-store"));
    let location = reply.header("location").to_owned();
    let (_, made) = reply.json().await;
    assert!(made["token"].as_str().unwrap().starts_with("oub_"));
    let (_, listed) = world.admin.get("/v1/tokens").await;
    let names: Vec<_> = listed["tokens"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert!(names.contains(&&json!("ci")), "{listed}");
    assert!(!listed.to_string().contains(made["token"].as_str().unwrap()));

    let writer = world.agent("write").await;
    for (line, body) in [("GET /v1/tokens", ""), ("POST /v1/tokens", body.as_str())] {
        let (status, denied) = writer.ask(line, &[], body).await;
        assert_eq!((status, code(&denied)), (403, "FORBIDDEN"));
    }
    assert_eq!(world.admin.ask(&format!("DELETE {location}"), &[], "").await.0, 200);
    let ci = crate::support::Agent {
        token: made["token"].as_str().unwrap().to_owned(),
        ..world.admin.clone()
    };
    assert_eq!(ci.get("/v1/tools").await.0, 401);
}

/// Rule: a ticket opens one stream, once, and nothing else.
#[tokio::test]
async fn a_ticket_opens_one_stream_and_nothing_else() {
    let world = World::start().await;
    let owner = world.agent("write").await;
    let nobody = owner.nobody();
    let ticket = async || {
        let reply = owner.send("POST /v1/tickets", &[], "").await;
        assert_eq!((reply.status, reply.header("cache-control")), (201, "no-store"));
        let (_, issued) = reply.json().await;
        assert_eq!(issued["expires_in_ms"], 60_000);
        issued["ticket"].as_str().unwrap().to_owned()
    };
    for path in ["/event", "/event?clientID=page", "/client-tools/pending/page"] {
        let separator = if path.contains('?') { '&' } else { '?' };
        let path = format!("{path}{separator}ticket={}", ticket().await);
        drop(nobody.stream(&path).await);
        let (status, used) = nobody.get(&path).await;
        assert_eq!((status, code(&used)), (401, "UNAUTHENTICATED"), "{path}");
    }
    let ticket = ticket().await;
    for path in ["/v1/tools", "/v1/jobs", "/client-tools/tools"] {
        assert_eq!(nobody.get(&format!("{path}?ticket={ticket}")).await.0, 401, "{path}");
    }
    let revoke = format!("DELETE /v1/tokens/{}", owner.token_id);
    assert_eq!(world.admin.ask(&revoke, &[], "").await.0, 200);
    assert_eq!(nobody.get(&format!("/event?ticket={ticket}")).await.0, 401);
}
