//! Bodies pass in pieces, both ways.

use std::convert::Infallible;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use hyper::{Request, Response, StatusCode};
use ringback_testkit::within;
use tokio::sync::mpsc;

use crate::support::{Body, Upstream, World, full, post};

/// A body whose pieces a test sends one by one.
fn piecewise() -> (mpsc::Sender<&'static str>, Body) {
    let (sender, receiver) = mpsc::channel::<&'static str>(1);
    let pieces = stream::unfold(receiver, async |mut receiver| {
        let piece = receiver.recv().await?;
        Some((Ok::<_, Infallible>(Frame::data(Bytes::from_static(piece.as_bytes()))), receiver))
    });
    (sender, StreamBody::new(Box::pin(pieces)).boxed_unsync())
}

/// REQ: "Model access without the key in the box": a stream of events passes as it is made.
#[tokio::test]
async fn the_first_event_arrives_before_the_second_is_made() {
    let (sender, body) = piecewise();
    let body = std::sync::Mutex::new(Some(body));
    let upstream = Upstream::start(move |_| {
        let mut response = Response::new(body.lock().unwrap().take().unwrap());
        let event_stream = "text/event-stream".parse().unwrap();
        response.headers_mut().insert("content-type", event_stream);
        async move { response }
    })
    .await;
    let mut world = World::start(&upstream.url);
    let mut agent = world.connect().await;
    let answer = agent.send_request(post("/v1/messages", full("{}"))).await.unwrap();
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let mut body = answer.into_body();
    for event in ["data: one\n\n", "data: two\n\n", "data: three\n\n"] {
        sender.send(event).await.unwrap();
        let frame = within("an event comes", body.frame()).await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), event);
    }
    drop(sender);
    assert!(within("the stream ends", body.frame()).await.is_none());
    let (_, record) = world.records(1).await.remove(0);
    assert_eq!((record.status, record.is_whole, record.usage.bytes_down), (Some(200), true, 35));
    world.stop().await;
}

/// Rule: a request is not collected either.
#[tokio::test]
async fn a_request_is_passed_on_while_it_is_still_being_made() {
    let (told, mut hears) = mpsc::channel::<Bytes>(4);
    let upstream = Upstream::start(move |request: Request<hyper::body::Incoming>| {
        let told = told.clone();
        async move {
            let mut body = request.into_body();
            while let Some(Ok(frame)) = body.frame().await {
                told.send(frame.into_data().unwrap()).await.unwrap();
            }
            Response::new(full("all of it"))
        }
    })
    .await;
    let mut world = World::start(&upstream.url);
    let mut agent = world.connect().await;
    let (sender, body) = piecewise();
    let answering = agent.send_request(post("/v1/messages", body));
    let sending = async {
        for piece in ["one", "two"] {
            sender.send(piece).await.unwrap();
            assert_eq!(within("a piece comes", hears.recv()).await.unwrap(), piece);
        }
        drop(sender);
    };
    let (answer, ()) = tokio::join!(answering, sending);
    assert_eq!(answer.unwrap().status(), StatusCode::OK);
    assert_eq!(upstream.asked()[0].headers["transfer-encoding"], "chunked");
    world.stop().await;
}

/// Rule: an agent that leaves ends its request at the provider, and that is recorded.
#[tokio::test]
async fn an_agent_that_leaves_ends_its_request() {
    let (gone, mut is_gone) = mpsc::channel::<()>(1);
    let gone = std::sync::Mutex::new(Some(gone));
    let upstream = Upstream::start(move |_| {
        let gone = gone.lock().unwrap().take();
        async move {
            let _until_dropped = gone;
            std::future::pending().await
        }
    })
    .await;
    let mut world = World::start(&upstream.url);
    let mut agent = world.connect().await;
    {
        let asking = std::pin::pin!(agent.send_request(post("/v1", full("{}"))));
        let is_asked = async {
            while upstream.asked().is_empty() {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            _ = asking => panic!("no one answers"),
            () = within("the provider is asked", is_asked) => {}
        }
    }
    drop(agent);
    assert!(within("the provider sees it", is_gone.recv()).await.is_none());
    let (session, record) = world.records(1).await.remove(0);
    assert_eq!((session, record.status, record.is_whole), (world.session, None, false));
    world.stop().await;
}

#[tokio::test]
async fn requests_without_a_body_stay_so_and_share_a_connection() {
    let upstream = Upstream::fine().await;
    let mut world = World::start(&upstream.url);
    let mut agent = world.connect().await;
    for method in ["GET", "HEAD", "DELETE"] {
        agent.ready().await.unwrap();
        let request = Request::builder().method(method).uri("/v1/models").body(full("")).unwrap();
        let answer = agent.send_request(request).await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK, "{method}");
        answer.into_body().collect().await.unwrap();
    }
    for asked in upstream.asked() {
        assert!(!asked.headers.contains_key("transfer-encoding"), "{asked:?}");
    }
    world.stop().await;
}
