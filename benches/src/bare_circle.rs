//! The bare circle: the hops of a caller tool and nothing else. A relay with a Unix socket for the
//! agent and HTTP for the caller, and a program that passes lines between pipes and socket. No
//! token, no schema, no owner, no deadline.

use std::collections::HashMap;
use std::convert::Infallible;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Context;
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
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

/// Runs this program as the bare relay.
pub(crate) const ROLE: &str = "--role-bare-circle";
/// Runs this program as the bare program inside.
pub(crate) const INSIDE_ROLE: &str = "--role-bare-inside";
/// The relay's socket in its directory.
pub(crate) const SOCKET: &str = "bare.sock";
/// The most calls that wait for the stream.
const WAITING_MAX: usize = 1024;

#[derive(Default)]
struct Relay {
    /// The last one gets the calls; the others are only kept open.
    streams: Mutex<Vec<mpsc::Sender<String>>>,
    waiting: Mutex<HashMap<String, oneshot::Sender<Bytes>>>,
}

#[derive(Deserialize)]
struct CallMessage<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    method: &'a str,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct PostedResult<'a> {
    request_id: &'a str,
    #[serde(borrow)]
    result: &'a RawValue,
}

/// Runs the relay.
pub(crate) async fn run(dir: &str) -> anyhow::Result<()> {
    let relay = Arc::<Relay>::default();
    let routes = Router::new()
        .route("/v1/sessions/{id}/events", get(events))
        .route("/v1/tools/caller_tool_response/call", post(result))
        .with_state(Arc::clone(&relay));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let socket = UnixListener::bind(Path::new(dir).join(SOCKET))?;
    crate::bare::say(&format!("http://{}", listener.local_addr()?))?;
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    let mut serving = JoinSet::<anyhow::Result<()>>::new();
    serving.spawn(async move {
        let mut agents = JoinSet::new();
        loop {
            let (stream, _) = socket.accept().await?;
            agents.spawn(serve(Arc::clone(&relay), stream));
        }
    });
    axum::serve(listener, routes).await?;
    Ok(())
}

/// Serves the agent: an input line is a call, an output line its answer.
async fn serve(relay: Arc<Relay>, stream: UnixStream) -> anyhow::Result<()> {
    let (reader, mut writer) = stream.into_split();
    let mut lines = BufReader::new(reader).lines();
    while let Some(line) = lines.next_line().await? {
        let call: CallMessage<'_> = serde_json::from_str(&line)?;
        let id = call.id.get().to_owned();
        let (sender, receiver) = oneshot::channel();
        lock(&relay.waiting).insert(id.clone(), sender);
        let params = call.params.map_or("{}", RawValue::get);
        let frame = format!(
            "event: caller_tool_request\ndata: {{\"request_id\":\"{id}\",\"arguments\":{params}}}\n\n"
        );
        let to_caller = lock(&relay.streams).last().cloned().context("no caller is connected")?;
        to_caller.send(frame).await?;
        let answer = receiver.await?;
        let answer = std::str::from_utf8(&answer)?;
        let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{answer}}}\n");
        writer.write_all(line.as_bytes()).await?;
    }
    Ok(())
}

async fn events(State(relay): State<Arc<Relay>>) -> Response {
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    lock(&relay.streams).push(sender);
    let frames = stream::unfold(receiver, |mut receiver| async {
        let frame: String = receiver.recv().await?;
        Some((Ok::<_, Infallible>(frame), receiver))
    });
    ([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(frames)).into_response()
}

async fn result(State(relay): State<Arc<Relay>>, body: Bytes) -> Result<&'static str, StatusCode> {
    let posted: PostedResult<'_> =
        serde_json::from_slice(&body).map_err(|_| StatusCode::BAD_REQUEST)?;
    let agent = lock(&relay.waiting).remove(posted.request_id).ok_or(StatusCode::NOT_FOUND)?;
    drop(agent.send(body.slice_ref(posted.result.get().as_bytes())));
    Ok("{\"result\":{}}")
}

/// Runs the program inside: it knows its tool, and passes calls between its pipes and the socket.
pub(crate) async fn inside(socket: &str) -> anyhow::Result<()> {
    let (reader, mut daemon) = UnixStream::connect(socket).await?.into_split();
    let mut answers = BufReader::new(reader).lines();
    let mut agent = BufReader::new(tokio::io::stdin()).lines();
    let mut output = tokio::io::stdout();
    while let Some(line) = agent.next_line().await? {
        let Ok(call) = serde_json::from_str::<CallMessage<'_>>(&line) else { continue };
        let answer = match call.method {
            "tools/call" => {
                daemon.write_all(format!("{line}\n").as_bytes()).await?;
                answers.next_line().await?.context("the relay has ended")?
            }
            _ => format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{}}}}", call.id),
        };
        output.write_all(format!("{answer}\n").as_bytes()).await?;
        output.flush().await?;
    }
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
