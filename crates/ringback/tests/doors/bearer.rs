//! The token of a session's URL: what it allows, what it does not, and when it ends.

use std::time::Duration;

use hyper::StatusCode;
use ringback_testkit::{pass, wait_for, within};
use serde_json::json;
use tokio::sync::mpsc;

use crate::agent::{Door, Http};
use crate::support::{OpenedSession, World, opened_of};

fn at(url: String, token: &str, session: &OpenedSession) -> Http {
    let session = OpenedSession { id: session.id, url, token: token.to_owned() };
    Http::new(&session, None, true, mpsc::channel(1).0)
}

async fn status(url: &str, token: &str, session: &OpenedSession) -> StatusCode {
    at(url.to_owned(), token, session).status("tools/list", json!({})).await.0
}

/// Rule: an unknown token, another session's and a replaced one are refused, even by an open
/// daemon, because the token names the session.
#[tokio::test]
async fn only_its_own_token_opens_a_session() {
    let world = World::start().await;
    let (admin, _) = world.token("admin").await;
    let session = world.open("[]").await;
    let other = world.open("[]").await;
    assert_eq!(status(&session.url, &session.token, &session).await, 200);
    for wrong in [admin.as_str(), other.token.as_str(), "", "oub_x"] {
        assert_eq!(status(&session.url, wrong, &session).await, 401, "{wrong}");
    }
    let again = json!({ "session_id": session.id.to_string() });
    let again = opened_of(&world.call("session_open", again).await.unwrap());
    assert_eq!((again.id, &again.url), (session.id, &session.url));
    assert_eq!(status(&session.url, &session.token, &session).await, 401, "it was replaced");
    assert_eq!(status(&again.url, &again.token, &session).await, 200);
    let strange = format!("http://{}/mcp/s/gogol_{}", world.address(), "a".repeat(32));
    assert_eq!(status(&strange, &again.token, &session).await, 404);
    let odd = format!("http://{}/mcp/s/x", world.address());
    assert_eq!(status(&odd, &again.token, &session).await, 404);
    world.stop().await;
}

/// Rule: a session's token is invalid at `/mcp` and for the broker, and cannot be used to get
/// another.
#[tokio::test]
async fn its_token_opens_nothing_else() {
    let world = World::start().await;
    let session = world.open("[]").await;
    let daemon = format!("http://{}/mcp", world.address());
    assert_eq!(status(&daemon, &session.token, &session).await, 401);
    assert!(world.broker.authenticate(&session.token).is_err(), "the one check of every edge");
    assert!(world.broker.authenticate_in(session.id, &session.token).is_err());
    let (_, stranger) = world.token("admin").await;
    let again = json!({ "session_id": session.id.to_string() }).to_string();
    let refused = world.call_text(&stranger, "session_open", &again).await.unwrap_err();
    assert_eq!(refused.code, "not_found", "only the caller of a session may hand it on");
    world.stop().await;
}

/// Rule: the token and open streams end with the session.
#[tokio::test]
async fn its_token_and_its_streams_end_with_the_session() {
    let world = World::start().await;
    for door in [Door::Modern, Door::Legacy] {
        let session = world.open(r#"[{"name":"x"}]"#).await;
        let mut caller = world.caller(session.id);
        let mut agent = world.agent(door, &session).await;
        agent.ask(1, "ant_x", "{}").await;
        caller.next_call().await;
        world.end(session.id).await;
        within("every stream ends", agent.all_streams_end()).await;
        assert_eq!(status(&session.url, &session.token, &session).await, 404, "{door:?}");
        assert_eq!(world.broker.under_way().n_calls, 0, "{door:?}");
    }
    world.stop().await;
}

/// REQ: design "the session as a URL": every session shows its URL, and its token once.
#[tokio::test]
async fn the_first_message_of_a_session_gives_its_url_and_token() {
    let world = World::start().await;
    let project = world.project(None).await.to_string();
    let message = json!({ "project_id": project, "message": "hello" });
    let first = world.call("session_message", message).await.unwrap();
    let session = opened_of(&first);
    assert_eq!(status(&session.url, &session.token, &session).await, 200);
    let message = json!({ "session_id": session.id.to_string(), "message": "more" });
    let second = world.call("session_message", message).await.unwrap();
    assert_eq!(second["url"], session.url);
    assert_eq!(second.get("token"), None, "it is shown once");
    let asked = json!({ "session_id": session.id.to_string() });
    let shown = world.call("session_get", asked.clone()).await.unwrap();
    assert_eq!(shown["url"], session.url);
    let events = world.call("session_events", asked).await.unwrap().to_string();
    let audit = format!("{:?}", world.broker);
    assert!(!events.contains(&session.token) && !audit.contains(&session.token));
    let (_, stranger) = world.token("admin").await;
    let message = json!({ "session_id": session.id.to_string(), "message": "more" }).to_string();
    let told = world.call_text(&stranger, "session_message", &message).await.unwrap();
    assert_eq!((told.get("url"), told.get("token")), (None, None), "only its caller");
    world.stop().await;
}

/// Rule: a session for a remote agent ends when it has been unused for its time.
#[tokio::test]
async fn an_opened_session_ends_when_nobody_uses_it() {
    let world = World::start().await;
    let opened = world.call("session_open", json!({ "ttl_ms": 60_000 })).await.unwrap();
    let session = opened_of(&opened);
    assert_eq!(status(&session.url, &session.token, &session).await, 200);
    pass(Duration::from_secs(60)).await;
    let get = json!({ "session_id": session.id.to_string() });
    wait_for("it ends on its own", async || {
        world.call("session_get", get.clone()).await.unwrap()["status"] == "ended"
    })
    .await;
    assert_eq!(status(&session.url, &session.token, &session).await, 404);
    let (_, writer) = world.token("write").await;
    let longer = json!({ "ttl_ms": 10_000_000_000_u64 }).to_string();
    let refused = world.call_text(&writer, "session_open", &longer).await.unwrap_err();
    assert_eq!(refused.code, "permission_denied");
    world.stop().await;
}

/// Rule: a message to any agent of a project never goes to a remote agent.
#[tokio::test]
async fn a_message_to_a_project_starts_an_agent_beside_one_elsewhere() {
    let world = World::start().await;
    let project = world.project(None).await;
    let opened = world.open_in(project, "[]").await;
    let message = json!({ "project_id": project.to_string(), "message": "hello" });
    let told = world.call("session_message", message).await.unwrap();
    assert_eq!(told["spawned"], true);
    assert_ne!(told["session_id"], opened.id.to_string());
    world.stop().await;
}
