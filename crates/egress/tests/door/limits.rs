//! What is refused: too much, too many, and paths that lead elsewhere.

use std::time::Duration;

use hyper::{Request, Response, StatusCode};
use ringback_egress::{Config, Price, Prices};
use ringback_proto::money::MicroUsd;
use ringback_proto::request::ModelUsage;
use ringback_testkit::{wait_for, within};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::support::{FullAnswer, Upstream, World, full, post, whole};

/// The error in an answer of the proxy.
fn kind(answer: &FullAnswer) -> String {
    assert_eq!(answer.headers["content-type"], "application/json");
    let body: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
    assert!(body["type"] == "error" && body["error"]["message"].is_string(), "{body}");
    body["error"]["type"].as_str().unwrap().to_owned()
}

/// Rule: a body that is too large is refused by its length, or where it exceeds the limit.
#[tokio::test]
async fn a_body_that_is_too_large_is_refused() {
    let upstream = Upstream::fine().await;
    let config = Config { request_bytes_max: 10, ..Config::default() };
    let mut world = World::start_with(&upstream.url, config, |_| ());
    assert_eq!(world.post("/", "0123456789").await.status, StatusCode::OK);
    let refused = world.post("/", "0123456789a").await;
    assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(kind(&refused), "too_large");
    assert_eq!(upstream.asked().len(), 1, "its length is known");

    let pieces = ["01234", "56789", "a"].map(|piece| {
        Ok::<_, std::convert::Infallible>(hyper::body::Frame::data(bytes::Bytes::from(piece)))
    });
    let body = http_body_util::StreamBody::new(futures_util::stream::iter(pieces));
    let body = http_body_util::BodyExt::boxed_unsync(body);
    let refused = world.ask(post("/", body)).await;
    assert_eq!(
        (refused.status, kind(&refused).as_str()),
        (StatusCode::PAYLOAD_TOO_LARGE, "too_large")
    );
    world.stop().await;
}

/// Rule: an answer over its limit is cut off, and recorded so.
#[tokio::test]
async fn an_answer_that_is_too_long_is_cut_off() {
    let upstream = Upstream::start(|_| async { Response::new(full("0123456789a")) }).await;
    let config = Config { answer_bytes_max: 10, ..Config::default() };
    let mut world = World::start_with(&upstream.url, config, |_| ());
    let mut agent = world.connect().await;
    let reading = async {
        let answer = agent.send_request(post("/", full(""))).await?;
        http_body_util::BodyExt::collect(answer.into_body()).await
    };
    assert!(within("the answer ends", reading).await.is_err());
    assert!(!world.records(1).await[0].1.is_whole);
    world.stop().await;
}

/// Rule: one session has a limit of running requests; the next one gets `busy`.
#[tokio::test]
async fn more_requests_at_once_than_allowed_are_told_to_wait() {
    static MAY_ANSWER: Semaphore = Semaphore::const_new(0);
    let upstream = Upstream::start(|_| async {
        MAY_ANSWER.acquire().await.unwrap().forget();
        Response::new(full("at last"))
    })
    .await;
    let config = Config { requests_at_once_max: 2, ..Config::default() };
    let mut world = World::start_with(&upstream.url, config, |_| ());
    let mut waiting = JoinSet::new();
    for _ in 0..2 {
        let mut agent = world.connect().await;
        waiting.spawn(async move { agent.send_request(post("/", full(""))).await.unwrap() });
    }
    within("both are running", async {
        while upstream.asked().len() < 2 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let refused = world.post("/", "").await;
    assert_eq!((refused.status, kind(&refused).as_str()), (StatusCode::TOO_MANY_REQUESTS, "busy"));
    assert!(refused.headers.contains_key("retry-after"));
    MAY_ANSWER.add_permits(3);
    for response in within("both are answered", waiting.join_all()).await {
        assert_eq!(whole(response).await.body, "at last");
    }
    assert_eq!(world.post("/", "").await.status, StatusCode::OK, "there is room again");
    world.stop().await;
}

/// Rule: a session has a limit of requests in total; another session has its own.
#[tokio::test]
async fn a_session_that_has_used_up_its_requests_is_refused() {
    let upstream = Upstream::fine().await;
    let mut world =
        World::start_with(&upstream.url, Config::default(), |model| model.requests_max = Some(2));
    for _ in 0..2 {
        assert_eq!(world.post("/v1", "abc").await.status, StatusCode::OK);
    }
    let refused = world.post("/v1", "abc").await;
    assert_eq!((refused.status, kind(&refused).as_str()), (StatusCode::FORBIDDEN, "used_up"));
    let records = world.records(3).await.into_iter();
    let usage = records.fold(ModelUsage::default(), |sum, (_, record)| sum.plus(record.usage));
    assert_eq!((usage.requests, usage.refused, usage.bytes_up, usage.bytes_down), (2, 1, 6, 26));
    assert_eq!(upstream.asked().len(), 2);
    let other = crate::support::session(2);
    let _guard = world.open(other);
    world.session = other;
    assert_eq!(world.post("/v1", "").await.status, StatusCode::OK);
    world.stop().await;
}

/// REQ: "requests of the door wait": one that is not admitted yet waits, and is then answered; one
/// that is never admitted is refused with `used_up`, and does not reach the provider.
#[tokio::test]
async fn a_request_waits_until_somebody_lets_it_through() {
    let upstream = Upstream::fine().await;
    let mut world = World::start(&upstream.url);
    world.records.1.send_replace(None);
    let mut agent = world.connect().await;
    let mut asking = Box::pin(agent.send_request(post("/v1", full("abc"))));
    let is_held = async || world.records.1.receiver_count() > 0;
    tokio::select! {
        early = &mut asking => panic!("nothing has been decided: {early:?}"),
        () = wait_for("it waits to be admitted", is_held) => {}
    }
    assert!(upstream.asked().is_empty(), "nothing has been decided");
    world.records.1.send_replace(Some(true));
    let answer = whole(within("it is answered", asking).await.unwrap()).await;
    assert_eq!((answer.status, upstream.asked().len()), (StatusCode::OK, 1));
    world.records.1.send_replace(Some(false));
    let refused = world.post("/v1", "abc").await;
    assert_eq!((refused.status, kind(&refused).as_str()), (StatusCode::FORBIDDEN, "used_up"));
    assert!(refused.body.contains("`max_tokens`"), "{refused:?}");
    assert_eq!(upstream.asked().len(), 1);
    world.stop().await;
}

/// REQ: "counts requests and tokens": as the answer passes, in the words of its provider.
#[tokio::test]
async fn tokens_are_counted_as_an_answer_passes() {
    let events = "data: {\"model\":\"m-1\",\"choices\":[]}\n\ndata: {\"model\":\"m-1\",\"usage\":{\"prompt_tokens\":19,\"completion_tokens\":10}}\n\ndata: [DONE]\n\n";
    let upstream = Upstream::start(move |_| async move {
        let mut response = Response::new(full(events));
        let kind = "text/event-stream".parse().unwrap();
        response.headers_mut().insert("content-type", kind);
        response
    })
    .await;
    let mut world = World::start_with(&upstream.url, Config::default(), |model| {
        let (input, output) = (MicroUsd(1_000_000), MicroUsd(10_000_000));
        let price = Price { input, output, cache_read: None, cache_write: None };
        model.prices = Prices([("m*".to_owned(), price)].into());
    });
    assert_eq!(
        world.post("/v1/chat/completions", "{}").await.body,
        events,
        "and nothing is changed"
    );
    let (_, record) = world.records(1).await.remove(0);
    let usage = record.usage;
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.estimated), (19, 10, false));
    assert_eq!((usage.cost_micro_usd, usage.unpriced_tokens), (Some(MicroUsd(119)), 0));
    assert_eq!(record.answered_by.as_deref(), Some("m-1"));
    world.stop().await;
}

/// Rule: no upgrade, no tunnel, no path that leads elsewhere; each leaves a record.
#[tokio::test]
async fn what_leads_elsewhere_is_refused() {
    let upstream = Upstream::fine().await;
    let mut world = World::start(&format!("{}/team-a", upstream.url));
    let upgrade =
        Request::get("/ws").header("connection", "upgrade").header("upgrade", "websocket");
    let upgrade = world.ask(upgrade.body(full("")).unwrap()).await;
    assert_eq!(
        (upgrade.status, kind(&upgrade).as_str()),
        (StatusCode::NOT_IMPLEMENTED, "upgrade_refused")
    );
    let tunnel = Request::connect("evil.example:443").body(full("")).unwrap();
    let tunnel = world.ask(tunnel).await;
    assert_eq!(tunnel.status, StatusCode::NOT_IMPLEMENTED);
    for path in ["/../team-b", "/%2e%2e/team-b"] {
        let refused = world.post(path, "").await;
        assert_eq!(
            (refused.status, kind(&refused).as_str()),
            (StatusCode::BAD_REQUEST, "bad_path")
        );
    }
    assert_eq!(upstream.asked().len(), 0);
    let records = world.records(4).await;
    assert_eq!(records[2].1.path, "/../team-b");
    let absolute = world.post("http://evil.example/v1?x=secret", "").await;
    assert_eq!(absolute.status, StatusCode::OK);
    assert_eq!(upstream.asked()[0].uri, "/team-a/v1?x=secret");
    let (_, record) = world.records(5).await.remove(4);
    assert_eq!((record.method.as_str(), record.path.as_str()), ("POST", "/v1"), "without a query");
    world.stop().await;
}

/// Rule: a body that stalls does not hold its place forever.
#[tokio::test]
async fn a_body_that_stops_coming_is_given_up() {
    let upstream = Upstream::fine().await;
    let config = Config { body_timeout: Duration::from_millis(50), ..Config::default() };
    let mut world = World::start_with(&upstream.url, config, |_| ());
    let body = http_body_util::StreamBody::new(futures_util::stream::pending::<
        Result<hyper::body::Frame<bytes::Bytes>, std::convert::Infallible>,
    >());
    let refused = world.ask(post("/", http_body_util::BodyExt::boxed_unsync(body))).await;
    assert_eq!((refused.status, kind(&refused).as_str()), (StatusCode::REQUEST_TIMEOUT, "stalled"));
    world.stop().await;
}
