//! `GET /v1/jobs/{id}/events`.

use serde_json::json;

use crate::support::{Agent, World, code};

async fn sleep(agent: &Agent, milliseconds: u64) -> String {
    let prefer = ["prefer: respond-async"];
    let body = json!({"milliseconds": milliseconds}).to_string();
    let (status, started) = agent.ask("POST /v1/tools/job_sleep/call", &prefer, &body).await;
    assert_eq!(status, 202, "{started}");
    started["job"]["job_id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_job_is_followed_to_its_end() {
    let world = World::start().await;
    let job = sleep(&world.admin, 200).await;
    let path = format!("/v1/jobs/{job}/events");
    let mut events = world.admin.stream(&path).await;
    let first = events.next().await.unwrap();
    assert_eq!((first.event.as_str(), &first.json()["job_id"]), ("job", &json!(job)));
    let progress = events.named("job.progress").await.json();
    assert!(progress["percent"].is_number() && progress["job_id"] == json!(job), "{progress}");
    let changed = events.named("job.state_changed").await.json();
    assert_eq!(changed["state"], "complete", "{changed}");
    let end = events.named("end").await.json();
    assert_eq!(end["result"], json!({"type": "slept", "milliseconds": 200}));
    assert_eq!(events.next().await, None);

    let mut after = world.admin.stream(&path).await;
    assert_eq!(after.next().await.unwrap().event, "end");
    assert_eq!(after.next().await, None);
}

#[tokio::test]
async fn a_job_is_followed_only_by_those_who_may_see_it() {
    let world = World::start().await;
    let (owner, stranger) = (world.agent("write").await, world.agent("write").await);
    let path = format!("/v1/jobs/{}/events", sleep(&owner, 60_000).await);
    let (status, answer) = stranger.get(&path).await;
    assert_eq!((status, code(&answer)), (404, "NOT_FOUND"));
    assert_eq!(owner.stream(&path).await.next().await.unwrap().event, "job");
    assert_eq!(world.admin.stream(&path).await.next().await.unwrap().event, "job");
}

/// Rule: revoking a token closes the streams it opened.
#[tokio::test]
async fn a_stream_ends_with_its_token_and_with_the_daemon() {
    let world = World::start().await;
    let owner = world.agent("write").await;
    let path = format!("/v1/jobs/{}/events", sleep(&owner, 60_000).await);
    let mut streams = [owner.stream(&path).await, owner.stream("/event").await];
    let mut admins = world.admin.stream(&path).await;
    let revoke = format!("DELETE /v1/tokens/{}", owner.token_id);
    assert_eq!(world.admin.ask(&revoke, &[], "").await.0, 200);
    for stream in &mut streams {
        stream.ended().await;
    }
    world.stopping().cancel();
    admins.ended().await;
}
