//! `GET /event`: events as they happen, for those they concern.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::extract::State as With;
use axum::http::{HeaderMap, Version};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use ringback_broker::{Broker, Credential, LineStream, Published, Subscription};
use ringback_proto::Event;
use ringback_proto::event::{ClientToolCall, SequencedEvent};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::Interval;

use crate::api::{Auth, Content, Operation, Route};
use crate::caller::StreamCaller;
use crate::client_tools::frames::{PING, Pieces, frame, request};
use crate::client_tools::{line, pings};
use crate::edge::State;
use crate::error::HttpError;
use crate::extractors::QueryValue;
use crate::sse;

const ABOUT: &str = "Events `{type, properties}`, each with an `id` to resume from: first \
    `server.connected`, then the events of your tools, calls and jobs, or of everyone's for an \
    admin. `server.missed` has the number of events that are no longer stored.";

/// Events to read at a time: few enough to keep in memory for each subscriber.
const PAGE: usize = 64;

/// The query parameters.
#[derive(Debug, Deserialize, JsonSchema)]
struct Query {
    /// A client of yours whose calls this stream also carries.
    #[serde(default, rename = "clientID")]
    client_id: Option<String>,
}

/// A subscriber.
struct Listener {
    broker: Broker,
    credential: Credential,
    subscription: Subscription,
    /// The last event that was read, visible or not.
    seq: u64,
    line: Option<LineStream>,
    pings: Interval,
    waiting: VecDeque<Pieces>,
}

/// What comes next.
enum NextItem {
    Events(Vec<Arc<Published>>),
    Frame(Pieces),
    End,
}

pub(crate) fn routes() -> Vec<Route> {
    vec![Route::get(
        "/event",
        event,
        Operation::new("events", "subscribe", "Streams events as they happen.")
            .auth(Auth::TokenOrTicket)
            .query::<Query>()
            .header("Last-Event-ID", "The `id` of the last event you received.")
            .answers(200, "Events.", Content::Events(ABOUT)),
    )]
}

async fn event(
    With(state): With<State>,
    version: Version,
    StreamCaller(credential): StreamCaller,
    QueryValue(asked): QueryValue<Query>,
    headers: HeaderMap,
) -> Result<Response, HttpError> {
    if version < Version::HTTP_11 {
        return Err(HttpError::NoStreaming);
    }
    let broker = state.broker().clone();
    credential.principal(broker.now())?;
    let mut subscription = broker.subscribe();
    if let Some((epoch, seq)) = last_event(&headers) {
        subscription.resume(epoch, seq);
    }
    let line = match &asked.client_id {
        Some(client_id) => Some(broker.lines().open(&credential, &line(client_id)?)?),
        None => None,
    };
    let listener = Listener {
        credential: credential.clone(),
        seq: subscription.cursor(),
        subscription,
        line,
        pings: pings(&state),
        waiting: VecDeque::from([vec![connected()]]),
        broker,
    };
    Ok(sse::frames(&state, credential, stream::unfold(listener, Listener::step)))
}

impl Listener {
    async fn step(mut self) -> Option<(Pieces, Self)> {
        loop {
            if let Some(pieces) = self.waiting.pop_front() {
                return Some((pieces, self));
            }
            match self.next().await {
                NextItem::Frame(pieces) => self.waiting.push_back(pieces),
                NextItem::Events(page) => self.take(&page)?,
                NextItem::End => return None,
            }
        }
    }

    /// A call of the client goes before an event: a caller is waiting for it.
    async fn next(&mut self) -> NextItem {
        // A subscriber of events only need not see pings.
        let ping = if self.line.is_some() { PING } else { Bytes::from_static(b": ping\n\n") };
        let line = self.line.as_mut();
        let post = async {
            match line {
                Some(line) => line.next().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            post = post => post.map_or(NextItem::End, |post| NextItem::Frame(frame(&post))),
            page = self.subscription.next(PAGE) => NextItem::Events(page),
            _ = self.pings.tick() => NextItem::Frame(vec![ping]),
        }
    }

    /// Keeps what this caller may see; `None` once its token has ended.
    fn take(&mut self, page: &[Arc<Published>]) -> Option<()> {
        let sight = self.credential.sight(self.broker.now()).ok()?;
        let id = self.credential.id();
        for published in page {
            let event = &published.event.event;
            if !event.is_live() {
                let seq = published.event.seq;
                let n_missed = seq.saturating_sub(self.seq + 1);
                self.seq = seq;
                if n_missed > 0 {
                    self.waiting.push_back(vec![missed(n_missed)]);
                }
            }
            if event.is_shared() || sight.includes(published.owner, published.project) {
                self.waiting.push_back(self.told(&published.event, published.owner == id));
            }
        }
        Some(())
    }

    fn told(&self, sequenced: &SequencedEvent, is_own: bool) -> Pieces {
        // A live event has no place to continue from.
        let id = if sequenced.event.is_live() {
            String::new()
        } else {
            format!("id: {}-{}\n", sequenced.epoch, sequenced.seq)
        };
        if let Event::ClientToolRequest(call) = &sequenced.event {
            return self.told_request(&id, call, is_own);
        }
        let (kind, properties) = parts(&sequenced.event);
        vec![format!("{id}data: {{\"type\":{kind},\"properties\":{properties}}}\n\n").into()]
    }

    /// A request with its input for its owner while the call lasts; without it for all others.
    fn told_request(&self, id: &str, call: &ClientToolCall, is_own: bool) -> Pieces {
        let client_id = serde_json::Value::from(&*call.client_id);
        let before = format!(
            "{id}data: {{\"type\":\"client-tool.request\",\"properties\":{{\"clientID\":{client_id},\
             \"request\":"
        );
        let waiting = is_own
            .then(|| self.broker.lines().waiting_request(&self.credential, &call.request_id))
            .flatten();
        match waiting {
            Some(waiting) => {
                let (head, input) = request(&waiting);
                let before = format!("{before}{head},\"input\":");
                vec![before.into(), input, Bytes::from_static(b"}}}\n\n")]
            }
            None => {
                let mut request = serde_json::json!(call);
                request["type"] = "client-tool-request".into();
                if let serde_json::Value::Object(fields) = &mut request {
                    fields.remove("clientID");
                }
                vec![format!("{before}{request}}}}}\n\n").into()]
            }
        }
    }
}

/// The type of an event as JSON, and its other fields.
fn parts(event: &Event) -> (serde_json::Value, serde_json::Value) {
    let mut properties = serde_json::json!(event);
    let kind = properties.as_object_mut().and_then(|fields| fields.remove("type"));
    (kind.unwrap_or_default(), properties)
}

fn connected() -> Bytes {
    Bytes::from_static(b"data: {\"type\":\"server.connected\",\"properties\":{}}\n\n")
}

fn missed(n_missed: u64) -> Bytes {
    format!("data: {{\"type\":\"server.missed\",\"properties\":{{\"count\":{n_missed}}}}}\n\n")
        .into()
}

/// The last event that a returning subscriber received. An invalid value is ignored.
fn last_event(headers: &HeaderMap) -> Option<(u64, u64)> {
    let (epoch, seq) = headers.get("last-event-id")?.to_str().ok()?.split_once('-')?;
    Some((epoch.parse().ok()?, seq.parse().ok()?))
}
