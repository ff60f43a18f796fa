//! The bare relay: an HTTP caller, a client that receives calls as server-sent events, and its
//! answers by POST. It makes the hops and nothing else: no token, no schema, no owner, no deadline.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use futures_util::stream;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

/// Runs this program as the bare relay.
pub(crate) const ROLE: &str = "--role-bare-relay";
/// The most calls that wait for the stream.
const WAITING_MAX: usize = 1024;

#[derive(Default)]
struct Relay {
    n_calls: AtomicU64,
    stream: Mutex<Option<mpsc::Sender<String>>>,
    waiting: Mutex<HashMap<String, oneshot::Sender<Bytes>>>,
}

#[derive(Deserialize)]
struct ExecuteBody<'a> {
    #[serde(rename = "toolID")]
    tool_id: &'a str,
    #[serde(borrow)]
    input: &'a RawValue,
}

#[derive(Deserialize)]
struct PostedResult<'a> {
    #[serde(rename = "requestID")]
    request_id: &'a str,
    #[serde(borrow)]
    result: &'a RawValue,
}

pub(crate) async fn run() -> anyhow::Result<()> {
    let routes = Router::new()
        .route("/client-tools/register", post(async || "{}"))
        .route("/client-tools/pending/{client}", get(pending))
        .route("/client-tools/execute", post(execute))
        .route("/client-tools/result", post(result))
        .with_state(Arc::<Relay>::default());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    crate::bare::say(&format!("http://{}", listener.local_addr()?))?;
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    Ok(axum::serve(listener, routes).await?)
}

async fn pending(State(relay): State<Arc<Relay>>) -> Response {
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    *lock(&relay.stream) = Some(sender);
    let frames = stream::unfold(receiver, |mut receiver| async {
        let frame: String = receiver.recv().await?;
        Some((Ok::<_, Infallible>(frame), receiver))
    });
    ([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(frames)).into_response()
}

async fn execute(State(relay): State<Arc<Relay>>, body: Bytes) -> Result<Response, StatusCode> {
    let call: ExecuteBody<'_> =
        serde_json::from_slice(&body).map_err(|_| StatusCode::BAD_REQUEST)?;
    let id = relay.n_calls.fetch_add(1, Ordering::Relaxed).to_string();
    let frame = format!(
        "event: tool-request\ndata: {{\"requestID\":\"{id}\",\"tool\":\"{}\",\"input\":{}}}\n\n",
        call.tool_id, call.input
    );
    let (sender, receiver) = oneshot::channel();
    lock(&relay.waiting).insert(id, sender);
    let stream = lock(&relay.stream).clone().ok_or(StatusCode::SERVICE_UNAVAILABLE)?;
    stream.send(frame).await.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    let answer = receiver.await.map_err(|_| StatusCode::BAD_GATEWAY)?;
    Ok(([(CONTENT_TYPE, "application/json")], answer).into_response())
}

async fn result(State(relay): State<Arc<Relay>>, body: Bytes) -> Result<&'static str, StatusCode> {
    let posted: PostedResult<'_> =
        serde_json::from_slice(&body).map_err(|_| StatusCode::BAD_REQUEST)?;
    let caller = lock(&relay.waiting).remove(posted.request_id).ok_or(StatusCode::NOT_FOUND)?;
    drop(caller.send(body.slice_ref(posted.result.get().as_bytes())));
    Ok("{\"success\":true}")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
